"""Keeps credentials out of everything that is written: a search for each injected value, however it is spelt.

A server may echo a credential plain, escaped, encoded, broken over lines, shortened, or cut into the pieces of a
stream. It is looked for in the canonical view (``core.spellings``), whole and in part: a part counts from ``PART``
characters on, of a shorter value from half of it on (never fewer than ``LEAST``). What is found is replaced by
``[redacted:NAME]``. Where a value is seen but its place cannot be told, the whole text is withheld: what is written
never depends on our finding the place.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from referee.core.event_strings import INDEXED, Piece, by_place, whole
from referee.core.secret_parts import secret_parts
from referee.core.spellings import BARRIER, canonical, encoded, pieces, transformed, units, views
from referee.errors import UsageError

#: A shorter value cannot be told from ordinary text: looking for it would alter answers that never held it.
SHORTEST = 8
#: So many letters and digits of a value in a row are a find; of a shorter value half of them, but never fewer than
#: ``LEAST``. A value with fewer than that is looked for only as a whole, and as it is written.
PART, LEAST = 16, 12

#: So many characters of a value are compared at first. Any part that counts covers one such gram of every ``stride``.
_GRAM = 5
_AT_ONCE = 32
#: Places are looked for in so many bytes at a time; where more of such stretches hold a value, all is withheld.
_STRETCH, _MOST_STRETCHES = 4096, 64
#: What no find may run over, where it is cut out: the form of the document would break.
_STRUCTURE, _BRACED = re.compile(rb'["{}]'), re.compile(rb"\\u\{[0-9A-Fa-f]+\}")


@dataclass(frozen=True)
class _Form:
    """One canonical spelling of a value, and how much of it in a row is a find."""

    marker: bytes
    text: bytes
    least: int
    before: bytes = b""
    after: bytes = b""

    def grams(self) -> Iterator[tuple[bytes, int]]:
        for at in range(len(self.text) - _GRAM + 1):
            yield self.text[at : at + _GRAM], at

    def around(self, gram_at: int, view: bytes) -> bool:
        """Whether a part that counts, and covers the gram at ``gram_at``, stands in ``view``."""
        first, last = max(0, gram_at + _GRAM - self.least), min(gram_at, len(self.text) - self.least)
        return any(self.text[at : at + self.least] in view for at in range(first, last + 1))

    def runs(self, view: bytes) -> Iterator[tuple[int, int, int, int]]:
        """The parts that count: where they begin and end in ``view``, and in the value."""
        text, least = self.text, self.least
        for gram_at in range(0, len(text) - _GRAM + 1, least - _GRAM + 1):
            gram, at = text[gram_at : gram_at + _GRAM], 0
            while (at := view.find(gram, at)) >= 0:
                first, last, here, there = at, at + _GRAM, gram_at, gram_at + _GRAM
                while first > 0 and here > 0 and view[first - 1] == text[here - 1]:
                    first, here = first - 1, here - 1
                while last < len(view) and there < len(text) and view[last] == text[there]:
                    last, there = last + 1, there + 1
                if last - first >= least:
                    yield first, last, here, there
                at = last


@dataclass(frozen=True)
class _Short:
    """A value with too few letters and digits for the canonical view: its spellings as they are written."""

    marker: bytes
    spellings: tuple[bytes, ...]


class Redactor:
    """Finds the values of ``secrets`` (name -> value) in bytes and texts and replaces them.

    Args:
        secrets: without any, nothing is looked at.

    Raises:
        UsageError: a value is too short to be told from ordinary text.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._forms: list[_Form] = []
        self._short: list[_Short] = []
        markers = []
        for name, given in sorted(secrets.items()):
            value = given.strip()
            if len(value) < SHORTEST:
                raise UsageError(
                    f"the credential {name} has fewer than {SHORTEST} characters: "
                    "it could not be told from ordinary text",
                    todo=f"give {name} a value of {SHORTEST} characters or more",
                )
            marker = b"[redacted:" + re.sub(r"[^A-Za-z0-9_.-]", "_", name).encode() + b"]"
            markers.append(marker)
            for part in secret_parts(value):
                self._take(marker, part)
        #: What stands for a text in which a value is seen and cannot be cut out.
        self.withheld = b"".join(markers)
        self.empty = not markers
        self._grams: dict[bytes, list[tuple[_Form, int]]] = {}
        for form in self._forms:
            for gram, at in form.grams():
                self._grams.setdefault(gram, []).append((form, at))
        self._known = frozenset(self._grams)
        stride = min((form.least for form in self._forms), default=LEAST) - _GRAM + 1
        # One gram of every stride, many at a time.
        self._cut = struct.Struct(f"{_GRAM}s{stride - _GRAM}x" * _AT_ONCE)
        #: Letters and digits of the longest spelling.
        self.longest = max((len(form.text) for form in self._forms), default=0)
        #: No spelling of a value is expected to be longer than that.
        self._reach = 4 * self.longest + 512
        self._all_forms = BARRIER.join(form.text for form in self._forms)

    def _take(self, marker: bytes, value: str) -> None:
        raw = value.encode("utf-8", "surrogatepass")
        text = canonical(raw)
        if len(text) < LEAST:
            found = {one for spelling in encoded(value) for one in (spelling, _plain(spelling)) if one}
            self._short.append(_Short(marker, tuple(sorted(found, key=len, reverse=True))))
            return
        least = min(PART, max(LEAST, (len(text) + 1) // 2))
        before = re.match(rb"[^0-9A-Za-z]*", raw)
        after = re.search(rb"[^0-9A-Za-z]*\Z", raw)
        ends = (before[0] if before else b"", after[0] if after else b"")
        forms = {text: _Form(marker, text, least, *ends)}
        for spelling in transformed(raw):
            shape = canonical(spelling)
            forms.setdefault(shape, _Form(marker, shape, max(LEAST, -(-least * len(shape) // len(raw)))))
        self._forms += [form for form in forms.values() if len(form.text) >= form.least]

    def holds(self, data: bytes) -> bool:
        """Whether any value, or a part of one that counts, stands in ``data`` in any spelling."""
        if self.empty:
            return False
        if self._forms and any(self._seen(view) for view in views(data)):
            return True
        return bool(self._short) and self._holds_short(data)

    def holds_any(self, texts: list[bytes]) -> bool:
        """Whether ``holds`` is true of one of the texts: looked at in one go."""
        return self.holds(BARRIER.join(texts))

    def holds_pieces(self, body: bytes) -> bool:
        """Whether a value is cut over several members of the JSON documents of a body."""
        if self.empty:
            return False
        joined = pieces(body)
        if joined and self.holds_any(joined):
            return True
        if INDEXED.search(body) is None:
            return False
        # The pieces of several calls take turns.
        return self.holds_any([whole(leaves) for leaves in by_place(body.split(b"\n")).values() if len(leaves) > 1])

    def seen(self, view: bytes) -> bool:
        """Whether a part that counts of a value stands in a canonical view (``core.spellings``)."""
        return bool(self._forms) and self._seen(view)

    def seen_short(self, data: bytes) -> bool:
        """Whether a value too short for the canonical view stands in bytes, as it is written."""
        return bool(self._short) and self._holds_short(data)

    def begun(self, view: bytes, least: int) -> int:
        """How many of the last characters of a canonical view stand together in a value: it may be about to be spelt.

        Fewer than ``least`` count as none.
        """
        if not self._forms or view[-least:] not in self._all_forms or len(view) < least:
            return 0
        tail = view[-self.longest :]
        return next(size for size in range(len(tail), least - 1, -1) if tail[-size:] in self._all_forms)

    def begun_short(self, data: bytes, least: int) -> int:
        """The same of values too short for the canonical view, in bytes as they are written."""
        sizes = (
            size
            for short in self._short
            for one in short.spellings
            for size in range(min(len(one), len(data)), least - 1, -1)
            if data.endswith(one[:size])
        )
        return max(sizes, default=0)

    def places(self, data: bytes, *, closely: bool = False) -> list[tuple[int, int, bytes]]:
        """Where values stand in bytes that are no document: first byte, byte after the last, what stands for them.

        ``closely``: however far a value is strewn; takes about a microsecond a byte.
        """
        if closely:
            return _apart(list(self._in_stretch(data, document=False)))
        return self._spans(data, document=False)

    def redact(self, data: bytes) -> bytes:
        """``data`` with every value replaced; ``withheld`` where that cannot be done."""
        return self._replace(data) if self.holds(data) else data

    def redact_text(self, text: str) -> str:
        """``text`` with every value replaced."""
        if self.empty:
            return text
        data = text.encode("utf-8", "surrogatepass")
        return self._replace(data).decode("utf-8", "replace") if self.holds(data) else text

    def redact_stream(self, data: bytes) -> bytes:
        """A body of events, one JSON document a line, with every value replaced, also one cut over several events."""
        if self.empty or b"\n" not in data:
            return self.redact(data)
        lines = data.split(b"\n")
        changed = False
        for leaves in by_place(lines).values():
            if len(leaves) > 1 and self.holds(whole(leaves)):
                self._mend(lines, leaves)
                changed = True
        return self.redact(b"\n".join(lines) if changed else data)

    def redact_value(self, value: Any) -> Any:
        """A JSON value with every string in it redacted, keys too."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_text(key): self.redact_value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_value(one) for one in value]
        return value

    def _seen(self, view: bytes) -> bool:
        """Whether a part that counts stands in a canonical view: every so many characters, one gram is looked up."""
        known, cut = self._known, self._cut
        width = cut.size
        for at in range(0, len(view), width):
            grams = cut.unpack_from(view, at) if at + width <= len(view) else cut.unpack(view[at:].ljust(width))
            if known.isdisjoint(grams):
                continue
            around = view[max(0, at - self._reach) : at + width + self._reach]
            for gram in known.intersection(grams):
                if any(form.around(gram_at, around) for form, gram_at in self._grams[gram]):
                    return True
        return False

    def _holds_short(self, data: bytes) -> bool:
        looked = (data, _plain(data), units(data)[0] if b"%" in data or b"&#" in data or b"\\" in data else b"")
        return any(one in view for short in self._short for one in short.spellings for view in looked)

    def _replace(self, data: bytes) -> bytes:
        spans = self._spans(data)
        out, end = [], 0
        for first, last, marker in spans:
            out += [data[end:first], marker]
            end = last
        done = b"".join(out) + data[end:]
        return self.withheld if self.holds(done) else done

    def _spans(self, data: bytes, *, document: bool = True) -> list[tuple[int, int, bytes]]:
        """Where values stand in ``data``: first byte, byte after the last, marker; apart from each other, in order.

        Only stretches that hold a value are looked at closely. Where there are too many of them, none is.
        """
        found: list[tuple[int, int, bytes]] = []
        holding = 0
        for start in range(0, max(1, len(data)), _STRETCH):
            stretch = data[start : start + _STRETCH + self._reach]
            if not self.holds(stretch):
                continue
            holding += 1
            if holding > _MOST_STRETCHES:
                return []
            found += [
                (start + first, start + last, marker)
                for first, last, marker in self._in_stretch(stretch, document=document)
            ]
        return _apart(found)

    def _in_stretch(self, data: bytes, *, document: bool = True) -> Iterator[tuple[int, int, bytes]]:
        resolved, places = units(data)
        for short in self._short:
            for spelling in short.spellings:
                yield from ((at, at + len(spelling), short.marker) for at in _occurrences(data, spelling))
                for at in _occurrences(resolved, spelling):
                    yield places[at][0], places[at + len(spelling) - 1][1], short.marker
        where = [place for byte, place in zip(resolved, places, strict=True) if canonical(bytes((byte,)))]
        view = canonical(resolved)
        for form in self._forms:
            for begin, end, here, there in form.runs(view):
                first, last = where[begin][0], where[end - 1][1]
                if here == 0 and form.before and data[:first].endswith(form.before):
                    first -= len(form.before)
                if there == len(form.text) and form.after and data.startswith(form.after, last):
                    last += len(form.after)
                if not document or not _STRUCTURE.search(_BRACED.sub(b"", data[first:last])):
                    yield first, last, form.marker

    def _mend(self, lines: list[bytes], leaves: list[Piece]) -> None:
        """Rewrite the events whose pieces spell a value: the marker in the first of them, nothing in the others."""
        spans = self._spans(whole(leaves))
        at = 0
        for piece in leaves:
            raw = piece.text.encode("utf-8", "surrogatepass")
            kept, end = [], 0
            for first, last, marker in spans:
                if first < at + len(raw) and last > at:
                    kept += [raw[end : max(0, first - at)], marker if first >= at else b""]
                    end = min(len(raw), last - at)
            at += len(raw)
            if kept:
                piece.put(lines, b"".join([*kept, raw[end:]]).decode("utf-8", "replace"))
        if self.holds(whole(leaves)):
            for piece in leaves:
                piece.put(lines, "")


def _apart(found: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Places in order, those that overlap made one."""
    spans: list[tuple[int, int, bytes]] = []
    for first, last, marker in sorted(found, key=lambda span: (span[0], -span[1])):
        if spans and first < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]), spans[-1][2])
        else:
            spans.append((first, last, marker))
    return spans


def _plain(data: bytes) -> bytes:
    """``data`` without blanks."""
    return data.translate(None, b" \t\r\n\x00\x0b\x0c")


def _occurrences(data: bytes, spelling: bytes) -> Iterator[int]:
    at = data.find(spelling)
    while at >= 0:
        yield at
        at = data.find(spelling, at + len(spelling))
