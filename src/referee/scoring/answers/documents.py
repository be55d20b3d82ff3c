"""JSON as servers and models send it: decoded with bounds, so that no document can crash or stall the reader.

Bounds: arguments nest at most 64 deep and hold no number of more than 1,000 digits; whole bodies nest at most 300 deep.
NaN and infinity are no JSON. Doubled keys are found (last wins). Lone surrogates, which UTF-8 cannot carry, become
U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_DEPTH = 64
MAX_BODY_DEPTH = 300
MAX_DIGITS = 1000
_MOST_BITS = int(MAX_DIGITS * math.log2(10)) + 1

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class UnusableError(Exception):
    """JSON in form, and yet not usable: the stable name of the failure and one sentence."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail


class _DoubledError(Exception):
    """A key stands twice in one object."""


class Doubled(dict[str, Any]):
    """An object in which a key stood twice; the last one counts. ``pairs``: all that was said, in its order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self.pairs = tuple(pairs)
        super().__init__(self.pairs)


def said_pairs(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Every key of an object with its value, also those that a later one of the same name hides."""
    return value.pairs if isinstance(value, Doubled) else value.items()


def said_under(value: Mapping[str, Any], key: str) -> list[Any]:
    """Every value that an object gives under a key: the one that counts first, then those that it hides."""
    if isinstance(value, Doubled):
        return [one for name, one in reversed(value.pairs) if name == key]
    return [value[key]] if key in value else []


def hides(value: Any, *keys: str) -> bool:
    """Whether an object gives one of these keys twice, so that what one of them says is lost."""
    return isinstance(value, Doubled) and any(len(said_under(value, key)) > 1 for key in keys)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DoubledError
    return found


def _marked_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Doubled(pairs)


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise UnusableError("number", f"a number of {len(text)} digits is no usable number")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if len(text) > MAX_DIGITS or not math.isfinite(value):
        raise UnusableError("number", "a number is too large or too long to be read")
    return value


def _constant(name: str) -> Any:
    raise UnusableError("number", f"{name} is no JSON number")


def _lenient_integer(text: str) -> int | float:
    return int(text) if len(text) <= MAX_DIGITS else math.inf


_STRICT = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_float=_real, parse_constant=_constant)
_STRICT_DOUBLED = json.JSONDecoder(
    object_pairs_hook=_marked_pairs, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
_BODY = json.JSONDecoder(object_pairs_hook=_pairs)
_BODY_LENIENT = json.JSONDecoder(object_pairs_hook=_marked_pairs, parse_int=_lenient_integer)


def depth_beyond(text: str, most: int) -> bool:
    """Whether the brackets of JSON text nest deeper than ``most``; what stands in strings does not count."""
    if text.count("{") + text.count("[") <= most:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in "{[":
            depth += 1
            if depth > most:
                return True
        elif mark in "}]":
            depth -= 1
    return False


def load_strictly(text: str) -> tuple[Any, bool]:
    """One JSON value, and whether a key stood twice in an object of it.

    Raises:
        UnusableError: nested too deeply, or a number that is none.
        json.JSONDecodeError: no JSON.
    """
    if depth_beyond(text, MAX_DEPTH):
        raise UnusableError("too-deep", f"the arguments are nested more than {MAX_DEPTH} deep")
    try:
        return _STRICT.decode(text), False
    except _DoubledError:
        return _STRICT_DOUBLED.decode(text), True


def load_body(text: str) -> Any:
    """A whole body. Numbers too long to be read become infinity, objects with doubled keys ``Doubled``.

    Raises:
        UnusableError: nested too deeply.
        ValueError: no JSON.
    """
    if depth_beyond(text, MAX_BODY_DEPTH):
        raise UnusableError("too-deep", f"the answer is nested more than {MAX_BODY_DEPTH} deep")
    try:
        return _BODY.decode(text)
    except json.JSONDecodeError:
        raise
    except (_DoubledError, ValueError):  # the latter: digits beyond the interpreter's own limit
        return _BODY_LENIENT.decode(text)


def load_body_or_none(text: str) -> Any:
    """A whole body, or None where it is no usable JSON."""
    try:
        return load_body(text)
    except (UnusableError, ValueError):
        return None


def decode(body: bytes) -> tuple[str, bool]:
    """Bytes as UTF-8 text without byte order mark, and whether that went without replacement."""
    try:
        return body.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        return body.decode("utf-8-sig", errors="replace"), False


def clean(text: str) -> str:
    """Text that UTF-8 can carry: lone surrogates replaced."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def plain(value: Any) -> tuple[Any, set[str]]:
    """A decoded value as plain JSON, with what was found on the way: ``duplicate-keys``, ``repaired`` (a surrogate).

    Raises:
        UnusableError: nested too deeply, or a number that is none.
    """
    found: set[str] = set()
    return _plain(value, found, 0), found


def _plain(value: Any, found: set[str], depth: int) -> Any:
    if isinstance(value, str):
        text = clean(value)
        if text != value:
            found.add("repaired")
        return text
    if isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise UnusableError("too-deep", f"the arguments are nested more than {MAX_DEPTH} deep")
        if isinstance(value, list):
            return [_plain(item, found, depth + 1) for item in value]
        if isinstance(value, Doubled):
            found.add("duplicate-keys")
        return {_plain(key, found, depth): _plain(item, found, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise UnusableError("number", "a number is too large, too long or no number")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise UnusableError("number", "a number is too long to be read")
    return value


def as_text(value: Any) -> str:
    """A string as clean text; anything else is no text."""
    return clean(value) if isinstance(value, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    """An object, or an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A list, or an empty one where there is none."""
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int | None:
    """A number of tokens, or None where there is none that makes sense."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 10**12 else None
