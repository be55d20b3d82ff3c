"""An upstream of the gateway that does exactly what a test tells it, also what no sound server does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.loopback import beside_the_test, port_of

KEY = "sk-the-real-key-0123456789abcdefghij"
MODEL = "scripted-1"


@dataclass(frozen=True)
class Heard:
    """One request as the upstream got it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        return json.loads(self.body)


Reply = Callable[[web.BaseRequest, Heard], Awaitable[web.StreamResponse]]


@dataclass
class ScriptedUpstream:
    """Answers with ``reply``; counts what is under way."""

    reply: Reply
    heard: list[Heard] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    dropped: int = 0
    port: int = 0
    loop: asyncio.AbstractEventLoop = field(init=False)
    _runner: web.ServerRunner = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        """Listen without an application: ``serve`` gets what no router would take."""
        self.loop = asyncio.get_running_loop()
        server = web.Server(self.serve, access_log=None, handler_cancellation=True)
        server.request_factory = lambda message, payload, protocol, writer, task: web.BaseRequest(
            message, payload, protocol, writer, task, self.loop, client_max_size=2**27
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = port_of(self._runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read() if request.can_read_body else b""
        headers = {name.lower(): value for name, value in request.headers.items()}
        heard = Heard(request.method, request.path, request.query_string, headers, body)
        self.heard.append(heard)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self.reply(request, heard)
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        finally:
            self.under_way -= 1


@contextlib.contextmanager
def scripted_upstream(reply: Reply) -> Iterator[ScriptedUpstream]:
    """The server in a thread with a loop of its own, while the block runs."""
    with beside_the_test(ScriptedUpstream(reply)) as upstream:
        yield upstream


def said_json(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Always this answer."""

    async def reply(_request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        return web.json_response(document, status=status, headers=headers)

    return reply


def said_stream(events: list[bytes], *, between: Callable[[int], Awaitable[None]] | None = None) -> Reply:
    """A stream of these chunks; ``between`` is awaited before each, with its number."""

    async def reply(request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number, event in enumerate(events):
            if between is not None:
                await between(number)
            await response.write(event)
        await response.write_eof()
        return response

    return reply


def chat(prompt: int, completion: int, text: str = "done", **details: Any) -> dict[str, Any]:
    """A whole answer of chat completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **details}
    return {"id": "c", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}


def chat_events(prompt: int, completion: int, **details: Any) -> list[bytes]:
    """A stream of chat completions with the usage as its own last event."""
    one = {"id": "c", "object": "chat.completion.chunk", "model": MODEL}
    piece = {"index": 0, "delta": {"content": "do"}, "finish_reason": None}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **details}
    chunks = [
        {**one, "choices": [piece], "usage": None},
        {**one, "choices": [{**piece, "delta": {"content": "ne"}, "finish_reason": "stop"}], "usage": None},
        {**one, "choices": [], "usage": usage},
    ]
    return [*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]
