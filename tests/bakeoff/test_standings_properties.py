"""What must hold for every bake-off: the order of inputs says nothing, clusters partition, no case is counted twice."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.core.bakeoff import Comparison
from referee.core.tallies import CaseTally, TargetTally
from referee.scoring.bakeoff import summarise
from tests.bakeoff.tallies import (
    CLI,
    NATIVE,
    ORDERING_V1,
    ORDERING_V2,
    TRAPS,
    Rows,
    case,
    decision,
    protocol,
    review,
    suite,
)

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

QUIET = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

CASES = [
    case("c0", "simple-call"),
    case("c1", "tool-selection"),
    case("c2", "hard-args"),
    case("c3", "abstain"),
    case("c4", "multi-call-ordering", language="de"),
    case("t0", "abstain", arm="traps"),
    case("v1", "multi-call-ordering", arm="ordering-v1", twin="v2"),
    case("v2", "multi-call-ordering", arm="ordering-v2"),
]
SUITE = suite(CASES, TRAPS, ORDERING_V2, ORDERING_V1)
NAMES = ("a", "b", "c", "d")

outcomes = st.lists(st.integers(0, 1), max_size=3)
cells = st.tuples(outcomes, st.sampled_from(["w1", "w2"]), st.booleans())
grids = st.lists(st.lists(cells, min_size=len(CASES), max_size=len(CASES)), min_size=1, max_size=4)


def tallied(grid: list[list[tuple[list[int], str, bool]]]) -> tuple[list[TargetTally], list[CaseTally]]:
    field = []
    for name, row in zip(NAMES, grid, strict=False):
        rows = Rows(name, CLI if name == "b" else NATIVE, sovereignty="us-closed" if name == "c" else "eu-origin")
        for one, (passed, wrong, broken) in zip(CASES, row, strict=True):
            failed = len(passed) - sum(passed)
            rows.add(
                one,
                passed,
                infra=3 - len(passed),
                wrong=wrong if passed and not sum(passed) else None,
                broken=1 if broken and failed else 0,
            )
        field.append(rows)
    return [rows.tally() for rows in field], [one for rows in field for one in rows.cases]


PLAN = protocol(NAMES, comparisons=(Comparison(a="a", b="b", why="x"),), bootstrap={"iterations": 100})
REVIEWS = [review("c0", stands=True), review("c1", stands=False), review("c0", stands=False, at="2025-01-01T00:00:00Z")]
DECISIONS = [decision(1), decision(2, amends=True)]


@settings(QUIET, max_examples=60)
@given(grids, st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_says_nothing(
    grid: list[list[tuple[list[int], str, bool]]], chance: random.Random
) -> None:
    targets, cases = tallied(grid)
    given_order = summarise(PLAN, SUITE, targets, cases, REVIEWS, DECISIONS, []).document()
    mixed = [list(part) for part in (targets, cases, REVIEWS, DECISIONS)]
    for part in mixed:
        chance.shuffle(part)
    shuffled_suite = SUITE.model_copy(update={"cases": tuple(chance.sample(CASES, len(CASES)))})
    again = summarise(PLAN, shuffled_suite, mixed[0], mixed[1], mixed[2], mixed[3], []).document()  # type: ignore[arg-type]
    assert again == given_order


@settings(QUIET, max_examples=60)
@given(grids)
def test_every_target_stands_in_exactly_one_place_and_clusters_partition(
    grid: list[list[tuple[list[int], str, bool]]],
) -> None:
    targets, cases = tallied(grid)
    summary = summarise(PLAN, SUITE, targets, cases, [], [], [])
    ranked = [row.about.target for board in summary.boards for row in board.rows]
    limited = [row.about.target for row in summary.lane_limited]
    assert sorted(ranked + limited) == sorted(tally.target.name for tally in targets)
    for board in summary.boards:
        members = [name for cluster in board.clusters for name in cluster.targets]
        assert members == [row.about.target for row in board.rows]
        assert [row.place for row in board.rows] == list(range(1, len(board.rows) + 1))
        for better, worse in zip(board.clusters, board.clusters[1:], strict=False):
            assert better.low > worse.high  # nothing of one cluster touches the next
        assert len(board.pairs) == len(board.rows) * (len(board.rows) - 1) // 2
        for pair in board.pairs:
            assert pair.p is None or (pair.p_holm is not None and pair.p <= pair.p_holm <= 1)


@settings(QUIET, max_examples=60)
@given(grids)
def test_every_attempt_is_counted_once(grid: list[list[tuple[list[int], str, bool]]]) -> None:
    targets, cases = tallied(grid)
    totals = summarise(PLAN, SUITE, targets, cases, [], [], []).totals
    assert totals.usable_rows == sum(one.valid + one.infra + one.refused for one in cases)
    assert totals.capability_rows + totals.additions_rows + totals.unknown == totals.usable_rows
    assert totals.graded == sum(one.valid for one in cases)
    failed = sum(one.valid - one.passes for one in cases)
    assert totals.failures.failed == failed == sum(totals.failures.by_group.values())
    assert sum(arm.failures.failed for arm in totals.by_arm) == failed
    assert totals.failures.by_group["format"] == sum(one.broken for one in cases)


@settings(QUIET, max_examples=40)
@given(grids)
def test_rates_are_rates_and_lie_in_their_intervals(grid: list[list[tuple[list[int], str, bool]]]) -> None:
    targets, cases = tallied(grid)
    summary = summarise(PLAN, SUITE, targets, cases, REVIEWS, [], [])
    figures = [row.figures for board in summary.boards for row in board.rows]
    figures += [row.figures for table in summary.arms for row in table.rows]
    for found in figures:
        rate = found.rate
        if rate.value is None:
            assert (rate.n, rate.wilson, found.bootstrap, found.format_rate) == (0, None, None, None)
            assert rate.why
            continue
        assert rate.wilson is not None
        assert found.bootstrap is not None
        assert 0 <= rate.wilson.low <= rate.value + 1e-12
        assert rate.value - 1e-12 <= rate.wilson.high <= 1
        assert -1e-12 <= found.bootstrap.low <= found.bootstrap.high <= 1 + 1e-12
        assert rate.passes <= rate.valid
        chances = [one.value for one in found.pass_hat if one.value is not None and one.cases == rate.n]
        assert chances == sorted(chances, reverse=True)
