"""Finds terminal control sequences in text, however the text was cut into chunks.

One grammar for everything that removes sequences (transcript, served copy, replay): ECMA-48 with xterm's control
strings. It differs from terminals where hiding would be possible: an unterminated control string ends at the end
of the line (DCS, which may hold pictures, excepted) and after ``MAX_STRING`` characters, so that a program cannot
make the rest of its log vanish by opening one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Characters after which an unterminated control string is given up and text is text again.
MAX_STRING = 1_048_576

_PARAMETERS = r"[0-?]{0,256}[ -/]{0,16}"
_C1 = re.compile(r"[\x80-\x9f]")
_CSI = rf"(?:\x1b\[|\x9b){_PARAMETERS}"
_ESC = r"\x1b[ -/]{0,16}"
#: CSI (malformed: without its final), other escape sequence, lone C1 control.
_SEQUENCE = re.compile(rf"{_CSI}[@-~]?|{_ESC}[0-~]?|[\x80-\x9f]")
_UNFINISHED = re.compile(rf"{_CSI}|{_ESC}")
_OPENER = re.compile(r"\x1b([\]PX^_])|([\x90\x98\x9d\x9e\x9f])")
# The same two for text without C1 controls: a fixed first character makes them several times as fast.
_SEQUENCE_7BIT = re.compile(rf"\x1b(?:\[{_PARAMETERS}[@-~]?|[ -/]{{0,16}}[0-~]?)")
_OPENER_7BIT = re.compile(r"\x1b([\]PX^_])")
_C1_AS_7BIT = {"\x90": "P", "\x98": "X", "\x9d": "]", "\x9e": "^", "\x9f": "_"}
#: What ends each control string. ESC and line ends stay in the text; the others belong to the string.
_STRING_END = {
    "]": re.compile(r"[\x07\n\r\x18\x1a\x1b\x9c]"),
    "P": re.compile(r"[\x18\x1a\x1b\x9c]"),
    "X": re.compile(r"[\n\r\x18\x1a\x1b\x9c]"),
    "^": re.compile(r"[\n\r\x18\x1a\x1b\x9c]"),
    "_": re.compile(r"[\n\r\x18\x1a\x1b\x9c]"),
}


class SequenceFilter:
    """Removes control sequences from text that arrives in chunks.

    The concatenated result does not depend on where the chunks were cut. Memory is bounded whatever arrives.

    Args:
        keep: what stands in the place of a whole escape sequence or lone C1 control; None removes all of them.
            Control strings (OSC, DCS, SOS, PM, APC) are always removed.
    """

    def __init__(self, keep: Callable[[str], str] | None = None) -> None:
        self._keep = keep
        self._carry = ""
        self._string = ""
        self._string_length = 0

    def feed(self, text: str) -> str:
        """The text that is left of the next chunk; a sequence that has not ended yet waits for the next call."""
        data = self._carry + text
        self._carry = ""
        has_c1 = not data.isascii() and _C1.search(data) is not None
        if not self._string and not has_c1 and "\x1b" not in data:
            return data
        openers = _OPENER if has_c1 else _OPENER_7BIT
        sequences = _SEQUENCE if has_c1 else _SEQUENCE_7BIT
        out: list[str] = []
        at = 0
        while at < len(data):
            if self._string:
                at = self._skip_string(data, at)
                continue
            opener = openers.search(data, at)
            if opener is None:
                cut = _unfinished_from(data, at)
                out.append(self._remove(data[at:cut], sequences))
                self._carry = data[cut:]
                break
            out.append(self._remove(data[at : opener.start()], sequences))
            self._string = opener[1] or _C1_AS_7BIT[opener[0]]
            self._string_length = 0
            at = opener.end()
        return "".join(out)

    def _skip_string(self, data: str, at: int) -> int:
        limit = at + MAX_STRING - self._string_length
        end = _STRING_END[self._string].search(data, at, limit)
        if end is not None:
            self._string = ""
            return end.start() if end[0] in "\x1b\n\r" else end.end()
        if limit <= len(data):
            self._string = ""
            return limit
        self._string_length += len(data) - at
        return len(data)

    def _remove(self, text: str, sequences: re.Pattern[str]) -> str:
        keep = self._keep
        if keep is None:
            return sequences.sub("", text)
        return sequences.sub(lambda match: keep(match[0]), text)


def _unfinished_from(data: str, start: int) -> int:
    """Where an unfinished sequence at the end of ``data`` begins; ``len(data)`` when there is none."""
    at = max(data.rfind("\x1b", start), data.rfind("\x9b", start))
    if at >= 0 and _UNFINISHED.fullmatch(data, at):
        return at
    return len(data)
