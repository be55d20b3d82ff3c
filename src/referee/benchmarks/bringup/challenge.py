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
) -> tuple[ChallengeFacts, ...]:
    """Run challenges until all are tried or the time is up.

    Args:
        machine: the attempt's machine; what a command leaves running is ended before the next.
        asked: for each challenge what is replaced, by what, and the command that results.
        directory: where the outputs are written.
        timeout: seconds for each.
        seconds: for all of them together.
    """
    until = time.monotonic() + seconds
    done: list[ChallengeFacts] = []
    for name, (original, replaced_by, command) in zip(OUTPUT_NAMES, asked, strict=False):
        left = until - time.monotonic()
        if left < 1:
            break
        done.append(_one(machine, (original, replaced_by, command), directory / name, min(timeout, left)))
        if done[-1].could_not_run is not None:
            break
    return tuple(done)


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
