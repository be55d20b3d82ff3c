"""A dry run of one agent before money is spent: installed, one trivial step by its model, its report read, its cost.

The step is the smallest project there is: a script that prints a line which nobody knows beforehand. An agent whose
``final_state`` quotes that line has run a command and has written a report. What is asked is asked under the standard
instructions, through the run's own key, on a machine as every attempt gets it; nothing is recorded as an attempt.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.adapters.recorder import Caps, Recorded, RecordingFiles, record
from referee.benchmarks.bringup.mission import mission
from referee.core.records import Limits
from referee.core.report import MAX_REPORT_BYTES, Report, parse_report
from referee.core.spending import SpendingFacts, usd
from referee.core.transcript import transcript
from referee.errors import (
    AgentUnavailable,
    ConfigError,
    CouldNotVerify,
    Finding,
    KeyUnavailable,
    MachineFault,
    RefereeError,
    ReportRejected,
)
from referee.protocols import PROJECT, REPORT, WORK, Agent, AgentStart, Keys, Machine, MachineSpec, Placement, Sandbox
from referee.runner.key_of_run import KeyOfRun
from referee.runner.place import placement_tar

SCRIPT = "print-line.sh"

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
#: How long the reaper leaves the machine alone after the agent's time, seconds.
_GRACE_SECONDS = 600.0
_COLUMNS, _ROWS = 120, 32
_SHOWN_LINES, _SHOWN_COLUMNS = 12, 200

_README = f"""\
# print-line

Prints one line. Nothing needs to be installed. Run it:

    sh {SCRIPT}
"""

_ASK = f"""\

This is a dry run: the project is one script. Run `sh {SCRIPT}` in {PROJECT} once, then leave the report and end. Quote
the line that it printed, word for word, in final_state.
"""


@dataclass(frozen=True)
class Bounds:
    """What a check may use: ``cap_usd`` of its key, ``seconds`` of the agent's time, the machine's limits."""

    cap_usd: float
    seconds: int
    limits: Limits
    workspace: str
    ca_bundle: Path | None = None


@dataclass
class Checked:
    """What a check has found so far; ``trouble`` None: all is well."""

    agent: str
    version: str
    harness: str | None
    model: str | None
    install_seconds: float | None = None
    tree_digest: str | None = None
    step_seconds: float | None = None
    exit_status: int | None = None
    line: str = ""
    report: Report | None = None
    quoted: bool | None = None
    spending: SpendingFacts | None = None
    printed: tuple[str, ...] = ()
    trouble: RefereeError | None = field(default=None)

    def document(self) -> dict[str, Any]:
        """The check as ``--json`` prints it."""
        return {
            "schema": "referee.agent-check/1",
            "agent": {"name": self.agent, "version": self.version, "harness": self.harness, "model": self.model},
            "ok": self.trouble is None,
            "trouble": self.trouble.message if self.trouble is not None else None,
            "install": {"seconds": self.install_seconds, "tree_digest": self.tree_digest},
            "step": {"seconds": self.step_seconds, "exit_status": self.exit_status, "printed": list(self.printed)},
            "report": self.report.model_dump(mode="json") if self.report is not None else None,
            "line": {"expected": self.line, "quoted": self.quoted},
            "spending": self.spending.model_dump(mode="json") if self.spending is not None else None,
        }


def check_agent(
    agent: Agent,
    *,
    sandbox: Sandbox,
    keys: Keys | None,
    bounds: Bounds,
    scratch: Path,
    tell: Callable[[str], None],
    on_output: Callable[[bytes], None] | None = None,
) -> Checked:
    """Make the dry run.

    Args:
        agent: who is checked.
        sandbox: the maker of the machine.
        keys: the maker of its key; None where it speaks to no model.
        bounds: what it may use.
        scratch: an empty directory for the session's bytes.
        tell: called with the name of each phase as it begins.
        on_output: called with the session's bytes as they come, or None.

    Returns:
        What was found, also where something failed: then ``trouble`` says what, with its exit code.
    """
    need = agent.need
    checked = Checked(agent.name, agent.version, agent.harness, need.model if need is not None else None)
    try:
        tell("install")
        begun = time.monotonic()
        start = agent.prepare()
        checked.install_seconds = round(time.monotonic() - begun, 3)
        checked.tree_digest = start.tree_digest
        check = _Check(agent, start, sandbox, keys, bounds, scratch, tell, on_output, checked)
        check.make()
        checked.trouble = check.verdict()
    except (AgentUnavailable, KeyUnavailable, MachineFault, CouldNotVerify, Finding, ReportRejected) as exc:
        checked.trouble = exc
    return checked


@dataclass
class _Check:
    agent: Agent
    start: AgentStart
    sandbox: Sandbox
    keys: Keys | None
    bounds: Bounds
    scratch: Path
    tell: Callable[[str], None]
    on_output: Callable[[bytes], None] | None
    checked: Checked
    recorded: Recorded | None = None
    run: str = ""

    def make(self) -> None:
        """Key, machine, step, report; the key is deleted on every way out."""
        run = self.run = "check-" + "".join(secrets.choice(_ALPHABET) for _ in range(12))
        key = KeyOfRun(run, self.agent, self.keys) if self.agent.need is not None else None
        try:
            if key is not None:
                self.tell("key")
                key.issue(self.sandbox, cap_usd=self.bounds.cap_usd, seconds=self.bounds.seconds)
            self._on_a_machine(run, key)
        finally:
            if key is not None:
                self.tell("revoke")
                self.checked.spending = key.close()

    def _on_a_machine(self, run: str, key: KeyOfRun | None) -> None:
        self.tell("machine")
        spec = MachineSpec(
            run=run,
            workspace=self.bounds.workspace,
            deadline=time.time() + self.bounds.seconds + _GRACE_SECONDS,
            limits=self.bounds.limits,
            inputs=self.start.inputs,
            ca_bundle=self.bounds.ca_bundle,
            gateway=key.gateway if key is not None else None,
        )
        machine = self.sandbox.create(spec)
        if key is not None:
            machine = key.screened(machine)
        try:
            self.tell("place")
            ends_at = time.time() + self.bounds.seconds
            self._place(machine, key, ends_at)
            self.tell("agent")
            self._step(machine, key, ends_at)
            self.tell("quiet")
            machine.quiet()
            self.tell("report")
            self._read(machine)
        finally:
            self.tell("destroy")
            machine.destroy()

    def _place(self, machine: Machine, key: KeyOfRun | None, ends_at: float) -> None:
        seed = secrets.token_hex(16)
        self.checked.line = "line-" + hashlib.sha256(seed.encode()).hexdigest()[:20]
        project = self.scratch / "placed" / "project"
        project.mkdir(parents=True)
        (project / "README.md").write_text(_README, encoding="utf-8")
        # Computed, not written: who has only read the script does not know what it prints.
        script = f"printf 'line-%s\\n' \"$(printf '%s' '{seed}' | sha256sum | cut -c1-20)\"\n"
        (project / SCRIPT).write_text(script, encoding="utf-8")
        facts: dict[str, object] = {"name": "print-line", "commit": "0" * 40}
        placement = Placement(root=project.parent, facts=facts, size_bytes=len(script) + len(_README))
        told = mission(kind="repository", facts=facts, display=False, seconds=self.bounds.seconds)
        told |= {"instructions": told["instructions"] + _ASK, "deadline": round(ends_at, 3)}
        data = json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True).encode()
        with placement_tar(placement, data) as tar:
            machine.put(tar, WORK)
        if key is not None:
            with key.placed_tar(told) as tar:
                machine.put(tar, "/")

    def _step(self, machine: Machine, key: KeyOfRun | None, ends_at: float) -> None:
        begun = time.monotonic()
        session = machine.session(
            self.start.argv, environment=self.start.environment, cwd=PROJECT, columns=_COLUMNS, rows=_ROWS
        )
        try:
            self.recorded = record(
                session,
                directory=self.scratch,
                columns=_COLUMNS,
                rows=_ROWS,
                caps=Caps(),
                deadline=time.monotonic() + (ends_at - time.time()),
                watch=machine.trouble,
                on_output=self.on_output,
                sieve=key.sieve if key is not None else None,
            )
        finally:
            session.close()
        self.checked.step_seconds = round(time.monotonic() - begun, 3)
        self.checked.exit_status = self.recorded.exit_status
        self.checked.printed = _last_lines(self.scratch)

    def _read(self, machine: Machine) -> None:
        data = machine.read_file(REPORT, max_bytes=MAX_REPORT_BYTES)
        if data is not None:
            self.checked.report = parse_report(data)
            self.checked.quoted = self.checked.line in self.checked.report.final_state

    def verdict(self) -> RefereeError | None:
        """The first thing that is not as it must be, most telling first."""
        checked, spending = self.checked, self.checked.spending
        if spending is not None and not spending.deleted:
            return CouldNotVerify(
                f"the key of this check is not known to be deleted: {spending.how}", todo="run `referee keys sweep`"
            )
        if checked.report is not None and (checked.quoted or self.agent.need is None):
            return None
        return self._of_the_model() or self._of_the_report()

    def _of_the_model(self) -> RefereeError | None:
        """What the key's spending says of a step that was not done."""
        name, spending = self.checked.agent, self.checked.spending
        if spending is None:
            return None
        if spending.ended_by_upstream and self.keys is not None and self.agent.need is not None:
            try:
                self.keys.ask(self.agent.need, after=self.run)
            except ConfigError as exc:
                return exc
            except KeyUnavailable:
                pass  # told below
        if spending.broken is not None or spending.ended_by_upstream:
            why = spending.broken or "its upstream failed the last call"
            return CouldNotVerify(
                f"the model of the agent {name} did not answer: {why}", todo="see to the upstream, then check again"
            )
        if spending.capped:
            return Finding(f"the agent {name} reached the cap of {usd(spending.cap_usd)} before it had done one step")
        if spending.calls == 0:
            return Finding(
                f"the agent {name} asked its model nothing that was let through; it ended with {self._ended()}",
                todo="see what it printed, and the model, upstream and surface in its file",
            )
        return None

    def _of_the_report(self) -> RefereeError:
        name = self.checked.agent
        if self.checked.report is None:
            return Finding(
                f"the agent {name} left no report; it ended with {self._ended()}", todo="see what it printed"
            )
        return Finding(
            f"the report of the agent {name} does not quote the line that the step prints", todo="see what it printed"
        )

    def _ended(self) -> str:
        if self.recorded is None or self.recorded.exit_status is None:
            return "its time limit" if self.recorded is not None and self.recorded.end == "deadline" else "no status"
        return f"exit status {self.recorded.exit_status}"


def _last_lines(directory: Path) -> tuple[str, ...]:
    """The end of what the agent printed, without terminal control."""
    playback = RecordingFiles.of(directory)
    raw, timing = playback.raw.read_bytes(), playback.timing.read_bytes()
    text = b"".join(transcript([raw], [timing])).decode("utf-8", "replace")
    lines = [line[:_SHOWN_COLUMNS] for line in text.splitlines() if line.strip()]
    return tuple(lines[-_SHOWN_LINES:])
