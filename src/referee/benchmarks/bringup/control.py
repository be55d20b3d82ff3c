"""The negative control: the reported command on a fresh machine where nothing of the project is (methodology §5)."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Mapping
from pathlib import Path

from referee.benchmarks.bringup.rerun import in_fresh_shell
from referee.core.records import ControlFacts
from referee.errors import MachineFault
from referee.protocols import PROJECT, SUBJECT, Machine

OUTPUT_NAME = "control.txt"


def control(
    machine: Machine, command: str, *, directory: Path, timeout: float, scripts: Mapping[str, str | bytes]
) -> ControlFacts:
    """Run the command where it must not succeed alike.

    The project's directories stand there, empty: a command that only goes there first must not fail for that alone.

    Args:
        machine: a fresh machine; no subject was placed in it.
        command: the report's command.
        directory: where ``control.txt`` is written.
        timeout: seconds after which it is stopped.
        scripts: the agent's own scripts and compiled programs that the command runs, by absolute path: they stand there
            too, so that one that says the result by itself says it here as well.
    """
    placed = tuple(sorted(scripts))
    try:
        machine.put(io.BytesIO(_tar(scripts)), "/")
        done = in_fresh_shell(machine, command, timeout=timeout)
    except MachineFault as exc:
        return ControlFacts(
            kind="no-project",
            command=command,
            exit_status=None,
            timed_out=False,
            output=None,
            could_not_run=exc.message,
            placed=placed,
        )
    (directory / OUTPUT_NAME).write_bytes(done.output)
    return ControlFacts(
        kind="no-project",
        command=command,
        exit_status=done.exit_status,
        timed_out=done.timed_out,
        output=OUTPUT_NAME,
        placed=placed,
    )


def _tar(scripts: Mapping[str, str | bytes]) -> bytes:
    """Empty directories of the project and, in it or elsewhere, the scripts."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in (PROJECT, SUBJECT):
            entry = tarfile.TarInfo(folder.strip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for place, text in scripts.items():
            data = text if isinstance(text, bytes) else text.encode()
            entry = tarfile.TarInfo(posixpath.normpath(place).strip("/"))
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
