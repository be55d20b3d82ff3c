"""Whether a local server honours ``tool_choice``: ``auto`` and ``required`` are tried before the first case (§4).

The only place of the lanes that looks into an answer, and only for whether a call stands in it: local servers accept
``required`` and then ignore it, which would be read as a model that does not call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from referee.adapters.lanes.http import Http
from referee.adapters.lanes.patience import look
from referee.core.bakeoff import LaneKind, Retry, Target
from referee.protocols import Said

_PROBE_SECONDS = 120.0
_MOST_TOKENS = 128
_ABOUT = {"name": "note_number", "description": "Notes one number."}
_TAKES = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
_SAID = [{"role": "user", "content": "Note the number 7."}]


async def probe_tool_choice(http: Http, target: Target, retry: Retry) -> dict[str, str]:
    """What came of one small question with each choice; a finding, never a reason to stop."""
    found = {}
    path, asked, called = PROBES[target.lane]
    for choice in ("auto", "required"):
        body = json.dumps(asked(target, choice)).encode()
        said = await look(http, target, path, body, _PROBE_SECONDS, retry=retry)
        found[f"tool_choice {choice}"] = _finding(said, called)
    return found


def _finding(said: Said, called: Callable[[Any], bool]) -> str:
    if said.broke is not None:
        return f"no answer: {said.detail}"
    if said.status != HTTPStatus.OK:
        return f"refused with HTTP {said.status}"
    try:
        came = called(json.loads(said.body))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "accepted, the answer has no known shape"
    return "accepted, a call came" if came else "accepted, no call came"


def _chat(target: Target, choice: str) -> dict[str, Any]:
    tool = {"type": "function", "function": {**_ABOUT, "parameters": _TAKES}}
    body = {"model": target.model, "messages": _SAID, "tools": [tool], "tool_choice": choice}
    return body | {target.max_tokens_field: _MOST_TOKENS}


def _responses(target: Target, choice: str) -> dict[str, Any]:
    tool = {"type": "function", **_ABOUT, "parameters": _TAKES, "strict": False}
    body = {"model": target.model, "input": _SAID, "tools": [tool], "tool_choice": choice}
    return body | {"max_output_tokens": _MOST_TOKENS, "store": False}


def _messages(target: Target, choice: str) -> dict[str, Any]:
    tool = {**_ABOUT, "input_schema": _TAKES}
    wanted = {"type": "any" if choice == "required" else choice}
    body = {"model": target.model, "messages": _SAID, "tools": [tool], "tool_choice": wanted}
    return body | {"max_tokens": _MOST_TOKENS}


def _called_in_chat(document: Any) -> bool:
    return bool(document["choices"][0]["message"].get("tool_calls"))


def _called_among(items: str, kind: str) -> Callable[[Any], bool]:
    return lambda document: any(item["type"] == kind for item in document[items])


#: Surfaces on which a call can be required: where to ask, how, and whether a call came.
PROBES: Mapping[LaneKind, tuple[str, Callable[[Target, str], dict[str, Any]], Callable[[Any], bool]]] = {
    "openai-chat": ("/chat/completions", _chat, _called_in_chat),
    "openai-responses": ("/responses", _responses, _called_among("output", "function_call")),
    "anthropic-messages": ("/messages", _messages, _called_among("content", "tool_use")),
}
