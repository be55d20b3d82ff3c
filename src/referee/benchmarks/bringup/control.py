"""The negative control: the reported command on a fresh machine where nothing of the project is (methodology §5)."""

from __future__ import annotations

from pathlib import Path

from referee.benchmarks.bringup.rerun import in_fresh_shell
from referee.core.records import ControlFacts
from referee.errors import MachineFault
from referee.protocols import Machine

OUTPUT_NAME = "control.txt"


def control(machine: Machine, command: str, *, directory: Path, timeout: float) -> ControlFacts:
    """Run the command where it must not succeed alike.

    Args:
        machine: a fresh machine; no subject was placed in it.
        command: the report's command.
        directory: where ``control.txt`` is written.
        timeout: seconds after which it is stopped.
    """
    try:
        done = in_fresh_shell(machine, command, timeout=timeout)
    except MachineFault as exc:
        return ControlFacts(
            kind="no-project",
            command=command,
            exit_status=None,
            timed_out=False,
            output=None,
            could_not_run=exc.message,
        )
    (directory / OUTPUT_NAME).write_bytes(done.output)
    return ControlFacts(
        kind="no-project",
        command=command,
        exit_status=done.exit_status,
        timed_out=done.timed_out,
        output=OUTPUT_NAME,
    )
