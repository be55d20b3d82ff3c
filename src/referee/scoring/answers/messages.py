"""Anthropic messages: calls are blocks of type ``tool_use`` in ``content[]``, their ``input`` an object.

A block that is the last one of an answer cut at its token limit is incomplete as the provider documents it: an
object cannot show that it was cut, so it is a format failure. Text from a stream shows it and is read as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.core.bakeoff import Fault
from referee.scoring.answers import faults
from referee.scoring.answers.documents import Doubled, as_count, as_dict, as_text, hides
from referee.scoring.answers.parts import Parts

_CUT = {"max_tokens", "model_context_window_exceeded"}


def parts_of(document: Mapping[str, Any], headers: Mapping[str, str]) -> Parts | Fault:
    """Take a message apart."""
    content = document.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return faults.of_no_answer(document, headers, "The answer of HTTP 200 holds no content")
    parts = Parts()
    if hides(document, "content") or any(isinstance(block, Doubled) for block in content):
        parts.flags.append("duplicate-keys")
    stop = as_text(document.get("stop_reason"))
    parts.finish = stop or None
    said: list[str] = []
    for place, raw in enumerate(content, start=1):
        block = as_dict(raw)
        kind = as_text(block.get("type"))
        if kind == "text":
            said.append(as_text(block.get("text")))
        elif kind == "tool_use":
            given = block.get("input")
            if stop in _CUT and place == len(content) and not isinstance(given, str):
                parts.break_("truncated", "the answer was cut within its last call")
                continue
            parts.add_call(block.get("name"), given)
        elif kind in {"thinking", "redacted_thinking"}:
            parts.reasoned = True
        else:
            parts.flags.append("unknown-item")
    parts.text = "".join(said)
    _take_usage(parts, as_dict(document.get("usage")))
    parts.model = as_text(document.get("model")) or None
    return parts


def _take_usage(parts: Parts, usage: Mapping[str, Any]) -> None:
    """This surface counts cached input apart; a reading's input includes it."""
    parts.count(usage, "input_tokens", "output_tokens")
    parts.cached_tokens = as_count(usage.get("cache_read_input_tokens"))
    if parts.input_tokens is not None:
        written = as_count(usage.get("cache_creation_input_tokens"))
        parts.input_tokens += (parts.cached_tokens or 0) + (written or 0)
