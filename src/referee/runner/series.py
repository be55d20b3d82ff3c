"""A series of attempts at one subject: a fixed number of runs, or until the verdict is settled (methodology §9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from referee.core.failure import Cause
from referee.core.records import AttemptPlanned, Record
from referee.scoring.attempts import Judgement
from referee.scoring.verdicts import AgentTier, next_step

#: How many invalid attempts in a row are tried again before the series gives up.
MAX_INVALID = 2


#: What passes by waiting: a key that could not be made, a model or a gateway that did not answer.
_PASSES_BY_WAITING = frozenset({Cause.KEY_UNAVAILABLE, Cause.MODEL_UNAVAILABLE, Cause.GATEWAY_FAILED})


@dataclass(frozen=True)
class Patience:
    """How a series waits where a key could not be made or a model did not answer: longer each time.

    Args:
        first_seconds: the first wait; each further one in a row is twice as long.
        most_seconds: no wait is longer.
        tries: how often in a row a key is tried for again. An attempt that was not started costs nothing.
        sleep: waits so many seconds.
        tell: is told that it waits, in a sentence.
    """

    first_seconds: float = 30.0
    most_seconds: float = 900.0
    tries: int = 6
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = lambda _: None

    def wait(self, times: int, *, left: int) -> None:
        """Wait for the ``times``-th time in a row, from 1, where ``left`` further tries are left."""
        seconds = min(self.most_seconds, self.first_seconds * 2.0 ** min(times - 1, 60))
        tries = "the last try" if left == 1 else f"{left} tries left"
        self.tell(f"  trying again in {seconds:g} s ({tries})")
        self.sleep(seconds)


@dataclass(frozen=True)
class Series:
    """What is wanted: a number of valid attempts, or attempts until the verdict is settled.

    ``stronger``: whether a stronger agent stands ready for a subject that the standard one could not verify.
    """

    mode: Literal["runs", "until-verdict"]
    runs: int = 1
    stronger: bool = False


def run_series(
    series: Series, *, tier: AgentTier, attempt: Callable[[AgentTier], Judgement], patience: Patience | None = None
) -> list[Judgement]:
    """Make attempts until the series is complete.

    Args:
        series: what is wanted.
        tier: the tier of the agent that makes a fixed number of runs.
        attempt: makes one attempt by the agent of a tier and judges it.
        patience: how to wait for keys and models; None for the usual.

    Returns:
        The judgements in order, invalid ones included. An invalid attempt is repeated while its cause may pass, twice
        in a row at most; one that had no key, as often as ``patience`` says.
    """
    patience = patience or Patience()
    made: list[Judgement] = []
    in_a_row = keyless = 0
    while (wanted := _next(series, tier, made)) is not None:
        judgement = attempt(wanted)
        made.append(judgement)
        if judgement.valid:
            in_a_row = keyless = 0
            continue
        no_key = judgement.cause is Cause.KEY_UNAVAILABLE
        in_a_row, keyless = in_a_row + (not no_key), keyless + no_key
        if not judgement.retry or in_a_row > MAX_INVALID or keyless > patience.tries:
            break
        if judgement.cause in _PASSES_BY_WAITING:
            times, most = (keyless, patience.tries) if no_key else (in_a_row, MAX_INVALID)
            patience.wait(times, left=most - times + 1)
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
