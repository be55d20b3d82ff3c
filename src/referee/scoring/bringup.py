"""The score of one bring-up attempt, out of 100 (methodology §6). Pure, deterministic, no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from referee.core.report import Depth, Report
from referee.errors import ReportRejected, UsageError

Outcome = Literal["pass_full", "pass_mock", "fail", "timeout"]
Edition = Literal[1, 2]
Status = Literal["corroborated", "not_observed", "contradicted"]

#: The editions of the methodology that this installation can score by; the last one is the default.
EDITIONS: tuple[Edition, ...] = (1, 2)

INSTALLED_POINTS = 30
STARTED_POINTS = 30
FIXES_POINTS = 20
DEPTH_POINTS: dict[Depth, int] = {"tier1_real": 20, "tier2_mock": 12, "tier3_none": 0}


@dataclass(frozen=True)
class Claims:
    """What a report claims, as far as the score asks: facts of its fields, not of the world.

    Raises:
        ReportRejected: more errors fixed than encountered.
    """

    installed: bool
    started: bool
    encountered: int
    fixed: int
    depth: Depth

    def __post_init__(self) -> None:
        if self.encountered < 0 or self.fixed < 0:
            raise ReportRejected("a count of errors is below zero")
        if self.fixed > self.encountered:
            raise ReportRejected(f"{self.fixed} errors claimed fixed but only {self.encountered} encountered")


#: An agent that ended without a report claims nothing.
NO_CLAIMS = Claims(installed=False, started=False, encountered=0, fixed=0, depth="tier3_none")


@dataclass(frozen=True)
class Rows:
    """The four rows of a score, in points."""

    install: float
    start: float
    fixes: float
    depth: float

    @property
    def total(self) -> float:
        """Their sum, out of 100."""
        return self.install + self.start + self.fixes + self.depth


@dataclass(frozen=True)
class Score:
    """What an attempt earned under one edition. ``flagged``: a person must look at it (contradicted)."""

    edition: Edition
    rows: Rows
    outcome: Outcome
    flagged: bool = False

    @property
    def total(self) -> float:
        """Points out of 100."""
        return self.rows.total

    @property
    def passed(self) -> bool:
        """Whether the outcome is one of the two passes."""
        return self.outcome in {"pass_full", "pass_mock"}


def claims_of(report: Report | None) -> Claims:
    """The claims of a report; of no report: none."""
    if report is None:
        return NO_CLAIMS
    return Claims(
        installed=report.installed,
        started=report.started,
        encountered=report.encountered,
        fixed=report.fixed,
        depth=report.test_depth,
    )


def score(claims: Claims, *, timed_out: bool, edition: Edition, corroboration: Status | None = None) -> Score:
    """Score one complete attempt (methodology §6; edition 2: §5).

    Args:
        claims: what the report claims.
        timed_out: the time limit ended the attempt: every row is 0.
        edition: 1 scores the claim as it stands; 2 gives depth, and with it a pass, only where corroborated.
        corroboration: what became of the claim when the harness ran the command again; edition 1 ignores it.

    Raises:
        UsageError: no such edition.
    """
    if edition not in EDITIONS:
        raise UsageError(f"there is no edition {edition} to score by", todo="editions 1 and 2 exist")
    flagged = edition == 2 and corroboration == "contradicted"  # noqa: PLR2004 — the edition's number
    if timed_out:
        return Score(edition, Rows(0, 0, 0, 0), "timeout", flagged)
    install = INSTALLED_POINTS if claims.installed else 0
    runs = claims.installed and claims.started
    start = STARTED_POINTS if runs else 0
    believed = edition == 1 or corroboration == "corroborated"
    depth: Depth = claims.depth if runs and believed else "tier3_none"
    rows = Rows(install, start, _fixes(claims), DEPTH_POINTS[depth])
    return Score(edition, rows, _outcome(depth), flagged)


def _fixes(claims: Claims) -> float:
    """20 x fixed / encountered. *(our reading)* No errors earn it all only where it installed and started."""
    if claims.encountered == 0:
        return float(FIXES_POINTS) if claims.installed and claims.started else 0.0
    return FIXES_POINTS * claims.fixed / claims.encountered


def _outcome(depth: Depth) -> Outcome:
    """Depth presupposes start and start presupposes install, so the earned depth alone decides."""
    outcomes: dict[Depth, Outcome] = {"tier1_real": "pass_full", "tier2_mock": "pass_mock", "tier3_none": "fail"}
    return outcomes[depth]
