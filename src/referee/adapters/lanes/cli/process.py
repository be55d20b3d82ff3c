"""One program, run once: its own process group, a deadline that ends only that group, output with a cap.

The prompt comes from a file and the output goes through pipes that belong to this process alone, so neither a program
that never reads nor a child that keeps a pipe open can hold a call past its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

#: Most bytes of a standard output, and how much of the end of the error output is kept.
MOST_OUTPUT = 8 * 2**20
KEPT_ERRORS = 16_000

#: Seconds: between the polite and the final signal; for the confirmation of death; for output after the end.
GRACE_SECONDS = 2.0
DEATH_SECONDS = 5.0
LINGER_SECONDS = 0.5
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Args:
        by: ``itself``, or what made us end it.
        status: its exit status, negative for a signal; None when we ended it.
        output: its standard output, at most ``MOST_OUTPUT`` bytes.
        errors: the end of its error output.
        first_byte_ms, latency_ms: since it was started.
        alive: processes of its group that were still there after the last signal: never any, or a kernel is stuck.
    """

    by: Literal["itself", "deadline", "too-long"]
    status: int | None
    output: bytes
    errors: bytes
    first_byte_ms: float | None
    latency_ms: float
    alive: tuple[int, ...]


async def run(
    argv: Sequence[str],
    *,
    stdin: Path | None,
    environment: Mapping[str, str],
    cwd: Path,
    deadline_seconds: float,
    most_output: int = MOST_OUTPUT,
) -> Ended:
    """Run ``argv`` to its end or to the deadline; its group is dead when this returns, also when it is cancelled.

    Raises:
        OSError: it cannot be started.
    """
    begun = perf_counter()
    loop = asyncio.get_running_loop()
    output, errors = _Tap(most_output, stop=True), _Tap(KEPT_ERRORS, stop=False)
    with contextlib.ExitStack() as stack:
        given = stack.enter_context((stdin or Path(os.devnull)).open("rb"))
        ends = [await _pipe(loop, tap, stack) for tap in (output, errors)]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=given,
                stdout=ends[0],
                stderr=ends[1],
                env=dict(environment),
                cwd=cwd,
                start_new_session=True,
            )
        finally:
            for end in ends:
                os.close(end)
        by: Literal["itself", "deadline", "too-long"] = "itself"
        alive: tuple[int, ...] = ()
        grace = 0.0
        try:
            by = await _watch(process, output, deadline_seconds)
            grace = GRACE_SECONDS if by == "deadline" else 0.0
        finally:
            # Also on cancellation: a run that is interrupted leaves no program behind.
            alive = await _end_group(process, grace)
            await _drain(output, errors)
    first = None if output.first is None else (output.first - begun) * 1000
    return Ended(
        by=by,
        status=process.returncode if by == "itself" else None,
        output=bytes(output.kept),
        errors=bytes(errors.kept),
        first_byte_ms=first,
        latency_ms=(perf_counter() - begun) * 1000,
        alive=alive,
    )


async def _watch(
    process: asyncio.subprocess.Process, output: _Tap, deadline_seconds: float
) -> Literal["itself", "deadline", "too-long"]:
    ended, full = asyncio.ensure_future(process.wait()), asyncio.ensure_future(output.full.wait())
    try:
        done, _ = await asyncio.wait({ended, full}, timeout=deadline_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        full.cancel()
        if not ended.done():
            ended.cancel()
    if full in done:
        return "too-long"
    return "itself" if ended in done else "deadline"


async def _end_group(process: asyncio.subprocess.Process, grace: float) -> tuple[int, ...]:
    """Signal the program's group, first politely where there is ``grace``, and see that none of it lives."""
    group = process.pid
    if grace and _living(group, process.returncode):
        _signal(group, signal.SIGTERM)
        await _gone(process, grace)
    if _living(group, process.returncode):
        _signal(group, signal.SIGKILL)
    alive = await _gone(process, DEATH_SECONDS)
    await process.wait()
    return alive


async def _gone(process: asyncio.subprocess.Process, seconds: float) -> tuple[int, ...]:
    until = perf_counter() + seconds
    while alive := _living(process.pid, process.returncode):
        if perf_counter() > until:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    return alive


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _living(group: int, returncode: int | None) -> tuple[int, ...]:
    """The processes of a group that are more than a corpse.

    A process number is not given away while a group bears it. So where the leader was buried (``returncode``) and its
    number is in use again, the group is gone and the newcomer is a stranger.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, _, its_group = (entry / "stat").read_text("latin-1").rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in {"Z", "X"}:
                found.append(int(entry.name))
    return () if returncode is not None and group in found else tuple(sorted(found))


class _Tap(asyncio.Protocol):
    """Takes what comes through a pipe: the first ``most`` bytes and then stops, or the last ``most`` for ever."""

    def __init__(self, most: int, *, stop: bool) -> None:
        self.kept = bytearray()
        self.first: float | None = None
        self.full = asyncio.Event()
        self.ended = asyncio.Event()
        self._most = most
        self._stop = stop

    def data_received(self, data: bytes) -> None:
        if self.first is None:
            self.first = perf_counter()
        if self.full.is_set():
            return
        self.kept += data
        if len(self.kept) > self._most:
            if self._stop:
                del self.kept[self._most :]
                self.full.set()
            else:
                del self.kept[: -self._most]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 — asyncio names it
        self.ended.set()


async def _pipe(loop: asyncio.AbstractEventLoop, tap: _Tap, stack: contextlib.ExitStack) -> int:
    reading, writing = os.pipe()
    transport, _ = await loop.connect_read_pipe(lambda: tap, os.fdopen(reading, "rb", buffering=0))
    stack.callback(transport.close)
    return writing


async def _drain(*taps: _Tap) -> None:
    """Take what is still in the pipes; one that a stray holds open is left after a moment."""
    ends = [asyncio.ensure_future(tap.ended.wait()) for tap in taps]
    _, pending = await asyncio.wait(ends, timeout=LINGER_SECONDS)
    for end in pending:
        end.cancel()
