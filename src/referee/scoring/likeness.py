"""Whether a command gave the reported result again: two texts, line by line, without what differs on every run.

The rule, so that a stranger can apply it (``docs/methodology.md`` §5): both texts become plain lines (terminal
control removed), what ``CHANGING`` names becomes a placeholder, runs of white space become one space, empty lines go.
Then every line of the report must be a line of the output, as often as the report has it, in any order. A line that is
none may be an excerpt: part of a line of the output, ending where words end, and not shorter than ``EXCERPT_MINIMUM``;
of several lines, the first may have lost its front and the last its end (of two, ``CUT_MINIMUM`` characters are left).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from referee.core.transcript import PlainText

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_CLOCK = rf"\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?(?:\s?[AaPp][Mm])?{_ZONE}"

#: What differs on every run, in the order in which it is replaced: name of the placeholder, pattern.
CHANGING: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("uuid", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("address", re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")),
    ("temporary", re.compile(r"(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)/[^\s:'\"`)>\],;]+")),
    ("time", re.compile(rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[T ,]{{1,2}}{_CLOCK})?")),
    ("time", re.compile(rf"\b(?:{_DAYS},? )?\d{{1,2}}[ -/]{_MONTHS}[ -/]\d{{2,4}}(?:[ :]{_CLOCK})?")),
    ("time", re.compile(rf"\b{_DAYS} {_MONTHS} {{1,2}}\d{{1,2}} {_CLOCK}(?: [A-Z]{{2,5}})?(?: \d{{4}})?")),
    ("time", re.compile(rf"\b{_CLOCK}\b")),
    ("port", re.compile(r"(?<=localhost:)\d{1,5}\b|(?<=\d\.\d\.\d\.\d:)\d{1,5}\b|(?<=\[::\]:)\d{1,5}\b")),
    ("port", re.compile(r"(?<=0\.0\.1:)\d{1,5}\b|(?<=\[::1\]:)\d{1,5}\b")),
    ("port", re.compile(r"(?i)(?<=\bport )\d{1,5}\b|(?<=\bport=)\d{1,5}\b|(?<=\bport: )\d{1,5}\b")),
    (
        "pid",
        re.compile(r"(?i)(?<=\bpid )\d{1,7}\b|(?<=\bpid=)\d{1,7}\b|(?<=\bpid: )\d{1,7}\b|(?<=\bprocess )\d{1,7}\b"),
    ),
    (
        "duration",
        re.compile(
            r"(?<![\w.])(?:\d{1,4}h\s?)?(?:\d{1,4}m\s?)?\d{1,9}(?:\.\d{1,9})?\s?"
            r"(?:ns|us|µs|μs|ms|msec|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?)(?![A-Za-z/])"
        ),
    ),
)

_PLACEHOLDER = re.compile(r"<(?:uuid|address|temporary|time|port|pid|duration)>")
_ELLIPSIS = re.compile(
    r"[\s\[\](){}<>*.…-]*(?:(?:\.\.\.|…)|(?:output )?(?:truncated|omitted|cut|snipped?))[\s\[\](){}<>*.…-]*"
)
_STATUS = re.compile(
    r"\(?(?:exit(?:ed)?|exit[ -]?(?:code|status)|return code|rc|status)(?: with)?\s?[:=]?\s?0\)?\.?", re.IGNORECASE
)
#: Characters that an excerpt, and a line cut anywhere, must have at least.
EXCERPT_MINIMUM = 5
CUT_MINIMUM = 12
#: A report with more lines than this that are not lines of the output is another result.
MOST_EXCERPTS = 200
_LONGEST_MARK = 80

Likeness = Literal["same", "nothing_to_compare", "only_a_status", "different"]


@dataclass(frozen=True)
class Comparison:
    """The result of comparing; ``missing`` is the first reported line that the output does not have, normalised."""

    likeness: Likeness
    missing: str = ""


def compare(reported: str, output: bytes) -> Comparison:
    """Compare what a report says a command returned with what it printed when run again."""
    printed = normal_lines(output.decode("utf-8", "replace"))
    said = normal_lines(reported)
    lines = [line for line in said if not _is_ellipsis(line)]
    if not said and not printed:
        return Comparison("same")
    claims = [line for line in lines if not _STATUS.fullmatch(line)]
    if not claims:
        if lines:
            return Comparison("same" if not printed else "only_a_status")
        return Comparison("nothing_to_compare")
    if all(not _PLACEHOLDER.sub("", line).strip() for line in claims):
        return Comparison("nothing_to_compare")
    missing = _missing(claims, printed)
    return Comparison("same") if missing is None else Comparison("different", missing)


def normal_lines(text: str) -> list[str]:
    """The lines of a text without terminal control and without what differs on every run; empty ones left out."""
    plain = PlainText()
    rows = (plain.feed(text.encode("utf-8", "replace")) + plain.finish()).split("\n")
    return [line for row in rows if (line := _normal(row))]


def _normal(row: str) -> str:
    line = row
    for name, pattern in CHANGING:
        line = pattern.sub(f"<{name}>", line)
    return " ".join(line.split())


def _missing(claims: list[str], printed: list[str]) -> str | None:
    """The first claimed line that is neither a line of the output, as often as claimed, nor an excerpt of one."""
    there = Counter(printed)
    excerpts = 0
    for index, line in enumerate(claims):
        if there[line] > 0:
            there[line] -= 1
            continue
        excerpts += 1
        if excerpts > MOST_EXCERPTS or not (_is_excerpt(line, printed) or _is_cut(line, index, len(claims), printed)):
            return line
    return None


def _is_excerpt(line: str, printed: list[str]) -> bool:
    if len(line) < EXCERPT_MINIMUM:
        return False
    pattern = re.compile(rf"(?<!\w){re.escape(line)}(?!\w)")
    return any(line in one and pattern.search(one) for one in printed if len(one) > len(line))


def _is_cut(line: str, index: int, count: int, printed: list[str]) -> bool:
    """A first line may have lost its front, a last one its end."""
    if count == 1 or (count == 2 and len(line) < CUT_MINIMUM):  # noqa: PLR2004 — beside one line, a cut one must say more
        return False
    if index == 0:
        return any(one.endswith(line) for one in printed)
    return index == count - 1 and any(one.startswith(line) for one in printed)


def _is_ellipsis(line: str) -> bool:
    return len(line) <= _LONGEST_MARK and _ELLIPSIS.fullmatch(line) is not None
