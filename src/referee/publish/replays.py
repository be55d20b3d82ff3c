"""Replays of a run: read from records and evidence, judged by ``scoring.cold``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from pydantic import ValidationError

from referee.core.canonical import strict_loads
from referee.core.records import AttemptEnded, AttemptFound, Replayed
from referee.core.report import Report
from referee.core.sessions.reading import read, that_can_be_kept, told_from
from referee.core.sessions.steps import StepDone, Told
from referee.errors import Finding, UsageError
from referee.protocols import Evidence
from referee.publish.attachments import Attachments
from referee.publish.views import ReplayView
from referee.scoring.cold import Cold, judge_replay
from referee.scoring.gather import RunRecords

COMMANDS_NAME, DONE_NAME, RERUN_NAME = "commands.json", "replay.json", "rerun.txt"
#: A list of steps holds the files that the agent wrote.
MAX_COMMANDS = 256_000_000
_PIECE = 1 << 20


def replay_views(found: RunRecords, evidence: Evidence) -> tuple[ReplayView, ...]:
    """Every replay of a run, in order, with what it says."""
    return tuple(_view(found, replayed, evidence) for replayed in found.replays)


def _view(found: RunRecords, replayed: Replayed, evidence: Evidence) -> ReplayView:
    try:
        cold = judge_cold(found, replayed, evidence)
    except (Finding, UsageError, OSError) as exc:
        cold = Cold("could_not_be_replayed", f"its evidence is not in the store as it was recorded: {exc}")
    files = Attachments(replayed, evidence)
    return ReplayView(
        replay=replayed.replay,
        at=replayed.at,
        status=cold.status,
        reason=cold.reason,
        commands=replayed.commands,
        ran=replayed.ran,
        command=None if replayed.rerun is None else replayed.rerun.command,
        image_digest=replayed.environment.image_digest,
        files=files.files(),
        manifest=files.manifest(),
    )


def judge_cold(found: RunRecords, replayed: Replayed, evidence: Evidence) -> Cold:
    """What one replay of a run says, from records and evidence alone.

    Raises:
        Finding: evidence is missing or is not what was recorded.
    """
    return judge_replay(
        report_of(found, evidence),
        replayed,
        Attachments(replayed, evidence).read(RERUN_NAME),
        told_in(replayed, evidence),
        steps_done(replayed, evidence),
    )


def told_by(found: RunRecords, evidence: Evidence) -> Told:
    """What the run's recording tells; computed from its bytes alone."""
    refs = [] if found.end is None else [ref for ref in found.end.evidence if ref.name == "session.raw"]
    if not refs:
        return Told(why_not="there is no recording")
    with evidence.open(refs[0].digest) as raw:
        return that_can_be_kept(read(found.planned.lock.agent.harness, _pieces(raw)))


def told_in(replayed: Replayed, evidence: Evidence) -> Told:
    """The steps that a replay was made of, from its own ``commands.json``.

    Raises:
        Finding: the evidence is not what a replay leaves.
    """
    data = Attachments(replayed, evidence).read(COMMANDS_NAME, MAX_COMMANDS)
    try:
        return told_from(data or b"")
    except (ValidationError, UsageError, AttributeError) as exc:
        raise Finding(f"replay {replayed.replay}: {COMMANDS_NAME} is not what a replay leaves") from exc


def report_of(found: RunRecords, evidence: Evidence) -> Report | None:
    """The run's report; None where there is none or it is rejected."""
    end: AttemptEnded | AttemptFound | None = found.end
    return Attachments(end, evidence).report()[0]


def steps_done(replayed: Replayed, evidence: Evidence) -> tuple[StepDone, ...]:
    """The steps as they were done again.

    Raises:
        Finding: the evidence is not what a replay leaves.
    """
    data = Attachments(replayed, evidence).read(DONE_NAME)
    try:
        value: Any = {} if data is None else strict_loads(data)
        return tuple(StepDone.model_validate(one) for one in value.get("steps", []))
    except (ValidationError, UsageError, AttributeError) as exc:
        raise Finding(f"replay {replayed.replay}: {DONE_NAME} is not what a replay leaves") from exc


def _pieces(blob: BinaryIO) -> Iterator[bytes]:
    while piece := blob.read(_PIECE):
        yield piece
