"""A series of attempts at one subject: a fixed number of runs, or until the verdict is settled (methodology §9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from referee.core.records import AttemptPlanned, Record
from referee.scoring.attempts import Judgement
from referee.scoring.verdicts import AgentTier, next_step

#: How many invalid attempts in a row are tried again before the series gives up.
MAX_INVALID = 2


@dataclass(frozen=True)
class Series:
    """What is wanted: a number of valid attempts, or attempts until the verdict is settled.

    ``stronger``: whether a stronger agent stands ready for a subject that the standard one could not verify.
    """

    mode: Literal["runs", "until-verdict"]
    runs: int = 1
    stronger: bool = False


def run_series(series: Series, *, tier: AgentTier, attempt: Callable[[AgentTier], Judgement]) -> list[Judgement]:
    """Make attempts until the series is complete.

    Args:
        series: what is wanted.
        tier: the tier of the agent that makes a fixed number of runs.
        attempt: makes one attempt by the agent of a tier and judges it.

    Returns:
        The judgements in order, invalid ones included. An invalid attempt is repeated while its cause may pass, twice
        in a row at most.
    """
    made: list[Judgement] = []
    invalid_in_a_row = 0
    while (wanted := _next(series, tier, made)) is not None:
        judgement = attempt(wanted)
        made.append(judgement)
        invalid_in_a_row = 0 if judgement.valid else invalid_in_a_row + 1
        if not judgement.valid and (not judgement.retry or invalid_in_a_row > MAX_INVALID):
            break
    return made


def _next(series: Series, tier: AgentTier, made: Sequence[Judgement]) -> AgentTier | None:
    if series.mode == "runs":
        return tier if sum(1 for one in made if one.valid) < series.runs else None
    if tier == "stronger":  # asked for alone: one complete attempt of it settles
        return tier if not any(one.valid for one in made) else None
    step = next_step(made, stronger_requested=series.stronger)
    return None if step == "stop" else step


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
