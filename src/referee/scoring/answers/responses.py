"""OpenAI Responses: calls are items of type ``function_call`` in ``output[]``, beside messages and reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.core.bakeoff import Fault
from referee.scoring.answers import faults
from referee.scoring.answers.documents import Doubled, as_count, as_dict, as_list, as_text, hides
from referee.scoring.answers.parts import Parts

_UNFINISHED = {"queued", "in_progress"}


def parts_of(document: Mapping[str, Any], headers: Mapping[str, str]) -> Parts | Fault:
    """Take a response apart. An ``error`` at the top was read before."""
    status = as_text(document.get("status"))
    if status in _UNFINISHED:
        return faults.infra("pending", "The server answered before the response was finished")
    if status in {"failed", "cancelled"}:
        return faults.infra("error_in_200", f"The answer of HTTP 200 has the status {status}")
    output = document.get("output")
    if not isinstance(output, list):
        return faults.of_no_answer(document, headers, "The answer of HTTP 200 holds no output")
    parts = Parts(stops_by_call=False)
    if hides(document, "output") or any(isinstance(item, Doubled) for item in output):
        parts.flags.append("duplicate-keys")
    said: list[str] = []
    for item in output:
        _take_item(parts, said, as_dict(item))
    parts.text = "".join(said)
    if not output and isinstance(document.get("output_text"), str):
        parts.text = as_text(document["output_text"])
    reason = as_dict(document.get("incomplete_details")).get("reason")
    parts.finish = reason if isinstance(reason, str) else (status or None)
    if parts.finish == "incomplete":
        parts.finish = "length"
    usage = as_dict(document.get("usage"))
    parts.count(usage, "input_tokens", "output_tokens")
    parts.cached_tokens = as_count(as_dict(usage.get("input_tokens_details")).get("cached_tokens"))
    parts.model = as_text(document.get("model")) or None
    return parts


def _take_item(parts: Parts, said: list[str], item: Mapping[str, Any]) -> None:
    kind = item.get("type")
    if kind == "function_call":
        parts.add_call(item.get("name"), item.get("arguments"))
    elif kind == "message":
        content = item.get("content")
        for piece in [{"type": "output_text", "text": content}] if isinstance(content, str) else as_list(content):
            piece_of = as_dict(piece)
            if piece_of.get("type") in ("output_text", "text"):
                said.append(as_text(piece_of.get("text")))
            elif piece_of.get("type") == "refusal":
                parts.refusal = as_text(piece_of.get("refusal"))
    elif kind == "reasoning":
        parts.reasoned = True
    elif kind == "custom_tool_call":
        parts.break_("no-function", "a free-form call was given, which was not offered")
    else:
        parts.flags.append("unknown-item")
