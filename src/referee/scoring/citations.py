"""Whether what a report cites was shown in its session: its command and what that returned.

What was not shown may still have been done: an agent may run a command without printing it. So this is a note for the
reader, and changes no status: the harness's own run of the command decides (methodology §5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from referee.core.report import Report, Verification
from referee.core.transcript import PlainText

#: A transcript longer than this is not looked through, bytes.
MOST_BYTES = 32_000_000
_LINES = 40
#: Shorter lines say nothing by standing somewhere.
_SHORTEST = 4
#: Letters that a line of documentation has beside what a run prints, where it speaks of that.
_AROUND = 5
#: How an example of a command begins.
_PROMPT = re.compile(r"(?:[$%>]|>>>|\.\.\.|In \[\d+\]:) ")
#: The frames that terminal programs draw around text, and the marks of wrapped lines.
_NOT_TEXT = re.compile(r"[\u2500-\u259f\u23bf\u25cf\u2022]+")
_IN_REPORT = re.compile(r"""verified_how["']:\{["']command["']:["'f]*$|["']returned["']:["'f]*$""")
_BEFORE = 60
#: Text that is shown more often than this is shown, wherever.
_MOST_OFTEN = 10_000


@dataclass(frozen=True)
class Cited:
    """Whether the command, and every line of what it returned, was shown in the session."""

    command: bool
    returned: bool


def cited(report: Report, transcript: bytes) -> Cited | None:
    """Look up what a report cites; None where it cites no command.

    Wrapped lines, terminal control and the escapes of JSON (agents that print events) are seen through. Where the
    report itself was shown while it was written does not count.
    """
    claim = report.verified_how
    if not isinstance(claim, Verification) or len(transcript) > MOST_BYTES:
        return None
    shown = _squeezed(_plain(transcript.decode("utf-8", "replace")))
    said = [line for line in _plain(claim.returned).split("\n") if len(_squeezed(line)) >= _SHORTEST][:_LINES]
    return Cited(command=_shown(claim.command, shown), returned=all(_shown(line, shown) for line in said))


def quoted(claim: Verification, transcript: bytes, promised: Iterable[tuple[str, str, str]]) -> bool:
    """Whether all that a command is said to have returned stands in the project's documentation, and none of it was
    shown in the session but as a part of that.

    Args:
        claim: what the report says was verified.
        transcript: the session's.
        promised: lines of the documentation, each between the lines before and behind it.
    """
    if len(transcript) > MOST_BYTES:
        return False
    said = [" ".join(line.split()) for line in _plain(claim.returned).split("\n") if len(_squeezed(line)) >= _SHORTEST]
    every = list(promised)
    if not said or len(said) > _LINES or not all(any(line in middle for _, middle, _ in every) for line in said):
        return False
    shown = _squeezed(_plain(transcript.decode("utf-8", "replace")))
    for before, lines, after in _blocks(every):
        # Lines between two commands look alike in the documentation and in a session that follows it.
        if before and after and not (_PROMPT.match(before) and _PROMPT.match(after)):
            shown = shown.replace(_squeezed(before + "".join(lines) + after), "\n")
    for _, line, _ in every:
        longest = max((_letters(one) for one in said if one in line), default=None)
        if longest is not None and _letters(line) - longest >= _AROUND:  # prose around it: no output of a run
            shown = shown.replace(_squeezed(line), "\n")
    return not any(_shown(line, shown) for line in said)


def _blocks(every: Iterable[tuple[str, str, str]]) -> list[tuple[str, list[str], str]]:
    """Lines of the documentation that follow each other, taken together, with what stands before and behind them.

    A run shows the lines of its output in that order too, but not what stands around them.
    """
    blocks: list[tuple[str, list[str], str]] = []
    for before, line, after in every:
        if blocks and blocks[-1][2] == line and blocks[-1][1][-1] == before:
            blocks[-1] = (blocks[-1][0], [*blocks[-1][1], line], after)
        else:
            blocks.append((before, [line], after))
    return blocks


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)


def _plain(text: str) -> str:
    """A text without terminal control; a transcript has none, a test's or a report's may."""
    if "\x1b" not in text and "\b" not in text:
        return text
    plain = PlainText()
    return plain.feed(text.encode("utf-8", "replace")) + plain.finish()


def _shown(text: str, shown: str) -> bool:
    once = json.dumps(text)[1:-1]
    unicode = json.dumps(text, ensure_ascii=False)[1:-1]
    needles = {_squeezed(one) for one in (text, once, unicode, json.dumps(once)[1:-1])}
    return any(_outside_report(needle, shown) for needle in needles if needle)


def _outside_report(needle: str, shown: str) -> bool:
    at = shown.find(needle)
    for _ in range(_MOST_OFTEN):
        if at < 0:
            return False
        if not _IN_REPORT.search(shown[max(0, at - _BEFORE) : at]):
            return True
        at = shown.find(needle, at + 1)
    return True


def _squeezed(text: str) -> str:
    """A text without space, frames and backslashes: wrapped and escaped alike."""
    squeezed = "".join(text.split()).replace("|", "").replace("\\", "")
    return squeezed if squeezed.isascii() else _NOT_TEXT.sub("", squeezed)
