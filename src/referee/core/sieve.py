"""Takes credentials out of a stream while it is written, and shows that bytes are free of them.

What a terminal prints comes in pieces, wrapped at the screen's width, coloured, with the cursor sent about. ``Sieve``
lets through what cannot be part of a value, holds back what may be the beginning of one, and replaces a value that
has come whole (``core.redaction`` says what counts). ``Proof`` reads bytes once more and says whether any value can be
seen in them. Pure: bytes in, bytes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from referee.core.redaction import Redactor
from referee.core.spellings import canonical, units, views

#: So many letters and digits of a value in a row are held back; fewer are let through: they tell nothing.
HELD_FROM = 4
#: No more than this is held back. What then looks like the beginning of a value is masked.
HELD_MOST = 16_384
_WINDOW = 1024
#: So much of what was written is looked at again: fewer letters than are held back may begin a value there.
_BEFORE = 128
_UNTIL_END = 4096

#: Control sequences of a terminal, whole or cut off: a string may hold text that a window's title shows.
_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]{0,256}[ -/]{0,16}[@-~]?|[\]PX^_][^\x07\x1b\n\r]{0,4096}(?:\x07|\x1b\\)?|[ -/]{0,16}[0-~]?)"
    rb"|\xc2[\x80-\x9f]"
)
#: The same, not ended yet.
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]{0,256}[ -/]{0,16}|[\]PX^_][^\x07\x1b\n\r]{0,4096}\x1b?|[ -/]{0,16})\Z")
#: The cursor sent back: by so many places, or step by step; or what steers the terminal otherwise.
_STEPS = re.compile(rb"\x1b\[([0-9]{0,16})D|(\x08+)")
_STEERING = re.compile(_STEPS.pattern + rb"|" + _SEQUENCE.pattern)
#: An escape, a code or a character of several bytes that is not ended yet.
_CUT = re.compile(
    rb"(?:\\+(?:[uUxX]\{?)?[0-9A-Fa-f]{0,8}|%[0-9A-Fa-f%]{0,6}|&#?[xX]?[0-9A-Fa-f]{0,7}|[\xc0-\xff][\x80-\xbf]{0,2})\Z"
)


class Sieve:
    """One stream without the values of a redactor.

    ``unclear`` becomes true when a value was seen whose place could not be told: all of that piece is left out, and the
    stream must not be kept.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._written = b""
        self._held = b""
        self.unclear = False

    def feed(self, data: bytes) -> bytes:
        """What of the stream so far can be written now; may be empty."""
        held = self._held + data
        spans, settled = self._looked_at(held)
        for first, last, _ in spans:
            if first < settled < last:
                settled = last
        self._held = held[settled:]
        out = self._masked(held[:settled], [span for span in spans if span[1] <= settled])
        if len(self._held) > HELD_MOST:
            out += self._given_up(self._held)
            self._held = b""
        self._written = (self._written + out)[-_BEFORE:]
        return out

    def end(self) -> bytes:
        """What was still held back: the stream has ended."""
        rest, self._held = self._held, b""
        return self._masked(rest, self._looked_at(rest)[0]) if rest else b""

    def _looked_at(self, held: bytes) -> tuple[list[tuple[int, int, bytes]], int]:
        """Where values stand in what is not written yet, and how much of it is settled."""
        before = len(self._written)
        buffer = self._written + held
        spans = [
            (max(0, first - before), last - before, marker)
            for first, last, marker in self._spans(buffer)
            if last > before
        ]
        return spans, max(0, self._settled(buffer) - before)

    def _spans(self, data: bytes) -> list[tuple[int, int, bytes]]:
        if not _holds(self._redactor, data):
            return []
        spans = self._places(data, closely=False)
        if spans and not _holds(self._redactor, _replaced(data, spans)):
            return spans
        return self._places(data, closely=True)

    def _places(self, data: bytes, *, closely: bool) -> list[tuple[int, int, bytes]]:
        """Where values stand, in the bytes as they are and beneath what steers the terminal."""
        found = self._redactor.places(data, closely=closely)
        if not _steers(data):
            return found
        text, where = _beneath(data)
        below = self._redactor.places(text, closely=closely)
        found += [(where[first], where[last - 1] + 1, marker) for first, last, marker in below]
        spans: list[tuple[int, int, bytes]] = []
        for first, last, marker in sorted(found):
            if spans and first < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]), spans[-1][2])
            else:
                spans.append((first, last, marker))
        return spans

    def _masked(self, data: bytes, spans: list[tuple[int, int, bytes]]) -> bytes:
        done = _replaced(data, spans) if spans else data
        if _holds(self._redactor, done):
            self.unclear = True
            return self._redactor.withheld
        return done

    def _settled(self, buffer: bytes) -> int:
        """How much of the buffer cannot be part of a value that has only begun."""
        end = _whole(buffer)
        whole = buffer[:end]
        begins = end - self._redactor.begun_short(whole, 1)
        size = max(self._redactor.begun(view, HELD_FROM) for view in _views(whole))
        return min(begins, self._where_begun(whole, size)) if size else begins

    def _where_begun(self, data: bytes, size: int) -> int:
        """Where the last ``size`` letters and digits begin; where that cannot be told, surely before it."""
        for window in (_WINDOW, len(data)):
            found = []
            for text, where in _readings(data, window):
                here = self._redactor.begun(text, HELD_FROM)
                if here:
                    found.append((here, where[-here]))
            if any(here >= size for here, _ in found):
                return min(at for _, at in found)
        return max(0, len(data) - 4 * size - _WINDOW)

    def _given_up(self, held: bytes) -> bytes:
        """Held for too long: the characters that may begin a value go, what stands between them stays."""
        for text, where in _readings(held, len(held)):
            size = self._redactor.begun(text, HELD_FROM)
            if size:
                gone = set(where[-size:])
                held = bytes(byte for at, byte in enumerate(held) if at not in gone) + self._redactor.withheld
                break
        return self._masked(held, self._spans(held))


class Proof:
    """Reads a stream and says whether a value can be seen in it, however far it is strewn."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._rest = b""
        self._tails = [b""] * 4
        self._before = b""
        self.free = True

    def feed(self, data: bytes) -> None:
        """The next bytes of the stream."""
        if self._redactor.empty:
            return
        data = self._rest + data
        cut = _whole(data)
        if len(data) - cut > HELD_MOST:
            cut = len(data)
        self._rest = data[cut:]
        self._look(data[:cut])

    def end(self) -> bool:
        """Whether the stream, which has ended, is free of every value."""
        if self._rest:
            self._look(self._rest)
            self._rest = b""
        return self.free

    def _look(self, data: bytes) -> None:
        keep = max(1, self._redactor.longest)
        looked: dict[tuple[int, bytes], bytes] = {}
        for kind, view in enumerate(_views(data)):
            same = (id(view), self._tails[kind])  # most text has one view, not four
            joined = looked.get(same)
            if joined is None:
                joined = looked[same] = self._tails[kind] + view
                if self._redactor.seen(joined):
                    self.free = False
            self._tails[kind] = joined[-keep:]
        if self._redactor.seen_short(self._before + data):
            self.free = False
        if _STEPS.search(data) and self._redactor.holds(_shown(self._before + data)):  # a step back over the seam
            self.free = False
        self._before = (self._before + data)[-_WINDOW:]


def shown_free(chunks: Iterable[bytes], redactor: Redactor) -> bool:
    """Whether no value can be seen in a stream."""
    proof = Proof(redactor)
    for chunk in chunks:
        proof.feed(chunk)
    return proof.end()


def sifted(chunks: Iterable[bytes], sieve: Sieve) -> Iterator[bytes]:
    """A stream without the values of the sieve's redactor; afterwards ``sieve.unclear`` says whether that worked."""
    yield from (out for chunk in chunks if (out := sieve.feed(chunk)))
    yield from (rest for rest in (sieve.end(),) if rest)


def _views(data: bytes) -> list[bytes]:
    """Four canonical views: with and without what steers a terminal, with and without codes of URLs resolved."""
    found = [*views(data)]
    below = [*views(_shown(data))] if _steers(data) else found
    return [found[0], found[-1], below[0], below[-1]]


def _steers(data: bytes) -> bool:
    return b"\x1b" in data or b"\xc2" in data or b"\x08" in data


def _shown(data: bytes) -> bytes:
    """What a terminal shows of ``data``: without what steers it and what is gone over after a step back in its line."""
    out, line, end = bytearray(), 0, 0
    for found in chain(_STEERING.finditer(data), (None,)):
        text = data[end : found.start() if found else len(data)]
        out += text
        if (last := max(text.rfind(b"\n"), text.rfind(b"\r"))) >= 0:
            line = len(out) - len(text) + last + 1
        if found is not None:
            end = found.end()
            steps = len(found[2] or b"") if found[1] is None else int(found[1] or b"1") or 1  # none means one
            if steps:
                del out[max(line, len(out) - steps) :]
    return bytes(out)


def _holds(redactor: Redactor, data: bytes) -> bool:
    if redactor.holds(data):
        return True
    return _steers(data) and redactor.holds(_shown(data))


def _replaced(data: bytes, spans: list[tuple[int, int, bytes]]) -> bytes:
    out, end = [], 0
    for first, last, marker in spans:
        out += [data[end:first], marker]
        end = last
    return b"".join(out) + data[end:]


def _beneath(data: bytes) -> tuple[bytes, list[int]]:
    """The text beneath what steers the terminal, and where each byte of it stands."""
    kept: list[range] = []
    end = 0
    for found in _SEQUENCE.finditer(data):
        kept.append(range(end, found.start()))
        end = found.end()
    kept.append(range(end, len(data)))
    text, where = b"".join(data[part.start : part.stop] for part in kept), list(chain.from_iterable(kept))
    if b"\x08" not in text:
        return text, where
    out, places, at = bytearray(), list[int](), 0
    for part in text.split(b"\x08"):
        if at and out and out[-1] not in b"\r\n":
            del out[-1], places[-1]
        out += part
        places += where[at : at + len(part)]
        at += len(part) + 1
    return bytes(out), places


def _readings(data: bytes, window: int) -> Iterator[tuple[bytes, list[int]]]:
    """The canonical views of the last bytes of ``data``, and where each character stands in ``data``."""
    start = max(0, len(data) - window)
    tail = data[start:]
    texts = [(tail, range(len(tail)))]
    if _steers(tail):
        text, where = _beneath(tail)
        texts.append((text, where))  # type: ignore[arg-type]
    for text, at in texts:
        resolved, places = units(text)
        letters = (place for byte, place in zip(resolved, places, strict=True) if canonical(bytes((byte,))))
        where = [start + at[place[0]] for place in letters]
        yield canonical(resolved), where


def _whole(data: bytes) -> int:
    """Where ``data`` ends without the escape, code or character at its end that is not ended yet."""
    escape = data.rfind(b"\x1b", max(0, len(data) - _UNTIL_END - 512))
    if escape >= 0 and _UNFINISHED.match(data, escape):
        return escape
    cut = _CUT.search(data, max(0, len(data) - 12))
    return cut.start() if cut else len(data)
