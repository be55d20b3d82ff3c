"""Calls that stand in text: the envelope of inlined lanes, and what a native lane's text shows of a call.

**What shows as a call on a native lane**, so that normal prose never does:

- a template's mark that opens one (``marks``): ``<tool_call>`` and its kin, special tokens, fences for calls;
- text (or a fenced block, or an object in prose) that is a JSON object with ``tool_calls``, or with a name and
  ``arguments``; only where the whole text is such objects, ``parameters`` or ``input`` count as arguments too.

It is an *attempt* when what a mark opens, or what begins as such an object, cannot be parsed. What names an offered
tool is found by ``offered``, which knows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from referee.scoring.answers.documents import Doubled, UnusableError, load_strictly, said_pairs, said_under
from referee.scoring.answers.marks import Shown, marked
from referee.scoring.answers.mending import mend

_MOST_OBJECTS = 64
_BEGINNING = 20_000  # characters in which a text that is a call says so
_MOST_SCANNED = 1_000_000  # characters, so that an endless text of braces cannot stall the reader
_FENCE = re.compile(r"```[\w+-]*")
#: What ends an answer, or begins a turn, in templates that leak.
_TOKENS = re.compile(
    r"(?:\s|<\|start_header_id\|>\w+<\|end_header_id\|>|<\|(?!tool|python|function|channel)[\w-]+\|>|</?s>)+"
)
_TURN_ENDS = re.compile(r"\s*(?:<\|[\w-]+\|>|</s>|<eos>|<end_of_turn>)\s*\Z")
_LIKE_CALL = re.compile(r'"tool_calls"\s*:\s*\[\s*\{|"name"\s*:.{0,400}?"arguments"\s*:', re.DOTALL)
#: The same in prose, where a form is only described by ``...`` or ``<name>``.
_PLAINLY_CALL = re.compile(
    r'"name"\s*:\s*"\w[\w.:/-]*"[^{}]{0,400}?"arguments"\s*:\s*(?:\{(?!\s*(?:\.\.|\u2026|<|\w*\s*\}))|")'
    r'|"tool_calls"\s*:\s*\[\s*\{\s*"(?:name|function|id|type)"\s*:\s*["{](?!\s*(?:\.\.|\u2026|<))'
)
_PYTHON_CALL = re.compile(r"'name'\s*:\s*'.{0,400}?'(?:arguments|parameters)'\s*:", re.DOTALL)
_ARGUMENT_KEYS = ("arguments", "parameters", "input", "args", "action_input", "tool_input")
_NAME_KEYS = ("name", "function", "tool", "tool_name", "action")

_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_MEANT = ("function", "function_call", "tool_call")

Raw = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Spoken:
    """The envelope found in a text: name and arguments of each call as given; or the format failure."""

    calls: tuple[Raw, ...] = ()
    repaired: bool = False
    broken: str | None = None
    detail: str = ""
    doubled: bool = False


_BESIDE = Spoken(broken="several-objects", detail="a call stands beside an envelope that holds none")
_NO_ENVELOPE = Spoken(broken="envelope", detail='the answer holds no envelope {"tool_calls": [...]}')


def read_envelope(text: str) -> Spoken:
    """Read the one envelope ``{"tool_calls": [...]}`` of a text: bare; or fenced or in prose, which counts as repaired.

    A call given as JSON without its envelope is taken too, as repaired. Two envelopes are a format failure, and so is
    a call beside an envelope that holds none: which of the two was meant would be a guess.
    """
    value, doubled = _parsed(text)
    if isinstance(value, dict) and "tool_calls" in value:
        return _of_envelope(value, repaired=False)
    if value is not None:
        bare = _calls_in(value, whole=True)
        return Spoken(bare, repaired=True, doubled=doubled) if bare else _NO_ENVELOPE
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
        spoken = _of_envelope(found[0], repaired=True)
        if spoken.calls or spoken.broken is not None:
            return spoken
        # What a doubled key of the envelope hides is flagged there: the last one counts.
        return _BESIDE if calls_shown(text, every=not spoken.doubled) != "none" else spoken
    if '"tool_calls"' in text:
        return (
            Spoken(broken="truncated", detail="the envelope ends in the middle")
            if cut
            else Spoken(broken="envelope", detail="the envelope is not JSON")
        )
    return Spoken(tuple(loose), repaired=True) if loose else _NO_ENVELOPE


def calls_shown(text: str, *, every: bool = True) -> Shown:
    """Whether the text of a native lane shows a call, or an attempt at one that cannot be read.

    ``every``: a call that a doubled key hides is shown as well.
    """
    if not ("{" in text or "<" in text or "[" in text or "```" in text):
        return "none"
    inside = unwrapped(text)
    value, _ = _parsed(inside)
    if value is not None:
        return "call" if _calls_in(value, whole=True, every=every) else "none"
    shown = marked(text)
    if shown != "none" or "{" not in text:
        return shown
    begins = inside.startswith(("{", "["))
    if '"name"' in text or '"tool_calls"' in text or (begins and '"function"' in text):
        placed = list(placed_objects(inside))
        alone = begins and not _beside(inside, placed)
        if any(_calls_in(one.value, whole=alone, every=every) for one in placed):
            return "call"
        if any(one.value is None for one in placed):
            like = _LIKE_CALL.search(inside[:_BEGINNING]) if begins else _PLAINLY_CALL.search(inside[:_BEGINNING])
            return "attempt" if like else "none"
    return "attempt" if begins and _PYTHON_CALL.search(inside[:_BEGINNING]) else "none"


def unwrapped(text: str) -> str:
    """A text without the fence that it wholly stands in and without the tokens of a template around it."""
    bare = text.strip()
    if bare.startswith("<") and (tokens := _TOKENS.match(bare)):
        bare = bare[tokens.end() :]
    if bare.endswith(">"):
        while ends := _TURN_ENDS.search(bare, max(0, len(bare) - 40)):
            bare = bare[: ends.start()]
    return _unfenced(bare).strip()


def _beside(text: str, placed: Sequence[Placed]) -> bool:
    """Whether anything but separators stands beside the objects of a text."""
    at = 0
    for one in placed:
        if text[at : one.start].strip(" \n\r\t;,[]"):
            return True
        at = one.end
    return bool(text[at:].strip(" \n\r\t;,[]"))


def _of_envelope(value: dict[str, Any], *, repaired: bool) -> Spoken:
    entries = value["tool_calls"]
    doubled = isinstance(value, Doubled)
    if entries is None or entries == []:
        beside = Doubled((key, said) for key, said in said_pairs(value) if key != "tool_calls")
        if beside and _calls_in(beside, whole=True, every=True):
            return _BESIDE
        return Spoken(repaired=repaired or entries is None, doubled=doubled)
    if not isinstance(entries, list):
        return Spoken(broken="envelope", detail="tool_calls of the envelope is no list")
    calls: list[Raw] = []
    for entry in entries:
        inner = entry.get("function") if isinstance(entry, dict) else None
        call = inner if isinstance(inner, dict) else entry
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return Spoken(broken="no-function", detail="an entry of the envelope names no function")
        doubled = doubled or isinstance(entry, Doubled) or isinstance(call, Doubled)
        calls.append((call["name"], call.get("arguments")))
    return Spoken(tuple(calls), repaired=repaired, doubled=doubled)


def _unfenced(text: str) -> str:
    """What stands in the one fence that a whole text is, or the text."""
    bare = text.strip()
    opening = _FENCE.match(bare)
    if opening is None or not bare.endswith("```") or len(bare) < opening.end() + 3:
        return text
    return bare[opening.end() : -3]


def _parsed(text: str) -> tuple[Any, bool]:
    """The JSON object or list that the whole text is, or None; and whether a key stands twice in it."""
    if not text.lstrip().startswith(("{", "[")):
        return None, False
    try:
        value, doubled = load_strictly(text)
    except (UnusableError, json.JSONDecodeError):
        return None, False
    return (value, doubled) if isinstance(value, dict | list) else (None, False)


@dataclass(frozen=True, slots=True)
class Placed:
    """A JSON object in a text: None where it is no JSON; where it stands; whether its brackets are closed."""

    value: Any
    closed: bool
    start: int
    end: int


def objects_in(text: str) -> Iterator[tuple[Any, bool]]:
    """The JSON objects that stand in a text, the first few: value (None where it is no JSON) and whether closed."""
    return ((one.value, one.closed) for one in placed_objects(text))


def placed_objects(text: str) -> Iterator[Placed]:
    """The JSON objects that stand in a text, the first few, with their places."""
    at, scanned = 0, 0
    for _ in range(_MOST_OBJECTS):
        at = text.find("{", at)
        if at < 0 or scanned > _MOST_SCANNED:
            return
        try:
            mended = mend(text, at)
        except UnusableError:
            yield Placed(None, closed=False, start=at, end=len(text))
            return
        scanned += mended.end - at
        try:
            value, _doubled = load_strictly(mended.text)
        except (UnusableError, json.JSONDecodeError):
            yield Placed(None, mended.whole, at, mended.end)
            at += 1
            continue
        yield Placed(value, closed=True, start=at, end=mended.end)
        at = mended.end


def _calls_in(value: Any, *, whole: bool, every: bool = False) -> tuple[Raw, ...]:
    """Name and arguments of each call that a JSON value is, or nothing.

    Of a key that stands twice the last one counts; with ``every`` a call that it hides is one too.
    """
    if isinstance(value, list):
        found = tuple(call for item in value for call in _calls_in(item, whole=whole, every=every))
        return found if len(found) == len(value) else ()
    if not isinstance(value, dict):
        return ()

    def said(key: str) -> list[Any]:
        return said_under(value, key) if every else [value[key]] if key in value else []

    inner: list[Any] = [one for one in said("tool_calls") if isinstance(one, list) and one]
    inner += [one for key in _MEANT for one in said(key) if isinstance(one, dict)]
    for one in inner:
        calls = _calls_in(one, whole=True, every=every)
        if calls or not every:
            return calls
    names = [one for key in (_NAME_KEYS if whole else ("name",)) for one in said(key) if isinstance(one, str)]
    name = next((one for one in names if one), None) if every else next(iter(names), None)
    for key in _ARGUMENT_KEYS if whole else ("arguments",):
        for given in said(key):
            if name and isinstance(given, dict | str) and not is_schema(given):
                return ((name, given),)
    return ()


def is_schema(value: Any) -> bool:
    """Whether it is the schema of arguments rather than arguments: a tool told, not called."""
    if not isinstance(value, dict) or not value:
        return False
    if value.get("type") == "object" and "properties" in value:
        return True
    return all(isinstance(one, dict) and one.get("type") in _TYPES for one in value.values())
