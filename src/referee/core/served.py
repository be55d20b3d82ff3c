"""The served copy: what of a recording's text may reach a player or a terminal.

Allowed is what draws inside the screen; everything else goes: control strings (OSC, also those with titles, links
and the clipboard, DCS, APC, PM, SOS), C1 controls, window manipulation, media copy, whatever makes a terminal
answer or report the mouse, repetition counts beyond any screen, and bells. No drawn character is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from referee.core.cast import quoted
from referee.core.sequences import SequenceFilter
from referee.core.timing import MAX_COLUMNS, MAX_ROWS, clean_label, clean_term
from referee.errors import Finding

#: CSI without private mark whose parameters are plain numbers of at most four digits: cursor, erase, insert, delete,
#: scroll, tab stops, repeat, SGR (``m``, with sub-parameters), margins, save and restore.
_DRAWING = re.compile(r"\x1b\[(?:\d{0,4}(?:;\d{0,4}){0,3}[@A-JLMPSXZ`abdefgrsuK]|\d{0,4}T|[\d:;]{0,250}m)")
_PRIVATE_ERASE = re.compile(r"\x1b\[\?\d?[JK]")
_MODE = re.compile(r"\x1b\[(\??)(\d{1,4}(?:;\d{1,4}){0,15})([hl])")
_SOFT_RESET = "\x1b[!p"
#: Modes that only draw: insert, new line, cursor keys, origin, wrap, the cursor's blink and visibility, other screens.
_MODES = frozenset({"4", "20", "?1", "?6", "?7", "?12", "?25", "?47", "?1047", "?1048", "?1049"})
_SIMPLE = re.compile(r"\x1b(?:[78=>cDEHM]|[()*+][0-9A-Za-z]|#[3-68])")
_TIME = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_DROPPED = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\b\t\n\x0b\x0c\r\x0e\x0f\x1b"}
_TO_DROP = re.compile(r"[\x00-\x07\x10-\x1a\x1c-\x1f\x7f]")


class ServedText:
    """Makes the served form of terminal text that arrives in chunks; the result does not depend on the chunks."""

    def __init__(self) -> None:
        self._sequences = SequenceFilter(keep_drawing)

    def feed(self, text: str) -> str:
        """The served form of the next chunk."""
        # Sequences first: CAN, SUB and BEL end some of them.
        kept = self._sequences.feed(text)
        return kept.translate(_DROPPED) if _TO_DROP.search(kept) else kept


def keep_drawing(sequence: str) -> str:
    """``sequence`` when it only draws inside the screen; a mode list without its other modes; else nothing."""
    if _DRAWING.fullmatch(sequence) or _SIMPLE.fullmatch(sequence) or sequence == _SOFT_RESET:
        return sequence
    mode = _MODE.fullmatch(sequence)
    if mode is None:
        return sequence if _PRIVATE_ERASE.fullmatch(sequence) else ""
    kept = ";".join(number for number in mode[2].split(";") if mode[1] + number in _MODES)
    return f"\x1b[{mode[1]}{kept}{mode[3]}" if kept else ""


def served_cast(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The served copy of an asciicast v2, line by line: same times, same order, same resizes, drawn text unchanged.

    Only version, size, timestamp and TERM remain of the header; events other than ``o``, ``r`` and ``m``, and output
    events that are left without text, go.

    Args:
        lines: the lines of a cast as ``core.cast.cast`` makes them (after redaction).

    Raises:
        Finding: there is no line, one is no asciicast v2, or declares a terminal larger than is ever recorded.
    """
    text = ServedText()
    number = 0
    for number, line in enumerate(lines, start=1):
        value = _load(line, number)
        if number == 1:
            yield _header(value)
            continue
        time, code, data = _event(value, number)
        if code == "o":
            data = text.feed(data)
        elif code == "r":
            columns, _, rows = data.partition("x")
            _check_size(_whole(columns), _whole(rows), number)
        elif code == "m":
            data = clean_label(data)
        if data and code in ("o", "r", "m"):
            yield f'[{time}, "{code}", {quoted(data)}]\n'.encode("utf-8", "replace")
    if not number:
        raise Finding("The cast is empty.")


class _Decimal(str):
    """A JSON number as it was written, so that times stay the same to the digit."""

    __slots__ = ()


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _load(line: bytes, number: int) -> Any:
    try:
        return json.loads(line, parse_float=_Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        raise Finding(f"Line {number} of the cast is not JSON.") from exc


def _header(value: Any) -> bytes:
    if not isinstance(value, dict) or value.get("version") != 2:  # noqa: PLR2004 — asciicast v2
        raise Finding("The cast does not begin with an asciicast v2 header.")
    columns, rows = value.get("width"), value.get("height")
    _check_size(columns, rows, 1)
    fields: dict[str, Any] = {"version": 2, "width": columns, "height": rows}
    if type(value.get("timestamp")) is int:
        fields["timestamp"] = value["timestamp"]
    env = value.get("env")
    term = env.get("TERM") if isinstance(env, dict) else None
    if isinstance(term, str):
        fields["env"] = {"TERM": clean_term(term)}
    return json.dumps(fields, separators=(", ", ": ")).encode() + b"\n"


def _event(value: Any, number: int) -> tuple[str, str, str]:
    if isinstance(value, list) and len(value) == 3:  # noqa: PLR2004 — time, code, data
        time, code, data = value
        timed = type(time) in (int, _Decimal) and _TIME.fullmatch(str(time))
        if timed and isinstance(code, str) and isinstance(data, str):
            return str(time), code, data
    raise Finding(f"Line {number} of the cast is no event.")


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0  # noqa: PLR2004 — 99999 is no screen


def _check_size(columns: Any, rows: Any, number: int) -> None:
    if not (type(columns) is int and type(rows) is int and 1 <= columns <= MAX_COLUMNS and 1 <= rows <= MAX_ROWS):
        raise Finding(f"Line {number} of the cast declares a terminal larger than {MAX_COLUMNS}x{MAX_ROWS}.")
