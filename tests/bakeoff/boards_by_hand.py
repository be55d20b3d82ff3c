"""A summary of rows that a test fills by hand, and what to look up in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from referee.core.bakeoff import Planned, Protocol
from referee.core.cases import Suite
from referee.core.records import DecisionLogged, GoldReviewed
from referee.core.tallies import ShardFact
from referee.scoring.bakeoff import Summary, summarise
from referee.scoring.bakeoff.summary import Standing
from tests.bakeoff.tallies import Rows, case, protocol, suite

FIVE = [
    case("a", "simple-call"),
    case("b", "tool-selection", language="de"),
    case("c", "multi-call-ordering"),
    case("d", "abstain", language="de"),
    case("e", "hard-args"),
]


def summary_of(
    rows: Sequence[Rows],
    cases: Suite | None = None,
    plan: Protocol | None = None,
    *,
    told: dict[str, dict[str, Any]] | None = None,
    reviews: Sequence[GoldReviewed] = (),
    decisions: Sequence[DecisionLogged] = (),
    shards: Sequence[ShardFact] = (),
) -> Summary:
    """The summary of these rows; ``told`` overrides what a target's tally says, by name."""
    told = told or {}
    names = [one.target.name for one in rows]
    return summarise(
        plan or protocol([Planned(target=one.target.name, subset=one.subset) for one in rows] or ["nobody"]),
        cases or suite(FIVE),
        [one.tally(**told.get(name, {})) for one, name in zip(rows, names, strict=True)],
        [tally for one in rows for tally in one.cases],
        reviews,
        decisions,
        shards,
    )


def row_of(summary: Summary, name: str) -> Standing:
    return next(row for board in summary.boards for row in board.rows if row.about.target == name)


def why_limited(summary: Summary, name: str) -> set[str]:
    [limited] = [row for row in summary.lane_limited if row.about.target == name]
    assert name not in {row.about.target for board in summary.boards for row in board.rows}
    return {note.code for note in limited.reasons}
