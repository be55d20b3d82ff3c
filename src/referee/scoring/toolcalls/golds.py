"""An oracle's value, made ready to be compared: one small matcher for each value of the grammar (bake-off §9). Pure.

``compiled`` reads the gold once; matching then costs a few comparisons, and only a failure is put into words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

from referee.core.cases import Grading, Policy
from referee.scoring.toolcalls import words
from referee.scoring.toolcalls.matching import pair
from referee.scoring.toolcalls.schemas import NONE_NAMED, Place
from referee.scoring.toolcalls.values import ambiguous, contains, json_text, normal, number, same_number

#: A gold of at most so many characters compares strictly in the second generation.
SHORT_GOLD = 3

REPAIRED = "repaired"
AMBIGUOUS = "ambiguous-number"

_ABSENT: Any = object()


@dataclass(frozen=True)
class Rules:
    """The rules of one case: its generation and its policy, every default filled in."""

    grading: Grading
    strict_args: bool
    as_set: bool
    extra: bool | Literal["schema"]

    @classmethod
    def of(cls, policy: Policy, grading: Grading) -> Rules:
        """The rules that a policy means in a generation."""
        extra = policy.allow_extra_args
        if extra is None:
            extra = True if grading == 1 else "schema"
        return cls(grading, policy.strict_args, policy.array_order == "set", extra)


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
class _Null:
    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002 — the seam's
        return value is None

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:  # noqa: ARG002
        return [] if value is None else [_differs(path, None, value)]

    def wants(self) -> Any:
        return None


@dataclass(slots=True, eq=False)
class _Boolean:
    gold: bool

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002
        return value is self.gold

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:  # noqa: ARG002
        return [] if value is self.gold else [_differs(path, self.gold, value)]

    def wants(self) -> Any:
        return self.gold


@dataclass(slots=True, eq=False)
class _Number:
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
        said = _differs(path, self.gold, value)
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
class _String:
    """``how``: ``equal`` to the gold, ``within`` either in the other, or so on token boundaries (``tokens``)."""

    gold: str
    normalised: str
    how: Literal["equal", "within", "tokens"]

    def match(self, value: Any, notes: set[str]) -> bool:  # noqa: ARG002
        if type(value) is not str:
            if type(value) is not int and type(value) is not float:
                return False
            value = json_text(value)
            if value is None:
                return False
        if value == self.gold:
            return True
        one, other = self.normalised, normal(value)
        if one == other:
            return True
        if self.how == "equal" or not one or not other:
            return False
        whole, part = (one, other) if len(one) > len(other) else (other, one)
        return part in whole if self.how == "within" else contains(whole, part)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        return [] if self.match(value, notes) else [_differs(path, self.gold, value)]

    def wants(self) -> Any:
        return self.gold


@dataclass(slots=True, eq=False)
class _AnyOf:
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
        return [f"argument `{words.text(path)}`: expected {_wanted(self)}, got {words.shown(value)}"]

    def wants(self) -> Any:
        return self.golds[0].wants() if len(self.golds) == 1 else {"anyOf": [gold.wants() for gold in self.golds]}


@dataclass(slots=True, eq=False)
class _Array:
    golds: Sequence[Gold]
    as_set: bool

    def match(self, value: Any, notes: set[str]) -> bool:
        if not isinstance(value, list) or len(value) != len(self.golds):
            return False
        if all(gold.match(one, notes) for gold, one in zip(self.golds, value, strict=True)):
            return True
        return self.as_set and -1 not in self._pairing(value, notes)

    def _pairing(self, value: list[Any], notes: set[str]) -> list[int]:
        fits = [[at for at, one in enumerate(value) if gold.match(one, notes)] for gold in self.golds]
        return [-1] if [] in fits else pair(fits, len(value))

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        if self.match(value, notes):
            return []
        if not isinstance(value, list):
            return [_differs(path, self.wants(), value)]
        if len(value) != len(self.golds):
            wanted = words.count(len(self.golds), "element")
            return [f"argument `{words.text(path)}`: expected {wanted}, got {len(value)}: {words.shown(value)}"]
        if self.as_set:
            return [f"{_differs(path, self.wants(), value)}, in any order"]
        return [
            phrase
            for at, (gold, one) in enumerate(zip(self.golds, value, strict=True))
            for phrase in gold.explain(one, f"{path}[{at}]", notes)
        ]

    def wants(self) -> Any:
        return [gold.wants() for gold in self.golds]


@dataclass(slots=True, eq=False)
class _Decoding:
    """Where the schema says array or object, a JSON string is decoded once and noted as repaired."""

    gold: Gold
    kinds: tuple[type, ...]
    strict_args: bool

    def match(self, value: Any, notes: set[str]) -> bool:
        if type(value) is not str:
            return self.gold.match(value, notes)
        inner = _decoded(value, self.kinds)
        if inner is _ABSENT:
            return self.gold.match(value, notes)
        notes.add(REPAIRED)
        return not self.strict_args and self.gold.match(inner, notes)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        inner = _decoded(value, self.kinds) if type(value) is str else _ABSENT
        if inner is _ABSENT:
            return self.gold.explain(value, path, notes)
        notes.add(REPAIRED)
        if phrases := self.gold.explain(inner, path, notes):
            return phrases
        said = f"{_differs(path, self.wants(), value)}, JSON as text, which strictArgs does not take"
        return [said] if self.strict_args else []

    def wants(self) -> Any:
        return self.gold.wants()


@dataclass(slots=True, eq=False)
class Member:
    """One member of an object: whether it may be absent, and whether null says that it is."""

    name: str
    gold: Gold
    absent_ok: bool
    null_is_absent: bool


@dataclass(slots=True, eq=False)
class Members:
    """An object, or the arguments themselves."""

    members: Sequence[Member]
    rules: Rules
    place: Place
    names: Collection[str] = ()

    def match(self, value: Any, notes: set[str]) -> bool:
        """Whether a given object matches."""
        if not isinstance(value, dict):
            return False
        found = 0
        for member in self.members:
            got = value.get(member.name, _ABSENT)
            if got is _ABSENT:
                if not member.absent_ok:
                    return False
                continue
            found += 1
            if got is None and member.null_is_absent:
                if not member.absent_ok:
                    return False
            elif not member.gold.match(got, notes):
                return False
        if self.rules.extra is True or len(value) == found:
            return True
        return all(key in self.names or self._tolerated(key, got) for key, got in value.items())

    def _tolerated(self, name: str, value: Any) -> bool:
        if self.rules.extra == "schema":
            return self.place.knows(name)
        if self.rules.extra or self.rules.grading == 1:
            return self.rules.extra
        if value is None and self.place.optional(name):
            return True
        place = self.place.member(name)
        default = place.default
        return default is not NONE_NAMED and _literal(default, self.rules, place).match(value, set())

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        """Why a given object does not match."""
        if not isinstance(value, dict):
            return [_differs(path, self.wants(), value)]
        phrases: list[str] = []
        for member in self.members:
            place = f"{path}.{member.name}" if path else member.name
            got = value.get(member.name, _ABSENT)
            if got is _ABSENT or (got is None and member.null_is_absent):
                if member.absent_ok:
                    continue
                given = " is missing:" if got is _ABSENT else " is null:"
                phrases.append(f"argument `{words.text(place)}`{given} expected {_wanted(member.gold)}")
            else:
                phrases += member.gold.explain(got, place, notes)
        if self.rules.extra is not True:
            for name, got in value.items():
                if name not in self.names and not self._tolerated(name, got):
                    phrases.append(self._invented(f"{path}.{name}" if path else name))
        return phrases

    def _invented(self, place: str) -> str:
        why = "does not exist in the schema" if self.rules.extra == "schema" else "was not expected"
        return f"argument `{words.text(place)}` {why}"

    def wants(self) -> Any:
        """The object in plain JSON."""
        return {member.name: member.gold.wants() for member in self.members}


def _wanted(gold: Gold) -> str:
    if isinstance(gold, _AnyOf):
        return words.listed([words.shown(one.wants()) for one in gold.golds], "or") or "nothing"
    return words.both(gold.wants(), "x")[0]


def _differs(path: str, expected: Any, got: Any) -> str:
    wanted, given = words.both(expected, got)
    return f"argument `{words.text(path)}`: expected {wanted}, got {given}"


def compiled(gold: Any, rules: Rules, place: Place, *, strict: bool = False, literal: bool = False) -> Gold:
    """A value of the oracle, ready to be compared at its place in the schema.

    Args:
        gold: the value; ``{"eq": v}`` and ``{"anyOf": [...]}`` are operators.
        rules: of the case.
        place: what the schema says here; used by the second generation.
        strict: strings compare strictly (below ``eq``).
        literal: nothing is an operator.
    """
    made = _compiled(gold, rules, place, strict, literal)
    if rules.grading == 1 or not _may_contain(made):
        return made
    kinds = place.containers
    return _Decoding(made, kinds, rules.strict_args) if kinds else made


def _compiled(gold: Any, rules: Rules, place: Place, strict: bool, literal: bool) -> Gold:  # noqa: PLR0911 — one a kind
    if isinstance(gold, str):
        return _string(gold, rules, place, strict)
    if isinstance(gold, dict):
        if len(gold) == 1 and not literal:
            if "eq" in gold:
                return _compiled(gold["eq"], rules, place, True, literal)
            if isinstance(gold.get("anyOf"), list):
                return _AnyOf([_compiled(one, rules, place, strict, literal) for one in gold["anyOf"]])
        return members(gold, rules, place, strict=strict, literal=literal)
    if gold is None:
        return _Null()
    if isinstance(gold, bool):
        return _Boolean(gold)
    if isinstance(gold, int | float):
        return _Number(gold, rules.grading == 1 or not rules.strict_args)
    if isinstance(gold, list | tuple):
        golds = [compiled(one, rules, place.element(at), strict=strict, literal=literal) for at, one in enumerate(gold)]
        return _Array(golds, rules.as_set)
    return _unknown(gold)


def _unknown(gold: Any) -> NoReturn:
    raise TypeError(f"{type(gold).__name__} is no JSON value")


def _string(gold: str, rules: Rules, place: Place, strict: bool) -> _String:
    normalised = normal(gold)
    if strict or rules.strict_args:
        return _String(gold, normalised, "equal")
    if rules.grading == 1:
        return _String(gold, normalised, "within")
    exactly = len(normalised) <= SHORT_GOLD or place.strict
    return _String(gold, normalised, "equal" if exactly else "tokens")


def members(
    gold: dict[str, Any], rules: Rules, place: Place, *, strict: bool = False, literal: bool = False
) -> Members:
    """An object of the oracle, or the arguments themselves: no operator, whatever its keys."""
    made: list[Member] = []
    for name, value in gold.items():
        at = place.member(name)
        one = compiled(value, rules, at, strict=strict, literal=literal)
        absent_ok = (value is None or isinstance(value, dict)) and one.match(None, set())  # null, or an operator on it
        optional = False
        if rules.grading != 1:
            default, optional = at.default, place.optional(name)
            absent_ok = absent_ok or (default is not NONE_NAMED and one.match(default, set()))
        made.append(Member(name, one, absent_ok, optional))
    return Members(made, rules, place, gold.keys())


def _literal(value: Any, rules: Rules, place: Place) -> Gold:
    return compiled(value, rules, place, strict=True, literal=True)


def _may_contain(gold: Gold) -> bool:
    if isinstance(gold, _AnyOf):
        return any(map(_may_contain, gold.golds))
    return isinstance(gold, _Array | Members)


def _decoded(value: str, kinds: tuple[type, ...]) -> Any:
    try:
        inner = json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _ABSENT
    return inner if isinstance(inner, kinds) else _ABSENT


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
