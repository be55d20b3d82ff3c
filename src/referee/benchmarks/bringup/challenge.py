"""Challenges: the verified command with inputs that the harness chose, each in a quiet machine (methodology §5)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from referee.benchmarks.bringup.rerun import in_fresh_shell
from referee.core.records import ChallengeFacts
from referee.errors import MachineFault
from referee.protocols import Machine

OUTPUT_NAMES = tuple(f"challenge-{number}.txt" for number in range(1, 5))


def challenge(
    machine: Machine, asked: Iterable[tuple[str, str, str]], *, directory: Path, timeout: float, seconds: float
) -> tuple[tuple[ChallengeFacts, ...], str | None]:
    """Run challenges until all are tried or the time is up; return what was seen, and why some were not made.

    Args:
        machine: the attempt's machine; what a command leaves running is ended before the next.
        asked: for each challenge what is replaced, by what, and the command that results.
        directory: where the outputs are written.
        timeout: seconds for each.
        seconds: for all of them together: none but the first is begun with less left than ``timeout``.
    """
    until = time.monotonic() + seconds
    done: list[ChallengeFacts] = []
    why = None
    for name, (original, replaced_by, command) in zip(OUTPUT_NAMES, asked, strict=False):
        if done and done[-1].could_not_run is not None:
            why = "one could not be run"
            break
        if done and until - time.monotonic() < timeout:
            why = "the time for all of them was up"
            break
        done.append(_one(machine, (original, replaced_by, command), directory / name, timeout))
    return tuple(done), why


def _one(machine: Machine, asked: tuple[str, str, str], output: Path, timeout: float) -> ChallengeFacts:
    original, replaced_by, command = asked
    could_not = None
    try:
        if machine.quiet().confirmed:
            done = in_fresh_shell(machine, command, timeout=timeout)
            output.write_bytes(done.output)
            return ChallengeFacts(
                original=original,
                replaced_by=replaced_by,
                command=command,
                exit_status=done.exit_status,
                timed_out=done.timed_out,
                output=output.name,
            )
        could_not = "what ran before could not be ended"
    except MachineFault as exc:
        could_not = exc.message
    return ChallengeFacts(
        original=original,
        replaced_by=replaced_by,
        command=command,
        exit_status=None,
        timed_out=False,
        output=None,
        could_not_run=could_not,
    )
