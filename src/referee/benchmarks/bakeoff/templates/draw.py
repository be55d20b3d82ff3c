"""Chance that can be repeated: a stream of bytes from a private seed, the same on every machine and Python."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeVar

T = TypeVar("T")

_WORD = 8


class Draw:
    """Draws from HMAC-SHA-256 in counter mode; two labels give two streams that have nothing to do with each other.

    Args:
        seed: the private seed.
        label: what is drawn for.
    """

    def __init__(self, seed: bytes, label: str) -> None:
        self._seed, self._label = seed, label
        self._block, self._left = 0, b""
        self._habits: dict[str, int] = {}

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1, each as likely as the others."""
        ceiling = (1 << 8 * _WORD) // limit * limit
        while True:
            if len(self._left) < _WORD:
                message = f"{self._label}\n{self._block}".encode()
                self._left, self._block = hmac.digest(self._seed, message, hashlib.sha256), self._block + 1
            value, self._left = int.from_bytes(self._left[:_WORD], "big"), self._left[_WORD:]
            if value < ceiling:
                return value % limit

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[T]) -> T:
        """One of the things."""
        return things[self.below(len(things))]

    def habit(self, name: str, things: Sequence[T]) -> T:
        """One of the things, and the same one whenever it is asked for under this name: a writer's habit."""
        if name not in self._habits:
            self._habits[name] = self.below(len(things))
        return things[self._habits[name]]

    def some(self, things: Sequence[T], count: int) -> list[T]:
        """So many different things, in the order in which they were drawn."""
        rest = list(things)
        return [rest.pop(self.below(len(rest))) for _ in range(count)]

    def digits(self, count: int) -> str:
        """So many decimal digits as a text."""
        return "".join(str(self.below(10)) for _ in range(count))

    def day(self) -> date:
        """A day of 2027 to 2029."""
        return date(2027, 1, 1) + timedelta(days=self.below(3 * 365))

    def cents(self, low: int, high: int) -> Decimal:
        """An amount between two whole ones, with cents."""
        return Decimal(self.between(low * 100, high * 100)) / 100
