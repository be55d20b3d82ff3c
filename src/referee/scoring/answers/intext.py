"""Calls that stand in text: the envelope of inlined lanes, and what a native lane's text shows of a call.

**What shows as a call on a native lane**, so that normal prose never does:

- a template's mark followed at once by what it opens: ``<tool_call>`` and its kin before ``{``, ``[`` or ``<``;
  ``<function=NAME>``; ``<invoke name=``; ``[TOOL_CALLS]`` before ``{``, ``[`` or a name; special tokens of templates;
- text (or a fenced block, or an object in prose) that is a JSON object with ``tool_calls``, or with a name and
  ``arguments``; only where the whole text is such an object, ``parameters`` or ``input`` count as arguments too.

It is an *attempt* when the JSON behind such a mark, or a whole text that begins as such an object, cannot be parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from referee.scoring.answers.documents import UnusableError, load_strictly
from referee.scoring.answers.mending import mend

_MOST_OBJECTS = 64
_BEGINNING = 20_000  # characters in which a text that is a call says so
_MOST_SCANNED = 1_000_000  # characters, so that an endless text of braces cannot stall the reader
_FENCE = re.compile(r"```[\w+-]*")
_BEFORE_JSON = re.compile(
    r"<(?:\w+:)?(?:tool_calls?|function_calls?|toolcall)>\s*(?=[{\[<]|[\w.-]+\s*<arg_key>)|\[TOOL_CALLS?\]\s*(?=[{\[\w])"
    r"|<\|(?:tool_call|python_tag|tool_calls_begin|tool_call_begin|tool_calls_section_begin)\|?>"
    r"|<function=[\w.-]+>|<invoke name=|<\uff5ctool|<\|channel\|>commentary to=|functools\[\{"
)
_OPENS_JSON = re.compile(r"<(?:\w+:)?(?:tool_calls?|function_calls?|toolcall)>\s*$|\[TOOL_CALLS?\]\s*$|python_tag\|>$")
_LIKE_CALL = re.compile(r'"tool_calls"\s*:\s*\[\s*\{|"name"\s*:.{0,400}?"arguments"\s*:', re.DOTALL)
_ARGUMENT_KEYS = ("arguments", "parameters", "input", "args", "action_input", "tool_input")
_NAME_KEYS = ("name", "function", "tool", "tool_name", "action")

Raw = tuple[Any, Any]
Shown = Literal["none", "call", "attempt"]


@dataclass(frozen=True, slots=True)
class Spoken:
    """The envelope found in a text: name and arguments of each call as given; or the format failure."""

    calls: tuple[Raw, ...] = ()
    repaired: bool = False
    broken: str | None = None
    detail: str = ""


_NO_ENVELOPE = Spoken(broken="envelope", detail='the answer holds no envelope {"tool_calls": [...]}')


def read_envelope(text: str) -> Spoken:
    """Read the one envelope ``{"tool_calls": [...]}`` of a text: bare; or fenced or in prose, which counts as repaired.

    A call given as JSON without its envelope is taken too, as repaired. Two envelopes are a format failure.
    """
    value = _parsed(text)
    if isinstance(value, dict) and "tool_calls" in value:
        return _of_envelope(value, repaired=False)
    if value is not None:
        bare = _calls_in(value, whole=True)
        return Spoken(bare, repaired=True) if bare else _NO_ENVELOPE
    return _in_prose(text)


def _in_prose(text: str) -> Spoken:
    found: list[dict[str, Any]] = []
    loose: list[Raw] = []
    cut = False
    for value, closed in objects_in(text):
        if isinstance(value, dict) and "tool_calls" in value:
            found.append(value)
        elif value is not None:
            loose.extend(_calls_in(value, whole=False))
        cut = cut or not closed
    if len(found) > 1:
        return Spoken(broken="several-objects", detail="more than one envelope is given")
    if found:
        return _of_envelope(found[0], repaired=True)
    if '"tool_calls"' in text:
        return (
            Spoken(broken="truncated", detail="the envelope ends in the middle")
            if cut
            else Spoken(broken="envelope", detail="the envelope is not JSON")
        )
    return Spoken(tuple(loose), repaired=True) if loose else _NO_ENVELOPE


def calls_shown(text: str) -> Shown:
    """Whether the text of a native lane shows a call, or an attempt at one that cannot be read."""
    if not ("{" in text or "<" in text or "[" in text):
        return "none"
    inside = _unfenced(text)
    value = _parsed(inside)
    if value is not None:
        return "call" if _calls_in(value, whole=True) else "none"
    mark = _BEFORE_JSON.search(text)
    if mark is not None:
        return "call" if _readable_behind(text, mark) else "attempt"
    if '"tool_calls"' not in text and not ('"name"' in text and '"arguments"' in text):
        return "none"
    values = [value for value, _ in objects_in(text)]
    if any(_calls_in(value, whole=False) for value in values):
        return "call"
    begins = inside.lstrip().startswith(("{", "["))
    return "attempt" if begins and None in values and _LIKE_CALL.search(inside[:_BEGINNING]) else "none"


def _of_envelope(value: dict[str, Any], *, repaired: bool) -> Spoken:
    entries = value["tool_calls"]
    if entries is None:
        return Spoken(repaired=True)
    if not isinstance(entries, list):
        return Spoken(broken="envelope", detail="tool_calls of the envelope is no list")
    calls: list[Raw] = []
    for entry in entries:
        inner = entry.get("function") if isinstance(entry, dict) else None
        call = inner if isinstance(inner, dict) else entry
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return Spoken(broken="no-function", detail="an entry of the envelope names no function")
        calls.append((call["name"], call.get("arguments")))
    return Spoken(tuple(calls), repaired=repaired)


def _unfenced(text: str) -> str:
    """What stands in the one fence that a whole text is, or the text."""
    bare = text.strip()
    opening = _FENCE.match(bare)
    if opening is None or not bare.endswith("```") or len(bare) < opening.end() + 3:
        return text
    return bare[opening.end() : -3]


def _parsed(text: str) -> Any:
    """The JSON object or list that the whole text is, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value, _ = load_strictly(text)
    except (UnusableError, json.JSONDecodeError):
        return None
    return value if isinstance(value, dict | list) else None


def objects_in(text: str) -> Iterator[tuple[Any, bool]]:
    """The JSON objects that stand in a text, the first few: value (None where it is no JSON) and whether closed."""
    at, scanned = 0, 0
    for _ in range(_MOST_OBJECTS):
        at = text.find("{", at)
        if at < 0 or scanned > _MOST_SCANNED:
            return
        try:
            mended = mend(text, at)
        except UnusableError:
            yield None, False
            return
        scanned += mended.end - at
        try:
            value, _doubled = load_strictly(mended.text)
        except (UnusableError, json.JSONDecodeError):
            yield None, mended.whole
            at += 1
            continue
        yield value, True
        at = mended.end


def _readable_behind(text: str, mark: re.Match[str]) -> bool:
    """Whether the JSON that a template's mark opens can be parsed; marks that open no JSON count as readable."""
    rest = text[mark.end() :].lstrip()
    if not _OPENS_JSON.search(mark[0]) or not rest.startswith(("{", "[")):
        return True
    try:
        mended = mend(rest, 0)
        load_strictly(mended.text)
    except (UnusableError, json.JSONDecodeError):
        return False
    return mended.whole


def _calls_in(value: Any, *, whole: bool) -> tuple[Raw, ...]:
    """Name and arguments of each call that a JSON value is, or nothing."""
    if isinstance(value, list):
        found = tuple(call for item in value for call in _calls_in(item, whole=whole))
        return found if len(found) == len(value) else ()
    if not isinstance(value, dict):
        return ()
    if isinstance(value.get("tool_calls"), list):
        return _calls_in(value["tool_calls"], whole=True)
    for key in ("function", "function_call", "tool_call"):
        if isinstance(value.get(key), dict):
            return _calls_in(value[key], whole=True)
    names = _NAME_KEYS if whole else ("name",)
    keys = _ARGUMENT_KEYS if whole else ("arguments",)
    name = next((value[key] for key in names if isinstance(value.get(key), str)), None)
    for key in keys:
        given = value.get(key)
        if name and isinstance(given, dict | str) and not _is_schema(given):
            return ((name, given),)
    return ()


def _is_schema(value: Any) -> bool:
    """Whether it is the schema of arguments rather than arguments: a tool told, not called."""
    return isinstance(value, dict) and value.get("type") == "object" and "properties" in value
