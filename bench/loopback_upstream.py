"""An upstream on loopback that costs as little as can be: ``python bench/loopback_upstream.py [--pause-ms 50]``.

Speaks OpenAI's chat completions straight on an asyncio protocol: JSON at once, or a stream of five events, the first at
once and each other after a pause. Prints its port and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json

from loopback_http import Connection, serve

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


class Upstream(Connection):
    """Answers at once, or streams with a pause between events."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause

    def asked(self, head: bytes, body: bytes) -> None:  # noqa: ARG002 — whatever is asked, it is a question
        """Answer whole, or begin a stream."""
        if b'"stream":true' in body.replace(b" ", b""):
            self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            self.stream(0)
        else:
            self.send(whole())

    def stream(self, number: int) -> None:
        """Send one event now, the next one later."""
        if number == EVENTS:
            self.write(_chunk(last()) + b"0\r\n\r\n")
            return
        self.write(_chunk(event(number)))
        asyncio.get_running_loop().call_later(self.pause, self.stream, number + 1)


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause-ms", type=float, default=50.0)
    pause = parser.parse_args().pause_ms / 1000
    asyncio.run(serve(lambda: Upstream(pause)))
