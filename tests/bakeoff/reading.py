"""How the tests of the reader put an answer to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from referee.core.answers import Reading
from referee.core.bakeoff import Shape
from referee.scoring.answers import read


def read_said(
    body: Any,
    shape: Shape = "openai-chat",
    *,
    status: int | None = 200,
    headers: Mapping[str, str] | None = None,
    broke: str | None = None,
    detail: str = "",
    streamed: bool = False,
    inlined: bool = False,
) -> Reading:
    """Read a body given as bytes, text or a JSON value."""
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    sent = text if isinstance(text, bytes) else text.encode("utf-8")
    return read(
        *(status, headers or {}, sent), broke=broke, detail=detail, streamed=streamed, shape=shape, inlined=inlined
    )


def chat(message: Mapping[str, Any], finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion of one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "chatcmpl-7", "object": "chat.completion", "model": "served", "choices": [choice], **more}


def call(name: str, arguments: Any, ident: str | None = "call_1") -> dict[str, Any]:
    """One entry of ``tool_calls``."""
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls_of(reading: Reading) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a reading, bare."""
    return [(one.name, one.arguments) for one in reading.calls]
