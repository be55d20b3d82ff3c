"""Replays a recording in the viewer's terminal, or prints its plain transcript."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from referee.adapters.recorder import RecordingFiles
from referee.core.served import ServedText
from referee.core.timing import Coverage
from referee.core.transcript import PlainText
from referee.errors import UsageError

#: What undoes all that a replayed recording can have changed: soft reset (modes, margins, attributes, character
#: sets), cursor shown, mouse, focus and paste reports off, keypad plain.
RESET = (
    "\x1b[!p\x1b[?25h\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?1l\x1b>"
    "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l"
    "\x1b7\x1b[r\x1b8"
)
LEAVE_ALTERNATE = "\x1b[?1049l"
_ALTERNATE = re.compile(r"\x1b\[\?(?:\d+;)*(?:1049|1047|47)(?:;\d+)*([hl])")
MIN_SPEED, MAX_SPEED = 0.01, 10_000.0


@dataclass(frozen=True)
class Pace:
    """How a replay runs: ``speed`` times as fast, and no pause longer than ``idle_limit`` seconds (None: as it was)."""

    speed: float = 1.0
    idle_limit: float | None = None

    def __post_init__(self) -> None:
        if not MIN_SPEED <= self.speed <= MAX_SPEED:
            raise UsageError(
                f"A speed of {self.speed:g} cannot be played.", todo=f"Use {MIN_SPEED:g} to {MAX_SPEED:g}."
            )
        if self.idle_limit is not None and not 0 <= self.idle_limit < float("inf"):
            raise UsageError(f"An idle limit of {self.idle_limit:g} seconds makes no sense.", todo="Use 0 or more.")

    def pause(self, micros: int) -> float:
        """Seconds to wait in place of ``micros`` of recorded time."""
        seconds = micros / 1e6
        if self.idle_limit is not None:
            seconds = min(seconds, self.idle_limit)
        return seconds / self.speed


def play_files(files: RecordingFiles, pace: Pace, *, plain: bool = False) -> None:
    """Replay a recording on standard output, its plain transcript where that is no terminal; the end on stderr.

    Raises:
        Finding: the timing file is not as it must be.
    """
    try:
        if plain or not sys.stdout.isatty():
            coverage = print_plain(files, sys.stdout.buffer)
        else:
            _warn_of_size(files)
            coverage = replay(files, sys.stdout.buffer, pace)
    except BrokenPipeError:
        # The reader (a pager, head) has seen enough; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    print_end(coverage, sys.stderr)


def _warn_of_size(files: RecordingFiles) -> None:
    header, here = files.playback().header, shutil.get_terminal_size()
    if header.columns > here.columns or header.rows > here.lines:
        sys.stderr.write(
            f"recorded on {header.columns}x{header.rows}, this terminal is {here.columns}x{here.lines}: "
            "full-screen programs will look wrong\n"
        )


def print_plain(files: RecordingFiles, out: BinaryIO) -> Coverage:
    """Write the plain transcript."""
    playback = files.playback()
    text = PlainText()
    for event, piece in playback:
        if event.kind == "o":
            out.write(text.feed(piece).encode())
    out.write(text.finish().encode())
    out.flush()
    return playback.coverage


def replay(
    files: RecordingFiles,
    out: BinaryIO,
    pace: Pace,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Coverage:
    """Write what was printed, at its pace, without what could harm the viewer's terminal; then reset the terminal.

    Resizes are not imitated: a terminal belongs to its viewer. The terminal is also reset when the viewer interrupts.
    """
    playback = files.playback()
    served = ServedText()
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    alternate = False
    metronome = _Metronome(pace, sleep, clock)
    try:
        for event, piece in playback:
            metronome.until(event.at, out)
            if event.kind != "o":
                continue
            text = served.feed(decode(piece))
            for switch in _ALTERNATE.finditer(text):
                alternate = switch[1] == "h"
            out.write(text.encode())
    finally:
        out.write(((LEAVE_ALTERNATE if alternate else "") + RESET + "\r\n").encode())
        out.flush()
    return playback.coverage


class _Metronome:
    """Waits for recorded times; catches up when the terminal was slow, but not after a long halt of the viewer's."""

    _MOST_BEHIND = 1.0

    def __init__(self, pace: Pace, sleep: Callable[[float], None], clock: Callable[[], float]) -> None:
        self._pace = pace
        self._sleep = sleep
        self._clock = clock
        self._recorded_us = 0
        self._due = clock()

    def until(self, at: int, out: BinaryIO) -> None:
        """Return when the recorded time ``at`` has come; what was written is seen before a wait."""
        self._due += self._pace.pause(at - self._recorded_us)
        self._recorded_us = at
        now = self._clock()
        if self._due > now:
            out.flush()
            self._sleep(self._due - now)
        elif self._due < now - self._MOST_BEHIND:
            self._due = now


def print_end(coverage: Coverage, out: TextIO) -> None:
    """Say how the recorded command ended, and whether anything of the recording is missing."""
    if coverage.exit_status is not None:
        line = f"exit status {coverage.exit_status} after {coverage.last_us / 1e6:.1f} s"
    else:
        why = {"deadline": "the time limit was reached", None: "the recording was cut short"}.get(
            coverage.ended, f"the recording ended with: {coverage.ended}"
        )
        line = f"no exit status: {why}, at {coverage.last_us / 1e6:.1f} s"
    out.write(f"{line}\n")
    if coverage.untimed_bytes:
        out.write(f"{coverage.untimed_bytes} more bytes stand in the raw file, their times were lost\n")
    if coverage.missing_bytes:
        out.write(f"{coverage.missing_bytes} timed bytes are missing from the raw file\n")
