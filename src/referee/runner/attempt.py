"""One bring-up attempt, end to end. Open this first.

machine up → subject placed → the agent's session recorded from the host → the agent's end, or the deadline → its
whole process tree dead, confirmed → report read → its command run again → machine destroyed → evidence sealed →
record appended. Judging comes after, from the record alone (``runner.rejudge``).

A fault of our own side makes the attempt invalid, never a zero: ``core.failure`` says which cause means what.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from referee.adapters.recorder import (
    CAST_NAME,
    TRANSCRIPT_NAME,
    Caps,
    End,
    Recorded,
    RecordingFiles,
    derive,
    record,
)
from referee.benchmarks.bringup.canary import ask_network
from referee.benchmarks.bringup.rerun import rerun
from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptEnded, AttemptPlanned, NetworkFacts, QuietFacts, RecordingFacts, RerunFacts
from referee.core.report import MAX_REPORT_BYTES, Report, parse_report
from referee.errors import EngineUnavailable, EnvironmentUnavailable, Finding, MachineFault, ReportRejected
from referee.protocols import PROJECT, REPORT, WORK, Evidence, Machine, MachineSpec, Records, Sandbox
from referee.runner.journal import Journal
from referee.runner.place import work_tar
from referee.runner.plan import Plan, new_run_id
from referee.runner.seal import facts_bytes, lock_bytes, seal

#: The re-run of the reported command gets at most this many seconds.
RERUN_SECONDS = 600.0

#: How long the reaper leaves a machine alone after its deadline: corroboration and sealing happen then.
GRACE_SECONDS = 1800.0

_CAUSE_OF_END: dict[End, Cause] = {
    "deadline": Cause.DEADLINE,
    "size_cap": Cause.RECORDING_SIZE_CAP,
    "event_cap": Cause.RECORDING_EVENT_CAP,
    "write_error": Cause.RECORDER_WRITE_ERROR,
    "stream_lost": Cause.RECORDING_INCOMPLETE,
}

#: Exit statuses above this mean: ended by a signal; the engine learns of a machine's death a little later.
_KILLED_FROM = 128
_SETTLE_SECONDS = 1.0

_CAUSE_OF_TROUBLE = {"memory": Cause.MEMORY_OF_MACHINE, "disk": Cause.DISK_OF_MACHINE}


@dataclass(frozen=True)
class Bench:
    """What every attempt of a workspace uses."""

    sandbox: Sandbox
    records: Records
    evidence: Evidence
    spool: Path
    workspace: str
    ca_bundle: Path | None
    caps: Caps
    columns: int
    rows: int


@dataclass
class _Seen:
    """What the attempt has shown so far: survives whatever ends it."""

    cause: Cause | None = None
    detail: str = ""
    recorded: Recorded | None = None
    quiet: QuietFacts | None = None
    report: Report | None = None
    report_rejected: str | None = None
    rerun: RerunFacts | None = None
    network: NetworkFacts | None = None
    machine: dict[str, object] | None = None

    def end(self, cause: Cause, detail: str = "") -> None:
        """Note the first cause; later ones are its consequences."""
        if self.cause is None:
            self.cause = cause
            self.detail = detail or FAILURES[cause].sentence


def run_attempt(
    plan: Plan, index: int, bench: Bench, *, tell: Callable[[str], None], on_output: Callable[[bytes], None] | None
) -> str:
    """Make one attempt and append its records.

    Args:
        plan: the resolved plan.
        index: the attempt's number for this subject and agent, from 1.
        bench: machines, stores and settings.
        tell: called with the name of each phase as it begins.
        on_output: called with the session's bytes as they come, or None.

    Returns:
        The run id. Whatever happened is in the record: an attempt that failed by our fault is invalid, not raised.

    Raises:
        KeyboardInterrupt: after the record of the interrupted attempt is durable.
        Exception: a fault of the referee itself, after the record is durable.
    """
    run = new_run_id()
    directory = bench.spool / run
    directory.mkdir(parents=True)
    journal = Journal(directory / "harness.jsonl", tell)
    (directory / "subject.toml").write_bytes(plan.subject.file_bytes)
    if plan.packages is not None:
        (directory / "packages.json").write_bytes(plan.packages)
    planned = AttemptPlanned(run=run, at=now(), lock=plan.lock(index))
    (directory / "lock.json").write_bytes(lock_bytes(planned))
    bench.records.append(planned)
    seen = _Seen()
    try:
        _observe(plan, run, directory, bench, seen, journal, on_output)
    except EngineUnavailable as exc:
        seen.end(Cause.ENGINE_UNAVAILABLE, exc.message)
    except EnvironmentUnavailable as exc:
        seen.end(Cause.ENVIRONMENT_UNAVAILABLE, exc.message)
    except OSError as exc:
        if exc.errno not in {errno.ENOSPC, errno.EDQUOT}:
            seen.end(Cause.INTERNAL, f"{type(exc).__name__}: {exc}")
            raise
        seen.end(Cause.HOST_DISK, f"{FAILURES[Cause.HOST_DISK].sentence}: {exc}")
    except MachineFault as exc:
        seen.end(Cause.MACHINE_FAULT, exc.message)
    except KeyboardInterrupt:
        seen.end(Cause.INTERRUPTED)
        raise
    except BaseException as exc:
        seen.end(Cause.INTERNAL, f"{type(exc).__name__}: {exc}")
        raise
    finally:
        _conclude(run, directory, bench, seen, journal)
    return run


def _observe(
    plan: Plan,
    run: str,
    directory: Path,
    bench: Bench,
    seen: _Seen,
    journal: Journal,
    on_output: Callable[[bytes], None] | None,
) -> None:
    spec = MachineSpec(
        run=run,
        workspace=bench.workspace,
        deadline=time.time() + plan.budget.seconds + GRACE_SECONDS,
        limits=plan.rules.limits,
        environment={},
        inputs=plan.start.inputs,
        ca_bundle=bench.ca_bundle,
    )
    with journal.phase("machine"):
        machine = bench.sandbox.create(spec)
    try:
        with journal.phase("place"):
            ends_at = time.time() + plan.budget.seconds
            with work_tar(plan, deadline=ends_at, keep=directory / "mission.json") as tar:
                machine.put(tar, WORK)
        with journal.phase("agent"):
            seen.recorded = _record(plan, machine, directory, bench, ends_at, on_output)
        _name_cause(seen, machine)
        with journal.phase("quiet"):
            seen.quiet = machine.quiet()
        if not seen.quiet.confirmed:
            seen.end(Cause.SURVIVORS, seen.quiet.how)
        with journal.phase("report"):
            _read_report(machine, directory, seen)
        if seen.cause is None:
            with journal.phase("rerun"):
                seen.rerun = rerun(
                    machine, seen.report, directory=directory, timeout=min(RERUN_SECONDS, plan.budget.seconds)
                )
            _name_cause_of_rerun(seen, machine)
        seen.machine = machine.facts()
    finally:
        with journal.phase("destroy"):
            machine.destroy()
    if seen.cause in {None, Cause.DEADLINE} and not (seen.report and seen.report.test_depth != "tier3_none"):
        with journal.phase("network"):
            _ask_network(plan, bench, spec, seen)


def _ask_network(plan: Plan, bench: Bench, spec: MachineSpec, seen: _Seen) -> None:
    """An attempt that claims no pass is a measurement only if a fresh machine has a network."""
    fresh = bench.sandbox.create(spec)
    try:
        seen.network = ask_network(fresh, plan.placement.facts)
    finally:
        fresh.destroy()
    if not seen.network.reachable:
        seen.cause = None
        seen.end(Cause.NETWORK_OF_MACHINES, f"{FAILURES[Cause.NETWORK_OF_MACHINES].sentence}: {seen.network.said}")


def _record(
    plan: Plan,
    machine: Machine,
    directory: Path,
    bench: Bench,
    ends_at: float,
    on_output: Callable[[bytes], None] | None,
) -> Recorded:
    session = machine.session(
        plan.start.argv, environment=plan.start.environment, cwd=PROJECT, columns=bench.columns, rows=bench.rows
    )
    try:
        return record(
            session,
            directory=directory,
            columns=bench.columns,
            rows=bench.rows,
            caps=bench.caps,
            deadline=time.monotonic() + (ends_at - time.time()),
            watch=machine.trouble,
            on_output=on_output,
        )
    finally:
        session.close()


def _name_cause(seen: _Seen, machine: Machine) -> None:
    """Say why the recording ended, and see whether the machine is still sound."""
    recorded = seen.recorded
    if recorded is None:
        return
    lost = recorded.end == "ended" and recorded.exit_status is None
    trouble = recorded.detail if recorded.end == "watch" else None
    if recorded.end in {"ended", "stream_lost"}:
        trouble = _trouble_after(recorded.exit_status, machine)
    if trouble is not None:
        known = _CAUSE_OF_TROUBLE.get(trouble)
        seen.end(known or Cause.MACHINE_FAULT, "" if known else trouble)
    elif recorded.end in _CAUSE_OF_END:
        seen.end(_CAUSE_OF_END[recorded.end], recorded.detail)
    elif lost:
        seen.end(Cause.RECORDING_INCOMPLETE, "the session's exit status could not be learned")


def _name_cause_of_rerun(seen: _Seen, machine: Machine) -> None:
    """A machine that failed under the re-run is our fault: never a claim that was not observed or contradicted."""
    again = seen.rerun
    if again is None or again.timed_out:
        return
    if again.could_not_run is not None or again.exit_status is None or again.exit_status > _KILLED_FROM:
        trouble = _trouble_after(again.exit_status, machine)
        if trouble is not None:
            known = _CAUSE_OF_TROUBLE.get(trouble)
            seen.end(known or Cause.MACHINE_FAULT, "" if known else f"{trouble} (while the report's command ran again)")


def _trouble_after(exit_status: int | None, machine: Machine) -> str | None:
    """Whether a command's end was the machine's: one that was killed is asked for until the engine knows."""
    killed = exit_status is None or exit_status > _KILLED_FROM
    deadline = time.monotonic() + (_SETTLE_SECONDS if killed else 0.0)
    while (trouble := machine.trouble()) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return trouble


def _read_report(machine: Machine, directory: Path, seen: _Seen) -> None:
    """Keep the report's bytes as found; note a rejection. An absent report is a fact, not a fault."""
    try:
        data = machine.read_file(REPORT, max_bytes=MAX_REPORT_BYTES)
        if data is not None:
            (directory / "report.json").write_bytes(data)
            seen.report = parse_report(data)
    except ReportRejected as exc:
        seen.report_rejected = exc.message
        seen.end(Cause.REPORT_REJECTED, exc.message)
    except MachineFault as exc:
        seen.end(Cause.REPORT_UNREADABLE, exc.message)


def _conclude(run: str, directory: Path, bench: Bench, seen: _Seen, journal: Journal) -> None:
    """Derive, seal, append: everything durable before anything is announced."""
    with journal.phase("seal"):
        _derive(directory, seen)
    phases = journal.close()
    ended = AttemptEnded(
        run=run,
        at=now(),
        cause=seen.cause,
        detail=seen.detail,
        evidence=(),
        evidence_digest="",
        recording=seen.recorded.facts() if seen.recorded is not None else _lost(directory),
        quiet=seen.quiet,
        report_rejected=seen.report_rejected,
        rerun=seen.rerun,
        network=seen.network,
        spent_usd=0.0,
        phases=phases,
        machine=seen.machine or {},
    )
    (directory / "facts.json").write_bytes(facts_bytes(ended))
    evidence, digest = seal(run, directory, bench.evidence)
    bench.records.append(ended.model_copy(update={"at": now(), "evidence": evidence, "evidence_digest": digest}))
    journal.sweep()


def _derive(directory: Path, seen: _Seen) -> None:
    """Make cast and transcript. Where that fails the primary evidence is kept as it is, and the cause is named."""
    files = RecordingFiles.of(directory)
    if not files.raw.exists():
        return
    try:
        derive(files, directory)
    except (Finding, OSError) as exc:
        seen.end(Cause.RECORDING_INCOMPLETE, f"the recording could not be derived: {exc}")
        (directory / CAST_NAME).unlink(missing_ok=True)
        (directory / TRANSCRIPT_NAME).unlink(missing_ok=True)


def _lost(directory: Path) -> RecordingFacts | None:
    """What is known of a recording that was cut off by an exception: how much of it there is."""
    files = RecordingFiles.of(directory)
    if not files.raw.exists():
        return None
    size = files.raw.stat().st_size
    try:
        events = files.coverage().events
    except Finding:
        events = 0
    return RecordingFacts(complete=False, bytes=size, events=events, seconds=0.0, exit_status=None)


def now() -> str:
    """The time as records write it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
