"""What all golden vectors share: cases of a shape, expected and computed values, and when two of them agree. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

#: (field, expected, computed, what the computed value rests on) for each value that a case checks.
Checks = list[tuple[str, Any, Any, str]]

#: One way to run the cases of a member.
Runner = Callable[[Any], Checks]


class ShapeError(Exception):
    """A case does not have the shape of its member."""


@dataclass(frozen=True)
class Difference:
    """One value of one case that this installation computes otherwise.

    ``note`` says what the computed value rests on, where that is known: the reason of a verdict.
    """

    member: str
    index: int
    field: str
    expected: Any
    got: Any
    note: str = ""

    @property
    def sentence(self) -> str:
        """The difference in one line."""
        said = f"{self.member}[{self.index}] {self.field}: expected {self.expected!r}, got {self.got!r}"
        return f"{said} ({self.note})" if self.note else said


@dataclass(frozen=True)
class Conformance:
    """What came of one vector file: cases run by member, and the differences."""

    kind: str
    cases: Mapping[str, int]
    differences: tuple[Difference, ...]


def same(expected: Any, got: Any) -> bool:
    """Whether two values agree.

    Numbers agree when they are the same number up to the last bits of a double; a vector that was rounded to six
    decimals agrees with the number that rounds to it. A truth value is no number, and null agrees only with null.
    """
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or got is None:
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return close(expected, got) or (round(expected, 6) == expected and round(got, 6) == expected)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same_json, expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        return same_json(expected, got)
    return bool(expected == got)


def same_json(expected: Any, got: Any) -> bool:
    """Whether two JSON values are the same one: truth values are no numbers, doubles agree up to their last bits."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same_json(one, got[key]) for key, one in expected.items())
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same_json, expected, got))
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return close(expected, got)
    return type(expected) is type(got) and bool(expected == got)


def close(expected: float, got: float) -> bool:
    """Whether two numbers are the same: integers exactly, doubles within 1e-12."""
    if isinstance(expected, int) and isinstance(got, int):
        return expected == got
    return math.isclose(expected, got, rel_tol=1e-12, abs_tol=1e-12)


def member(case: Any, key: str) -> Any:
    """A member of a case that must be there, whatever it is."""
    if not isinstance(case, dict) or key not in case:
        raise ShapeError(f"{key} is missing")
    return case[key]


def an_object(case: Any, key: str) -> dict[str, Any]:
    """An object of a case."""
    value = case.get(key) if isinstance(case, dict) else None
    if not isinstance(value, dict):
        raise ShapeError(f"{key} is missing or no object")
    return value


def a_list(case: Any, key: str) -> list[Any]:
    """A list of a case."""
    value = case.get(key) if isinstance(case, dict) else None
    if not isinstance(value, list):
        raise ShapeError(f"{key} is missing or no list")
    return value


def a_boolean(case: Mapping[str, Any], key: str, *, default: bool | None = None) -> bool:
    """A truth value of a case."""
    value = case.get(key, default)
    if not isinstance(value, bool):
        raise ShapeError(f"{key} is true or false, not {value!r}")
    return value


def a_count(case: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number of a case."""
    value = case.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ShapeError(f"{key} is a whole number, not {value!r}")
    return value


def a_number(case: Any, key: str) -> float:
    """A number of a case."""
    value = case.get(key) if isinstance(case, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(f"{key} is a number, not {value!r}")
    return value
