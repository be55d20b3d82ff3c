"""What an agent's model cost over several attempts. Beside the score, never part of it (methodology §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Spent:
    """US dollars that the keys of an agent's attempts spent.

    Args:
        attempts: those that had a key, invalid ones too: they cost as well.
        total_usd: of all of these whose spending is known.
        median_usd: of the counted ones among them; None where there is none.
        unknown: attempts whose broker could not tell.
        capped: attempts whose key refused calls for its cap.
    """

    attempts: int
    total_usd: float
    median_usd: float | None
    unknown: int
    capped: int


@dataclass(frozen=True)
class Bill:
    """One attempt that had a key: what it spent (None: not known), whether it counts, whether its cap was reached."""

    spent_usd: float | None
    counted: bool
    capped: bool


def add_up(bills: Sequence[Bill]) -> Spent | None:
    """The sum of an agent's attempts; None where none had a key."""
    if not bills:
        return None
    known = [bill.spent_usd for bill in bills if bill.spent_usd is not None]
    counted = [bill.spent_usd for bill in bills if bill.spent_usd is not None and bill.counted]
    return Spent(
        attempts=len(bills),
        total_usd=sum(known),
        median_usd=median(counted) if counted else None,
        unknown=len(bills) - len(known),
        capped=sum(bill.capped for bill in bills),
    )
