"""A series of attempts at one subject: once, a fixed number of runs, or until the verdict is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from referee.core.records import AttemptPlanned, Record
from referee.scoring.attempts import Judgement

#: How many invalid attempts in a row are tried again before the series gives up.
MAX_INVALID = 2


@dataclass(frozen=True)
class Series:
    """What is wanted: a number of valid attempts, or attempts until the verdict is settled (methodology §9)."""

    mode: Literal["runs", "until-verdict"]
    runs: int = 1


def run_series(
    series: Series,
    *,
    attempt: Callable[[int], str],
    judge: Callable[[str], Judgement],
    settled: Callable[[Sequence[Judgement]], bool],
    first_index: int,
) -> list[Judgement]:
    """Make attempts until the series is complete.

    Args:
        series: what is wanted.
        attempt: makes attempt number n and returns its run id.
        judge: judges a run from its records.
        settled: whether the verdict is settled by these judgements, in order.
        first_index: number of the first attempt.

    Returns:
        The judgements in order, invalid ones included.
    """
    made: list[Judgement] = []
    index = first_index
    invalid_in_a_row = 0
    while True:
        judgement = judge(attempt(index))
        made.append(judgement)
        index += 1
        invalid_in_a_row = 0 if judgement.valid else invalid_in_a_row + 1
        if not judgement.valid and (not judgement.retry or invalid_in_a_row > MAX_INVALID):
            return made
        valid = sum(1 for one in made if one.valid)
        if series.mode == "runs" and valid >= series.runs:
            return made
        if series.mode == "until-verdict" and settled(made):
            return made


def next_index(records: Sequence[Record], *, subject: str, agent: str) -> int:
    """The number of the next attempt of ``agent`` at ``subject``: attempts are counted, invalid ones too."""
    made = [
        record
        for record in records
        if isinstance(record, AttemptPlanned)
        and record.lock.subject.name == subject
        and record.lock.agent.name == agent
    ]
    return 1 + max((record.lock.index for record in made), default=0)
