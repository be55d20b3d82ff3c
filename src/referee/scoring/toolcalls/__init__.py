"""The graders: given calls against the oracle of a case. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from referee.core.answers import GivenCall, Grade, Reading
from referee.core.cases import Case, Grading, Tool
from referee.scoring.toolcalls.grader import Grader

__all__ = ["Grader", "grade_calls", "judge"]

#: Graders of the cases last seen: a case is graded once for each repeat and target.
_MOST_KEPT = 4096
_kept: dict[tuple[int, int, Grading], tuple[Case, Sequence[Tool], Grader]] = {}


def judge(case: Case, tools: tuple[Tool, ...], reading: Reading, *, grading: Grading, sent: Mapping[str, str]) -> Grade:
    """Grade an answer as it was read (bake-off §9).

    Excluded where its fault is not the model's; a format failure fails and never passes as an abstention.

    Args:
        case: the case with its oracle.
        tools: the tools that it offers, by their real names.
        reading: the answer; the names in its calls are as the server said them.
        grading: the generation of the rules.
        sent: name as sent to the model -> real name.
    """
    return _grader(case, tools, grading).judge(reading, sent)


def grade_calls(case: Case, tools: Sequence[Tool], calls: Sequence[GivenCall], *, grading: Grading) -> Grade:
    """Grade calls that bear the tools' real names."""
    return _grader(case, tools, grading).grade(calls)


def _grader(case: Case, tools: Sequence[Tool], grading: Grading) -> Grader:
    """The case's grader, made once; it is found by identity, which the kept references keep from being given away."""
    key = (id(case), id(tools), grading)
    found = _kept.get(key)
    if found is not None and found[0] is case and found[1] is tools:
        return found[2]
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    made = Grader(case, tools, grading)
    _kept[key] = (case, tools, made)
    return made
