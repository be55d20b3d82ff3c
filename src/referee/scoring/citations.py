"""Whether what a report cites was shown in its session: its command and what that returned.

What was not shown may still have been done: an agent may run a command without printing it. So this is a note for the
reader, and changes no status: the harness's own run of the command decides (methodology §5).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from referee.core.report import Report, Verification
from referee.scoring.likeness import normal_lines

#: A transcript longer than this is not looked through, bytes.
MOST_BYTES = 64_000_000
_LINES = 40
#: Shorter lines say nothing by standing somewhere.
_SHORTEST = 4
#: Space, the frames that terminal programs draw around text, and the marks of wrapped lines.
_NOT_TEXT = re.compile(r"[\s\u2500-\u259f\u23bf\u25cf\u2022|\\]+")
_IN_REPORT = re.compile(r"""verified_how["']:\{["']command["']:["'f]*$|["']returned["']:["'f]*$""")
_BEFORE = 60


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
    shown = _squeezed("\n".join(normal_lines(transcript.decode("utf-8", "replace"))))
    said = [line for line in normal_lines(claim.returned) if len(line) >= _SHORTEST][:_LINES]
    command = "\n".join(normal_lines(claim.command))
    return Cited(command=_shown(command, shown), returned=all(_shown(line, shown) for line in said))


def _shown(text: str, shown: str) -> bool:
    once = json.dumps(text)[1:-1]
    unicode = json.dumps(text, ensure_ascii=False)[1:-1]
    needles = {_squeezed(one) for one in (text, once, unicode, json.dumps(once)[1:-1])}
    return any(_outside_report(needle, shown) for needle in needles if needle)


def _outside_report(needle: str, shown: str) -> bool:
    at = shown.find(needle)
    while at >= 0:
        if not _IN_REPORT.search(shown[max(0, at - _BEFORE) : at]):
            return True
        at = shown.find(needle, at + 1)
    return False


def _squeezed(text: str) -> str:
    return _NOT_TEXT.sub("", text)
