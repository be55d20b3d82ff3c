"""Writes the two files of primary evidence so that, whenever the process dies, what is there fits together."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from referee.core.timing import Header, clean_label

RAW_NAME = "session.raw"
TIMING_NAME = "session.timing"
#: Reads that follow an event's first byte within this time belong to the event: no byte is timed more than this early.
COALESCE_NS = 1_000_000
MAX_EVENT_BYTES = 1_048_576
#: What may be lost to a kill: at most this many bytes; what was held this long is written at the next look.
FLUSH_BYTES = 262_144
FLUSH_NS = 125_000_000


class WriteFailed(Exception):
    """A file of the recording could not be written; the text is the sentence for the record."""

    def __init__(self, name: str, cause: OSError) -> None:
        code = errno.errorcode.get(cause.errno or 0, "unknown")
        super().__init__(f"{name} could not be written: {cause.strerror or cause} ({code}).")


class TwinWriter:
    """The raw file and the timing file, written in step.

    Raw bytes go out before the lines that time them, so a kill leaves at most untimed bytes, never a time without
    its bytes. Methods raise ``WriteFailed``; ``raw_bytes`` is what then stands in the raw file.
    """

    def __init__(self, directory: Path, header: Header, started_ns: int) -> None:
        self.raw_bytes = 0
        self.events = 0
        self.accepted = 0
        self.flush_due_ns = 0
        self._started_ns = started_ns
        self._pieces: list[bytes] = []
        self._held = 0
        self._lines: list[bytes] = []
        self._event_ns = -COALESCE_NS
        self._event_bytes = 0
        self._directory = directory
        self._raw = _create(directory / RAW_NAME)
        try:
            self._timing = _create(directory / TIMING_NAME)
        except BaseException:
            os.close(self._raw)
            raise
        self._open = True
        try:
            self._write_timing(header.line())
        except BaseException:
            self._release()
            raise

    @property
    def holding(self) -> bool:
        """Whether something accepted is not written yet."""
        return bool(self._held or self._lines)

    def output(self, now_ns: int, data: bytes) -> None:
        """Accept output that was read at ``now_ns`` (monotonic)."""
        # Called for every read: kept short.
        size = len(data)
        if now_ns - self._event_ns >= COALESCE_NS or self._event_bytes + size > MAX_EVENT_BYTES:
            self._close_event()
            self._event_ns = now_ns
            self.events += 1
            if not self._held:
                self.flush_due_ns = now_ns + FLUSH_NS
        self._event_bytes += size
        self._pieces.append(data)
        self._held += size
        self.accepted += size
        if self._held >= FLUSH_BYTES:
            self.flush()

    def resize(self, now_ns: int, columns: int, rows: int) -> None:
        """Accept a change of the terminal's size."""
        self._line(now_ns, f"r {columns}x{rows}")

    def mark(self, now_ns: int, label: str) -> None:
        """Accept a marker."""
        self._line(now_ns, f"m {clean_label(label)}")

    def exit(self, now_ns: int, status: int) -> None:
        """Accept the command's exit status (0 to 255)."""
        self._line(now_ns, f"x {status & 0xFF}")

    def _line(self, now_ns: int, text: str) -> None:
        self._close_event()
        if not self.holding:
            self.flush_due_ns = now_ns + FLUSH_NS
        self._lines.append(f"{self._micros(now_ns)} {text}\n".encode())
        self.events += 1

    def _close_event(self) -> None:
        if self._event_bytes:
            self._lines.append(b"%d o %d\n" % (self._micros(self._event_ns), self._event_bytes))
        self._event_bytes = 0
        self._event_ns = -COALESCE_NS

    def _micros(self, now_ns: int) -> int:
        return (now_ns - self._started_ns) // 1_000

    def flush(self) -> None:
        """Hand everything accepted to the operating system, the raw bytes first."""
        self._close_event()
        if self._held:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._held = 0
            with _failing_as(RAW_NAME):
                _write_all(self._raw, data, self._count)
        if self._lines:
            lines = b"".join(self._lines)
            self._lines.clear()
            self._write_timing(lines)

    def _write_timing(self, lines: bytes) -> None:
        with _failing_as(TIMING_NAME):
            _write_all(self._timing, lines)

    def _count(self, written: int) -> None:
        self.raw_bytes += written

    def close(self, ended: str | None) -> None:
        """Flush, write the closing line (unless ``ended`` is None), make both files durable, close them."""
        if not self._open:
            return
        try:
            self.flush()
            if ended is not None:
                self._write_timing(f"{self._micros(time.monotonic_ns())} e {ended}\n".encode())
            with _failing_as(RAW_NAME):
                os.fsync(self._raw)
            with _failing_as(TIMING_NAME):
                os.fsync(self._timing)
            with _failing_as("the recording's directory"):
                _sync_directory(self._directory)
        finally:
            self._release()

    def abandon(self) -> None:
        """Close both files after a failed write, trying once more to make durable what is there."""
        if not self._open:
            return
        try:
            os.fsync(self._raw)
            os.fsync(self._timing)
        except OSError:
            pass  # the first failure is the one that is reported
        finally:
            self._release()

    def _release(self) -> None:
        self._open = False
        os.close(self._raw)
        os.close(self._timing)


def _write_all(handle: int, data: bytes, count: Callable[[int], None] | None = None) -> None:
    view = memoryview(data)
    while view:
        written = os.write(handle, view)
        if count is not None:
            count(written)
        view = view[written:]


@contextlib.contextmanager
def _failing_as(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise WriteFailed(name, exc) from exc


def _create(path: Path) -> int:
    with _failing_as(path.name):
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
