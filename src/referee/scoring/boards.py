"""Spread, stability, and the board of agents (methodology §8, §10). Pure arithmetic; no formatting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from referee.errors import UsageError
from referee.scoring.bringup import Edition, Outcome

#: A set of three runs further apart than this, in percent of the middle one, is unstable; exactly this is stable.
UNSTABLE_ABOVE = 30


@dataclass(frozen=True)
class Spread:
    """How far the totals of one agent on one subject lie apart; ``percent`` None: unbounded."""

    percent: float | None
    unstable: bool


@dataclass(frozen=True)
class SubjectResult:
    """The totals of one agent's valid attempts at one subject, and whether the subject is under review.

    ``set_aside`` more were measured and can never be published; they are no part of ``totals``.
    """

    totals: tuple[float, ...]
    under_review: bool = False
    set_aside: int = 0

    @property
    def spread(self) -> Spread:
        """Their spread."""
        return spread(self.totals)

    @property
    def middle(self) -> float:
        """Their median: the result that counts."""
        return median(self.totals)

    @property
    def excluded(self) -> str | None:
        """Why the result does not enter the board score, though it is shown; None when it enters."""
        if not self.totals:
            return "no attempt that can be published" if self.set_aside else "no valid attempt"
        if self.under_review:
            return "the subject is under review"
        return "the runs lie too far apart" if self.spread.unstable else None


@dataclass(frozen=True)
class Row:
    """One agent on the board.

    ``score`` None: every result is excluded. ``passed`` of ``counted`` attempts is the pass rate; ``invalid`` attempts
    are listed and not counted, and so are the ``set_aside`` ones, which are valid and can never be published.
    ``regression``: an agent that must not pass; it stands behind all others and holds no rank.
    """

    agent: str
    score: float | None
    results: Mapping[str, SubjectResult]
    passed: int
    counted: int
    invalid: int
    set_aside: int = 0
    regression: bool = False

    @property
    def pass_rate(self) -> float | None:
        """Share of counted attempts that passed, 0 to 1; None without any."""
        return self.passed / self.counted if self.counted else None


@dataclass(frozen=True)
class Entry:
    """One attempt as the board needs it; ``outcome`` and ``total`` are None exactly when it is invalid.

    ``publishable`` is False where its own plan keeps it from ever being published (methodology §4): it was made
    without a security boundary, under another budget than its tier's, or under another spending cap of its key.
    ``regression``: its agent is a test of the rules, made not to pass, and says nothing on the subject. ``edition`` is
    the one it was planned under and is judged by; totals of two editions are no figures of one kind.
    """

    agent: str
    subject: str
    outcome: Outcome | None
    total: float | None
    publishable: bool = True
    regression: bool = False
    edition: Edition = 2

    @property
    def valid(self) -> bool:
        """Whether it is a measurement."""
        return self.outcome is not None and self.total is not None

    @property
    def counted(self) -> bool:
        """Whether figures of the board may rest on it."""
        return self.valid and self.publishable

    @property
    def passed(self) -> bool:
        """Whether it is a measurement that passed."""
        return self.outcome in {"pass_full", "pass_mock"}


def median(values: Sequence[float]) -> float:
    """The middle value; for an even count the mean of the two middle ones.

    Raises:
        UsageError: there is no value, or one is no finite number.
    """
    if not values:
        raise UsageError("the median of no values does not exist")
    if not all(math.isfinite(value) for value in values):
        raise UsageError("a median needs finite numbers")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(totals: Sequence[float]) -> Spread:
    """``(highest - lowest) / middle * 100``, in exactly this order of arithmetic (methodology §8).

    Middle 0 with some run above 0: unbounded, unstable. All 0: 0 and stable, a consistent failure. No total at
    all: 0, and nothing to be unstable.
    """
    if not totals:
        return Spread(0.0, unstable=False)
    highest, lowest, middle = max(totals), min(totals), median(totals)
    if middle == 0:
        return Spread(None, unstable=True) if highest > 0 else Spread(0.0, unstable=False)
    percent = (highest - lowest) / middle * 100
    return Spread(percent, unstable=percent > UNSTABLE_ABOVE)


def board_score(results: Mapping[str, SubjectResult]) -> float | None:
    """The median of the per-subject medians that are not excluded; None when all are (methodology §8)."""
    middles = [result.middle for result in results.values() if result.excluded is None]
    return median(middles) if middles else None


def under_review(entries: Sequence[Entry]) -> frozenset[str]:
    """Subjects that failed for all agents: marked automatically, until a person has checked (methodology §10).

    A subject counts as failed for an agent when the agent made a valid attempt and passed none. *(our reading)* One
    agent alone is no "all": at least two must have tried. Attempts that can never be published say nothing here, and
    so do agents that must not pass.

    Raises:
        UsageError: the attempts are of several editions.
    """
    _of_one_edition(entries)
    tried: dict[str, set[str]] = {}
    passed: set[str] = set()
    for entry in entries:
        if entry.counted and not entry.regression:
            tried.setdefault(entry.subject, set()).add(entry.agent)
            if entry.passed:
                passed.add(entry.subject)
    return frozenset(subject for subject, agents in tried.items() if len(agents) > 1 and subject not in passed)


def board(entries: Sequence[Entry], *, reviewed: frozenset[str] = frozenset()) -> list[Row]:
    """The board of one cycle: best first; agents without a score at the bottom, then agents that must not pass.

    Args:
        entries: every attempt of the cycle, invalid ones too; a cycle has one edition (methodology §3, §14).
        reviewed: subjects that a person has checked and released from review.

    Raises:
        UsageError: the attempts are of several editions.
    """
    review = under_review(entries) - reviewed
    rows = [_row(agent, [entry for entry in entries if entry.agent == agent], review) for agent in _agents(entries)]
    return sorted(rows, key=lambda row: (row.regression, row.score is None, -(row.score or 0.0), row.agent))


def by_edition(entries: Sequence[Entry]) -> dict[Edition, list[Entry]]:
    """The attempts apart by their edition, the newest first: each part has a board of its own (methodology §14)."""
    editions = sorted({entry.edition for entry in entries}, reverse=True)
    return {edition: [entry for entry in entries if entry.edition == edition] for edition in editions}


def _of_one_edition(entries: Sequence[Entry]) -> None:
    if len({entry.edition for entry in entries}) > 1:
        raise UsageError("attempts of several editions share no figure", todo="take each edition by itself")


def _agents(entries: Sequence[Entry]) -> list[str]:
    return sorted({entry.agent for entry in entries})


def _row(agent: str, entries: Sequence[Entry], review: frozenset[str]) -> Row:
    totals: dict[str, list[float]] = {}
    aside: Counter[str] = Counter()
    for entry in entries:
        made = totals.setdefault(entry.subject, [])
        if entry.total is not None and entry.counted:
            made.append(entry.total)
        elif entry.valid:
            aside[entry.subject] += 1
    results = {
        subject: SubjectResult(tuple(made), under_review=subject in review, set_aside=aside[subject])
        for subject, made in sorted(totals.items())
    }
    counted = [entry for entry in entries if entry.counted]
    return Row(
        agent=agent,
        score=board_score(results),
        results=results,
        passed=sum(1 for entry in counted if entry.passed),
        counted=len(counted),
        invalid=sum(1 for entry in entries if not entry.valid),
        set_aside=aside.total(),
        regression=any(entry.regression for entry in entries),
    )
