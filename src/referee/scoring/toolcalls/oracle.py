"""The arguments of an expected call, made ready from the oracle and the tool's schema (bake-off §9). Pure.

Matching costs a few comparisons. What the schema says of a member is looked up only where its value is not what is
written in the oracle.
"""

from __future__ import annotations

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

_SCALARS = frozenset({str, int, float, bool})


class Members:
    """An object of the oracle, or the arguments themselves: no operator, whatever its keys.

    What a member is compared with is made when a value first differs from what is written in the oracle: most values
    of right answers do not.
    """

    __slots__ = ("_golds", "literal", "oracle", "place", "rules", "strict")

    def __init__(
        self, oracle: dict[str, Any], rules: Rules, place: Place, *, strict: bool = False, literal: bool = False
    ) -> None:
        self.oracle = oracle
        self.rules = rules
        self.place = place
        self.strict = strict
        self.literal = literal
        self._golds: dict[str, Gold] = {}

    def _gold(self, name: str) -> Gold:
        made = self._golds.get(name)
        if made is None:
            place = self.place.member(name)
            made = compiled(self.oracle[name], self.rules, place, strict=self.strict, literal=self.literal)
            self._golds[name] = made
        return made

    def match(self, value: Any, notes: set[str]) -> bool:
        """Whether a given object matches."""
        if not isinstance(value, dict):
            return False
        found = 0
        for name, written in self.oracle.items():
            got = value.get(name, ABSENT)
            if got is ABSENT:
                if not self._may_be_absent(name):
                    return False
                continue
            found += 1
            if _as_written(written, got) and not self.literal:
                continue
            if not self._gold(name).match(got, notes) and not self._says_nothing(name, got):
                return False
        if self.rules.extra is True or len(value) == found:
            return True
        return all(name in self.oracle or self._tolerated(name, got) for name, got in value.items())

    def _may_be_absent(self, name: str) -> bool:
        """Whether a member need not be there: its gold matches null, or the default that holds without it.

        A default makes no required argument optional: an answer without it breaks the schema that was offered.
        """
        gold = self._gold(name)
        if gold.match(None, set()):
            return True
        if self.rules.grading == 1 or name in self.place.required:
            return False
        default = self.place.member(name).default
        return default is not NONE_NAMED and gold.match(default, set())

    def _says_nothing(self, name: str, value: Any) -> bool:
        """Whether a value says that a member is left out, and it need not be there."""
        return self.rules.grading != 1 and self._as_left_out(name, value) and self._may_be_absent(name)

    def _as_left_out(self, name: str, value: Any) -> bool:
        """Whether a value equals leaving the member out: null for an optional one, or the schema's own default."""
        if value is None and self.place.optional(name):
            return True
        place = self.place.member(name)
        default = place.default
        return default is not NONE_NAMED and compiled(default, self.rules, place, strict=True, literal=True).match(
            value, set()
        )

    def _tolerated(self, name: str, value: Any) -> bool:
        """Whether a member that the oracle does not name may be there."""
        if self.rules.extra == "schema":
            return self.place.knows(name)
        if self.rules.extra or self.rules.grading == 1:
            return self.rules.extra
        return self._as_left_out(name, value)

    def explain(self, value: Any, path: str, notes: set[str]) -> list[str]:
        """Why a given object does not match."""
        if not isinstance(value, dict):
            return [differs(path, self.wants(), value)]
        phrases: list[str] = []
        for name in self.oracle:
            gold = self._gold(name)
            place = f"{path}.{name}" if path else name
            got = value.get(name, ABSENT)
            if got is ABSENT:
                if not self._may_be_absent(name):
                    phrases.append(f"argument `{words.text(place)}` is missing: expected {wanted(gold)}")
            elif not self._says_nothing(name, got):
                phrases += gold.explain(got, place, notes)
        if self.rules.extra is not True:
            phrases += [
                self._invented(f"{path}.{name}" if path else name)
                for name, got in value.items()
                if name not in self.oracle and not self._tolerated(name, got)
            ]
        return phrases

    def _invented(self, place: str) -> str:
        why = "does not exist in the schema" if self.rules.extra == "schema" else "was not expected"
        return f"argument `{words.text(place)}` {why}"

    def wants(self) -> Any:
        """The object in plain JSON."""
        return {name: self._gold(name).wants() for name in self.oracle}


def _as_written(gold: Any, got: Any) -> bool:
    """Whether a scalar, or a list of them, is just what the oracle writes or one of its alternatives.

    That matches by every rule. Objects are left to the rules: one that looks like an operator is none in an answer.
    """
    kind = type(got)
    if kind is list:
        if type(gold) is list:
            return len(gold) == len(got) and all(map(_as_written, gold, got))
    elif kind not in _SCALARS:
        return False
    elif type(gold) is kind:
        return bool(gold == got)
    if type(gold) is dict and len(gold) == 1:
        alternatives = gold.get("anyOf")
        if isinstance(alternatives, list | tuple):
            for alternative in alternatives:
                if _as_written(alternative, got):
                    return True
    return False


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
            if isinstance(gold.get("anyOf"), list | tuple):
                return AnyOf([_compiled(one, rules, place, strict, literal) for one in gold["anyOf"]])
        return Members(gold, rules, place, strict=strict, literal=literal)
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


def _may_contain(gold: Gold) -> bool:
    if isinstance(gold, AnyOf):
        return any(map(_may_contain, gold.golds))
    return isinstance(gold, Array | Members)
