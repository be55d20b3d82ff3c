"""Cold corroboration: a run's recorded commands, done again on a pristine machine (methodology §5).

The recording tells what the agent did; a fresh machine of the same environment gets the same pinned subject; the
steps are done again in order; every process is ended, as after the session; then the report's command runs from a
fresh shell, as in the warm re-run. What was seen is appended as a record; ``scoring.cold`` says what it means.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from referee.benchmarks.bringup.canary import ask_network
from referee.benchmarks.bringup.redo import Redo, StoppedHere
from referee.benchmarks.bringup.rerun import rerun
from referee.core.canonical import canonical_bytes
from referee.core.records import AttemptEnded, NetworkFacts, Replayed, RerunFacts
from referee.core.report import Report, Verification
from referee.core.sessions.reading import commands_bytes
from referee.core.sessions.steps import StepDone, Told
from referee.errors import CouldNotVerify, EnvironmentUnavailable, MachineFault
from referee.protocols import WORK, Machine, MachineSpec, Placement, Source
from referee.publish.replays import report_of, told_by
from referee.runner.attempt import GRACE_SECONDS, RERUN_SECONDS, Bench
from referee.runner.journal import now
from referee.runner.place import placement_tar
from referee.runner.plan import new_run_id
from referee.runner.rejudge import read_named
from referee.runner.seal import seal
from referee.scoring.gather import RunRecords

COMMANDS_NAME, LOG_NAME, DONE_NAME, FACTS_NAME, RERUN_NAME = (
    "commands.json", "replay.txt", "replay.json", "facts.json", "rerun.txt",
)  # fmt: skip
SCHEMA = "referee.replay-steps/1"
FACTS_SCHEMA = "referee.replayed/1"

#: What of the record only exists once the evidence is sealed.
_AFTER_SEALING = {"kind", "at", "evidence", "evidence_digest"}
_STALE_SECONDS = 86_400.0


@dataclass
class _Seen:
    """What the replay has shown so far."""

    ran: int = 0
    stopped_at: int | None = None
    detail: str = ""
    rerun: RerunFacts | None = None
    network: NetworkFacts | None = None
    done: list[StepDone] = field(default_factory=list)


def replay_run(
    found: RunRecords, bench: Bench, *, source: Source, pin: dict[str, object], tell: Callable[[str], None]
) -> Replayed:
    """Replay one run, append what was seen, and return it.

    Args:
        found: the run's records.
        bench: machines, stores and settings.
        source: fetches the subject.
        pin: which one, as the run's own evidence pins it.
        tell: called with the name of each step as it begins.

    Raises:
        CouldNotVerify: the run has no end, no recording, or was made in another environment than there is here; or
            the engine or the subject is out of reach. Nothing is recorded then.
        Finding: evidence of the run is not what was recorded.
    """
    end = _ended(found)
    lock = found.planned.lock
    environment = bench.sandbox.environment()
    if environment.image_digest != lock.environment.image_digest:
        raise EnvironmentUnavailable(
            f"the run {found.planned.run} was made in the environment {lock.environment.image_digest}, "
            f"here is {environment.image_digest}",
            todo="replay it where that environment is; `referee env show` tells which one is here",
        )
    told, report = told_by(found, bench.evidence), report_of(found, bench.evidence)
    name = "p" + new_run_id()[1:]
    directory = bench.spool / name
    _sweep(bench.spool)
    directory.mkdir(parents=True)
    (directory / COMMANDS_NAME).write_bytes(commands_bytes(found.planned.run, told))
    seen = _Seen()
    try:
        if told.why_not is None and report is not None and isinstance(report.verified_how, Verification):
            placement = source.fetch(pin)
            mission = read_named(bench.evidence, end.evidence, "mission.json") or b"{}"
            _observe(found, bench, name, directory, placement, mission, told, report, seen, tell)
        replayed = Replayed(
            run=found.planned.run,
            replay=name,
            at=now(),
            environment=environment,
            commands=len(told.steps),
            ran=seen.ran,
            stopped_at=seen.stopped_at,
            detail=seen.detail,
            rerun=seen.rerun,
            network=seen.network,
            evidence=(),
            evidence_digest="",
        )
        steps = [one.model_dump(mode="json") for one in seen.done]
        (directory / DONE_NAME).write_bytes(canonical_bytes({"schema": SCHEMA, "replay": name, "steps": steps}))
        (directory / FACTS_NAME).write_bytes(replayed_bytes(replayed))
        evidence, digest = seal(name, directory, bench.evidence)
        replayed = replayed.model_copy(update={"at": now(), "evidence": evidence, "evidence_digest": digest})
        bench.records.append(replayed)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return replayed


def _ended(found: RunRecords) -> AttemptEnded:
    end = found.end
    if not isinstance(end, AttemptEnded):
        why = "has not ended" if end is None else "was cut short when its harness died"
        raise CouldNotVerify(f"the run {found.planned.run} {why}: there is no whole session to replay")
    if not any(ref.name == "session.raw" for ref in end.evidence):
        raise CouldNotVerify(f"the run {found.planned.run} has no recording to replay")
    return end


def _observe(
    found: RunRecords,
    bench: Bench,
    name: str,
    directory: Path,
    placement: Placement,
    mission: bytes,
    told: Told,
    report: Report,
    seen: _Seen,
    tell: Callable[[str], None],
) -> None:
    lock = found.planned.lock
    spec = MachineSpec(
        run=name,
        workspace=bench.workspace,
        deadline=time.time() + lock.budget.seconds + GRACE_SECONDS,
        limits=lock.limits,
        ca_bundle=bench.ca_bundle,
    )
    tell("machine")
    machine = bench.sandbox.create(spec)
    try:
        with placement_tar(placement, mission) as tar:
            machine.put(tar, WORK)
        _redo(machine, told, directory, lock.budget.seconds, seen, tell)
        if seen.stopped_at is None:
            tell("quiet")
            if machine.quiet().confirmed:
                tell("rerun")
                limit = min(RERUN_SECONDS, lock.budget.seconds)
                seen.rerun = rerun(machine, report, directory=directory, timeout=limit)
                seen.detail = machine.trouble() or ""
            else:
                seen.detail = "the processes that the steps left could not be confirmed dead"
    except MachineFault as exc:
        seen.detail = f"the machine failed: {exc.message}"
        seen.stopped_at = seen.stopped_at or seen.ran + 1
    finally:
        machine.destroy()
    if seen.detail and seen.rerun is not None:
        seen.rerun = None  # a machine in trouble says nothing of the project
    if seen.rerun is not None and seen.rerun.exit_status != 0:
        tell("network")
        _ask_network(bench, spec, placement, seen)


def _redo(
    machine: Machine, told: Told, directory: Path, limit: float, seen: _Seen, tell: Callable[[str], None]
) -> None:
    with (directory / LOG_NAME).open("wb") as log:
        tell(f"replay: doing {len(told.steps)} recorded steps again")
        redo = Redo(machine, told, deadline=time.monotonic() + limit, write=_into(log))
        for number in range(1, len(told.steps) + 1):
            try:
                seen.done.append(redo.do(number))
                trouble = machine.trouble()
            except StoppedHere as exc:
                seen.stopped_at, seen.detail = number, str(exc)
                return
            seen.ran = number
            if trouble is not None:
                seen.stopped_at, seen.detail = number, f"the machine was in trouble: {trouble}"
                return


def _into(log: BinaryIO) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        log.write(data)
        log.flush()

    return write


def _ask_network(bench: Bench, spec: MachineSpec, placement: Placement, seen: _Seen) -> None:
    fresh = bench.sandbox.create(spec)
    try:
        seen.network = ask_network(fresh, placement.facts)
    finally:
        fresh.destroy()


def _sweep(spool: Path) -> None:
    """Remove what replays left in the spool whose harness was killed."""
    for directory in spool.glob("p-*") if spool.is_dir() else ():
        if time.time() - directory.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(directory, ignore_errors=True)


def replayed_bytes(replayed: Replayed) -> bytes:
    """``facts.json`` of a replay: what its record says was seen, as evidence."""
    facts = replayed.model_dump(mode="json", exclude=_AFTER_SEALING, exclude_none=True)
    return canonical_bytes({"schema": FACTS_SCHEMA, **facts})
