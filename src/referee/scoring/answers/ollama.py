"""Ollama's ``/api/chat``: ``message.tool_calls[].function``, often without id or type, arguments an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.core.bakeoff import Fault
from referee.scoring.answers import chat, faults
from referee.scoring.answers.documents import as_text, hides
from referee.scoring.answers.parts import Parts


def parts_of(document: Mapping[str, Any], headers: Mapping[str, str]) -> Parts | Fault:
    """Take an answer apart. Its finish reason is ``stop`` for calls too."""
    message = document.get("message")
    if not isinstance(message, dict):
        return faults.of_no_answer(document, headers, "The answer of HTTP 200 holds no message")
    if document.get("done") is False:
        return faults.infra("stream_broken", "The answer ended before the server said that it was done")
    parts = chat.of_message(message)
    parts.stops_by_call = False
    if hides(document, "message"):
        parts.flags.append("duplicate-keys")
    reason = document.get("done_reason")
    parts.finish = reason if isinstance(reason, str) else None
    parts.count(document, "prompt_eval_count", "eval_count")
    parts.model = as_text(document.get("model")) or None
    return parts
