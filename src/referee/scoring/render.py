"""Numbers of scores as text: formatting only, nothing is computed here."""

from __future__ import annotations

#: Decimals that a number on a page or terminal carries at most; the stored number is exact.
DECIMALS = 2


def number(value: float) -> str:
    """A number with at most two decimals and no trailing zeros: ``92``, ``86.67``."""
    text = f"{value:.{DECIMALS}f}"
    text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def points(value: float | None) -> str:
    """Points; an absent score is an absence in words."""
    return "no score" if value is None else number(value)


def percent_of(share: float | None) -> str:
    """A share from 0 to 1 as a percentage; an absent one in words."""
    return "no attempt counted" if share is None else f"{number(share * 100)} %"


def spread_text(percent: float | None, attempts: int) -> str:
    """A spread, already in percent, of so many totals; None is an unbounded one, and one total alone has none."""
    if attempts < 2:  # noqa: PLR2004 — it takes two to lie apart
        return "none"
    return "unbounded" if percent is None else f"{number(percent)} %"
