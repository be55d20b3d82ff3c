"""How a report writes its numbers and codes: formatting only. The exact numbers stand in ``report.json``.

What is absent is an absence in words, never 0 or an empty cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from referee.scoring.bakeoff.figures import Bootstrapped, Interval, PassHat, Rate

NONE = "none"

#: What the arithmetic of an interval may stray by.
_HAIR = 1e-9

#: The level of the tests: which side of it a p-value is on must be seen (bake-off §12).
_ALPHA = 0.05

CHANNELS = {
    "hosted-free-tier": "hosted free tier",
    "router": "router",
    "hub-inference": "hub inference",
    "own-infrastructure": "own infrastructure",
    "local": "local",
    "agent-cli": "agent CLI",
    "metered-api": "metered API",
    "embedded": "embedded in the harness",
}
SOVEREIGNTY = {
    "eu-origin": "EU-origin",
    "eu-hostable-open-weight": "EU-hostable open weight",
    "chinese-open-weight": "Chinese open weight",
    "us-closed": "US closed",
    "none": "no model",
}
SELF_HOST = {"feasible": "feasible", "costly": "costly", "not-feasible": "not feasible"}
TOOL_CHANNELS = {"native": "native tool calls", "inlined": "schemas inlined in the prompt, envelope parsed back"}
REVIEWS = {
    "unreviewed": "not reviewed yet",
    "stands": "the gold stands",
    "wrong": "the gold is wrong",
    "amended": "not reviewed since the case was amended",
}
GROUPS = {
    "multi-call-ordering": "ordering",
    "hard-args": "hard arguments",
    "tool-selection": "tool selection",
    "simple-call": "simple call",
    "abstain": "abstain",
    "format": "no readable form",
}


def say(words: Mapping[str, str], code: str) -> str:
    """The words for a code; a code without words is shown as it is."""
    return words.get(code, code)


def count(number: int | None) -> str:
    """A whole number, in groups of three from 10 000 on."""
    if number is None:
        return "not recorded"
    return f"{number:,}".replace(",", "\u202f") if abs(number) >= 10_000 else str(number)  # noqa: PLR2004


def places(found: tuple[int, int] | None) -> str:
    """``2``, or ``1-3`` for a place that a tie cluster shares."""
    if found is None:
        return "unranked"
    first, last = found
    return str(first) if first == last else f"{first}-{last}"


def _points(share: float) -> str:
    """A share as percent with one decimal, none where it is 0."""
    text = f"{share * 100:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def percent(share: float | None) -> str:
    """``91.4 %``. What is not quite all, or not quite nothing, is never rounded to it."""
    if share is None:
        return NONE
    text = _points(share)
    if text == "100" and share < 1 - _HAIR:
        return "> 99.9 %"
    return "< 0.1 %" if text == "0" and share > _HAIR else f"{text} %"


def detectable(share: float) -> str:
    """The smallest difference of two rates that can be seen, rounded up: ``15.1 points``; more than all is none."""
    if share > 1:
        return "no difference"
    return f"{math.ceil(share * 1000 - _HAIR) / 10:.1f}".removesuffix(".0") + " points"


def interval(found: Interval | None) -> str:
    """``[77.5, 97]``, in percent."""
    return NONE if found is None else f"[{_points(found.low)}, {_points(found.high)}]"


def rate(found: Rate) -> str:
    """``91.4 % [77.5, 97]``, or why there is none."""
    if found.value is None:
        return found.why or NONE
    return f"{percent(found.value)} {interval(found.wilson)}"


def bootstrapped(found: Bootstrapped | None) -> str:
    """The second interval; a degenerate one is shown as such."""
    if found is None:
        return NONE
    shown = f"[{_points(found.low)}, {_points(found.high)}]"
    return f"{shown} degenerate" if found.degenerate else shown


def pass_hat(found: tuple[PassHat, ...], n: int) -> str:
    """The largest k with a value: ``k = 3: 80 %``; where fewer than the n cases of the rate have k attempts, of how
    many: ``k = 3: 80 % (12 of 35 cases)``.
    """
    known = [one for one in found if one.value is not None]
    if not known:
        return NONE
    last = known[-1]
    return f"k = {last.k}: {percent(last.value)}" + ("" if last.cases == n else f" ({last.cases} of {n} cases)")


def difference(points: float | None) -> str:
    """A difference of two rates: ``+3.2 points``."""
    if points is None:
        return NONE
    text = _points(points)
    return f"+{text} points" if points > 0 and text != "0" else f"{text} points"


def probability(p: float | None) -> str:
    """A p-value: three decimals, ``< 0.001`` below; where a test is degenerate there is none.

    Near 0.05 it has the decimals that show its side: none is ever rounded onto the threshold or across it.
    """
    if p is None:
        return "none (degenerate)"
    if p < 0.001:  # noqa: PLR2004
        return "< 0.001"
    places = 3 if p == _ALPHA else next((n for n in range(3, 17) if float(f"{p:.{n}f}") != _ALPHA), 17)
    return f"{p:.{places}f}"


def speed(value: float | None) -> str:
    """Tokens a second: ``41.5``."""
    return NONE if value is None else f"{value:.1f}"


def milliseconds(value: float | None) -> str:
    """``412 ms``."""
    return NONE if value is None else f"{value:.0f} ms"


def counts(found: Mapping[str, int]) -> str:
    """``timeout 3, http-503 1``, by name; nothing is an absence in words."""
    return ", ".join(f"{name} {count(found[name])}" for name in sorted(found) if found[name]) or NONE
