"""Corroboration, warm: the harness runs the report's command itself (methodology §5, edition 2).

Same machine, after the agent's process tree is confirmed dead; a fresh login shell that reads no profile (an agent may
have written it) and starts from the machine's own environment with the trusted PATH. What the command needs, it must
bring itself.
"""

from __future__ import annotations

import time
from pathlib import Path

from referee.core.records import RerunFacts
from referee.core.report import Report, Verification
from referee.errors import MachineFault
from referee.protocols import TRUSTED_PATH, Completed, Machine

#: Output kept of a re-run, bytes.
MAX_OUTPUT = 1_000_000

OUTPUT_NAME = "rerun.txt"


def in_fresh_shell(machine: Machine, command: str, *, timeout: float) -> Completed:
    """Run a reported command as every such command is run: from a fresh login shell with a trusted PATH.

    Raises:
        MachineFault: the machine could not run it.
    """
    return machine.execute(
        ("/bin/bash", "--noprofile", "--norc", "-l", "-c", command),
        timeout=timeout,
        environment={"PATH": TRUSTED_PATH, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb"},
        cwd="/root",
        max_output=MAX_OUTPUT,
    )


def rerun(machine: Machine, report: Report | None, *, directory: Path, timeout: float) -> RerunFacts | None:
    """Run the reported command again; None when the report gives no command.

    Args:
        machine: the attempt's machine, quiet.
        report: the agent's report.
        directory: where ``rerun.txt`` is written.
        timeout: seconds after which the command is stopped.
    """
    if report is None or not isinstance(report.verified_how, Verification):
        return None
    command = report.verified_how.command
    began = time.monotonic()
    try:
        done = in_fresh_shell(machine, command, timeout=timeout)
    except MachineFault as exc:
        return RerunFacts(
            command=command,
            exit_status=None,
            timed_out=False,
            seconds=round(time.monotonic() - began, 3),
            output=None,
            could_not_run=exc.message,
        )
    (directory / OUTPUT_NAME).write_bytes(done.output)
    return RerunFacts(
        command=command,
        exit_status=done.exit_status,
        timed_out=done.timed_out,
        seconds=round(time.monotonic() - began, 3),
        output=OUTPUT_NAME,
    )
