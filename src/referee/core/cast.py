"""The asciicast v2 of a recording, derived from raw bytes and times; the same to the byte on every machine."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring

from referee.core.timing import Event, Header, Playback

_FLUSH_CHARACTERS = 262_144
#: What JSON allows in a string but some readers take for a control or the end of a line.
_LINE_ENDS_ELSEWHERE = re.compile(r"[\x80-\x9f\u2028\u2029]")


def cast(raw: Iterable[bytes], timing: Iterable[bytes]) -> Iterator[bytes]:
    """The asciicast v2 (NDJSON, UTF-8) of a recording, in chunks.

    Bytes that are no UTF-8 become U+FFFD; a character split over events stands in the later one, one that never
    ends becomes U+FFFD in an event at the time of the last one. There is no ``idle_time_limit`` (players apply it)
    and no environment but TERM. The exit status and the reason of the end have no code in asciicast v2.

    Raises:
        Finding: the timing file is not as it must be (``core.timing``).
    """
    playback = Playback(raw, timing)
    yield header_line(playback.header)
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    lines: list[str] = []
    held = 0
    for event, piece in playback:
        if event.kind == "o":
            text = decode(piece)
            if not text:
                continue
        elif event.kind in "rm":
            text = event.text
        else:
            continue
        lines.append(event_line(event, text))
        held += len(text) + 24
        if held >= _FLUSH_CHARACTERS:
            yield "".join(lines).encode()
            lines.clear()
            held = 0
    tail = decode(b"", final=True)
    if tail:
        lines.append(event_line(Event(playback.coverage.last_us, "o", 0, ""), tail))
    if lines:
        yield "".join(lines).encode()


def header_line(header: Header) -> bytes:
    """The first line of the cast: version, size, whole seconds of the start, TERM."""
    fields = {
        "version": 2,
        "width": header.columns,
        "height": header.rows,
        "timestamp": header.started_us // 1_000_000,
        "env": {"TERM": header.term},
    }
    return json.dumps(fields, separators=(", ", ": ")).encode() + b"\n"


def event_line(event: Event, text: str) -> str:
    """One line of the cast; the time is seconds with six decimals, made from whole microseconds."""
    seconds, micros = divmod(event.at, 1_000_000)
    return f'[{seconds}.{micros:06d}, "{event.kind}", {quoted(text)}]\n'


def quoted(text: str) -> str:
    """``text`` as a JSON string on one line: as it is, but for what JSON demands, C1 controls and U+2028, U+2029."""
    made = encode_basestring(text)
    if made.isascii():
        return made
    return _LINE_ENDS_ELSEWHERE.sub(lambda match: f"\\u{ord(match[0]):04x}", made)
