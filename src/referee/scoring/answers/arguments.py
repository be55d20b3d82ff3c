"""The arguments of one call, from whatever a server gives: text, an object, nothing.

The rules stand in the table of arguments of the bake-off's reading rules: an empty string or null is ``{}``; a fenced
block or trailing prose is taken out, small slips are mended, and both are flagged ``repaired``; an object encoded twice
is unwrapped once; doubled keys: last wins, flagged; two objects, truncated text and numbers that are none are format
failures. Text of a model is only ever parsed as JSON, never evaluated.
"""

from __future__ import annotations

import json
import re
from typing import Any

from referee.scoring.answers.documents import UnusableError, load_strictly, plain
from referee.scoring.answers.mending import mend

#: The arguments or None, flags, None or the name of the format failure, one sentence on it.
Arguments = tuple[dict[str, Any] | None, tuple[str, ...], str | None, str]

_FENCE = re.compile(r"```[\w+-]*")
_SECOND = re.compile(r"""\{\s*(?:["'}]|\Z)""")
_CUT_LITERAL = re.compile(r"t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?")


def read_arguments(raw: Any) -> Arguments:
    """Read the arguments of a call.

    Returns:
        The object, or None where there is none; flags (``repaired``, ``unwrapped``, ``duplicate-keys``); None or the
        format failure (``arguments``, ``truncated``, ``several-objects``, ``number``, ``too-deep``); a sentence on it.
    """
    if raw is None:
        return {}, (), None, ""
    try:
        if isinstance(raw, str):
            return _of_text(raw, unwrap=True)
        if isinstance(raw, dict):
            value, found = plain(raw)
            return value, tuple(sorted(found)), None, ""
    except UnusableError as exc:
        return None, (), exc.name, exc.detail
    return _broken(f"the arguments are {_kind(raw)}, not an object")


def _of_text(text: str, *, unwrap: bool) -> Arguments:
    if not text or text.isspace():
        return {}, (), None, ""
    try:
        value, doubled = load_strictly(text)
        repaired = False
    except json.JSONDecodeError as exc:
        return _of_damaged_text(text, exc)
    return _of_value(value, text, doubled=doubled, repaired=repaired, unwrap=unwrap)


def _of_value(value: Any, text: str, *, doubled: bool, repaired: bool, unwrap: bool) -> Arguments:
    if value is None:
        return {}, (), None, ""
    if isinstance(value, str) and unwrap:
        inner, flags, broken, detail = _of_text(value, unwrap=False)
        return inner, (*flags, "unwrapped") if broken is None else (), broken, detail
    if not isinstance(value, dict):
        return _broken(f"the arguments are {_kind(value)}, not an object")
    found: set[str] = set()
    if doubled or "\\u" in text or not text.isascii():  # only these can hide a doubled key or a lone surrogate
        value, found = plain(value)
    if repaired:
        found.add("repaired")
    return value, tuple(sorted(found)), None, ""


def _of_damaged_text(text: str, why: json.JSONDecodeError) -> Arguments:
    start = _opening(text)
    if start is None:
        if _is_cut_string(text, why):
            return None, (), "truncated", "the arguments end in the middle"
        return _broken(f"the arguments are not JSON: {why.msg} at character {why.pos}")
    mended = mend(text, start)
    try:
        value, doubled = load_strictly(mended.text)
    except json.JSONDecodeError as exc:
        if not mended.whole and _cut(mended.text, exc):
            return None, (), "truncated", "the arguments end in the middle"
        return _broken(f"the arguments are not JSON: {exc.msg} at character {exc.pos}")
    if _SECOND.search(text, mended.end):
        return None, (), "several-objects", "more than one object is given as the arguments of one call"
    return _of_value(value, mended.text, doubled=doubled, repaired=True, unwrap=False)


def _opening(text: str) -> int | None:
    """Where the object begins: at the front, or at the front of the first fenced block."""
    front = len(text) - len(text.lstrip())
    if text.startswith("{", front):
        return front
    fence = _FENCE.search(text)
    if fence is None:
        return None
    inside = len(text) - len(text[fence.end() :].lstrip())
    return inside if text.startswith("{", inside) else None


def _cut(text: str, exc: json.JSONDecodeError) -> bool:
    """Whether text that stops parsing there is the beginning of something that would parse."""
    rest = text[exc.pos :].strip()
    return not rest or exc.msg.startswith(("Unterminated", "Invalid \\")) or _CUT_LITERAL.fullmatch(rest) is not None


def _is_cut_string(text: str, exc: json.JSONDecodeError) -> bool:
    return text.lstrip().startswith('"{') and exc.msg.startswith("Unterminated")


def _broken(detail: str) -> Arguments:
    return None, (), "arguments", detail


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names: dict[type, str] = {str: "text", list: "a list", int: "a number", float: "a number", dict: "an object"}
    return names.get(type(value), "nothing known")
