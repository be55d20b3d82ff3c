"""The arguments of an expected call, made ready from the oracle and the tool's schema (bake-off §9). Pure.

The oracle is read once; matching then costs a few comparisons. What the schema says of a member is looked up only where
a member is absent, null or not in the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from referee.scoring.toolcalls import words
from referee.scoring.toolcalls.golds import (
    ABSENT,
    AnyOf,
    Array,
    Boolean,
    Decoding,
    Gold,
    Null,
    Number,
    Rules,
    String,
    differs,
    wanted,
)
from referee.scoring.toolcalls.schemas import NONE_NAMED, Place


@dataclass(slots=True, eq=False)
class Members:
    """An object, or the arguments themselves."""

    golds: dict[str, Gold]
    rules: Rules
    place: Place

    def match(self, value: Any, notes: set[str]) -> bool:
        """Whether a given object matches."""
        if not isinstance(value, dict):
            return False
        found = 0
        for name, gold in self.golds.items():
            got = value.get(name, ABSENT)
            if got is ABSENT:
                if not self._may_be_absent(name, gold):
                    return False
                continue
            found += 1
            if not gold.match(got, notes) and not (got is None and self._null_will_do(name, gold)):
                return False
        if self.rules.extra is True or len(value) == found:
            return True
        return all(name in self.golds or self._tolerated(name, got) for name, got in value.items())

    def _may_be_absent(self, name: str, gold: Gold) -> bool:
        """Whether a member need not be there: its gold matches null, or the default that holds without it."""
        if gold.match(None, set()):
            return True
        if self.rules.grading == 1:
            return False
        default = self.place.member(name).default
        return default is not NONE_NAMED and gold.match(default, set())

    def _null_will_do(self, name: str, gold: Gold) -> bool:
        """Whether null says that a member is left out, and it need not be there."""
        return self.rules.grading != 1 and self.place.optional(name) and self._may_be_absent(name, gold)

    def _tolerated(self, name: str, value: Any) -> bool:
        """Whether a member that the oracle does not name may be there."""
        if self.rules.extra == "schema":
            return self.place.knows(name)
        if self.rules.extra or self.rules.grading == 1:
            return self.rules.extra
        if value is None and self.place.optional(name):
            return True
        place = self.place.member(name)
        default = place.default
        return default is not NONE_NAMED and compiled(default, self.rules, place, strict=True, literal=True).match(
            value, set()
        )

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        """Why a given object does not match."""
        if not isinstance(value, dict):
            return [differs(path, self.wants(), value)]
        phrases: list[str] = []
        for name, gold in self.golds.items():
            place = f"{path}.{name}" if path else name
            got = value.get(name, ABSENT)
            if got is ABSENT:
                if not self._may_be_absent(name, gold):
                    phrases.append(f"argument `{words.text(place)}` is missing: expected {wanted(gold)}")
            elif got is not None or not self._null_will_do(name, gold):
                phrases += gold.explain(got, place, notes)
        if self.rules.extra is not True:
            phrases += [
                self._invented(f"{path}.{name}" if path else name)
                for name, got in value.items()
                if name not in self.golds and not self._tolerated(name, got)
            ]
        return phrases

    def _invented(self, place: str) -> str:
        why = "does not exist in the schema" if self.rules.extra == "schema" else "was not expected"
        return f"argument `{words.text(place)}` {why}"

    def wants(self) -> Any:
        """The object in plain JSON."""
        return {name: gold.wants() for name, gold in self.golds.items()}


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
    return Decoding(made, kinds, rules.strict_args) if kinds else made


def _compiled(gold: Any, rules: Rules, place: Place, strict: bool, literal: bool) -> Gold:  # noqa: PLR0911 — one a kind
    if isinstance(gold, str):
        return String(gold, rules, place, strict)
    if isinstance(gold, dict):
        if len(gold) == 1 and not literal:
            if "eq" in gold:
                return _compiled(gold["eq"], rules, place, True, literal)
            if isinstance(gold.get("anyOf"), list):
                return AnyOf([_compiled(one, rules, place, strict, literal) for one in gold["anyOf"]])
        return members(gold, rules, place, strict=strict, literal=literal)
    if gold is None:
        return Null()
    if isinstance(gold, bool):
        return Boolean(gold)
    if isinstance(gold, int | float):
        return Number(gold, rules.grading == 1 or not rules.strict_args)
    if isinstance(gold, list | tuple):
        golds = [compiled(one, rules, place.element(at), strict=strict, literal=literal) for at, one in enumerate(gold)]
        return Array(golds, rules.as_set)
    return _unknown(gold)


def _unknown(gold: Any) -> NoReturn:
    raise TypeError(f"{type(gold).__name__} is no JSON value")


def members(
    gold: dict[str, Any], rules: Rules, place: Place, *, strict: bool = False, literal: bool = False
) -> Members:
    """An object of the oracle, or the arguments themselves: no operator, whatever its keys."""
    golds = {
        name: compiled(one, rules, place.member(name), strict=strict, literal=literal) for name, one in gold.items()
    }
    return Members(golds, rules, place)


def _may_contain(gold: Gold) -> bool:
    if isinstance(gold, AnyOf):
        return any(map(_may_contain, gold.golds))
    return isinstance(gold, Array | Members)
