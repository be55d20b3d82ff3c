"""One bring-up attempt, end to end. Open this first.

key made → machine up → subject placed → the agent's session recorded from the host → the agent's end, or the deadline →
its whole process tree dead, confirmed → key deleted → report read → its command run again → machine destroyed →
evidence shown free of the key → sealed → record appended. Judging comes after, from the record alone
(``runner.rejudge``).

A fault of our own side makes the attempt invalid, never a zero: ``core.failure`` says which cause means what.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from referee.adapters.recorder import Caps, Recorded, record
from referee.benchmarks.bringup.canary import ask_network
from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptPlanned, RerunFacts
from referee.core.report import MAX_REPORT_BYTES, parse_report
from referee.errors import (
    EngineUnavailable,
    EnvironmentUnavailable,
    KeyUnavailable,
    MachineFault,
    RefereeError,
    ReportRejected,
)
from referee.protocols import PROJECT, REPORT, WORK, Evidence, Keys, Machine, MachineSpec, Records, Sandbox
from referee.runner.causes import name_cause, name_cause_of_model, name_cause_of_rerun, name_cause_of_silence
from referee.runner.conclude import conclude
from referee.runner.journal import Journal, now
from referee.runner.key_of_run import KeyOfRun
from referee.runner.observing import Observer, has_command
from referee.runner.place import told, work_tar
from referee.runner.plan import Plan, new_run_id
from referee.runner.seal import lock_bytes
from referee.runner.seen import Seen
from referee.scoring.attempts import project_names

#: The re-run of the reported command gets at most this many seconds.
RERUN_SECONDS = 600.0

#: How long the reaper leaves a machine alone after its deadline: corroboration and sealing happen then.
GRACE_SECONDS = 1800.0

#: Errors that end an attempt by our fault and are told by its record alone.
_CAUSE_OF_ERROR: dict[type[RefereeError], Cause] = {
    EngineUnavailable: Cause.ENGINE_UNAVAILABLE,
    EnvironmentUnavailable: Cause.ENVIRONMENT_UNAVAILABLE,
    KeyUnavailable: Cause.KEY_UNAVAILABLE,
    MachineFault: Cause.MACHINE_FAULT,
}


@dataclass(frozen=True)
class Bench:
    """What every attempt of a workspace uses. ``keys`` None: no agent here speaks to a model."""

    sandbox: Sandbox
    records: Records
    evidence: Evidence
    spool: Path
    workspace: str
    ca_bundle: Path | None
    caps: Caps
    columns: int
    rows: int
    keys: Keys | None = None


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
    key = None if plan.agent.need is None else KeyOfRun(run, plan.agent, bench.keys)
    attempt = _Attempt(plan, run, directory, bench, journal, key, on_output)
    seen = attempt.seen
    try:
        _with_its_key(attempt)
    except tuple(_CAUSE_OF_ERROR) as exc:
        seen.end(_cause_of(exc), exc.message)
    except OSError as exc:
        if exc.errno not in {errno.ENOSPC, errno.EDQUOT}:
            seen.end(Cause.INTERNAL, f"{type(exc).__name__}: {exc}")
            raise
        seen.end(Cause.HOST_DISK, f"{FAILURES[Cause.HOST_DISK].sentence}: {exc}")
    except KeyboardInterrupt:
        seen.end(Cause.INTERRUPTED)
        raise
    except BaseException as exc:
        seen.end(Cause.INTERNAL, f"{type(exc).__name__}: {exc}")
        raise
    finally:
        screen = key.screen if key is not None else None
        conclude(run, directory, seen, journal, records=bench.records, evidence=bench.evidence, screen=screen)
    return run


def _cause_of(exc: RefereeError) -> Cause:
    return next(cause for kind, cause in _CAUSE_OF_ERROR.items() if isinstance(exc, kind))


@dataclass
class _Attempt:
    """One attempt under way; ``key`` None: its agent speaks to no model."""

    plan: Plan
    run: str
    directory: Path
    bench: Bench
    journal: Journal
    key: KeyOfRun | None
    on_output: Callable[[bytes], None] | None
    seen: Seen = field(default_factory=Seen)


def _with_its_key(attempt: _Attempt) -> None:
    """Make the key, work, delete the key on every way out; then see whether a lack of ours explains a failure."""
    plan, seen, key, phase = attempt.plan, attempt.seen, attempt.key, attempt.journal.phase
    try:
        if key is not None:
            with phase("key"):
                key.issue(attempt.bench.sandbox, cap_usd=plan.rules.cap_usd, seconds=plan.budget.seconds)
        spec = _machine_spec(attempt)
        _on_a_machine(attempt, spec)
    finally:
        _revoke(attempt)
    name_cause_of_model(seen, credential_refused=key is not None and key.credential_refused)
    if seen.may_lack_a_network:
        try:
            with phase("network"):
                _ask_fresh_machine(attempt, spec)
        except tuple(_CAUSE_OF_ERROR) as exc:
            # What could not be asked is not known to be the agent's failure, whatever ended its work.
            seen.found_out(_cause_of(exc), exc.message)


def _machine_spec(attempt: _Attempt) -> MachineSpec:
    plan, bench = attempt.plan, attempt.bench
    return MachineSpec(
        run=attempt.run,
        workspace=bench.workspace,
        deadline=time.time() + plan.budget.seconds + GRACE_SECONDS,
        limits=plan.rules.limits,
        environment={},
        inputs=plan.start.inputs,
        ca_bundle=bench.ca_bundle,
        gateway=attempt.key.gateway if attempt.key is not None else None,
    )


def _new_machine(attempt: _Attempt, spec: MachineSpec) -> Machine:
    """A machine of the attempt, out of which its key never comes."""
    machine = attempt.bench.sandbox.create(spec)
    return machine if attempt.key is None else attempt.key.screened(machine)


def _on_a_machine(attempt: _Attempt, spec: MachineSpec) -> None:
    """The machine's whole life: place, let the agent work, end it, delete its key, look at what it left."""
    plan, seen, phase = attempt.plan, attempt.seen, attempt.journal.phase
    with phase("machine"):
        machine = _new_machine(attempt, spec)
    names = project_names(plan.subject.ref)
    observer = Observer(
        attempt.run, plan.placement.root, attempt.directory, lambda: _new_machine(attempt, spec), names=names
    )
    try:
        with phase("place"):
            ends_at = time.time() + plan.budget.seconds
            _place(attempt, machine, ends_at)
        with phase("agent"):
            seen.recorded = _record(attempt, machine, ends_at)
        name_cause(seen, machine)
        if seen.cause is None:
            with phase("listening"):
                observer.at_the_end(machine)
        with phase("quiet"):
            seen.quiet = machine.quiet()
        if not seen.quiet.confirmed:
            seen.end(Cause.SURVIVORS, seen.quiet.how)
        _revoke(attempt)
        with phase("report"):
            _read_report(machine, attempt.directory, seen)
        if seen.cause is None and has_command(seen.report):
            with phase("rerun"):
                timeout = min(RERUN_SECONDS, plan.budget.seconds)
                seen.rerun = observer.rerun(machine, seen.report, timeout=timeout)
            name_cause_of_rerun(seen, machine)
        if seen.cause is None and observer.bears_out(seen.report, seen.rerun) and observer.has_inputs(seen.report):
            with phase("challenge"):
                observer.challenge(machine, seen.report, seen.rerun)
        seen.machine = machine.facts()
    finally:
        with phase("destroy"):
            machine.destroy()
    if seen.cause is None and seen.rerun is not None and observer.bears_out(seen.report, seen.rerun):
        with contextlib.suppress(MachineFault, EngineUnavailable, EnvironmentUnavailable), phase("control"):
            _control(attempt, spec, observer, seen.rerun)
    seen.observed = observer.facts


def _control(attempt: _Attempt, spec: MachineSpec, observer: Observer, again: RerunFacts) -> None:
    """The report's command on a fresh machine without the project; a fault there is noted in the log alone."""
    fresh = _new_machine(attempt, spec)
    try:
        observer.control(fresh, again)
    finally:
        fresh.destroy()


def _place(attempt: _Attempt, machine: Machine, ends_at: float) -> None:
    with work_tar(attempt.plan, deadline=ends_at, keep=attempt.directory / "mission.json") as tar:
        machine.put(tar, WORK)
    if attempt.key is not None:
        with attempt.key.placed_tar(told(attempt.plan, ends_at)) as tar:
            machine.put(tar, "/")


def _revoke(attempt: _Attempt) -> None:
    """Delete the key, as soon as the agent is dead and in any case; say what it spent."""
    if attempt.key is not None and attempt.seen.spending is None:
        with attempt.journal.phase("revoke"):
            attempt.seen.spending = attempt.key.close()
            attempt.key.keep_exchanges(attempt.directory)


def _ask_fresh_machine(attempt: _Attempt, spec: MachineSpec) -> None:
    """An attempt without a pass is a measurement only if a fresh machine has a network and a way to the model."""
    seen = attempt.seen
    fresh = _new_machine(attempt, spec)
    try:
        seen.network = ask_network(fresh, attempt.plan.placement.facts)
        name_cause_of_silence(seen, fresh, spec.gateway)
    finally:
        fresh.destroy()
    if not seen.network.reachable:
        sentence = FAILURES[Cause.NETWORK_OF_MACHINES].sentence
        seen.found_out(Cause.NETWORK_OF_MACHINES, f"{sentence}: {seen.network.said}")


def _record(attempt: _Attempt, machine: Machine, ends_at: float) -> Recorded:
    plan, bench = attempt.plan, attempt.bench
    session = machine.session(
        plan.start.argv, environment=plan.start.environment, cwd=PROJECT, columns=bench.columns, rows=bench.rows
    )
    try:
        return record(
            session,
            directory=attempt.directory,
            columns=bench.columns,
            rows=bench.rows,
            caps=bench.caps,
            deadline=time.monotonic() + (ends_at - time.time()),
            watch=machine.trouble,
            on_output=attempt.on_output,
            sieve=attempt.key.sieve if attempt.key is not None else None,
        )
    finally:
        session.close()


def _read_report(machine: Machine, directory: Path, seen: Seen) -> None:
    """Keep the report's bytes as found; note a rejection. An absent report is a fact, a broken one claims nothing."""
    try:
        data = machine.read_file(REPORT, max_bytes=MAX_REPORT_BYTES)
        if data is not None:
            (directory / "report.json").write_bytes(data)
            seen.report = parse_report(data)
    except ReportRejected as exc:
        seen.report_rejected = exc.message
        seen.end(Cause.REPORT_BROKEN, exc.message)
    except MachineFault as exc:
        seen.end(Cause.REPORT_UNREADABLE, exc.message)
