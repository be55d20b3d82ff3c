"""Serves the picker over loopback in OpenAI's format, so that the ordinary lane asks it like any model."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from referee.adapters.keyword_baseline.picker import VERSION, Offered, Picked, offer, pick

MODEL = "keyword-baseline"
_HOST = "127.0.0.1"
_MOST_BYTES = 8 * 2**20
#: Suites name tens of lists of tools, not thousands.
_REMEMBERED = 512


class BaselineServer:
    """One server on one loop. ``base_url`` is known once it was started."""

    def __init__(self) -> None:
        self.base_url = ""
        self._runner: web.AppRunner | None = None
        self._offered: OrderedDict[str, tuple[Offered, ...]] = OrderedDict()

    async def start(self, port: int = 0) -> str:
        """Listen on 127.0.0.1; port 0 takes a free one. Returns the base URL.

        Raises:
            OSError: the port is taken.
        """
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, _HOST, port).start()
        except OSError:
            await self.close()
            raise
        self.base_url = f"http://{_HOST}:{self._runner.addresses[0][1]}/v1"
        return self.base_url

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "referee"}]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
            question, tools, required = self._understand(body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return _refuse(400, "the request has no known shape", "invalid_request_error")
        if body.get("model") != MODEL:
            return _refuse(404, f"there is only the model {MODEL}", "model_not_found")
        calls = pick(question, tools, required=required)
        if body.get("stream"):
            return await _stream(request, calls)
        return web.json_response(_completion(calls, _usage(len(question), calls)))

    def _understand(self, body: Mapping[str, Any]) -> tuple[str, tuple[Offered, ...], bool]:
        said = [message for message in body["messages"] if message["role"] == "user"]
        question = str(said[-1]["content"]) if said else ""
        choice = body.get("tool_choice", "auto")
        tools = () if choice == "none" else self._tools(body.get("tools") or [])
        return question, tools, choice in {"required", "any"}

    def _tools(self, listed: Sequence[Mapping[str, Any]]) -> tuple[Offered, ...]:
        key = json.dumps(listed, sort_keys=True)
        known = self._offered.get(key)
        if known is None:
            functions = [tool["function"] for tool in listed]
            known = tuple(offer(f["name"], f.get("description") or "", f.get("parameters") or {}) for f in functions)
            self._offered[key] = known
            if len(self._offered) > _REMEMBERED:
                self._offered.popitem(last=False)
        return known


async def start_embedded() -> tuple[str, Callable[[], Awaitable[None]]]:
    """Start a server on the running loop for one lane: its base URL, and how to stop it."""
    server = BaselineServer()
    return await server.start(), server.close


def serve(port: int, announce: Callable[[str], None]) -> None:
    """Serve until it is interrupted; ``announce`` gets the base URL once it listens.

    Raises:
        OSError: the port is taken.
        KeyboardInterrupt: as it came.
    """

    async def forever() -> None:
        server = BaselineServer()
        announce(await server.start(port))
        try:
            await asyncio.Event().wait()
        finally:
            await server.close()

    asyncio.run(forever())


def _refuse(status: int, message: str, code: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": code, "param": None, "code": code}}, status=status)


def _call(index: int, call: Picked) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": f"call_{index}", "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _message(calls: Sequence[Picked]) -> dict[str, Any]:
    if not calls:
        return {"role": "assistant", "content": "No tool fits, or something that it needs was not said."}
    return {"role": "assistant", "content": None, "tool_calls": [_call(i, call) for i, call in enumerate(calls)]}


def _envelope(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    """What surrounds an answer; without a clock, so that the same question has the same bytes for an answer."""
    head = {"id": "chatcmpl-keyword", "object": kind, "created": 0, "model": MODEL}
    return head | {"system_fingerprint": f"{MODEL}-{VERSION}", "choices": [{"index": 0, **choice}]}


def _finish(calls: Sequence[Picked]) -> str:
    return "tool_calls" if calls else "stop"


def _usage(asked: int, calls: Sequence[Picked]) -> dict[str, int]:
    """Nobody pays for it: characters and calls, so that the fields are there."""
    return {"prompt_tokens": asked, "completion_tokens": len(calls), "total_tokens": asked + len(calls)}


def _completion(calls: Sequence[Picked], usage: dict[str, int]) -> dict[str, Any]:
    choice = {"message": _message(calls), "finish_reason": _finish(calls)}
    return _envelope("chat.completion", choice) | {"usage": usage}


async def _stream(request: web.Request, calls: Sequence[Picked]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for chunk in _chunks(calls):
        await response.write(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _chunks(calls: Sequence[Picked]) -> Iterator[dict[str, Any]]:
    message = _message(calls)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": message["content"]}]
    deltas += [{"tool_calls": [{"index": i, **_call(i, call)}]} for i, call in enumerate(calls)]
    for delta in deltas:
        yield _envelope("chat.completion.chunk", {"delta": delta, "finish_reason": None})
    yield _envelope("chat.completion.chunk", {"delta": {}, "finish_reason": _finish(calls)})
