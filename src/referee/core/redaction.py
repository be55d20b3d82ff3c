"""Keeps credentials out of everything that is written: a search for each injected value, however it is spelt.

A server may echo a credential plain, escaped, encoded, broken over lines or cut into the pieces of a stream. Every
spelling that an answer can carry is looked for; what is found is replaced by ``[redacted:NAME]``. Where a value is
seen but its place cannot be told, the whole text is withheld: what is written never depends on our finding the place.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from referee.errors import UsageError

#: A shorter value cannot be told from ordinary text: looking for it would alter answers that never held it.
SHORTEST = 8
#: From this length on the first and the last characters alone are a find: servers echo keys shortened.
_LONG, _HEAD, _TAIL = 32, 20, 16
#: Parts of a value that is itself a JSON document count as credentials from this length on.
_PART = 16

_ENDS_OF_ESCAPES = frozenset({b"n", b"r", b"t", b"u", b"x"})
_BLANK = b" \t\r\n\x00\x0b\x0c"
#: Escapes of what a credential is made of, and of what is skipped; an umlaut's need not be resolved.
_ESCAPED = re.compile(rb"\\+(?:u(00[2-7][0-9A-Fa-f]|200[b-dB-D]|2060|[fF][eE][fF]{2}|[fF]{3}[dD])|x([2-7][0-9A-Fa-f]))")
_INVISIBLE = tuple(mark.encode() for mark in "\u200b\u200c\u200d\u2060\ufeff\ufffd")
#: Without one of these there is nothing to resolve (``\\u00fc``, an umlaut, is none of them).
_GATES = (*(b"\\u00%d" % digit for digit in range(2, 8)), b"\\x", b"\\u2", b"\\uf", b"\\uF")
#: One unit of a spelling, for telling its place: an escape, a percent code, what is skipped, or a byte.
_UNIT = re.compile(
    rb"\\+u([0-9A-Fa-f]{4})|\\+x([0-9A-Fa-f]{2})|%([0-9A-Fa-f]{2})|(\\+[nrt]|[ \t\r\n\x00\x0b\x0c]+|"
    + b"|".join(_INVISIBLE)
    + rb")|\\+(/)|(.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Secret:
    marker: bytes
    whole: tuple[bytes, ...]
    heads: tuple[bytes, ...]


class Redactor:
    """Finds the values of ``secrets`` (name -> value) in bytes and texts and replaces them.

    Raises:
        UsageError: a value is too short to be told from ordinary text.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = tuple(_spellings(name, value) for name, value in sorted(secrets.items()))
        needles = {needle for secret in self._secrets for needle in (*secret.whole, *secret.heads)}
        # A needle that holds another one is found by it.
        self._needles = tuple(sorted(one for one in needles if not any(o != one and o in one for o in needles)))
        # Resolving escapes can take a value's first character for the end of one; these are looked for as they stand.
        self._as_they_stand = tuple(one for one in self._needles if one[:1] in _ENDS_OF_ESCAPES or b"\\" in one)

    def holds(self, data: bytes) -> bool:
        """Whether any value stands in ``data`` in any spelling (pieces of a stream apart)."""
        needles = self._needles
        if not needles:
            return False
        view = _plain(data)
        for needle in needles:
            if needle in view:
                return True
        if view is not data:
            for needle in self._as_they_stand:
                if needle in data:
                    return True
        return b"%" in view and self._in_percent(view)

    def redact(self, data: bytes) -> bytes:
        """``data`` with every value replaced."""
        return self._replace(data) if self.holds(data) else data

    def redact_text(self, text: str) -> str:
        """``text`` with every value replaced."""
        if not self._needles:
            return text
        data = text.encode("utf-8", "surrogatepass")
        return self._replace(data).decode("utf-8", "replace") if self.holds(data) else text

    def redact_stream(self, data: bytes) -> bytes:
        """A body of events, one JSON document a line, with every value replaced, also one cut over several events."""
        if not self._needles or b"\n" not in data:
            return self.redact(data)
        lines = data.split(b"\n")
        changed = False
        for pieces in _leaves(lines).values():
            joined = "".join(piece.text for piece in pieces)
            if len(pieces) > 1 and self.holds(joined.encode("utf-8", "surrogatepass")):
                self._mend(lines, pieces)
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

    def _in_percent(self, view: bytes) -> bool:
        decoded = _plain(unquote_to_bytes(view))
        return any(needle in decoded for needle in self._needles)

    def _replace(self, data: bytes) -> bytes:
        out, end = [], 0
        for first, last, marker in self._spans(data):
            out += [data[end:first], marker]
            end = last
        done = b"".join(out) + data[end:]
        return b"".join(secret.marker for secret in self._secrets) if self.holds(done) else done

    def _spans(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Where values stand in ``data``: first byte, byte after the last, marker; apart from each other, in order."""
        units, places = _units(data)
        found = []
        for secret in self._secrets:
            for spelling in (*secret.whole, *secret.heads):
                found += [(at, at + len(spelling), secret.marker) for at in _occurrences(data, spelling)]
                found += [
                    (places[at][0], places[at + len(spelling) - 1][1], secret.marker)
                    for at in _occurrences(units, spelling)
                ]
        spans: list[tuple[int, int, bytes]] = []
        for first, last, marker in sorted(found, key=lambda span: (span[0], -span[1])):
            if spans and first < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]), spans[-1][2])
            else:
                spans.append((first, last, marker))
        return spans

    def _mend(self, lines: list[bytes], pieces: list[_Piece]) -> None:
        """Rewrite the events whose pieces spell a value: the marker in the first of them, nothing in the others."""
        spans = self._spans(_join(pieces))
        at = 0
        for piece in pieces:
            raw = piece.text.encode("utf-8", "surrogatepass")
            kept, end = [], 0
            for first, last, marker in spans:
                if first < at + len(raw) and last > at:
                    kept += [raw[end : max(0, first - at)], marker if first >= at else b""]
                    end = min(len(raw), last - at)
            at += len(raw)
            if kept:
                piece.put(lines, b"".join([*kept, raw[end:]]).decode("utf-8", "replace"))
        if self.holds(_join(pieces)):
            for piece in pieces:
                piece.put(lines, "")


@dataclass
class _Piece:
    """One string in one event: where it stands and what it says."""

    line: int
    prefix: bytes
    document: Any
    holder: Any
    key: Any
    text: str

    def put(self, lines: list[bytes], text: str) -> None:
        self.holder[self.key] = self.text = text
        lines[self.line] = self.prefix + json.dumps(self.document, ensure_ascii=False).encode("utf-8", "replace")


def _join(pieces: list[_Piece]) -> bytes:
    return "".join(piece.text for piece in pieces).encode("utf-8", "surrogatepass")


def _leaves(lines: list[bytes]) -> dict[str, list[_Piece]]:
    """The strings of all events, by where in an event they stand."""
    found: dict[str, list[_Piece]] = {}
    for number, line in enumerate(lines):
        start = line.find(b"{")
        if start < 0 or line[:start].strip() not in {b"", b"data:"}:
            continue
        try:
            document = json.loads(line[start:])
        except (ValueError, RecursionError):
            continue
        for path, holder, key, text in _strings(document):
            found.setdefault(path, []).append(_Piece(number, line[:start], document, holder, key, text))
    return found


def _strings(document: Any) -> Iterator[tuple[str, Any, Any, str]]:
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, holder = waiting.pop()
        if isinstance(holder, dict):
            path = f"{path}#{holder['index']}" if "index" in holder else path
            members: Any = holder.items()
        else:
            members = enumerate(holder)
        for key, value in members:
            if isinstance(value, str):
                yield f"{path}.{key}", holder, key, value
            elif isinstance(value, dict | list):
                waiting.append((f"{path}.{key}", value))


def _plain(data: bytes) -> bytes:
    """``data`` without what may be strewn into a value, and with escapes resolved (percent codes apart)."""
    view = data.translate(None, _BLANK)
    if b"\\" in view:
        if b"\\u" in view or b"\\x" in view:
            for gate in _GATES:
                if gate in view:
                    view = _ESCAPED.sub(_unescape, view)
                    break
        view = view.replace(b"\\n", b"").replace(b"\\r", b"").replace(b"\\t", b"").replace(b"\\/", b"/")
    if not view.isascii():
        for mark in _INVISIBLE:
            view = view.replace(mark, b"")
    return view


def _unescape(found: re.Match[bytes]) -> bytes:
    return _character(found.group(1)) if found.group(1) else bytes.fromhex(found.group(2).decode())


def _character(digits: bytes) -> bytes:
    return chr(int(digits, 16)).encode("utf-8", "surrogatepass")


def _units(data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """``data`` resolved, and for each byte of that where in ``data`` it comes from."""
    units = bytearray()
    places: list[tuple[int, int]] = []
    for found in _UNIT.finditer(data):
        wide, narrow, percent, skipped, slash, plain = found.groups()
        if skipped is not None:
            continue
        if wide is not None:
            what = _character(wide)
            if what in _INVISIBLE or what in _BLANK:
                continue
        else:
            code = narrow or percent
            what = bytes.fromhex(code.decode()) if code is not None else slash or plain
        units += what
        places += [found.span()] * len(what)
    return bytes(units), places


def _occurrences(data: bytes, spelling: bytes) -> Iterator[int]:
    at = data.find(spelling)
    while at >= 0:
        yield at
        at = data.find(spelling, at + len(spelling))


def _spellings(name: str, value: str) -> _Secret:
    value = value.strip()
    if len(value) < SHORTEST:
        raise UsageError(
            f"the credential {name} has fewer than {SHORTEST} characters: it could not be told from ordinary text",
            todo=f"give {name} a value of {SHORTEST} characters or more",
        )
    marker = b"[redacted:" + re.sub(r"[^A-Za-z0-9_.-]", "_", name).encode() + b"]"
    whole: dict[bytes, None] = {}
    heads: dict[bytes, None] = {}
    for part in (value, *_parts(value)):
        for spelling in _encoded(part):
            whole[spelling] = None
            whole[_plain(spelling)] = None
        if len(part) >= _LONG:
            heads[part[:_HEAD].encode()] = None
            heads[part[-_TAIL:].encode()] = None
    whole.pop(b"", None)
    # The longest first: what is replaced then never leaves an end of a longer spelling behind.
    return _Secret(marker, tuple(sorted(whole, key=len, reverse=True)), tuple(heads))


def _parts(value: str) -> Iterator[str]:
    """The long strings of a value that is itself a JSON document, as key files of services are."""
    if not value.startswith("{"):
        return
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return
    for _path, _holder, _key, text in _strings(document):
        if len(text) >= _PART:
            yield text


def _encoded(value: str) -> Iterator[bytes]:
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    escaped = json.dumps(value)[1:-1]
    yield escaped.encode()
    yield json.dumps(escaped)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield html.escape(value).encode("utf-8", "surrogatepass")
    yield quote(raw, safe="").encode()
    yield quote(raw).encode()
    yield raw[::-1]
    yield binascii.hexlify(raw)
    yield binascii.hexlify(raw).upper()
    for shift in range(3):
        # Of the characters at both ends some bits belong to the neighbours: these are left out.
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        shifted = bytes(shift) + raw
        yield base64.b64encode(shifted)[first:last]
        yield base64.urlsafe_b64encode(shifted)[first:last]
