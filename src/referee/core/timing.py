"""The timing file of a recording: its lines, and the walk over raw bytes and times together.

The format is written down in ``docs/recording.md``. Pure: bytes come in as iterables, nothing is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from referee.errors import Finding

VERSION = 1
#: Largest terminal that is recorded or replayed; a cast that declares more aborts renderers.
MAX_COLUMNS = 500
MAX_ROWS = 200
#: Output events are handed on in pieces of at most this many bytes, so that memory stays flat.
PIECE_BYTES = 65_536
MAX_LABEL = 200
_MAX_LINE = 1_024

_HEADER = re.compile(
    rb"referee-timing (\d{1,4}) columns=(\d{1,5}) rows=(\d{1,5}) started_us=(\d{1,17}) term=([A-Za-z0-9._+-]{1,64})"
)
_EVENT = re.compile(rb"(\d{1,15}) (?:o (\d{1,12})|r (\d{1,5})x(\d{1,5})|m ([^\n]{1,800})|x (\d{1,3})|e ([a-z_]{1,32}))")
_NOT_IN_TERM = re.compile(r"[^A-Za-z0-9._+-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Header:
    """How a recording began: terminal size, wall clock in microseconds since 1970 (UTC), value of TERM."""

    columns: int
    rows: int
    started_us: int
    term: str

    def line(self) -> bytes:
        """The first line of the timing file."""
        return (
            f"referee-timing {VERSION} columns={self.columns} rows={self.rows} "
            f"started_us={self.started_us} term={clean_term(self.term)}\n"
        ).encode()


class Event(NamedTuple):
    """One line of the timing file.

    ``at`` is microseconds since the start, monotonic. ``kind`` is ``o`` (``size`` bytes of output), ``r``
    (``text`` is ``<columns>x<rows>``), ``m`` (a label), ``x`` (an exit status) or ``e`` (why the recording
    ended; only the last line of a recording that was closed in order has it).
    """

    at: int
    kind: str
    size: int
    text: str


@dataclass
class Coverage:
    """How much of a recording its two files vouch for, known after the walk.

    ``covered_bytes`` stand in both files; ``untimed_bytes`` lie in the raw file beyond the last timed event;
    ``missing_bytes`` are timed but not in the raw file; ``torn_bytes`` is the length of an unfinished last line.
    ``events`` counts the whole lines but header and closing line. ``ended`` is the reason on the closing line, None
    when the recorder was cut short.
    """

    covered_bytes: int = 0
    untimed_bytes: int = 0
    missing_bytes: int = 0
    torn_bytes: int = 0
    events: int = 0
    last_us: int = 0
    exit_status: int | None = None
    ended: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the recorder closed both files in order and they agree to the byte."""
        return self.ended is not None and not (self.untimed_bytes or self.missing_bytes or self.torn_bytes)


def clean_term(term: str) -> str:
    """``term`` with nothing but what the header line may hold."""
    return _NOT_IN_TERM.sub("", term)[:64] or "dumb"


def clean_label(label: str) -> str:
    """``label`` on one line, without control characters, at most ``MAX_LABEL`` characters."""
    return _CONTROL.sub(" ", label)[:MAX_LABEL] or " "


class Playback:
    """The walk over one recording: iterate once for ``(event, bytes)`` pairs.

    An output event comes as one or more pieces of at most ``PIECE_BYTES`` (cut at fixed places, however the
    input was cut), all other events with no bytes. Events that time bytes the raw stream does not have are cut
    to what is there; ``coverage`` tells.

    Raises:
        Finding: the timing file has no header, an unknown version, or a whole line that is not as it must be.
    """

    def __init__(self, raw: Iterable[bytes], timing: Iterable[bytes]) -> None:
        self._raw = _Bytes(raw)
        self.coverage = Coverage()
        self._lines = _whole_lines(timing, self.coverage)
        first = next(self._lines, None)
        self.header = _parse_header(first)

    def __iter__(self) -> Iterator[tuple[Event, bytes]]:
        coverage = self.coverage
        for number, line in enumerate(self._lines, start=2):
            event = _parse_event(line, number, coverage)
            coverage.events += event.kind != "e"
            coverage.last_us = event.at
            if event.kind == "o":
                yield from self._pieces(event)
                continue
            if event.kind == "x":
                coverage.exit_status = int(event.text)
            elif event.kind == "e":
                coverage.ended = event.text
            yield event, b""
        coverage.untimed_bytes = self._raw.count_rest()

    def _pieces(self, event: Event) -> Iterator[tuple[Event, bytes]]:
        left = event.size
        while left:
            piece = self._raw.take(min(left, PIECE_BYTES))
            if not piece:
                self.coverage.missing_bytes += left
                return
            left -= len(piece)
            self.coverage.covered_bytes += len(piece)
            yield event, piece


class _Bytes:
    """Takes exact amounts out of a stream of chunks."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._have = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end of the stream."""
        end = self._at + size
        if end <= len(self._have):
            piece = self._have[self._at : end]
            self._at = end
            return piece
        parts = [self._have[self._at :]]
        missing = size - len(parts[0])
        self._have, self._at = b"", 0
        for chunk in self._chunks:
            if len(chunk) >= missing:
                parts.append(chunk[:missing])
                self._have, self._at = chunk, missing
                break
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)

    def count_rest(self) -> int:
        """How many bytes were never taken."""
        return len(self._have) - self._at + sum(len(chunk) for chunk in self._chunks)


def _whole_lines(chunks: Iterable[bytes], coverage: Coverage) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > _MAX_LINE:
            raise Finding("The timing file has a line that is too long to be one of a recorder.")
        yield from lines
    coverage.torn_bytes = len(rest)


def _parse_header(line: bytes | None) -> Header:
    match = _HEADER.fullmatch(line) if line is not None else None
    if match is None:
        raise Finding(
            "The timing file does not begin with a whole header line.",
            todo="Without it nothing can be derived; the raw file can still be read as it is.",
        )
    if int(match[1]) != VERSION:
        raise Finding(
            f"The timing file is of version {int(match[1])}; this referee reads version {VERSION}.",
            todo="Use a referee of the time of the recording.",
        )
    columns, rows = int(match[2]), int(match[3])
    _check_size(columns, rows, 1)
    return Header(columns, rows, int(match[4]), match[5].decode())


def _parse_event(line: bytes, number: int, coverage: Coverage) -> Event:
    match = _EVENT.fullmatch(line)
    if match is None:
        raise Finding(f"Line {number} of the timing file is no event.")
    at = int(match[1])
    if at < coverage.last_us:
        raise Finding(f"Line {number} of the timing file goes back in time.")
    if coverage.ended is not None:
        raise Finding(f"Line {number} of the timing file follows its closing line.")
    if match[2] is not None:
        return Event(at, "o", int(match[2]), "")
    if match[3] is not None:
        columns, rows = int(match[3]), int(match[4])
        _check_size(columns, rows, number)
        return Event(at, "r", 0, f"{columns}x{rows}")
    if match[5] is not None:
        return Event(at, "m", 0, clean_label(match[5].decode("utf-8", "replace")))
    if match[6] is not None:
        return Event(at, "x", 0, str(int(match[6])))
    return Event(at, "e", 0, match[7].decode())


def _check_size(columns: int, rows: int, number: int) -> None:
    if not (1 <= columns <= MAX_COLUMNS and 1 <= rows <= MAX_ROWS):
        raise Finding(
            f"Line {number} of the timing file declares a terminal of {columns}x{rows}; "
            f"at most {MAX_COLUMNS}x{MAX_ROWS} is recorded."
        )
