"""The gate: every objection to releasing a run, as sentences; an empty list is no release, a person still says yes.

Pure: from records and their judgement alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from referee.core.budgets import PUBLISHED_SECONDS
from referee.core.failure import Cause
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned
from referee.core.spending import CAP_USD, usd

#: Editions before this one score the report as the agent wrote it; they are shown for comparison, not released.
RELEASED_EDITION = 2

#: What marks a version that is not exactly what a release holds (PEP 440: local, development).
_LOCAL_MARKS = ("+", ".dev")


def never(planned: AttemptPlanned) -> tuple[str, ...]:
    """What in its plan keeps a run from ever being published, in a few words each (methodology §4); empty: nothing."""
    lock = planned.lock
    found = []
    if not lock.environment.security_boundary:
        found.append("no security boundary")
    if lock.budget.seconds != PUBLISHED_SECONDS[lock.budget.tier]:
        found.append("another time limit")
    if lock.agent.cap_usd not in {None, CAP_USD}:
        found.append("another spending cap")
    return tuple(found)


def objections(
    planned: AttemptPlanned, ended: AttemptEnded | AttemptFound | None, *, invalid: str | None, flagged: bool
) -> list[str]:
    """Why a run may not be released.

    Args:
        planned: the run's plan.
        ended: how it ended; None while no end is recorded.
        invalid: why the attempt does not count, or None when it does.
        flagged: whether its report was contradicted, so that a person must look at it first.
    """
    lock = planned.lock
    found: list[str] = []
    if not lock.environment.security_boundary:
        found.append(f"{lock.environment.sandbox}: no security boundary, never publishable")
    published = PUBLISHED_SECONDS[lock.budget.tier]
    if lock.budget.seconds != published:
        found.append(
            f"its budget was {lock.budget.seconds} s; the published {lock.budget.tier} budget is {published} s"
        )
    cap = lock.agent.cap_usd
    if cap is not None and cap != CAP_USD:
        found.append(f"its key's cap was {usd(cap)}; the published cap is {usd(CAP_USD)}")
    if lock.edition < RELEASED_EDITION:
        found.append(f"it was planned under edition {lock.edition}, which scores the report without corroboration")
    if any(mark in lock.harness_version for mark in _LOCAL_MARKS):
        found.append(f"the harness was modified locally (version {lock.harness_version})")
    found += _known(lock.not_publishable, found)
    if ended is None:
        found.append("no end of the attempt is recorded")
        return found
    found += _recording(ended)
    if invalid is not None:
        found.append(f"the attempt is invalid: {invalid}")
    if flagged:
        found.append("its report was contradicted and a person has not looked at it")
    return found


def _recording(ended: AttemptEnded | AttemptFound) -> list[str]:
    recording = ended.recording if isinstance(ended, AttemptEnded) else None
    if ended.cause is Cause.RECORDING_LIMIT and recording is not None and not recording.write_error:
        return []  # the cap ended the attempt: it is complete up to there
    if recording is None:
        return ["it has no complete recording"]
    if not recording.complete:
        caps = ", ".join(recording.caps_reached)
        return [f"its recording is not complete ({caps} reached)" if caps else "its recording is not complete"]
    return []


def _known(recorded: Sequence[str], found: Sequence[str]) -> list[str]:
    """Objections recorded with the plan, without those that the fields of the record already gave."""
    given = {
        "the sandbox is no security boundary": "no security boundary",
        "the budget is": "its budget was",
        "the key's cap is": "its key's cap was",
    }
    rest = []
    for sentence in recorded:
        same = next((mine for theirs, mine in given.items() if sentence.startswith(theirs)), None)
        if same is None or not any(same in known for known in found):
            rest.append(sentence)
    return rest
