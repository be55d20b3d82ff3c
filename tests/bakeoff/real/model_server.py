"""A model server on loopback for real agent CLIs: it says one scripted thing in each protocol that they speak.

OpenAI Responses (Codex), chat completions (opencode), ``streamGenerateContent`` (Gemini CLI) and Anthropic messages
(Claude Code), as event streams and whole. What the client sent is kept, so that a test can see what reached the model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.loopback import listen, port_of

MODEL = "scripted-1"

Json = dict[str, Any]


@dataclass
class Script:
    """What the server says.

    Args:
        text: the model's whole answer.
        status: 200, or the status of an error that every model call gets.
        error: the message of that error.
        hang: model calls are taken and never answered.
    """

    text: str = "Done."
    status: int = 200
    error: str = "out of credit"
    hang: bool = False
    asked: list[tuple[str, Json]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def prompts(self) -> str:
        """All that was put to the model, as JSON text."""
        return json.dumps([body for _, body in self.asked], ensure_ascii=False)


@asynccontextmanager
async def model_server(script: Script) -> AsyncIterator[str]:
    """Serve ``script`` on a free port of loopback; gives the address without a path."""
    runner = await listen(_Server(script).answer)
    try:
        yield f"http://127.0.0.1:{port_of(runner)}"
    finally:
        await runner.cleanup()


class _Server:
    def __init__(self, script: Script) -> None:
        self._script = script

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path, said = request.path, _PROTOCOLS.get(_protocol(request.path))
        if request.method != "POST" or said is None:
            return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []})
        body = await request.json()
        self._script.asked.append((path, body))
        self._script.headers.append(dict(request.headers))
        if self._script.hang:
            await asyncio.sleep(600)
        if self._script.status != 200:
            return web.json_response(_error(self._script, _protocol(path)), status=self._script.status)
        streamed = "stream" in path.lower() or bool(body.get("stream"))
        whole, events = said(str(body.get("model", MODEL)), self._script.text)
        if not streamed:
            return web.json_response(whole)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write("".join(events).encode())
        await response.write_eof()
        return response


def _protocol(path: str) -> str:
    if path.endswith(("generateContent", "streamGenerateContent")):
        return "gemini"
    return path.rsplit("/", 1)[-1]


def _error(script: Script, protocol: str) -> Json:
    """The error as each protocol puts it."""
    word = "authentication_error" if script.status == 401 else "billing_error"
    if protocol == "gemini":
        status = "UNAUTHENTICATED" if script.status == 401 else "FAILED_PRECONDITION"
        return {"error": {"code": script.status, "message": script.error, "status": status}}
    if protocol == "messages":
        return {"type": "error", "error": {"type": word, "message": script.error}}
    return {"error": {"message": script.error, "type": word, "param": None, "code": word}}


def _event(body: Json, name: str | None = None) -> str:
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(body)}\n\n"


def _chat(model: str, text: str) -> tuple[Json, list[str]]:
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    head = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": model}
    message = {"role": "assistant", "content": text}
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    chunk = {**head, "object": "chat.completion.chunk"}
    first = {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    return whole, [_event(first), _event(last), "data: [DONE]\n\n"]


def _responses(model: str, text: str) -> tuple[Json, list[str]]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 60,
    }
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": model,
        "output": [item],
        "usage": usage,
    }
    started = {**whole, "status": "in_progress", "output": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[Json] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {"type": "response.output_text.delta", **place, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, [_event(event, str(event["type"])) for event in events]


def _gemini(model: str, text: str) -> tuple[Json, list[str]]:
    whole = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0},
        ],
        "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 10, "totalTokenCount": 60},
        "modelVersion": model,
    }
    return whole, [_event(whole)]


def _messages(model: str, text: str) -> tuple[Json, list[str]]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    whole = {
        **head,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 50, "output_tokens": 10},
    }
    started: Json = {**head, "content": [], "stop_reason": None, "usage": {"input_tokens": 50, "output_tokens": 1}}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[Json] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return whole, [_event(event, str(event["type"])) for event in events]


_PROTOCOLS = {"completions": _chat, "responses": _responses, "gemini": _gemini, "messages": _messages}
