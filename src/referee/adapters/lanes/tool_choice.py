"""Whether a local server honours ``tool_choice``: ``auto`` and ``required`` are tried before the first case (§4).

The only place of the lanes that looks into an answer, and only for whether a call stands in it: local servers accept
``required`` and then ignore it, which would be read as a model that does not call.
"""

from __future__ import annotations

import json
from http import HTTPStatus

from referee.adapters.lanes.http import Http
from referee.adapters.lanes.patience import look
from referee.core.bakeoff import Retry, Target
from referee.protocols import Said

_PROBE_SECONDS = 120.0
_MOST_TOKENS = 128
_TOOL = {
    "type": "function",
    "function": {
        "name": "note_number",
        "description": "Notes one number.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
}


async def probe_tool_choice(http: Http, target: Target, retry: Retry) -> dict[str, str]:
    """What came of one small question with each choice; a finding, never a reason to stop."""
    found = {}
    for choice in ("auto", "required"):
        body = {
            "model": target.model,
            "messages": [{"role": "user", "content": "Note the number 7."}],
            "tools": [_TOOL],
            "tool_choice": choice,
            target.max_tokens_field: _MOST_TOKENS,
        }
        asked = json.dumps(body).encode()
        said = await look(http, target, "/chat/completions", asked, _PROBE_SECONDS, retry=retry)
        found[f"tool_choice {choice}"] = _finding(said)
    return found


def _finding(said: Said) -> str:
    if said.broke is not None:
        return f"no answer: {said.detail}"
    if said.status != HTTPStatus.OK:
        return f"refused with HTTP {said.status}"
    try:
        message = json.loads(said.body)["choices"][0]["message"]
        called = bool(message.get("tool_calls"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "accepted, the answer has no known shape"
    return "accepted, a call came" if called else "accepted, no call came"
