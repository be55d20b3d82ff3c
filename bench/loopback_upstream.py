"""An upstream on loopback that costs as little as can be: ``python bench/loopback_upstream.py [--pause-ms 50]``.

Speaks OpenAI's chat completions straight on an asyncio protocol: JSON at once, or a stream of five events, the first at
once and each other after a pause. Prints its port and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
MODEL = "loopback"
USAGE = {"prompt_tokens": 5000, "completion_tokens": 120, "total_tokens": 5120}
EVENTS = 5


def whole() -> bytes:
    said = {"role": "assistant", "content": "I look at the README first. " * 20}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return json.dumps({**answer, "usage": USAGE}).encode()


def event(number: int) -> bytes:
    choice = {"index": 0, "delta": {"content": f"piece {number}"}, "finish_reason": None}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def last() -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": []}
    return b"data: " + json.dumps({**chunk, "usage": USAGE}).encode() + b"\n\ndata: [DONE]\n\n"


class Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self.waiting = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take whole requests off what came."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self.waiting[:end])
            length = end + 4 + (int(found.group(1)) if found else 0)
            if len(self.waiting) < length:
                return
            body, self.waiting = self.waiting[end + 4 : length], self.waiting[length:]
            if b'"stream":true' in body.replace(b" ", b""):
                self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                self.stream(0)
            else:
                said = whole()
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(said)}\r\n\r\n"
                self.write(head.encode() + said)

    def stream(self, number: int) -> None:
        """Send one event now, the next one later."""
        if number == EVENTS:
            self.write(_chunk(last()) + b"0\r\n\r\n")
            return
        self.write(_chunk(event(number)))
        asyncio.get_running_loop().call_later(self.pause, self.stream, number + 1)

    def write(self, data: bytes) -> None:
        """Answer."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def serve(pause: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Connection(pause), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause-ms", type=float, default=50.0)
    asyncio.run(serve(parser.parse_args().pause_ms / 1000))
