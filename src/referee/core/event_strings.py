"""The strings in a body of events, one JSON document a line: where each stands, and how another is put in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Events that number what they are about: several calls may take turns.
INDEXED = re.compile(rb'"index"\s*+:\s*+[1-9]')


@dataclass
class Piece:
    """One string in one event: where it stands and what it says."""

    line: int
    prefix: bytes
    document: Any
    holder: Any
    key: Any
    text: str

    def put(self, lines: list[bytes], text: str) -> None:
        """Let it say ``text``, in the document and in its line of the body."""
        self.holder[self.key] = self.text = text
        lines[self.line] = self.prefix + json.dumps(self.document, ensure_ascii=False).encode("utf-8", "replace")


def whole(pieces: list[Piece]) -> bytes:
    """What the pieces of one place say together."""
    return "".join(piece.text for piece in pieces).encode("utf-8", "surrogatepass")


def by_place(lines: list[bytes]) -> dict[str, list[Piece]]:
    """The strings of all events, by where in an event they stand; lines that are no document are passed over."""
    found: dict[str, list[Piece]] = {}
    for number, line in enumerate(lines):
        start = line.find(b"{")
        if start < 0 or line[:start].strip() not in {b"", b"data:"}:
            continue
        try:
            document = json.loads(line[start:])
        except (ValueError, RecursionError):
            continue
        for path, holder, key, text in strings(document):
            found.setdefault(path, []).append(Piece(number, line[:start], document, holder, key, text))
    return found


def strings(document: Any) -> Iterator[tuple[str, Any, Any, str]]:
    """Each string of an object or array: its path, what holds it, its key there, and what it says."""
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
