"""The value grammar: how strings are normalised and which texts are numbers (bake-off §9). Pure.

Nothing here guesses: a text is a number only in the written forms, whatever a locale would make of it.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from functools import cache
from typing import Any

#: Numbers other than two integers agree within this, relative to the larger.
RELATIVE = 1e-9

#: A longer text is no number: no argument needs it, and reading digits costs the square of their count.
MOST_DIGITS = 4000

#: Runs of combining marks at least this long are no writing; sorting them would cost the square of their length.
_MARKS_IN_A_ROW = 100
_SHORT = 1000
_FEW = 32

_PLAIN = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")
_COMMAS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(\.[0-9]*)?")
_DOTS = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3}){2,}")
_UNDERSCORES = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)+")
_ONE_DOT_GROUP = re.compile(r"[+-]?[0-9]{1,3}\.[0-9]{3}")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


def normal(text: str) -> str:
    """A string as it is compared: NFKC, casefolded, white space trimmed and folded to single spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    return " ".join(_nfkc(text).casefold().split())


def _nfkc(text: str) -> str:
    if len(text) > _SHORT and _long_runs_of_marks().search(text):
        return text
    return unicodedata.normalize("NFKC", text)


@cache
def _long_runs_of_marks() -> re.Pattern[str]:
    marks = "".join(re.escape(one) for one in map(chr, range(0x110000)) if unicodedata.combining(one))
    return re.compile(f"[{marks}]{{{_MARKS_IN_A_ROW},}}")


def number(value: Any) -> int | float | None:  # noqa: PLR0911 — one for each form
    """The number that a JSON value is read as, or None: a JSON number, or a text in one of the written forms.

    Integers in form (no fraction, no exponent) come back as ``int`` of any size; everything else as a finite double.
    """
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is float:
        return float(value) if math.isfinite(value) else None
    if kind is not str or len(value) > MOST_DIGITS:
        return None
    text = (value if value.isascii() else _nfkc(value)).strip()
    if plain := _PLAIN.fullmatch(text):
        return int(text) if plain.lastindex is None else _finite(text)
    if groups := _COMMAS.fullmatch(text):
        joined = text.replace(",", "")
        return int(joined) if groups.lastindex is None else _finite(joined)
    if _DOTS.fullmatch(text):
        return int(text.replace(".", ""))
    if _UNDERSCORES.fullmatch(text):
        return int(text)
    return None


def _finite(text: str) -> float | None:
    """A text as a double; None where no double is near it."""
    value = float(text)
    if value == 0 and any(digit in "123456789" for digit in text.lower().partition("e")[0]):
        return None
    return value if math.isfinite(value) else None


def same_number(one: float, other: float) -> bool:
    """Whether two numbers agree: two integers exactly, anything else within 1e-9 relative."""
    if type(one) is int and type(other) is int:
        return one == other
    try:
        return math.isclose(one, other, rel_tol=RELATIVE)
    except OverflowError:
        return False


def ambiguous(gold: float, value: Any) -> bool:
    """Whether a text that is not the gold number would be it in a locale that groups by dots or has a decimal comma."""
    if type(value) is not str or len(value) > MOST_DIGITS:
        return False
    text = (value if value.isascii() else _nfkc(value)).strip()
    other: float | None = None
    if _ONE_DOT_GROUP.fullmatch(text):
        other = int(text.replace(".", ""))
    elif _DECIMAL_COMMA.fullmatch(text):
        other = _finite(text.replace(",", "."))
    if other is None or not same_number(gold, other):
        return False
    read = number(value)
    return read is None or not same_number(gold, read)


def json_text(value: float) -> str | None:
    """A JSON number as text; None for what is none, and for integers of thousands of digits."""
    if type(value) is float and not math.isfinite(value):
        return None
    try:
        return json.dumps(value)
    except ValueError:
        return None


def contains(whole: str, part: str) -> bool:
    """Whether a normalised string contains another on token boundaries.

    A token is a run of letters, digits, marks and underscores; the sign, the decimal part and the groups of a number
    belong to its token, so that ``1500`` is in ``1500 eur`` and in neither ``-1500`` nor ``1500.50``. What holds no
    token at all is contained in nothing.
    """
    if not any(_of_word(one) for one in part):
        return False
    at = whole.find(part)
    for _ in range(_FEW):
        if at < 0:
            return False
        if _parted(whole, at) and _parted(whole, at + len(part)):
            return True
        at = whole.find(part, at + 1)
    if at < 0:
        return False
    # Many places where it stands within words: let the engine pass over these.
    before, after = (
        "" if re.match(r"\W", edge) else mark for edge, mark in ((part[0], r"(?<!\w)"), (part[-1], r"(?!\w)"))
    )
    standing_alone = re.compile(f"{before}{re.escape(part)}{after}")
    while found := standing_alone.search(whole, at):
        at = found.start()
        if _parted(whole, at) and _parted(whole, at + len(part)):
            return True
        at += 1
    return False


def _of_word(one: str) -> bool:
    return one.isalnum() or one == "_" or (one > "\x7f" and unicodedata.category(one)[0] == "M")


def _parted(text: str, at: int) -> bool:
    """Whether a token may end or begin between the characters before and at this place."""
    if at in {0, len(text)}:
        return True
    before, after = text[at - 1], text[at]
    if _of_word(before) and _of_word(after):
        return False
    if after.isdigit():
        if before in "+-\u2212":
            return at >= 2 and _of_word(text[at - 2])  # noqa: PLR2004 — the sign has something before it: a hyphen
        if before == "." and (at == 1 or text[at - 2] == " "):
            return False  # a fraction without its zero
        return not (before in ".," and at >= 2 and text[at - 2].isdigit())  # noqa: PLR2004
    return not (before.isdigit() and after in ".," and text[at + 1 : at + 2].isdigit())
