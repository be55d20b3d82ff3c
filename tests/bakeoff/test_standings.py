"""Boards by hand: rates, clusters, order, tiers, arms, subsets, and what stands beside the ranking."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from referee.core.cases import Suite
from referee.core.tallies import LatencyTally, ShardFact, TargetTally
from referee.errors import UsageError
from referee.scoring.bakeoff import summarise
from referee.scoring.bakeoff.figures import Interval
from referee.scoring.bakeoff.standings import clusters
from referee.scoring.bakeoff.statistics import cluster_bootstrap, wilson
from tests.bakeoff.boards_by_hand import FIVE, row_of, summary_of, why_limited
from tests.bakeoff.tallies import CLI, ORDERING_V1, ORDERING_V2, TRAPS, Rows, case, decision, protocol, suite

# --- rates -----------------------------------------------------------------------------------------------------------


def test_the_rate_is_the_mean_over_cases_not_over_attempts() -> None:
    rows = Rows("t").add(FIVE[0], [1, 1, 1]).add(FIVE[1], [0], infra=2).add(FIVE[2], [1, 0], infra=1)
    rows.add(FIVE[3], [], infra=3).add(FIVE[4], [1, 1, 0])
    found = row_of(summary_of([rows]), "t").figures
    expected = (1 + 0 + 1 / 2 + 2 / 3) / 4
    assert found.rate.n == 4  # the case whose attempts all failed by infrastructure is no case
    assert found.rate.value == pytest.approx(expected, abs=1e-15)
    assert found.rate.wilson == wilson(found.rate.value or 0, 4)
    assert (found.rate.valid, found.rate.passes, found.cases) == (9, 6, 5)
    assert [(one.k, one.cases) for one in found.pass_hat] == [(1, 4), (2, 3), (3, 2)]
    assert found.pass_hat[1].value == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert found.pass_hat[2].value == 0.5
    drawn = cluster_bootstrap([1.0, 0.0, 1 / 2, 2 / 3], iterations=200, seed=20260101)
    assert found.bootstrap == drawn


def test_failures_fall_into_exactly_one_group() -> None:
    rows = Rows("t").add(FIVE[0], [0, 0, 1], broken=1).add(FIVE[1], [0, 1, 1]).add(FIVE[2], [0, 0, 0], broken=1)
    rows.add(FIVE[3], [0, 0], infra=1).add(FIVE[4], [1, 1], refused=1)
    found = row_of(summary_of([rows]), "t").figures
    assert found.failures.by_group == {
        "multi-call-ordering": 2, "hard-args": 0, "tool-selection": 1, "simple-call": 1, "abstain": 2, "format": 2,
    }  # fmt: skip
    assert found.failures.failed == sum(found.failures.by_group.values()) == found.rate.valid - found.rate.passes
    assert (found.failures.infra, found.failures.refused) == (1, 1)
    assert found.format_rate == 11 / 13


def test_one_row_of_the_campaign_reads_97_percent_77_to_100() -> None:
    cases = [case(f"c{i:02}") for i in range(17)]
    rows = Rows("t").fill(cases[:16], [1, 1]).add(cases[16], [1, 0])
    found = row_of(summary_of([rows], suite(cases), protocol(["t"], repeats=2)), "t").figures.rate
    assert found.wilson is not None
    shown = [round(value * 100) for value in (found.value or 0, found.wilson.low, found.wilson.high)]
    assert shown == [97, 77, 100]


@pytest.mark.parametrize(
    ("n", "kept", "tier"),
    [
        (29, {}, "viability"),
        (30, {}, "viability+"),
        (199, {"private": "yes", "rotated": "yes"}, "viability+"),
        (200, {"private": "yes", "rotated": "yes"}, "gate"),
        (401, {"private": "yes", "rotated": "yes"}, "gate"),
        (400, {}, "viability+"),
        (400, {"private": "yes"}, "viability+"),
    ],
)
def test_the_tier_is_by_cases_and_a_gate_needs_cases_nobody_could_have_seen(
    n: int, kept: dict[str, str], tier: str
) -> None:
    cases = [case(f"c{i:03}") for i in range(n)]
    rows = Rows("t").fill(cases, [1])
    summary = summary_of([rows], suite(cases, **kept), protocol(["t"], repeats=1))
    assert row_of(summary, "t").tier.name == tier
    assert str(n) in row_of(summary, "t").tier.why


# --- clusters and their order ----------------------------------------------------------------------------------------


def test_a_cluster_is_what_hangs_together_and_touching_counts() -> None:
    spans = {"a": (0.8, 1.0), "b": (0.5, 0.8), "c": (0.3, 0.5), "d": (0.1, 0.29), "e": (0.0, 0.1)}
    assert clusters({name: Interval(*span) for name, span in spans.items()}) == [["c", "b", "a"], ["e", "d"]]


def test_all_21_of_the_campaign_are_one_cluster() -> None:
    cases = [case(f"c{i:02}") for i in range(45)]
    field = [Rows(f"t{i:02}").fill(cases[: 45 - i // 2], [1, 1, 1]) for i in range(21)]
    for i, rows in enumerate(field):
        rows.fill(cases[45 - i // 2 :], [0, 0, 0])
    board = summary_of(field, suite(cases)).boards[0]
    assert [len(cluster.targets) for cluster in board.clusters] == [21]
    assert [row.place for row in board.rows] == list(range(1, 22))
    assert {row.cluster for row in board.rows} == {1}


def test_far_apart_targets_are_two_clusters_and_the_test_separates_them() -> None:
    cases = [case(f"c{i:02}") for i in range(30)]
    field = [Rows("low").fill(cases, [0, 0, 0]), Rows("high").fill(cases, [1, 1, 1])]
    board = summary_of(field, suite(cases)).boards[0]
    assert [cluster.targets for cluster in board.clusters] == [("high",), ("low",)]
    [pair] = board.pairs
    assert (pair.a, pair.b, pair.difference, pair.separated, pair.same_cluster) == ("high", "low", 1.0, True, False)


def test_within_a_cluster_the_order_is_sovereignty_self_hosting_cost_latency_name() -> None:
    fast, slow = LatencyTally(9, 10.0, 20.0), LatencyTally(9, 11.0, 20.0)
    field = {
        "us": Rows("us", sovereignty="us-closed", self_host="feasible"),
        "no-model": Rows("no-model", sovereignty="none", self_host="feasible"),
        "cn": Rows("cn", sovereignty="chinese-open-weight"),
        "eu-hostable": Rows("eu-hostable", sovereignty="eu-hostable-open-weight"),
        "eu-slow": Rows("eu-slow", self_host="feasible"),
        "eu-fast": Rows("eu-fast", self_host="feasible"),
        "eu-unmeasured": Rows("eu-unmeasured", CLI, self_host="feasible"),
        "eu-costly": Rows("eu-costly", self_host="costly"),
        "eu-dear": Rows("eu-dear", self_host="feasible", metered=True),
        "eu-cheap": Rows("eu-cheap", self_host="feasible", metered=True),
        "eu-no-price": Rows("eu-no-price", self_host="feasible", metered=True),
    }
    for rows in field.values():
        rows.fill(FIVE, [1, 1, 0])
    told: dict[str, dict[str, Any]] = {
        "eu-slow": {"latency": slow},
        "eu-fast": {"latency": fast},
        "eu-unmeasured": {"latency": LatencyTally(9, 1.0, 1.0)},  # fast, and not admissible
        "eu-dear": {"spent_usd": 2.0},
        "eu-cheap": {"spent_usd": 1.0},
    }
    board = summary_of(list(field.values()), told=told).boards[0]
    assert [row.about.target for row in board.rows] == [
        "eu-fast", "eu-slow", "eu-unmeasured", "eu-cheap", "eu-dear", "eu-no-price", "eu-costly", "eu-hostable", "cn",
        "us", "no-model",
    ]  # fmt: skip


def test_holm_is_over_all_pairs_of_a_board_and_a_pair_without_differences_has_no_p() -> None:
    cases = [case(f"c{i:02}") for i in range(12)]
    field = [Rows("a").fill(cases, [1]), Rows("b").fill(cases, [1]), Rows("c").fill(cases, [0])]
    board = summary_of(field, suite(cases), protocol(["a", "b", "c"], repeats=1)).boards[0]
    pairs = {(pair.a, pair.b): pair for pair in board.pairs}
    assert (pairs["a", "b"].p, pairs["a", "b"].separated) == (None, False)
    assert pairs["a", "c"].p == 2 / 2**12
    assert pairs["a", "c"].p_holm == 3 * 2 / 2**12
    assert pairs["a", "c"].separated


def test_pairs_are_tested_on_the_cases_that_both_have() -> None:
    a = Rows("a").fill(FIVE[:4], [1, 1, 1]).add(FIVE[4], [], infra=3)
    b = Rows("b").fill(FIVE[1:], [0, 0, 0]).add(FIVE[0], [], infra=3)
    summary = summary_of([a, b])
    [pair] = summary.boards[0].pairs
    assert (pair.n, pair.difference) == (3, 1.0)
    assert "lost-cases" in {note.code for note in row_of(summary, "a").caveats}


def test_the_board_says_what_difference_it_can_detect() -> None:
    cases = [case(f"c{i:03}") for i in range(100)]
    field = [Rows("a").fill(cases, [1]), Rows("b").fill(cases[:50], [1]).fill(cases[50:], [0])]
    power = summary_of(field, suite(cases), protocol(["a", "b"], repeats=1)).boards[0].power
    assert power is not None
    assert power.reference_n_for_three_points == 969
    assert power.reference_mde_at_smallest == pytest.approx(0.0933863, abs=1e-6)
    assert power.observed_variance == pytest.approx(0.25 * 100 / 99)
    alone = summary_of([field[0]], suite(cases), protocol(["a"], repeats=1)).boards[0].power
    assert alone is not None
    assert (alone.observed_variance, alone.observed_why) == (
        None,
        "no pair of ranked targets shares two cases or more",
    )


# --- arms, subsets, objections ---------------------------------------------------------------------------------------


def with_arms() -> tuple[Suite, list[Any]]:
    extra = [
        *(case(f"trap{i}", "abstain", arm="traps") for i in range(4)),
        *(case(f"v1-{i}", "multi-call-ordering", arm="ordering-v1", twin=f"v2-{i}") for i in range(3)),
        *(case(f"v2-{i}", "multi-call-ordering", arm="ordering-v2", twin=f"v1-{i}") for i in range(3)),
    ]
    return suite([*FIVE, *extra], TRAPS, ORDERING_V2, ORDERING_V1), extra


def test_arms_are_apart_and_an_unranked_one_is_visible_without_places() -> None:
    cases, extra = with_arms()
    a = (
        Rows("a")
        .fill(FIVE, [1, 1, 1])
        .fill(extra[:4], [0, 0, 0])
        .fill(extra[4:7], [0, 0, 0])
        .fill(extra[7:], [1, 1, 1])
    )
    b = Rows("b").fill(FIVE, [1, 1, 1]).fill(extra, [1, 1, 1])
    summary = summary_of([a, b], cases)
    assert row_of(summary, "a").figures.rate.value == 1
    assert row_of(summary, "a").figures.rate.n == 5
    tables = {table.arm: table for table in summary.arms}
    assert [(row.about.target, row.place, row.figures.rate.value) for row in tables["traps"].rows] == [
        ("b", 1, 1.0),
        ("a", 2, 0.0),
    ]
    assert not tables["ordering-v1"].ranked
    assert [(row.about.target, row.place, row.cluster) for row in tables["ordering-v1"].rows] == [
        ("a", None, None),
        ("b", None, None),
    ]
    assert set(summary.breakdowns[0].by_category) == {one.category for one in FIVE}
    assert summary.breakdowns[0].by_category["multi-call-ordering"].n == 1  # the headline's only
    assert {language: rate.n for language, rate in summary.breakdowns[0].by_language.items()} == {"de": 2, "en": 3}
    totals = summary.totals
    assert (totals.physical_rows, totals.capability_rows, totals.additions_rows) == (90, 30, 60)


def test_the_confounded_arm_stands_beside_its_twin() -> None:
    cases, extra = with_arms()
    a = Rows("a").fill(FIVE, [1, 1, 1]).fill(extra[:4], [1, 1, 1])
    a.fill(extra[4:7], [0, 0, 0]).fill(extra[7:], [1, 1, 1])
    [twins] = summary_of([a], cases).twins
    assert (twins.arm_a, twins.arm_b, twins.ranked_a, twins.ranked_b, twins.pairs) == (
        "ordering-v2", "ordering-v1", True, False, 3,
    )  # fmt: skip
    [(about, scope)] = twins.rows
    assert about.target == "a"
    assert (scope.a.value, scope.b.value, scope.test.difference) == (1, 0, 1)
    assert (scope.overlap.only_a, scope.overlap.only_a_named) == (3, ("v2-0", "v2-1", "v2-2"))


def test_a_subset_has_a_board_of_its_own_and_is_marked() -> None:
    whole = Rows("whole").fill(FIVE, [1, 1, 1])
    part = Rows("part", subset="quick").fill(FIVE[:2], [1, 1])
    summary = summary_of([whole, part])
    assert [(board.subset, [row.about.target for row in board.rows]) for board in summary.boards] == [
        (None, ["whole"]),
        ("quick", ["part"]),
    ]
    assert row_of(summary, "part").about.subset == "quick"
    assert "subset" in {note.code for note in row_of(summary, "part").caveats}
    assert [one.k for one in row_of(summary, "part").figures.pass_hat] == [1, 2]
    assert summary.boards[1].cases == 2


def test_who_ran_only_an_arm_is_ranked_there_and_not_in_the_headline() -> None:
    cases, extra = with_arms()
    whole = Rows("whole").fill([*FIVE, *extra], [1, 1, 1])
    part = Rows("part", subset="traps-only").fill(extra[:4], [1, 0])
    summary = summary_of([whole, part], cases)
    assert why_limited(summary, "part") == {"no-valid-case"}
    [table] = [table for table in summary.arms if table.subset == "traps-only"]
    assert [(row.about.target, row.place, row.figures.rate.value) for row in table.rows] == [("part", 1, 0.5)]
    assert (table.arm, table.cases, table.not_shown) == ("traps", 4, ())


def test_a_case_that_the_linter_refuses_is_visible_and_never_ranked() -> None:
    cases = suite([*FIVE, case("odd", known_objection="its gold is outside its enum")])
    rows = Rows("t").fill(FIVE, [1, 1, 1]).fill([cases.by_id["odd"]], [0, 0, 0])
    summary = summary_of([rows], cases)
    assert row_of(summary, "t").figures.rate.value == 1
    assert [(one.case, one.sentence) for one in summary.objected] == [("odd", "its gold is outside its enum")]


# --- beside the ranking ----------------------------------------------------------------------------------------------


def test_latency_and_cost_verdicts_only_where_the_lane_admits_them() -> None:
    latency = LatencyTally(15, 12.0, 30.0)
    field = [Rows("own").fill(FIVE, [1, 1, 1]), Rows("cli", CLI).fill(FIVE, [1, 1, 1])]
    summary = summary_of(field, told={"own": {"latency": latency}, "cli": {"latency": latency}})
    own, cli = row_of(summary, "own").transport, row_of(summary, "cli").transport
    assert (own.latency_p50_ms, own.latency_p95_ms, own.latency_why, own.cost_admissible) == (12.0, 30.0, None, True)
    assert (cli.latency_p50_ms, cli.latency_n, cli.cost_admissible) == (None, None, False)
    assert cli.latency_why is not None
    assert "own infrastructure" in cli.latency_why


def test_every_row_carries_its_lane() -> None:
    rows = Rows("cli", CLI, quantisation="q4", sovereignty="us-closed").fill(FIVE, [1, 1, 1])
    summary = summary_of([rows], told={"cli": {"models_served": ("m-1",), "over_deadline": 6, "runs": ("r1", "r2")}})
    about = row_of(summary, "cli").about
    assert (about.lane, about.channel, about.tool_channel, about.sovereignty, about.quantisation) == (
        "openai-chat", "agent-cli", "inlined", "us-closed", "q4",
    )  # fmt: skip
    assert about.uncontrolled == CLI.uncontrolled
    assert {note.code for note in row_of(summary, "cli").caveats} >= {
        "sampling-not-pinned", "inlined-tools", "over-deadline", "several-runs", "served-under-another-name",
    }  # fmt: skip
    assert summary.breakdowns[0].about == about


def test_native_and_inlined_lanes_side_by_side_say_so() -> None:
    field = [Rows("own").fill(FIVE, [1, 1, 1]), Rows("cli", CLI).fill(FIVE, [1, 1, 1])]
    assert "mixed-tool-channels" in {note.code for note in summary_of(field).boards[0].caveats}
    assert summary_of(field[:1]).boards[0].caveats == ()


def test_decisions_are_numbered_and_those_that_amend_are_counted() -> None:
    logged = [decision(2, amends=True), decision(1), decision(3, late=True, amends=True)]
    other = decision(1).model_copy(update={"protocol": "another"})
    summary = summary_of([Rows("t").fill(FIVE, [1, 1, 1])], decisions=[*logged, other])
    assert [entry.number for entry in summary.decisions] == [1, 2, 3]
    assert (summary.amending, summary.logged_late) == (2, 1)


def test_spend_and_tokens_are_of_those_that_say_them() -> None:
    field = [Rows("a").fill(FIVE, [1, 1, 1]), Rows("b").fill(FIVE, [1, 1, 1])]
    totals = summary_of(field, told={"a": {"spent_usd": 0.5, "input_tokens": 10, "output_tokens": 5}}).totals
    assert (totals.spent_usd, totals.spent_known_of, totals.input_tokens, totals.tokens_known_of) == (0.5, 1, 10, 1)
    totals = summary_of(field).totals
    assert (totals.spent_usd, totals.spent_known_of, totals.input_tokens) == (None, 0, None)


def test_the_document_is_json_without_nan() -> None:
    field = [Rows("a").fill(FIVE, [1, 1, 1]), Rows("b").add(FIVE[0], [], infra=1)]
    shards = [ShardFact("results-b.jsonl", "2", 1, 5), ShardFact("results-a.jsonl", "1", 15, 0)]
    document = summary_of(field, shards=shards).document()
    text = json.dumps(document, allow_nan=False)
    assert document["schema"] == "referee.bakeoff-summary/1"
    assert json.loads(text) == document
    assert [shard["name"] for shard in document["shards"]] == ["results-a.jsonl", "results-b.jsonl"]
    assert "torn-shards" in {note["code"] for note in document["caveats"]}
    value = document["boards"][0]["rows"][0]["figures"]["rate"]["value"]
    assert value == 1
    assert math.isfinite(value)


def test_nothing_at_all_is_a_summary_too() -> None:
    summary = summary_of([])
    assert summary.boards[0].rows == ()
    assert summary.totals.physical_rows == 0
    assert summary.plan.not_run == ("nobody",)


def tallies(*rows: Rows, **more: Any) -> list[TargetTally]:
    return [one.tally(**more) for one in rows]


def test_what_does_not_belong_together_is_refused() -> None:
    a, b = Rows("a").fill(FIVE, [1, 1, 1]), Rows("b").fill(FIVE, [1, 1, 1])
    plan, cases = protocol(["a", "b"]), suite(FIVE)
    with pytest.raises(UsageError, match="two tallies of one target: a"):
        summarise(plan, cases, tallies(a, a), a.cases, [], [], [])
    with pytest.raises(UsageError, match="tallied twice"):
        summarise(plan, cases, tallies(a), [*a.cases, *a.cases], [], [], [])
    with pytest.raises(UsageError, match="without a tally: b"):
        summarise(plan, cases, tallies(a), b.cases, [], [], [])
    with pytest.raises(UsageError, match="2 different suites"):
        summarise(plan, cases, [*tallies(a), *tallies(b, suites=("other",))], [*a.cases, *b.cases], [], [], [])
    with pytest.raises(UsageError, match="about the suite other"):
        summarise(plan.model_copy(update={"suite": "other"}), cases, tallies(a), a.cases, [], [], [])


def test_rows_of_unknown_cases_are_counted_and_rank_nobody() -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1]).add(case("stranger"), [1, 1, 1])
    summary = summary_of([rows], told={"t": {"expected": 15, "unexpected": (("stranger", 1),)}})
    assert summary.totals.unknown == 3
    assert "unexpected" in why_limited(summary, "t")
    assert "unknown-cases" in {note.code for note in summary.caveats}


def test_who_only_renders_a_summary_loads_no_numpy() -> None:
    code = "import sys, referee.scoring.bakeoff.summary, referee.scoring.bakeoff; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
