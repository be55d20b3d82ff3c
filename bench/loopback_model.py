"""A model server on loopback that costs as little as can be: ``python bench/loopback_model.py [--delay-ms 20]``.

Speaks OpenAI's chat completions over kept-alive HTTP/1.1, straight on an asyncio protocol. To every question it answers
with one call, ``get_weather`` with the last ``CityN`` of the question. Prints its port and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re

from loopback_http import Connection, serve

CITY = re.compile(rb"City\d+")
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


class Model(Connection):
    """Answers each question after the delay."""

    answered = 0

    def __init__(self, delay: float) -> None:
        super().__init__()
        self.delay = delay

    def asked(self, head: bytes, body: bytes) -> None:
        """Answer a question, or list the one model."""
        if head.startswith(b"GET"):
            self.send(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())
            return
        Model.answered += 1
        said = answer(body, Model.answered)
        if self.delay:
            asyncio.get_running_loop().call_later(self.delay, self.send, said)
        else:
            self.send(said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    delay = parser.parse_args().delay_ms / 1000
    asyncio.run(serve(lambda: Model(delay)))
