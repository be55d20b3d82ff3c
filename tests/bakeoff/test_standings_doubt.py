"""What is no shared wrong answer, what a board says when cases have left it, and the place that a tie shares."""

from __future__ import annotations

from typing import Any

from referee.core.answers import Reading
from referee.core.canonical import digest_of
from referee.core.cases import Call, Case, Message, Suite, Tool
from referee.scoring.toolcalls import judge
from tests.bakeoff.boards_by_hand import FIVE, row_of, summary_of, why_limited
from tests.bakeoff.tallies import Rows, case, review, suite

FIRST, *REST = FIVE


def said(text: str, **more: Any) -> str | None:
    """The digest under which a row keeps the wrong answer of a model that says this and calls nothing."""
    asked = Case(
        id="x",
        category="simple-call",
        language="en",
        messages=(Message(role="user", content="go"),),
        toolset="tools",
        expected_call=Call(name="go"),
    )
    grade = judge(asked, (Tool(name="go"),), Reading(text=text, **more), grading=2, sent={})
    assert grade.passed is False
    return None if grade.wrong is None else digest_of("wrong", grade.wrong)


def test_no_call_is_no_shared_wrong_answer_and_is_told_apart() -> None:
    silence = said("I would rather talk.")
    assert silence == said("Something else.") is not None
    field = [
        Rows("good").fill(FIVE, [1, 1, 1]),
        Rows("mute").add(FIRST, [0, 0, 0], wrong=silence).fill(REST, [1, 1, 1]),
        Rows("mute2").add(FIRST, [0, 0, 0], wrong=silence).fill(REST, [1, 1, 1]),
    ]
    summary = summary_of(field)
    assert summary.gold == ()
    assert summary.left_alone == ("a",)
    assert [row_of(summary, name).figures.rate.value for name in ("good", "mute", "mute2")] == [1.0, 0.8, 0.8]
    assert (summary.boards[0].cases, summary.boards[0].of, summary.boards[0].waiting) == (5, 5, ())
    assert summary_of(field[:2]).left_alone == ()


def test_an_answer_without_readable_form_is_no_shared_wrong_answer() -> None:
    assert said("", broken="empty", well_formed=False) is None
    field = [Rows(name).add(FIRST, [0, 0, 0], broken=3).fill(REST, [1, 1, 1]) for name in "ab"]
    assert (summary_of(field).gold, summary_of(field).left_alone) == ((), ())


def test_a_shared_wrong_call_stays_suspect_also_beside_those_that_gave_none() -> None:
    silence = said("no")
    field = [
        Rows(name).add(FIRST, [0, 0, 0], wrong=wrong).fill(REST, [1, 1, 1])
        for name, wrong in (("a", "w1"), ("b", "w1"), ("c", silence), ("d", silence))
    ]
    summary = summary_of(field)
    assert summary.gold[0].groups == (("w1", ("a", "b")),)
    assert summary.left_alone == ("a",)


def test_a_board_says_which_cases_left_it() -> None:
    field = [
        Rows(name).add(FIRST, [0, 0, 0], wrong="w1").add(REST[0], [0, 0, 0], wrong="w2").fill(REST[1:], [1, 1, 1])
        for name in "ab"
    ]
    [board] = summary_of(field, reviews=[review("b", stands=False)]).boards
    assert (board.cases, board.of, board.waiting, board.wrong) == (3, 5, ("a",), ("b",))
    [board] = summary_of(field, reviews=[review("a", stands=True), review("b", stands=True)]).boards
    assert (board.cases, board.of, board.waiting, board.wrong) == (5, 5, (), ())


def test_a_target_without_a_case_left_is_not_limited_by_its_lane_and_its_rate_is_known() -> None:
    field = [Rows(name).add(FIRST, [0, 0, 0], wrong="w1") for name in "ab"]
    summary = summary_of([*field, Rows("away").add(FIRST, [], infra=3)], suite([FIRST]))
    assert [(row.about.target, row.by_lane) for row in summary.lane_limited] == [
        ("a", False),
        ("away", True),
        ("b", False),
    ]
    assert why_limited(summary, "a") == {"gold-suspect"}
    rates = {row.about.target: row.with_flagged for row in summary.lane_limited}
    assert rates["away"] is None
    assert rates["a"] is not None
    assert (rates["a"].value, rates["a"].n) == (0.0, 1)
    assert (summary.boards[0].cases, summary.boards[0].of, summary.boards[0].waiting) == (0, 1, ("a",))


def test_a_tie_shares_its_places_and_is_ordered_by_rate_where_the_rules_leave_it_level() -> None:
    twenty: Suite = suite([case(f"c{at:02}") for at in range(20)])
    cases = twenty.cases

    def rows(name: str, passed: int, **more: Any) -> Rows:
        return Rows(name, **more).fill(cases[:passed], [1, 1, 1]).fill(cases[passed:], [0, 0, 0])

    summary = summary_of([rows("html", 14), rows("good", 18), rows("slow", 18), rows("away", 0)], twenty)
    [board] = summary.boards
    assert [(row.about.target, row.place, row.places) for row in board.rows] == [
        ("good", 1, (1, 3)),
        ("slow", 2, (1, 3)),
        ("html", 3, (1, 3)),
        ("away", 4, (4, 4)),
    ]
    summary = summary_of([rows("free", 14), rows("shut", 18, sovereignty="us-closed")], twenty)
    assert [row.about.target for row in summary.boards[0].rows] == ["free", "shut"]  # the rules' tie-breaks go first
