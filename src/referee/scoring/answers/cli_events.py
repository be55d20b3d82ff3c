"""What each agent CLI wraps its final text in: one JSON document, or one event a line.

Claude Code and Cursor: a ``result`` document (or the last event of their stream). Codex: ``item.completed`` with an
``agent_message``, ended by ``turn.completed``. Gemini CLI: ``response``, ``error``, ``stats``. opencode: ``text``.
Anything else is the final text itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from referee.scoring.answers.documents import as_count, as_dict, as_list, as_text, load_body_or_none

_OF_RESULT = ("is_error", "result", "status")


@dataclass(slots=True)
class Final:
    """The end of a CLI's run.

    Args:
        text: the final text of the model.
        error: None, or the text of an error that came in its place.
        ended: whether the events came to their end mark.
        structured: an answer that the CLI gives as JSON apart from its text.
        flags: ``used-tools`` when the agent used tools of its own.
    """

    text: str = ""
    error: str | None = None
    ended: bool = True
    structured: Any = None
    finish: str | None = None
    model: str | None = None
    provenance: tuple[str, ...] = ()
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    flags: tuple[str, ...] = ()


def final_of(text: str) -> Final:
    """Find the final text in a CLI's standard output."""
    events = _events(text)
    kinds = {event["type"] for event in events if isinstance(event.get("type"), str)}
    if any(event["type"] == "result" and not event.keys().isdisjoint(_OF_RESULT) for event in events):
        return _result(events)
    for mark, read in _READERS.items():
        if mark & kinds:
            return read(events)
    document = _gemini_document(text)
    return document if document is not None else Final(text=text)


def is_of_events(text: str) -> bool:
    """Whether a CLI tells its run by several events, in which the model's words stand beside its own."""
    return len(_events(text)) > 1


def _events(text: str) -> list[dict[str, Any]]:
    """The events in a CLI's output: a document, a list, or one a line among other lines; empty where there are none."""
    if text.startswith(("{", "[")):
        whole = load_body_or_none(text)
        if isinstance(whole, dict):
            return [whole] if _is_event(whole) else []
        if isinstance(whole, list):
            return [item for item in whole if _is_event(item)]
    found = []
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith('{"') and '"type"' in stripped:
            event = load_body_or_none(stripped)
            if _is_event(event):
                found.append(event)
    return found


def _is_event(value: Any) -> bool:
    """Whether a JSON value is an event: one with ``tool_calls`` is the model's envelope, whatever its type says."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "tool_calls" not in value


def _result(events: list[dict[str, Any]]) -> Final:
    """Claude Code and Cursor, and the stream of the Gemini CLI, end by a ``result``."""
    result = next(event for event in reversed(events) if event["type"] == "result")
    if "status" in result and "is_error" not in result and "result" not in result:
        return _gemini_stream(events, result)
    usage = as_dict(result.get("usage"))
    cached = as_count(usage.get("cache_read_input_tokens"))
    plain = as_count(usage.get("input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    models = [name for name in as_dict(result.get("modelUsage")) if isinstance(name, str)]
    begun = next((event for event in events if event["type"] == "system" and isinstance(event.get("model"), str)), None)
    subtype = as_text(result.get("subtype"))
    final = Final(
        text=as_text(result.get("result")),
        structured=result.get("structured_output"),
        finish=as_text(result.get("stop_reason")) or None,
        model=begun["model"] if begun else (models[0] if len(models) == 1 else None),
        provenance=tuple(f"model-used={name}" for name in models) if len(models) > 1 else (),
        input_tokens=None if plain is None else plain + (cached or 0) + (written or 0),
        cached_tokens=cached,
        output_tokens=as_count(usage.get("output_tokens")),
    )
    if result.get("is_error") or subtype.startswith("error"):
        final.error = _error_text(result, subtype or "the result is flagged as an error")
    return final


def _error_text(result: dict[str, Any], otherwise: str) -> str:
    said = as_text(result.get("result")) or " ".join(as_text(item) for item in as_list(result.get("errors")))
    status = result.get("api_error_status")
    if isinstance(status, int) and said:
        said = f"{said} (status {status})"
    return said or otherwise


def _codex(events: list[dict[str, Any]]) -> Final:
    final = Final(ended=False)
    failures: list[str] = []
    for event in events:
        kind, item = event["type"], as_dict(event.get("item"))
        of_item = as_text(item.get("type"))
        if kind == "item.completed" and of_item in {"agent_message", "assistant_message"}:
            final.text = as_text(item.get("text"))
        elif kind == "item.completed" and of_item in {"command_execution", "mcp_tool_call", "web_search"}:
            final.flags = ("used-tools",)
        elif kind == "turn.completed":
            final.ended = True
            usage = as_dict(event.get("usage"))
            final.input_tokens = as_count(usage.get("input_tokens"))
            final.cached_tokens = as_count(usage.get("cached_input_tokens"))
            final.output_tokens = as_count(usage.get("output_tokens"))
        elif kind == "turn.failed":
            final.error = _message(event.get("error")) or "the turn failed"
        elif kind == "error":
            failures.append(_message(event))
    if final.error is None and not final.ended and failures:
        final.error = failures[-1] or "the CLI reports an error"
    return final


def _opencode(events: list[dict[str, Any]]) -> Final:
    """The texts of the last step. Its closing event may be missing, as some versions end before it is written."""
    final = Final()
    said: list[str] = []
    spent = [0, 0, 0]
    counted = False
    for event in events:
        kind, part = event["type"], as_dict(event.get("part"))
        if kind == "step_start":
            said = []
        elif kind == "text":
            said.append(as_text(part.get("text")))
        elif kind == "tool_use":
            final.flags = ("used-tools",)
        elif kind == "step_finish":
            tokens = as_dict(part.get("tokens"))
            cached = as_count(as_dict(tokens.get("cache")).get("read")) or 0
            written = as_count(as_dict(tokens.get("cache")).get("write")) or 0
            counted = counted or bool(tokens)
            spent[0] += (as_count(tokens.get("input")) or 0) + cached + written
            spent[1] += cached
            spent[2] += (as_count(tokens.get("output")) or 0) + (as_count(tokens.get("reasoning")) or 0)
        elif kind == "error":
            final.error = _message(event.get("error")) or _message(event) or "the CLI reports an error"
    final.text = "\n".join(said)
    if counted:
        final.input_tokens, final.cached_tokens, final.output_tokens = spent
    return final


def _gemini_stream(events: list[dict[str, Any]], result: dict[str, Any]) -> Final:
    said = [
        as_text(event.get("content"))
        for event in events
        if event["type"] == "message" and event.get("role") == "assistant"
    ]
    begun = next((event for event in events if event["type"] == "init"), {})
    final = Final(text="".join(said), model=as_text(begun.get("model")) or None)
    if any(event["type"] == "tool_use" for event in events):
        final.flags = ("used-tools",)
    stats = as_dict(result.get("stats"))
    final.input_tokens, final.output_tokens = as_count(stats.get("input_tokens")), as_count(stats.get("output_tokens"))
    final.cached_tokens = as_count(stats.get("cached"))
    if result.get("status") != "success":
        final.error = _message(result.get("error")) or "the result is flagged as an error"
    return final


def _unended(events: list[dict[str, Any]]) -> Final:
    """A stream whose closing ``result`` never came: an error that was told, or cut off."""
    failures = [_message(event) for event in events if event["type"] == "error"]
    return Final(ended=False, error=(failures[-1] or "the CLI reports an error") if failures else None)


def _gemini_document(text: str) -> Final | None:
    """The one JSON document of the Gemini CLI, perhaps behind a line or two of its notices."""
    start = text.find("{")
    if start < 0 or ('"response"' not in text and '"error"' not in text):
        return None
    document = load_body_or_none(text[start:])
    if not isinstance(document, dict) or "tool_calls" in document:
        return None
    if not ("stats" in document or "session_id" in document or isinstance(document.get("error"), dict)):
        return None
    final = Final(text=as_text(document.get("response")))
    models = as_dict(as_dict(document.get("stats")).get("models"))
    names = [name for name in models if isinstance(name, str)]
    final.model = names[0] if len(names) == 1 else None
    final.provenance = tuple(f"model-used={name}" for name in names) if len(names) > 1 else ()
    counts = [as_dict(as_dict(model).get("tokens")) for model in models.values()]
    if counts:
        final.input_tokens = sum(as_count(count.get("prompt")) or 0 for count in counts)
        final.cached_tokens = sum(as_count(count.get("cached")) or 0 for count in counts)
        final.output_tokens = sum(
            (as_count(count.get("candidates")) or 0) + (as_count(count.get("thoughts")) or 0) for count in counts
        )
    if document.get("error"):
        final.error = _message(document["error"]) or "the CLI reports an error"
    return final


def _message(error: Any) -> str:
    """The text of an error event with what it says of its status."""
    if isinstance(error, str):
        return as_text(error)
    whole = as_dict(error)
    inner = as_dict(whole.get("error")) or as_dict(whole.get("data"))
    said = [as_text(part.get("message")) for part in (whole, inner)]
    for part in (whole, inner):
        status = part.get("statusCode", part.get("code"))
        if isinstance(status, int) and not isinstance(status, bool):
            said.append(f"(status {status})")
    name = as_text(whole.get("name")) or as_text(whole.get("type"))
    text = " ".join(part for part in said if part)
    return text or name or (json.dumps(sorted(map(str, whole))) if whole else "")


_READERS: dict[frozenset[str], Callable[[list[dict[str, Any]]], Final]] = {
    frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"}): _codex,
    frozenset({"step_start", "step_finish", "text"}): _opencode,
    frozenset({"init", "system", "assistant"}): _unended,
    frozenset({"error"}): _opencode,
}
