"""A model server on loopback that costs as little as can be: ``python bench/loopback_model.py [--delay-ms 20]``.

Speaks OpenAI's chat completions over kept-alive HTTP/1.1, straight on an asyncio protocol. To every question it answers
with one call, ``get_weather`` with the last ``CityN`` of the question. Prints its port and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re

CITY = re.compile(rb"City\d+")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
MODEL = "loopback"


def answer(question: bytes, number: int) -> bytes:
    cities = CITY.findall(question)
    arguments = json.dumps({"city": cities[-1].decode() if cities else "?"})
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}
    usage = {"prompt_tokens": len(question) // 4, "completion_tokens": 20, "total_tokens": len(question) // 4 + 20}
    return json.dumps(
        {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
            "usage": usage,
            "system_fingerprint": "fp_loopback",
        }
    ).encode()


class Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    answered = 0

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.waiting = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take whole requests off what came; answer each after the delay."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end]
            found = LENGTH.search(head)
            whole = end + 4 + (int(found.group(1)) if found else 0)
            if len(self.waiting) < whole:
                return
            body, self.waiting = self.waiting[end + 4 : whole], self.waiting[whole:]
            if head.startswith(b"GET"):
                self.send(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())
                continue
            Connection.answered += 1
            said = answer(body, Connection.answered)
            if self.delay:
                asyncio.get_running_loop().call_later(self.delay, self.send, said)
            else:
                self.send(said)

    def send(self, body: bytes) -> None:
        """Answer."""
        if self.transport is not None and not self.transport.is_closing():
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def serve(delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Connection(delay), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    asyncio.run(serve(parser.parse_args().delay_ms / 1000))
