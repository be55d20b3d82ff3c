"""Records one session from the host: everything the terminal printed, when, and why the recording ended."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from referee.adapters.recorder.writer import FLUSH_NS, RAW_NAME, TIMING_NAME, TwinWriter, WriteFailed
from referee.core.records import RecordingFacts
from referee.core.timing import MAX_COLUMNS, MAX_ROWS, Header, clean_term
from referee.errors import CouldNotVerify, UsageError
from referee.protocols import Session

if TYPE_CHECKING:
    from referee.core.sieve import Sieve  # a run without a key does not wait for it

#: Why a recording ended. ``watch``: the caller's watch gave a reason; ``stream_lost``: the engine's stream broke.
End = Literal["ended", "deadline", "watch", "size_cap", "event_cap", "write_error", "stream_lost"]

READ_BYTES = 65_536
#: Seconds between two questions to ``watch``.
WATCH_SECONDS = 1.0
_WATCH_NS = int(WATCH_SECONDS * 1e9)
#: Seconds for which a terminal is still read when its command has ended but another process holds it open.
LINGER_SECONDS = 1.0
_LINGER_NS = int(LINGER_SECONDS * 1e9)
#: With a ``Control``, how long a request may wait while nothing is printed.
_CONTROL_NS = 50_000_000


@dataclass(frozen=True)
class Caps:
    """What one recording may hold at most: bytes of output, and events (lines of the timing file)."""

    max_bytes: int = 256 * 1024**2
    max_events: int = 2_000_000


@dataclass(frozen=True)
class Recorded:
    """A finished recording.

    ``bytes`` is what stands in the raw file; ``seconds`` is from the start to the end; ``exit_status`` is None when
    the command did not end by itself. ``caps_reached`` names "size", "events", "duration" and "resize" (a size
    beyond the largest was asked for and cut to it). ``detail`` says in a sentence what ``end`` means here.
    """

    raw: Path
    timing: Path
    end: End
    detail: str
    bytes: int
    events: int
    seconds: float
    exit_status: int | None
    caps_reached: tuple[str, ...]
    write_error: str | None

    @property
    def complete(self) -> bool:
        """Whether everything printed until the command's end, the deadline or the watch's stop is in the files."""
        return self.end in ("ended", "deadline", "watch") and self.write_error is None

    def facts(self) -> RecordingFacts:
        """The recording as records keep it."""
        return RecordingFacts(
            complete=self.complete,
            bytes=self.bytes,
            events=self.events,
            seconds=round(self.seconds, 6),
            exit_status=self.exit_status,
            caps_reached=self.caps_reached,
            write_error=self.write_error,
        )


class Control:
    """What a caller may ask of a running recording, from a callback or from another thread."""

    def __init__(self) -> None:
        self._asked: deque[tuple[str, int, int, str]] = deque()

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size; at most 500x200 is granted, and cutting is announced."""
        self._asked.append(("r", columns, rows, ""))

    def mark(self, label: str) -> None:
        """Set a marker, shown by players as a chapter."""
        self._asked.append(("m", 0, 0, label))

    def take(self) -> tuple[str, int, int, str] | None:
        """The next request; None when there is none."""
        return self._asked.popleft() if self._asked else None


def record(
    session: Session,
    *,
    directory: Path,
    columns: int,
    rows: int,
    caps: Caps,
    deadline: float,
    watch: Callable[[], str | None] | None = None,
    on_output: Callable[[bytes], None] | None = None,
    control: Control | None = None,
    sieve: Sieve | None = None,
    term: str = "xterm-256color",
) -> Recorded:
    """Record ``session`` into ``directory/session.raw`` and ``directory/session.timing`` until it ends.

    The session is neither ended nor closed: after any end but "ended" the caller ends the command. A terminal that is
    held open by a process the command left behind is read for ``LINGER_SECONDS`` more, then the recording has ended.

    Args:
        session: a session that has just been started; nothing of it may have been read.
        directory: an existing directory without an earlier recording.
        columns: the width the session was started with.
        rows: the height the session was started with.
        caps: reaching one stops the recording and is announced.
        deadline: ``time.monotonic()`` seconds at which the recording stops.
        watch: asked about once a second, busy or silent; an answer stops the recording. While it runs nothing is
            read, so it must answer within tens of milliseconds.
        on_output: given each chunk as it was read, after it was accepted. What it raises ends the recording.
        control: where resizes and markers are asked for.
        sieve: takes credentials out before a byte is written or handed on; None for a session without any. What may be
            the beginning of one is written, and timed, when it is known that it is none.
        term: the session's TERM.

    Returns:
        How it ended. A failed write is a result (``write_error``), not an exception.

    Raises:
        UsageError: the terminal is larger than is ever recorded.
        KeyboardInterrupt: after both files were made durable; so with whatever ``watch`` and ``on_output`` raise.
    """
    if not (1 <= columns <= MAX_COLUMNS and 1 <= rows <= MAX_ROWS):
        raise UsageError(
            f"A terminal of {columns}x{rows} is not recorded.", todo=f"Use at most {MAX_COLUMNS}x{MAX_ROWS}."
        )
    run = _Run(session, directory, caps, deadline, watch, on_output, control, sieve)
    header = Header(columns, rows, time.time_ns() // 1_000, clean_term(term))
    return run.go(header)


class _Stop(Exception):
    def __init__(self, end: End, detail: str) -> None:
        super().__init__(detail)
        self.end = end
        self.detail = detail


class _Run:
    """One call of ``record``."""

    def __init__(
        self,
        session: Session,
        directory: Path,
        caps: Caps,
        deadline: float,
        watch: Callable[[], str | None] | None,
        on_output: Callable[[bytes], None] | None,
        control: Control | None,
        sieve: Sieve | None,
    ) -> None:
        self._session = session
        self._directory = directory
        self._caps = caps
        self._deadline_ns = int(min(deadline, 9e8) * 1e9)
        self._watch = watch
        self._on_output = on_output
        self._control = control
        self._sieve = sieve
        self._started_ns = time.monotonic_ns()
        self._watch_ns = self._started_ns + _WATCH_NS
        self._reached: list[str] = []
        self._exit_status: int | None = None
        self._leave_ns: int | None = None

    def go(self, header: Header) -> Recorded:
        """Open, record, close; every way out leaves both files as far as they could be written."""
        try:
            writer = TwinWriter(self._directory, header, self._started_ns)
        except WriteFailed as exc:
            return self._result("write_error", str(exc), 0, 0)
        try:
            end, detail = self._until_stopped(writer)
            writer.close(end)
        except WriteFailed as exc:
            writer.abandon()
            end, detail = "write_error", str(exc)
        except BaseException:
            with contextlib.suppress(WriteFailed):
                self._let_go(writer)
                writer.close(None)
            raise
        return self._result(end, detail, writer.raw_bytes, writer.events)

    def _result(self, end: End, detail: str, size: int, events: int) -> Recorded:
        return Recorded(
            raw=self._directory / RAW_NAME,
            timing=self._directory / TIMING_NAME,
            end=end,
            detail=detail,
            bytes=size,
            events=events,
            seconds=(time.monotonic_ns() - self._started_ns) / 1e9,
            exit_status=self._exit_status,
            caps_reached=tuple(dict.fromkeys(self._reached)),
            write_error=detail if end == "write_error" else None,
        )

    def _until_stopped(self, writer: TwinWriter) -> tuple[End, str]:
        try:
            self._read_all(writer)
            self._let_go(writer)
            return "ended", self._await_exit(writer)
        except _Stop as stop:
            self._let_go(writer)
            return stop.end, stop.detail

    def _let_go(self, writer: TwinWriter) -> None:
        """Write what was held back as the possible beginning of a credential: nothing more of it will come."""
        if self._sieve is not None and (rest := self._sieve.end()):
            writer.output(time.monotonic_ns(), rest[: self._caps.max_bytes - writer.accepted])

    def _read_all(self, writer: TwinWriter) -> None:
        """Read until the end of the stream. This loop decides the recorder's throughput."""
        read, on_output, clock = self._session.read, self._on_output, time.monotonic_ns
        sieve = self._sieve
        max_bytes, max_events = self._caps.max_bytes, self._caps.max_events
        now = clock()
        due = self._due(now)
        while True:
            wait = (due - now) / 1e9 if due > now else 0.0
            try:
                data = read(READ_BYTES, wait)
            except (OSError, CouldNotVerify) as exc:
                raise _Stop("stream_lost", f"The session's stream broke: {exc}.") from exc
            now = clock()
            if data and sieve is not None:
                data = sieve.feed(data) or None
            if data:
                if writer.accepted + len(data) > max_bytes:
                    self._fill(writer, now, data)
                writer.output(now, data)
                if writer.events >= max_events:
                    self._reached.append("events")
                    raise _Stop("event_cap", f"The recording reached its cap of {max_events} events.")
                if on_output is not None:
                    on_output(data)
            elif data is not None:
                return
            if now >= due:
                self._duties(writer, now)
                due = self._due(now)

    def _fill(self, writer: TwinWriter, now: int, data: bytes) -> None:
        max_bytes = self._caps.max_bytes
        room = max_bytes - writer.accepted
        if room:
            writer.output(now, data[:room])
        self._reached.append("size")
        raise _Stop("size_cap", f"The recording reached its cap of {max_bytes} bytes.")

    def _await_exit(self, writer: TwinWriter) -> str:
        """The stream has ended; the command may still run (it can close its terminal), so wait for it as before."""
        while True:
            now = time.monotonic_ns()
            self._duties(writer, now)
            due = self._due(now)
            try:
                status = self._session.exit_status(max(due - now, 0) / 1e9)
            except (OSError, CouldNotVerify) as exc:
                raise _Stop("stream_lost", f"The command's exit status could not be read: {exc}.") from exc
            if status is not None:
                return self._note_exit(writer, status)

    def _note_exit(self, writer: TwinWriter, status: int) -> str:
        self._exit_status = status
        self._let_go(writer)
        writer.exit(time.monotonic_ns(), status)
        return f"The command ended with exit status {status}."

    def _look_for_end(self, writer: TwinWriter, now: int) -> None:
        """End also when the command has ended but something it left behind holds the terminal, silent or busy."""
        try:
            status = self._session.exit_status(0)
        except (OSError, CouldNotVerify):
            return  # not known now; a session that is really lost breaks its stream
        if status is None:
            return
        if self._leave_ns is None:
            self._leave_ns = min(now + _LINGER_NS, self._deadline_ns)
        if now >= self._leave_ns:
            raise _Stop("ended", self._note_exit(writer, status))

    def _due(self, now: int) -> int:
        """When duties are looked at next, in monotonic nanoseconds; often enough to write what is held in time."""
        soon = now + (_CONTROL_NS if self._control is not None else FLUSH_NS // 2)
        return min(soon, self._deadline_ns, self._watch_ns, self._leave_ns or soon)

    def _duties(self, writer: TwinWriter, now: int) -> None:
        if now >= self._deadline_ns:
            self._look_for_end(writer, now)  # it may have ended just in time
            self._reached.append("duration")
            raise _Stop("deadline", "The time limit was reached.")
        if self._control is not None:
            self._obey(writer, self._control)
        if writer.holding and now >= writer.flush_due_ns:
            writer.flush()
        if now >= self._watch_ns:
            reason = self._watch() if self._watch is not None else None
            self._watch_ns = time.monotonic_ns() + _WATCH_NS
            if reason is not None:
                raise _Stop("watch", reason)
            self._look_for_end(writer, now)
        elif self._leave_ns is not None and now >= self._leave_ns:
            self._look_for_end(writer, now)

    def _obey(self, writer: TwinWriter, control: Control) -> None:
        while (asked := control.take()) is not None:
            kind, columns, rows, label = asked
            if kind == "m":
                writer.mark(time.monotonic_ns(), label)
                continue
            granted = (min(max(columns, 1), MAX_COLUMNS), min(max(rows, 1), MAX_ROWS))
            if granted != (columns, rows):
                self._reached.append("resize")
            try:
                self._session.resize(*granted)
            except (OSError, CouldNotVerify) as exc:
                raise _Stop("stream_lost", f"The terminal could not be resized: {exc}.") from exc
            writer.resize(time.monotonic_ns(), *granted)
