"""A given answer in normal form, by which it is seen that two answers are the same. Pure.

Argument order does not matter, strings are normalised, numbers are one number however they are written. Two targets
that give the same wrong answer give the same text, and gold trust compares its digest (bake-off §3).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from referee.core.answers import GivenCall
from referee.scoring.toolcalls.values import normal, number

#: Deeper than this an argument is not told apart: no tool takes it, and walking it must end.
DEEPEST = 64

#: What stands for an answer without a call.
NO_CALL = "no call"

_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")


def canonical_call(call: GivenCall) -> str:
    """One call in normal form, as one line of JSON."""
    return _text({"name": call.name, "arguments": canonical_value(call.arguments)})


def canonical_answer(calls: Sequence[GivenCall], *, ordered: bool) -> str:
    """The calls of an answer in normal form; sorted where their order does not matter."""
    if not calls:
        return NO_CALL
    each = [canonical_call(call) for call in calls]
    return "\n".join(each if ordered else sorted(each))


def canonical_value(value: Any, depth: int = 0) -> Any:
    """A JSON value in normal form."""
    if not isinstance(value, dict | list):
        return _scalar(value)
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(key): canonical_value(one, depth + 1) for key, one in value.items()}
    return [canonical_value(one, depth + 1) for one in value]


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool):
        return value
    return _number(value)


def _string(value: str) -> Any:
    text = normal(value)
    if text[:1].isalpha() or _LEADING_ZERO.match(text):
        return text
    read = number(text)
    return text if read is None else _number(read)


def _number(value: int | float) -> Any:  # noqa: PYI041 — they are told apart
    if isinstance(value, float):
        if not math.isfinite(value):
            return repr(value)
        return int(value) if value.is_integer() else value
    return value if value.bit_length() <= 8192 else hex(value)  # noqa: PLR2004 — digits would cost their square


def _text(value: Any) -> str:
    said = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return said.encode("utf-8", "backslashreplace").decode("utf-8")
