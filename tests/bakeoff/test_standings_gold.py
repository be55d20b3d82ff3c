"""Gold trust and registered comparisons, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.bakeoff import Comparison
from referee.core.cases import Call, Message, Tool
from referee.scoring.bakeoff.comparisons import HEADLINE
from referee.scoring.bakeoff.gold import reviewed_digest
from referee.scoring.bakeoff.summary import Rate, Standing, Summary
from tests.bakeoff.boards_by_hand import FIVE, row_of, summary_of
from tests.bakeoff.tallies import CLI, TRAPS, Rows, case, protocol, review, suite

FIRST, *REST = FIVE


def alike() -> list[Rows]:
    """Two targets give the same wrong answer to the first case, a third gives another."""
    return [
        Rows("a").add(FIRST, [0, 0, 0], wrong="w1").fill(REST, [1, 1, 1]),
        Rows("b").add(FIRST, [0, 0, 0], wrong="w1").fill(REST, [1, 1, 0]),
        Rows("c").add(FIRST, [0, 0, 0], wrong="w2").fill(REST, [1, 1, 1]),
    ]


def values(row: Standing) -> tuple[float | None, float | None, float | None]:
    def value(rate: Rate | None) -> float | None:
        return None if rate is None else rate.value

    return row.figures.rate.value, value(row.with_flagged), value(row.without_flagged)


def waiting(summary: Summary) -> bool:
    return "gold-suspect" in {note.code for note in summary.boards[0].caveats}


def test_two_that_fail_in_the_same_way_put_the_gold_in_doubt_and_both_rates_are_shown() -> None:
    summary = summary_of(alike())
    [gold] = summary.gold
    assert (gold.case, gold.suspect, gold.review, gold.ranks, gold.headline) == ("a", True, "unreviewed", False, True)
    assert gold.groups == (("w1", ("a", "b")),)
    assert values(row_of(summary, "a")) == (1.0, 0.8, 1.0)
    assert row_of(summary, "a").figures.rate.n == 4
    assert values(row_of(summary, "c")) == (1.0, 0.8, 1.0)  # it leaves the ranking for everyone
    assert waiting(summary)
    assert all(
        "simple-call" not in row.by_category or row.by_category["simple-call"].n == 0 for row in summary.breakdowns
    )


def test_a_review_that_stands_brings_the_case_back_and_both_rates_stay() -> None:
    summary = summary_of(alike(), reviews=[review("a", stands=True)])
    [gold] = summary.gold
    assert (gold.review, gold.ranks, gold.review_note) == ("stands", True, "looked")
    assert values(row_of(summary, "a")) == (0.8, 0.8, 1.0)
    assert not waiting(summary)


def test_a_wrong_gold_stays_out_and_both_rates_stay() -> None:
    summary = summary_of(alike(), reviews=[review("a", stands=False)])
    assert (summary.gold[0].review, summary.gold[0].ranks) == ("wrong", False)
    assert values(row_of(summary, "a")) == (1.0, 0.8, 1.0)
    assert not waiting(summary)


def test_the_latest_review_decides_whatever_the_order_in_which_they_are_given() -> None:
    early, late = review("a", stands=False), review("a", stands=True, at="2026-01-03T00:00:00+00:00")
    for reviews in ([early, late], [late, early]):
        assert summary_of(alike(), reviews=reviews).gold[0].review == "stands"
    other = review("a", stands=True).model_copy(update={"protocol": "another"})
    assert summary_of(alike(), reviews=[other]).gold[0].review == "unreviewed"


def test_a_review_says_nothing_of_a_case_that_was_amended_since() -> None:
    small = suite(FIVE)
    amended = FIRST.model_copy(update={"messages": (Message(role="user", content="stop"),)})
    now, before = reviewed_digest(small, FIRST), reviewed_digest(suite([amended, *REST]), amended)
    assert now != before
    for stands in (True, False):
        fresh = review("a", stands=stands).model_copy(update={"case_digest": now})
        stale = review("a", stands=not stands, at="2026-01-09T00:00:00Z").model_copy(update={"case_digest": before})
        verdict = "stands" if stands else "wrong"
        assert [gold.review for gold in summary_of(alike(), reviews=[fresh, stale]).gold] == [verdict]
        summary = summary_of(alike(), reviews=[stale])
        [gold] = summary.gold
        assert (gold.review, gold.ranks, gold.review_note) == ("amended", False, "looked")
        assert values(row_of(summary, "a")) == (1.0, 0.8, 1.0)
        assert waiting(summary)


def test_an_amended_case_whose_gold_was_wrong_ranks_again_and_its_old_review_stays_visible() -> None:
    stale = review("a", stands=False).model_copy(update={"case_digest": "reviewed-case:sha256:0"})
    summary = summary_of([Rows("t").add(FIRST, [0, 0, 0], wrong="w1").fill(REST, [1, 1, 1])], reviews=[stale])
    assert [(gold.suspect, gold.review, gold.ranks) for gold in summary.gold] == [(False, "amended", True)]
    assert row_of(summary, "t").figures.rate.n == 5
    assert not waiting(summary)


@pytest.mark.parametrize(
    "change",
    [
        {"toolsets": {"tools": (Tool(name="go", description="now"),)}},
        {"cases": (FIRST.model_copy(update={"expected_call": Call(name="go", arguments={"a": 1})}), *REST)},
    ],
)
def test_what_a_review_is_about_is_the_case_with_its_gold_and_its_tools(change: dict[str, Any]) -> None:
    small = suite(FIVE)
    other = small.model_copy(update=change)
    assert reviewed_digest(small, small.cases[0]) != reviewed_digest(other, other.cases[0])
    assert reviewed_digest(small, small.cases[1]) == reviewed_digest(small, REST[0])


def test_a_gold_that_a_person_finds_wrong_is_out_although_no_two_agreed() -> None:
    rows = Rows("t").add(FIRST, [0, 0, 0], wrong="w1").fill(REST, [1, 1, 1])
    summary = summary_of([rows], reviews=[review("a", stands=False)])
    assert (summary.gold[0].suspect, summary.gold[0].review, summary.gold[0].ranks) == (False, "wrong", False)
    assert values(row_of(summary, "t")) == (1.0, 0.8, 1.0)


def test_who_passed_once_or_differs_between_attempts_does_not_count() -> None:
    field = [
        Rows("a").add(FIRST, [0, 0, 0], wrong="w1").fill(REST, [1, 1, 1]),
        Rows("b").add(FIRST, [0, 0, 0]).fill(REST, [1, 1, 1]),  # no one wrong answer in all attempts
        Rows("c").add(FIRST, [0, 1, 0]).fill(REST, [1, 1, 1]),
    ]
    summary = summary_of(field)
    assert summary.gold == ()
    assert (row_of(summary, "a").with_flagged, row_of(summary, "a").without_flagged) == (None, None)


def test_a_lane_limited_target_counts_for_the_doubt() -> None:
    summary = summary_of(alike()[:2], told={"b": {"missing": (("z", 1),)}})
    assert summary.gold[0].suspect
    assert [row.about.target for row in summary.lane_limited] == ["b"]


def test_an_arm_has_its_own_doubts() -> None:
    traps = [case("t1", "abstain", arm="traps"), case("t2", "abstain", arm="traps")]
    field = [
        Rows(name).fill(FIVE, [1, 1, 1]).add(traps[0], [0, 0, 0], wrong="guess").add(traps[1], [1, 1, 1])
        for name in "ab"
    ]
    summary = summary_of(field, suite([*FIVE, *traps], TRAPS))
    [table] = summary.arms
    assert [(row.figures.rate.n, row.figures.rate.value) for row in table.rows] == [(1, 1.0), (1, 1.0)]
    assert [row.with_flagged.value for row in table.rows if row.with_flagged] == [0.5, 0.5]
    assert not summary.gold[0].headline
    assert row_of(summary, "a").with_flagged is None


def test_when_every_case_is_in_doubt_nobody_is_ranked_and_it_says_why() -> None:
    field = [Rows(name).add(FIRST, [0, 0, 0], wrong="w1") for name in "ab"]
    summary = summary_of(field, suite([FIRST]))
    assert summary.boards[0].rows == ()
    assert [{note.code for note in row.reasons} for row in summary.lane_limited] == [{"gold-suspect"}] * 2


# --- comparisons -----------------------------------------------------------------------------------------------------


def test_a_matched_pair_shows_the_effect_of_the_lane_by_case_and_arm() -> None:
    traps = [case(f"t{i:02}", "abstain", arm="traps") for i in range(20)]
    router = Rows("router", model="m").fill(FIVE[:3], [1, 1, 1]).add(FIVE[3], [0, 1, 1]).add(FIVE[4], [0, 0, 0])
    router.fill(traps, [0, 0, 0])
    cli = Rows("cli", CLI, model="m").fill(FIVE[:2], [1, 1, 1]).fill(FIVE[2:], [0, 0, 0])
    cli.fill(traps[:9], [1, 1, 1]).fill(traps[9:], [0, 0, 0])
    registered = Comparison(
        a="router", b="cli", why="one model", matched_lanes=True, registered_after_one_side_was_public=True
    )
    plan = protocol(["router", "cli"], comparisons=(registered,))
    [found] = summary_of([router, cli], suite([*FIVE, *traps], TRAPS), plan).comparisons
    assert found.about_a is not None
    assert found.about_b is not None
    assert (found.about_a.channel, found.about_b.channel) == ("own-infrastructure", "agent-cli")
    assert [scope.scope for scope in found.scopes] == [HEADLINE, "traps"]
    headline, on_traps = found.scopes
    overlap = headline.overlap
    assert (overlap.both, overlap.only_a, overlap.only_b, overlap.neither, overlap.unsteady) == (2, 1, 0, 1, 1)
    assert overlap.only_a_named == ("c",)
    assert headline.test.n == 5
    assert headline.test.too_small
    assert (on_traps.a.value, on_traps.b.value, on_traps.test.difference) == (0.0, 0.45, -0.45)
    assert on_traps.test.p == 2 / 2**9
    assert {note.code for note in found.caveats} == {"registered-after-one-side-was-public", "mixed-tool-channels"}


def test_equal_sides_are_degenerate() -> None:
    field = [Rows(name).fill(FIVE, [1, 0, 1]) for name in "ab"]
    plan = protocol(["a", "b"], comparisons=(Comparison(a="a", b="b", why="are they alike"),))
    [scope] = summary_of(field, plan=plan).comparisons[0].scopes
    assert scope.test.degenerate
    assert scope.test.p is None
    assert scope.overlap.unsteady == 5


def test_a_comparison_with_a_subset_or_a_limited_side_says_so_and_uses_shared_cases_only() -> None:
    whole = Rows("whole").fill(FIVE, [1, 1, 1])
    part = Rows("part", subset="quick").fill(FIVE[:2], [0, 0])
    comparison = Comparison(a="whole", b="part", why="parity", matched_lanes=True)
    plan = protocol(["whole"], comparisons=(comparison,))
    [found] = summary_of([whole, part], plan=plan).comparisons
    assert found.scopes[0].test.n == 2
    assert found.scopes[0].a.n == 2
    assert {note.code for note in found.caveats} == {"subset", "lane-limited", "other-models"}


def test_a_comparison_that_cannot_be_made_says_why() -> None:
    whole = Rows("whole").add(FIRST, [1, 1, 1]).fill(REST, [1, 1, 1])
    plan = protocol(["whole", "other"], comparisons=(Comparison(a="whole", b="other", why="parity"),))
    [found] = summary_of([whole], plan=plan).comparisons
    assert (found.scopes, found.about_b) == ((), None)
    assert found.why_absent == "no row of other is among the selected shards"
    apart = [Rows("whole").add(FIRST, [1, 1, 1]), Rows("other").add(REST[0], [1, 1, 1])]
    [found] = summary_of(apart, plan=plan).comparisons
    assert found.why_absent == "the two share no case with a valid attempt on both sides"
