"""The served copy of a recording, cut into parts that a page can load from disk.

Evidence stays what it is; this is presentation (methodology §11): no event is reordered, joined or left out. A page
opened from disk may not fetch files, so each part is a script that hands its text to the player.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from referee.core.served import served_cast

#: Characters of cast text in one part: what a browser takes without a pause.
PART_CHARACTERS = 1_500_000

#: Parts that the pages carry; what lies behind them is in the evidence file, and the page says so.
MAX_PARTS = 16


@dataclass(frozen=True)
class Part:
    """One stretch of a recording: its text as asciicast v2, and the second of the session at which it begins."""

    number: int
    begins: float
    text: str

    def script(self) -> str:
        """The part as a script; the text is ASCII and inside a JSON string, so nothing in it is ever code."""
        return f"refereeCast({self.number}, {json.dumps(self.text)});\n"


@dataclass(frozen=True)
class ServedCast:
    """What pages show of a recording. ``whole`` is false when later parts are left to the evidence file."""

    parts: tuple[Part, ...]
    whole: bool


def serve(cast: Iterable[bytes], *, part_characters: int = PART_CHARACTERS, max_parts: int = MAX_PARTS) -> ServedCast:
    """Clean the lines of an asciicast v2 and cut them into parts.

    Args:
        cast: the lines of the recording, the header first.
        part_characters: a part ends with the event that reaches this length.
        max_parts: parts after this many are left out.

    Raises:
        Finding: a line is no line of an asciicast v2, or asks for a terminal larger than is ever recorded.
    """
    lines = served_cast(cast)
    header = json.loads(next(lines))
    columns, rows = header["width"], header["height"]
    parts: list[Part] = []
    held: list[str] = []
    length, begins = 0, 0.0
    for raw in lines:
        when, code, data = json.loads(raw)
        if length >= part_characters:
            parts.append(Part(len(parts) + 1, begins, "".join(held)))
            held, length = [], 0
            if len(parts) == max_parts:
                return ServedCast(tuple(parts), whole=False)
        if not held:
            begins = when if parts else 0.0
            held.append(json.dumps({"version": 2, "width": columns, "height": rows}) + "\n")
        if code == "r":
            columns, rows = (int(side) for side in data.split("x"))
        line = json.dumps([round(when - begins, 6), code, data], ensure_ascii=False) + "\n"
        held.append(line)
        length += len(line)
    if held:
        parts.append(Part(len(parts) + 1, begins, "".join(held)))
    return ServedCast(tuple(parts), whole=True)
