# ruff: noqa: D102 — what the three methods of a matcher mean is said once, in Gold
"""The values of an oracle, ready to be compared: one small matcher for each form of the grammar (bake-off §9). Pure.

A matcher says quickly whether a value matches, and, only when asked, why not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any, Literal, NoReturn, Protocol

from referee.core.cases import Grading, Policy
from referee.scoring.toolcalls import words
from referee.scoring.toolcalls.matching import pair
from referee.scoring.toolcalls.schemas import Place
from referee.scoring.toolcalls.values import ambiguous, contains, json_text, normal, number, same_number

#: A gold of at most so many characters compares strictly in the second generation.
SHORT_GOLD = 3

REPAIRED = "repaired"
AMBIGUOUS = "ambiguous-number"

ABSENT: Any = object()


@dataclass(slots=True, frozen=True)
class Rules:
    """The rules of one case: its generation and its policy, every default filled in."""

    grading: Grading
    strict_args: bool
    as_set: bool
    extra: bool | Literal["schema"]

    @staticmethod
    def of(policy: Policy, grading: Grading) -> Rules:
        """The rules that a policy means in a generation."""
        extra = policy.allow_extra_args
        if extra is None:
            extra = True if grading == 1 else "schema"
        return _rules(grading, policy.strict_args, policy.array_order == "set", extra)


@cache
def _rules(grading: Grading, strict_args: bool, as_set: bool, extra: bool | Literal["schema"]) -> Rules:
    return Rules(grading, strict_args, as_set, extra)


class Gold(Protocol):
    """One value of the oracle."""

    def match(self, value: Any, notes: set[str]) -> bool:
        """Whether a given value matches; what had to be repaired is noted."""
        ...

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        """Why a given value does not match, one phrase for each place; nothing where it matches."""
        ...

    def wants(self) -> Any:
        """The value in plain JSON, as it is shown to a reader."""
        ...


@dataclass(slots=True, eq=False)
class Null:
    """Null: matches null, and, as a member, one that is absent."""

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002 — the seam's
        return value is None

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:  # noqa: ARG002
        return [] if value is None else [differs(path, None, value)]

    def wants(self) -> Any:
        return None


@dataclass(slots=True, eq=False)
class Boolean:
    """A truth value: matches only itself."""

    gold: bool

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002
        return value is self.gold

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:  # noqa: ARG002
        return [] if value is self.gold else [differs(path, self.gold, value)]

    def wants(self) -> Any:
        return self.gold


@dataclass(slots=True, eq=False)
class Number:
    """A number: matches any of its written forms; ``in_text`` says whether text may be one."""

    gold: int | float
    in_text: bool

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002
        if type(value) is str and not self.in_text:
            return False
        read = number(value)
        return read is not None and same_number(self.gold, read)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        if self.match(value, notes):
            return []
        said = differs(path, self.gold, value)
        if type(value) is not str:
            return [said]
        read = number(value)
        if read is not None and same_number(self.gold, read):
            return [f"{said}, a number as text, which strictArgs does not take"]
        if ambiguous(self.gold, value):
            notes.add(AMBIGUOUS)
        return [f"{said}, which is {'no number' if read is None else f'read as {words.shown(read)}'}"]

    def wants(self) -> Any:
        return self.gold


@dataclass(slots=True, eq=False)
class String:
    """A string: equal after normalisation, or, where nothing is strict, one within the other."""

    gold: str
    rules: Rules
    place: Place
    strict: bool
    _normal: str | None = None

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002, PLR0911 — what is cheap comes first
        if type(value) is not str:
            if type(value) is not int and type(value) is not float:
                return False
            value = json_text(value)
        if value == self.gold:
            return True
        if value is None:
            return False
        if self._normal is None:
            self._normal = normal(self.gold)
        one, other = self._normal, normal(value)
        if one == other:
            return True
        if not one or not other or self.strict or self.rules.strict_args:
            return False
        whole, part = (one, other) if len(one) > len(other) else (other, one)
        if self.rules.grading == 1:
            return part in whole
        return len(one) > SHORT_GOLD and not self.place.strict and contains(whole, part)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        return [] if self.match(value, notes) else [differs(path, self.gold, value)]

    def wants(self) -> Any:
        return self.gold


@dataclass(slots=True, eq=False)
class AnyOf:
    """Named alternatives."""

    golds: Sequence[Gold]

    def match(self, value: Any, notes: set[str]) -> bool:
        for gold in self.golds:  # noqa: SIM110 — a generator costs more than what it would save
            if gold.match(value, notes):
                return True
        return False

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        if self.match(value, notes):
            return []
        if len(self.golds) == 1:
            return self.golds[0].explain(value, path, notes)
        for gold in self.golds:
            gold.explain(value, path, notes)  # what is to be counted apart, whatever the alternative
        return [f"argument `{words.text(path)}`: expected {wanted(self)}, got {words.shown(value)}"]

    def wants(self) -> Any:
        return self.golds[0].wants() if len(self.golds) == 1 else {"anyOf": [gold.wants() for gold in self.golds]}


@dataclass(slots=True, eq=False)
class Array:
    """A list: by position, or as a set by a perfect matching."""

    golds: Sequence[Gold]
    as_set: bool

    def match(self, value: Any, notes: set[str]) -> bool:
        if not isinstance(value, list) or len(value) != len(self.golds):
            return False
        if not self.as_set:
            return all(map(_match, self.golds, value, repeat(notes)))
        # Each pair is compared once: comparing the same ones again at every depth would double the work at each.
        at_place = [gold.match(one, notes) for gold, one in zip(self.golds, value, strict=True)]
        if all(at_place):
            return True
        fits = [
            [at for at, one in enumerate(value) if (at_place[at] if at == mine else gold.match(one, notes))]
            for mine, gold in enumerate(self.golds)
        ]
        return [] not in fits and -1 not in pair(fits, len(value))

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        if self.match(value, notes):
            return []
        if not isinstance(value, list):
            return [differs(path, self.wants(), value)]
        if len(value) != len(self.golds):
            wanted = words.count(len(self.golds), "element")
            return [f"argument `{words.text(path)}`: expected {wanted}, got {len(value)}: {words.shown(value)}"]
        if self.as_set:
            return [f"{differs(path, self.wants(), value)}, in any order"]
        return [
            phrase
            for at, (gold, one) in enumerate(zip(self.golds, value, strict=True))
            for phrase in gold.explain(one, f"{path}[{at}]", notes)
        ]

    def wants(self) -> Any:
        return [gold.wants() for gold in self.golds]


@dataclass(slots=True, eq=False)
class Decoding:
    """Where the schema says array or object, a JSON string is decoded once and noted as repaired."""

    gold: Gold
    kinds: tuple[type, ...]
    strict_args: bool

    def match(self, value: Any, notes: set[str]) -> bool:
        if type(value) is not str:
            return self.gold.match(value, notes)
        inner = _decoded(value, self.kinds)
        if inner is ABSENT:
            return self.gold.match(value, notes)
        notes.add(REPAIRED)
        return not self.strict_args and self.gold.match(inner, notes)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        inner = _decoded(value, self.kinds) if type(value) is str else ABSENT
        if inner is ABSENT:
            return self.gold.explain(value, path, notes)
        notes.add(REPAIRED)
        if phrases := self.gold.explain(inner, path, notes):
            return phrases
        said = f"{differs(path, self.wants(), value)}, JSON as text, which strictArgs does not take"
        return [said] if self.strict_args else []

    def wants(self) -> Any:
        return self.gold.wants()


def wanted(gold: Gold) -> str:
    """A gold in words."""
    if isinstance(gold, AnyOf):
        return words.listed([words.shown(one.wants()) for one in gold.golds], "or") or "nothing"
    return words.both(gold.wants(), "x")[0]


def differs(path: str, expected: Any, got: Any) -> str:
    """An expected and a given value at a place of the arguments, in words."""
    wanted, given = words.both(expected, got)
    return f"argument `{words.text(path)}`: expected {wanted}, got {given}"


def _match(gold: Gold, value: Any, notes: set[str]) -> bool:
    return gold.match(value, notes)


def _decoded(value: str, kinds: tuple[type, ...]) -> Any:
    try:
        inner = json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return ABSENT
    return inner if isinstance(inner, kinds) else ABSENT


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
