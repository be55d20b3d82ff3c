"""The deterministic grader: the calls of an answer against the oracle of a case (bake-off §9, both generations).

No judge, no edit distance, nothing evaluated. ``Grader`` reads the oracle once and then grades each answer in
microseconds; every verdict carries one sentence that a person understands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from referee.core.answers import GivenCall, Grade, Reading
from referee.core.bakeoff import Blame
from referee.core.cases import Call, Case, Grading, Tool
from referee.scoring.answers import offered
from referee.scoring.toolcalls import words
from referee.scoring.toolcalls.answers import canonical_answer, canonical_call
from referee.scoring.toolcalls.golds import REPAIRED, Rules
from referee.scoring.toolcalls.matching import pair
from referee.scoring.toolcalls.oracle import Members
from referee.scoring.toolcalls.schemas import Place
from referee.scoring.toolcalls.traces import leaked

DUPLICATE = "duplicate-call"
FURTHER = "further-call"
LEAK = "template-leak"
CONTENT = "content_fallback"
DOUBLED = "duplicate-keys"

#: What makes an answer without calls no clean no-call in the second generation: flag -> why, in words.
_UNCLEAN = {
    CONTENT: "a call stands as text in the answer",
    "unknown-content": "the answer holds a part that cannot be read",
    "unknown-item": "the answer holds a part that cannot be read",
    DOUBLED: "the answer says twice which calls there are",
    "used-tools": "the agent used tools of its own",
}

THEN = "then"

#: So many phrases of a failure are said, and so many calls are looked at for the one that was meant.
_MOST_PHRASES = 3
_MOST_CALLS = 50


@dataclass(slots=True, eq=False)
class _Expected:
    """One expected call, its arguments ready to be compared."""

    name: str
    arguments: Members

    def match(self, call: GivenCall, notes: set[str]) -> bool:
        return call.name == self.name and self.arguments.match(call.arguments, notes)

    @property
    def said(self) -> str:
        """The call in the words of a pass."""
        names = list(self.arguments.oracle)
        if not "".join(names).isprintable():
            names = [words.text(name) for name in names]
        return f"{self.name} with {words.listed(names)}" if names else self.name


class Grader:
    """The oracle of one case, ready to grade any number of answers.

    Args:
        case: the case.
        tools: what it offers; the second generation reads their schemas.
        grading: the generation of the rules.
    """

    __slots__ = ("_abstains", "_expected", "_listed", "_ordered", "_pass", "_taken", "_tools", "case", "rules")

    def __init__(self, case: Case, tools: Sequence[Tool], grading: Grading) -> None:
        self.case = case
        self.rules = Rules.of(case.policy, grading)
        self._tools = tools
        self._expected = [self._ready(call, tools) for call in case.golds]
        self._abstains = case.abstains
        self._listed = case.expected_calls is not None
        self._ordered = self._listed and case.policy.call_order == "strict"
        self._pass: Grade | None = None
        self._taken: dict[str, frozenset[str]] | None = None

    @property
    def _offered(self) -> frozenset[str]:
        """The names of the tools that are offered; asked for only where something is amiss."""
        return frozenset(tool.name for tool in self._tools)

    def _ready(self, call: Call, tools: Sequence[Tool]) -> _Expected:
        parameters: dict[str, Any] = {}
        for tool in tools:
            if tool.name == call.name:
                parameters = tool.parameters
        return _Expected(call.name, Members(call.arguments, self.rules, Place(parameters, parameters)))

    # --- an answer as it was read ------------------------------------------------------------------------------------

    def judge(self, reading: Reading, sent: Mapping[str, str]) -> Grade:
        """Grade an answer; ``sent`` maps the names as they were sent to the model to the real ones."""
        fault = reading.fault
        if fault is not None and fault.blame is not Blame.MODEL:
            return Grade(None, None, fault.sentence, reading.flags, fault=fault)
        if not reading.calls and reading.text and reading.broken is None:
            reading = self._looked_into(reading, sent)
        if reading.broken is not None:
            return Grade(False, False, _broken(reading), reading.flags, fault=fault)
        if fault is not None and not self._refusal_abstains(reading):
            return Grade(
                False, reading.well_formed, f"the model gave no answer: {fault.sentence}", reading.flags, fault=fault
            )
        if reading.flags and not reading.calls and self._abstains and self.rules.grading != 1:
            for flag, why in _UNCLEAN.items():
                if flag in reading.flags:
                    reason = f"no tool should have been called; {why}"
                    return Grade(False, reading.well_formed, reason, reading.flags, fault=fault)
        calls = [_renamed(call, sent) for call in reading.calls] if sent else reading.calls
        grade = self.grade(calls, repaired=REPAIRED in reading.flags)
        if not reading.flags and fault is None and reading.well_formed:
            return grade
        if CONTENT in reading.flags and not calls and not grade.passed:
            grade = replace(grade, reason=f"{grade.reason} (a call stands as text in the answer, which is none here)")
        return replace(
            grade,
            well_formed=reading.well_formed and bool(grade.well_formed),
            flags=_flags(reading.flags, grade.flags),
            fault=fault,
        )

    def _looked_into(self, reading: Reading, sent: Mapping[str, str]) -> Reading:
        """An answer without calls, its text searched for those that only the tools' names give away.

        One that can be read is no call there, and counted; one that cannot is an answer that cannot be parsed.
        """
        if self._taken is None:
            self._taken = {tool.name: _arguments_of(tool) for tool in self._tools}
        taken = self._taken
        text = reading.text
        if CONTENT in reading.flags or DOUBLED in reading.flags:  # is known to show a call, or to say it twice
            return reading
        if not (any(name in text for name in taken) or any(name in text for name in sent)):
            return reading
        known = {**taken, **{name: taken[real] for name, real in sent.items() if real in taken}}
        shown = offered(tuple(known.items())).shown(text)
        if shown == "call":
            return replace(reading, well_formed=False, flags=(*reading.flags, CONTENT))
        if shown == "attempt":
            detail = "a call was attempted in the text and cannot be read"
            return replace(reading, well_formed=False, broken="attempted-call", broken_detail=detail)
        return reading

    def _refusal_abstains(self, reading: Reading) -> bool:
        """By the letter of the first generation any answer without a call abstains; the second wants a clean one."""
        refused = reading.fault is not None and reading.fault.name == "refusal"
        return refused and self._abstains and not reading.calls and self.rules.grading == 1

    # --- its calls ---------------------------------------------------------------------------------------------------

    def grade(self, calls: Sequence[GivenCall], *, repaired: bool = False) -> Grade:
        """Grade calls that bear the tools' real names; ``repaired``: the answer was, as a whole."""
        notes: set[str] = set()
        failure = self._failure(calls, notes)
        for call in calls:
            if call.flags:
                notes.update(call.flags)
        if failure is not None:
            offered = self._offered
            if any(leaked(call.name) for call in calls if call.name not in offered):
                notes.add(LEAK)
        if len(calls) > (1 if failure else len(self._expected)) and not self._abstains:
            self._count_further(calls, notes)
        mended = repaired or REPAIRED in notes
        if failure is None and not mended:
            return replace(self._passed(), flags=tuple(sorted(notes))) if notes else self._passed()
        if failure is None and self.rules.strict_args and not self._abstains:
            reason = "the calls are as expected, but the answer had to be repaired, which strictArgs does not take"
            return Grade(False, False, reason, tuple(sorted(notes | {REPAIRED})))
        if failure is None:
            return Grade(True, False, f"{self._passed().reason} (repaired)", tuple(sorted(notes | {REPAIRED})))
        wrong = canonical_answer(calls, ordered=self._ordered)
        return Grade(False, not mended, failure, tuple(sorted(notes)), wrong)

    def _passed(self) -> Grade:
        """What is said of every pass with nothing to add: made once."""
        if self._pass is None:
            expected = words.listed([one.said for one in self._expected])
            said = "no tool was called," if self._abstains else expected
            self._pass = Grade(True, True, f"passed: {said} as expected")
        return self._pass

    def _failure(self, calls: Sequence[GivenCall], notes: set[str]) -> str | None:
        """Why the calls fail, or None where they pass."""
        if self._abstains:
            return f"no tool should have been called; {_were(calls)}" if calls else None
        if not calls:
            return f"no tool was called; {_names(self._expected)} {_verb(self._expected)} expected"
        if not self._listed:
            return self._one(calls, notes)
        return self._in_order(calls, notes) if self._ordered else self._any_order(calls, notes)

    def _one(self, calls: Sequence[GivenCall], notes: set[str]) -> str | None:
        (expected,) = self._expected
        if self.case.policy.exactly_one and len(calls) != 1:
            return f"exactly one call was expected; {len(calls)} were given: {_names(calls)}"
        for call in calls:
            seen: set[str] = set()
            if expected.match(call, seen):
                notes |= seen
                return None
        return self._why(expected, calls, notes)

    def _in_order(self, calls: Sequence[GivenCall], notes: set[str]) -> str | None:
        expected = self._expected
        if len(calls) != len(expected):
            wanted = words.count(len(expected), "call")
            return (
                f"{wanted} {_verb(expected)} expected: {_names(expected, THEN)}; "
                f"{len(calls)} {_verb(calls)} given: {_names(calls, THEN)}"
            )
        wrong = [at for at, (one, call) in enumerate(zip(expected, calls, strict=True)) if not one.match(call, notes)]
        if not wrong:
            return None
        if self._any_order(calls, set()) is None:
            return f"the calls came in another order: {_names(calls, THEN)}; expected {_names(expected, THEN)}"
        at = wrong[0]
        return f"call {at + 1}: {self._why(expected[at], [calls[at]], notes)}"

    def _any_order(self, calls: Sequence[GivenCall], notes: set[str]) -> str | None:
        expected = self._expected
        if len(calls) == len(expected) and all(map(_Expected.match, expected, calls, repeat(notes))):
            return None
        seen: list[set[str]] = [set() for _ in calls]
        fits = [[at for at, call in enumerate(calls) if one.match(call, seen[at])] for one in expected]
        partners = pair(fits, len(calls))
        taken = set(partners)
        rest = [call for at, call in enumerate(calls) if at not in taken]
        if -1 in partners:
            missing = expected[partners.index(-1)]
            if not any(call.name == missing.name for call in rest):
                times = sum(one.name == missing.name for one in expected)
                if given := sum(call.name == missing.name for call in calls):
                    return f"{missing.name} was expected in {times} calls; {given} {_verb(calls[:given])} given"
                return f"{missing.said} was expected and not called; {_were(calls)} called"
            return self._why(missing, [call for call in rest if call.name == missing.name], notes)
        for at in taken:
            notes |= seen[at]
        if rest and not self.case.policy.exactly_one:
            rest = self._no_duplicates(calls, fits)
        if rest:
            return f"{words.count(len(expected), 'call')} {_verb(expected)} expected; {_were(rest)} called beside them"
        return None

    @staticmethod
    def _no_duplicates(calls: Sequence[GivenCall], fits: Sequence[Sequence[int]]) -> list[GivenCall]:
        """The calls that are left over whatever is paired, and of which none that is paired is a duplicate.

        Where one pairing serves every expected call and another one call of each kind, there is one that serves both
        (Mendelsohn and Dulmage): so it is enough to ask whether one call of each kind can be paired.
        """
        first: dict[str, int] = {}
        for at, call in enumerate(calls):
            first.setdefault(canonical_call(call), at)
        fitting = [set(candidates) for candidates in fits]
        kinds = [[expected for expected, candidates in enumerate(fitting) if at in candidates] for at in first.values()]
        partners = pair(kinds, len(fits))
        return [calls[at] for at, partner in zip(first.values(), partners, strict=True) if partner < 0]

    def _count_further(self, calls: Sequence[GivenCall], notes: set[str]) -> None:
        different = len({canonical_call(call) for call in calls})
        if different < len(calls):
            notes.add(DUPLICATE)
        if not self._listed and different > 1:
            notes.add(FURTHER)

    def _why(self, expected: _Expected, calls: Sequence[GivenCall], notes: set[str]) -> str:
        """Why none of the calls is the expected one: the nearest one's differences."""
        same = [call for call in calls[:_MOST_CALLS] if call.name == expected.name]
        if not same:
            offered = self._offered
            known = not offered or all(call.name in offered for call in calls[:_MOST_CALLS])
            odd = "" if known else _odd(calls)
            return f"called {_names(calls)} where {expected.name} was expected{odd}"
        found: list[str] = []
        for at, call in enumerate(same):
            seen: set[str] = set()
            phrases = expected.arguments.explain(call.arguments, "", seen)
            notes |= seen
            if at == 0 or len(phrases) < len(found):
                found = phrases
        more = f"; and {len(found) - _MOST_PHRASES} more" if len(found) > _MOST_PHRASES else ""
        return "; ".join(found[:_MOST_PHRASES]) + more


def _arguments_of(tool: Tool) -> frozenset[str]:
    said = tool.parameters.get("properties")
    return frozenset(said) if isinstance(said, Mapping) else frozenset()


def _renamed(call: GivenCall, sent: Mapping[str, str]) -> GivenCall:
    real = sent.get(call.name, call.name)
    return call if real == call.name else GivenCall(real, call.arguments, call.flags)


def _broken(reading: Reading) -> str:
    detail = reading.broken_detail.strip()
    return f"no answer that can be read ({reading.broken}){f': {detail}' if detail else ''}"


def _flags(first: Sequence[str], then: Sequence[str] | set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *sorted(then)]))


def _names(calls: Sequence[Any], joint: str = "and") -> str:
    return words.listed([words.text(call.name) for call in calls], joint)


def _verb(calls: Sequence[Any]) -> str:
    return "was" if len(calls) == 1 else "were"


def _were(calls: Sequence[Any]) -> str:
    return f"{_names(calls)} {_verb(calls)}"


def _odd(calls: Sequence[GivenCall]) -> str:
    if any(leaked(call.name) for call in calls[:_MOST_CALLS]):
        return " (the marks of the chat template leaked into the name)"
    return " (there is no such tool here)"
