"""The part of ``verify`` that looks at replays: what was done again is what the recording tells, and nothing else."""

from __future__ import annotations

from referee.core.canonical import strict_loads
from referee.core.records import Replayed
from referee.core.sessions.reading import READER, commands_bytes
from referee.errors import Finding
from referee.protocols import Evidence
from referee.publish.replays import judge_cold, steps_done, told_by, told_in
from referee.runner.rejudge import read_named
from referee.runner.replay import COMMANDS_NAME, FACTS_NAME, replayed_bytes
from referee.scoring.gather import RunRecords


def check_replay(found: RunRecords, replayed: Replayed, evidence: Evidence) -> None:
    """Compare one replay's record with its evidence, whose digests hold, and judge it again.

    Raises:
        Finding: the first thing that does not hold.
    """
    what = f"replay {replayed.replay} of run {replayed.run}"
    told = told_in(replayed, evidence)
    kept = read_named(evidence, replayed.evidence, COMMANDS_NAME)
    # What an earlier reader understood cannot be computed again; the steps that were done are those that it told.
    now = kept is None or strict_loads(kept).get("reader") == READER
    if now and kept != commands_bytes(replayed.run, told_by(found, evidence)):
        raise Finding(
            f"{what}: {COMMANDS_NAME} is not what the run's recording tells",
            todo="one of them was changed: compare both with a copy kept elsewhere",
        )
    if read_named(evidence, replayed.evidence, FACTS_NAME) != replayed_bytes(replayed):
        raise Finding(f"{what}: its record does not say what was sealed as {FACTS_NAME} with its evidence")
    if replayed.commands != len(told.steps):
        raise Finding(f"{what}: its record says {replayed.commands} steps, the recording tells {len(told.steps)}")
    done = [one.number for one in steps_done(replayed, evidence)]
    if done != list(range(1, replayed.ran + 1)):
        raise Finding(f"{what}: its record says that {replayed.ran} steps ran, its evidence shows {len(done)}")
    judge_cold(found, replayed, evidence)
