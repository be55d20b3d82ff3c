"""The lines of a raw recording, and the JSON documents among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

#: A longer line is none that a harness prints as an event.
MAX_LINE = 32_000_000

#: No limit and no duration of a step is so long.
_BEYOND = 1e12
_LOOKS_LIKE_AN_EVENT = re.compile(rb'\{\s*"[a-zA-Z_]+"\s*:')


def lines(raw: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a terminal's bytes, without their ends; one that is too long comes as nothing."""
    held: list[bytes] = []
    size = 0
    for chunk in raw:
        first, *rest = chunk.split(b"\n")
        size += len(first)
        if size <= MAX_LINE:
            held.append(first)
        for piece in rest:
            yield b"".join(held).rstrip(b"\r") if size <= MAX_LINE else b""
            held, size = [piece], len(piece)
    if size:
        yield b"".join(held).rstrip(b"\r") if size <= MAX_LINE else b""


class Events:
    """The JSON objects that stand on lines of their own; ``broken`` counts lines that look like one and are none."""

    def __init__(self, raw: Iterable[bytes]) -> None:
        self._raw = raw
        self.broken = 0
        self.seen = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in lines(self._raw):
            at = line.find(b"{")
            if at < 0:
                continue
            try:
                value = json.loads(line[at:])
            except (ValueError, RecursionError):
                # What stands before an event may be a control sequence of the terminal, never a text.
                self.broken += at == 0 and _LOOKS_LIKE_AN_EVENT.match(line) is not None
                continue
            if isinstance(value, dict):
                self.seen += 1
                yield value


def table(value: Any) -> dict[str, Any]:
    """``value`` where it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str | None:
    """``value`` where it is a text that is not empty; else None."""
    return value if isinstance(value, str) and value else None


def whole(value: Any) -> int | None:
    """``value`` where it is a whole number; else None."""
    return value if type(value) is int else None


def number_of(value: Any) -> float | None:
    """``value`` as a float where it is a number within bounds; else None."""
    within = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _BEYOND
    return float(value) if within else None


def seconds_of(milliseconds: Any) -> float | None:
    """A limit in milliseconds as seconds; None where it is no sensible one."""
    found = number_of(milliseconds)
    return found / 1000 if found is not None and found > 0 else None
