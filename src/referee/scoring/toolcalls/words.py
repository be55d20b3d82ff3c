"""How values and calls are put into the words of a verdict: short, printable, one line. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

#: A value is shown up to this many characters.
_LONGEST = 80
_MOST_SHOWN = 4
_DEEPEST = 3


def text(value: str, longest: int = _LONGEST) -> str:
    """A string as it may stand in a sentence: what cannot be printed is escaped, what is too long is cut."""
    kept = value[: longest + 1]
    shown = kept if kept.isprintable() else "".join(_printable(one) for one in kept)
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def _printable(one: str) -> str:
    if one.isprintable():
        return one
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(one) or (
        f"\\u{ord(one):04x}" if ord(one) <= 0xFFFF else f"\\U{ord(one):08x}"  # noqa: PLR2004
    )


def shown(value: Any, depth: int = 0) -> str:  # noqa: PLR0911 — one for each type
    """A JSON value in JSON's own notation, cut where it is long or deep."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{text(value)}"'
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{_listed((shown(one, depth + 1) for one in value), len(value))}]" if depth < _DEEPEST else "[…]"
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return "{…}"
        members = (f'"{text(str(key))}": {shown(one, depth + 1)}' for key, one in value.items())
        return f"{{{_listed(members, len(value))}}}"
    return text(repr(value))


def integer(value: int) -> str:
    """An integer in full, or how long it is."""
    if value.bit_length() > 256:  # noqa: PLR2004
        return f"an integer of about {math.ceil(value.bit_length() * 0.30103)} digits"
    return str(value)


def _listed(items: Iterable[str], count: int) -> str:
    first = list(islice(items, _MOST_SHOWN))
    return ", ".join([*first, "…"] if count > len(first) else first)


def both(expected: Any, got: Any) -> tuple[str, str]:
    """An expected and a given value; strings stand bare where nothing is hidden by it."""
    if isinstance(expected, str) and isinstance(got, str) and _bare(expected) and _bare(got):
        return text(expected), text(got)
    return shown(expected), shown(got)


def _bare(value: str) -> bool:
    return bool(value) and value == " ".join(value.split())


def listed(words: Sequence[str], joint: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; cut after a few."""
    if len(words) > _MOST_SHOWN:
        words = [*words[: _MOST_SHOWN - 1], f"{len(words) - _MOST_SHOWN + 1} more"]
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def count(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
