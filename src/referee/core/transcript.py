"""The plain transcript of a recording: what was printed, as lines of text, without terminal control.

It is a log, not a screen: nothing that was printed in a line of its own is hidden by what came later.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from referee.core.sequences import SequenceFilter
from referee.core.timing import Playback

#: A line longer than this is written in parts of this many characters; backspace does not reach into an earlier part.
BLOCK = 1_048_576

_DROPPED = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\b\t\n\r"}
_LINE_ENDS = {0x0B: "\n", 0x0C: "\n"}
_TRANSLATE: dict[int, str | None] = {**_DROPPED, **_LINE_ENDS}
_TO_TRANSLATE = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_CARRIAGE_RETURNS = re.compile(r"\r+")
_RETURNS_BEFORE_END = re.compile(r"\r+\n")


def transcript(raw: Iterable[bytes], timing: Iterable[bytes]) -> Iterator[bytes]:
    """The plain text (UTF-8, LF) of a recording, in chunks; its rules stand in ``docs/recording.md``.

    Raises:
        Finding: the timing file is not as it must be (``core.timing``).
    """
    plain = PlainText()
    for event, piece in Playback(raw, timing):
        if event.kind == "o":
            text = plain.feed(piece)
            if text:
                yield text.encode()
    tail = plain.finish()
    if tail:
        yield tail.encode()


class PlainText:
    """Turns terminal output into plain text, chunk by chunk; the result does not depend on the chunks."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._sequences = SequenceFilter()
        self._parts: list[str] = []
        self._waiting = 0
        self._previous: str | None = None
        self._in_long_line = False

    def feed(self, data: bytes) -> str:
        """The plain text that is settled by ``data``."""
        return self._take(self._decode(data))

    def finish(self) -> str:
        """What was still waiting; a last line without an end gets one."""
        out = [self._take(self._decode(b"", final=True))]
        rest = "".join(self._parts)
        self._parts, self._waiting = [], 0
        if rest.strip("\r"):
            out.extend(self._row(rest + "\n"))
        return "".join(out)

    def _take(self, decoded: str) -> str:
        text = self._sequences.feed(decoded)
        if _TO_TRANSLATE.search(text):
            text = text.translate(_TRANSLATE)
        self._parts.append(text)
        self._waiting += len(text)
        has_end = "\n" in text
        if not has_end and self._waiting <= BLOCK:
            return ""
        data = "".join(self._parts)
        cut = data.rfind("\n") + 1 if has_end else 0
        out = self._rows(data[:cut]) if cut else []
        rest = data[cut:]
        if len(rest) > BLOCK:
            rest = self._overlong(rest, out)
        self._parts, self._waiting = [rest], len(rest)
        return "".join(out)

    def _rows(self, whole: str) -> list[str]:
        """Whole rows, each ending with LF."""
        whole = whole.replace("\r\n", "\n")
        if "\r\n" in whole:
            whole = _RETURNS_BEFORE_END.sub("\n", whole)
        if "\r" not in whole and "\b" not in whole and self._fresh() and len(whole) <= BLOCK:
            return [whole]
        out: list[str] = []
        for row in _split_rows(whole):
            out.extend(self._row(row))
        return out

    def _fresh(self) -> bool:
        return self._previous is None and not self._in_long_line

    def _row(self, row: str) -> list[str]:
        """One row with its LF: each state between carriage returns is a line, repeats are written once."""
        states = _CARRIAGE_RETURNS.split(row[:-1].rstrip("\r"))
        out: list[str] = []
        for state in states[:-1]:
            out.extend(self._state(state, ends_row=False))
        out.extend(self._state(states[-1], ends_row=True))
        self._previous = None
        return out

    def _state(self, state: str, *, ends_row: bool) -> list[str]:
        blocks = [_apply_backspaces(state[at : at + BLOCK]) for at in range(0, len(state), BLOCK)] or [""]
        previous, long_line = self._previous, self._in_long_line
        self._in_long_line = False
        if long_line or len(blocks) > 1:
            self._previous = ""
            return [*blocks, "\n"]
        text = blocks[0]
        if text == previous or (not text and (previous is not None or not ends_row)):
            return []
        self._previous = text
        return [text, "\n"]

    def _overlong(self, row: str, out: list[str]) -> str:
        """Settles what can be settled of a row that has not ended, so that memory stays flat; returns the rest."""
        body = row.rstrip("\r")
        returns = row[len(body) :][:1]
        states = _CARRIAGE_RETURNS.split(body)
        for state in states[:-1]:
            out.extend(self._state(state, ends_row=False))
        last = states[-1]
        while len(last) > BLOCK:
            out.append(_apply_backspaces(last[:BLOCK]))
            last = last[BLOCK:]
            self._in_long_line = True
        return last + returns


def _split_rows(whole: str) -> list[str]:
    rows = whole.split("\n")
    rows.pop()
    return [row + "\n" for row in rows]


def _apply_backspaces(text: str) -> str:
    """A backspace moves one character back, what follows replaces what stood there."""
    if "\b" not in text:
        return text
    cells: list[str] = []
    at = 0
    for part in re.split("(\b+)", text):
        if part.startswith("\b"):
            at = max(0, at - len(part))
        else:
            cells[at : at + len(part)] = part
            at += len(part)
    return "".join(cells)
