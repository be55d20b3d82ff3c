"""Words and figures as pages and terminals show them: pure formatting, no judgement (``scoring.render`` says scores).

A value that is absent is shown as an absence in words, never as 0 or an empty cell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from referee.core.spending import usd
from referee.scoring.render import number

#: How each code of the rules is said (methodology §5, §6, §9).
VERDICTS = {
    "runs": "runs",
    "runs_with_mocks": "runs with mocks",
    "could_not_verify": "could not verify",
    "not_yet_verified": "not yet verified",
}
OUTCOMES = {
    "pass_full": "pass, verified for real",
    "pass_mock": "pass, verified against mocks",
    "fail": "fail",
    "timeout": "timeout",
}
CORROBORATION = {
    "corroborated": "corroborated",
    "not_observed": "not observed",
    "contradicted": "contradicted",
}
COLD = {
    "reproducible": "reproducible",
    "not_reproducible": "not reproducible",
    "could_not_be_replayed": "could not be replayed",
}
#: The phases of an attempt, in their order: said while one lasts, and in the timeline afterwards.
PHASES = {
    "install": "installing the agent's program, where it is not installed yet",
    "key": "making the run's own model key",
    "machine": "starting the machine",
    "place": "placing the subject",
    "agent": "agent at work",
    "listening": "looking at what listens on ports",
    "quiet": "ending the agent's processes",
    "revoke": "deleting the run's model key",
    "report": "looking for the agent's report",
    "rerun": "running the reported command again",
    "challenge": "running the reported command with chosen inputs",
    "destroy": "destroying the machine",
    "control": "running the reported command on a fresh machine without the project",
    "network": "asking a fresh machine whether its network works",
    "seal": "sealing the evidence",
}
DEPTHS = {
    "tier1_real": "verified for real",
    "tier2_mock": "verified against mock services",
    "tier3_none": "not verified",
}
ROWS = {
    "install": "installed",
    "start": "started, or tests passed",
    "fixes": "error fixing",
    "depth": "verification depth",
}
KINDS = {
    "repository": "repository",
    "package": "package",
}

_DASHES = "\u2012\u2013\u2014\u2015"
#: A match begins where white space does: a search from within it again and again would never end with much of it.
_BETWEEN = re.compile(rf"(?:(?<!\s)\s*)?[{_DASHES}][{_DASHES}\s]*|(?<=\S)\s+--?-?\s+(?=\S)")
_PLAIN_SPACES = {"\n", "\t"}


def say(table: dict[str, str], code: str) -> str:
    """The words for ``code``; a code without words is shown as it is."""
    return table.get(code, code)


def undashed(text: str) -> str:
    """Quoted text by the display rule: an author's dash becomes a comma, or a full stop at the end.

    Methodology §11: words and order never change, and only the page changes: report, record and recording keep
    the dash. A dash is U+2012 to U+2015, or one to three hyphens between spaces; a hyphen inside a word, an option
    (``--version``) and a range of digits (``3-5``, typed with whatever dash) do not punctuate a sentence.
    """
    text = re.sub(rf"(?<=\d)[{_DASHES}](?=\d)", "-", text)
    text = re.sub(rf"^\s*[{_DASHES}][{_DASHES}\s]*", "", text)
    last = len(text.rstrip())

    def mark(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - 1) : match.start()]
        if match.end() >= last:  # nothing stands behind it
            return "" if before.endswith((".", "!", "?")) else "."
        return " " if before.endswith((",", ".", ";", ":", "!", "?")) else ", "

    return _BETWEEN.sub(mark, text)


def visible(text: str) -> str:
    """Text with every control and direction-changing character made visible as its escape.

    Line feeds and tabs stay. A page or terminal that shows the result cannot be steered by it.
    """
    return "".join(character if _shows(character) else _escape(character) for character in text)


def _shows(character: str) -> bool:
    if character in _PLAIN_SPACES:
        return True
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _escape(character: str) -> str:
    number = ord(character)
    if number <= 0xFF:  # noqa: PLR2004 — two hexadecimal digits hold it
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


def seconds(value: float | None) -> str:
    """A duration: ``0.42 s``, ``38.1 s``, ``12 min 5 s``, ``2 h 0 min 5 s``."""
    if value is None:
        return "not recorded"
    if value < 60:  # noqa: PLR2004 — a minute
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"  # noqa: PLR2004
    whole = round(value)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    head = f"{hours} h " if hours else ""
    return f"{head}{minutes} min {left} s" if left or hours else f"{minutes} min"


def size(value: int | None) -> str:
    """A size in bytes, kB, MB or GB (powers of ten); None is an absence in words."""
    if value is None:
        return "not recorded"
    amount = float(value)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 — powers of ten
            return f"{value:,} {unit}".replace(",", "\u202f") if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def binary(value: int) -> str:
    """A limit in MiB or GiB, exact where it is a whole number of them."""
    gib = 1024**3
    if value >= gib:
        return f"{number(value / gib)} GiB"
    return f"{number(value / 1024**2)} MiB"


def money(value: float) -> str:
    """US dollars, to the hundredth of a cent where it is that small; what is smaller still with two digits."""
    if value == 0 or value >= 0.01:  # noqa: PLR2004
        return f"{value:.2f} USD"
    return f"{value:.4f} USD" if value >= 0.0001 else usd(float(f"{value:.2g}"))  # noqa: PLR2004


def short(digest: str) -> str:
    """The last part of a digest, cut to twelve characters, for beside a number; the whole stands in the title."""
    return digest.rsplit(":", 1)[-1][:12]


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 attempt``, ``3 attempts``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def set_aside(number: int, reasons: Iterable[str], *, inside: bool) -> str:
    """What is said beside a figure of attempts that can never be published: that it rests on them, or leaves them out.

    ``rests on 1 attempt that can never be published (no security boundary)``
    """
    why = ", ".join(dict.fromkeys(reasons))
    return f"{'rests on' if inside else 'leaves out'} {count(number, 'attempt')} that can never be published ({why})"


def moment(at: str) -> str:
    """A record's time (UTC, ISO 8601) to the second: ``2026-11-30 06:05:39``."""
    return at[:19].replace("T", " ")
