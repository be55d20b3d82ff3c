"""Scores, spread, boards and verdicts: the golden vectors, and the edges that they leave out."""

from __future__ import annotations

from typing import Literal

import pytest

from referee.errors import ReportRejected, UsageError
from referee.scoring.boards import Entry, SubjectResult, board, board_score, median, spread, under_review
from referee.scoring.bringup import NO_CLAIMS, Claims, Outcome, score
from referee.scoring.render import number, points, spread_text
from referee.scoring.verdicts import Attempt, Verdict, next_step, settled, verdict

FULL = Claims(installed=True, started=True, encountered=0, fixed=0, depth="tier1_real")


def test_thirds_are_not_rounded() -> None:
    claims = Claims(installed=True, started=True, encountered=3, fixed=1, depth="tier1_real")
    earned = score(claims, timed_out=False, edition=1)
    assert earned.rows.fixes == 20 / 3
    assert earned.total == 30 + 30 + 20 / 3 + 20


@pytest.mark.parametrize(
    ("status", "total", "outcome", "flagged"),
    [
        ("corroborated", 100, "pass_full", False),
        ("not_observed", 80, "fail", False),
        ("contradicted", 80, "fail", True),
        (None, 80, "fail", False),
    ],
)
def test_edition_2_gives_depth_only_to_a_corroborated_verification(
    status: Literal["corroborated", "not_observed", "contradicted"] | None, total: float, outcome: str, flagged: bool
) -> None:
    earned = score(FULL, timed_out=False, edition=2, corroboration=status)
    assert (earned.total, earned.outcome, earned.flagged) == (total, outcome, flagged)
    first = score(FULL, timed_out=False, edition=1, corroboration=status)
    assert (first.total, first.outcome, first.flagged) == (100, "pass_full", False)


def test_no_claims_earn_nothing() -> None:
    earned = score(NO_CLAIMS, timed_out=False, edition=2, corroboration="not_observed")
    assert (earned.total, earned.outcome) == (0, "fail")


def test_a_start_without_an_install_earns_nothing() -> None:
    claims = Claims(installed=False, started=True, encountered=0, fixed=0, depth="tier1_real")
    assert score(claims, timed_out=False, edition=1).total == 0


def test_more_fixed_than_encountered_is_rejected() -> None:
    with pytest.raises(ReportRejected, match="2 errors claimed fixed but only 1"):
        Claims(installed=True, started=True, encountered=1, fixed=2, depth="tier1_real")
    with pytest.raises(ReportRejected, match="below zero"):
        Claims(installed=True, started=True, encountered=-1, fixed=-1, depth="tier1_real")


def test_an_unknown_edition_is_refused() -> None:
    with pytest.raises(UsageError, match="no edition 3"):
        score(FULL, timed_out=False, edition=3)  # type: ignore[arg-type]


def test_spread_follows_the_order_of_arithmetic() -> None:
    assert spread([84.9, 100, 115]).percent == (115 - 84.9) / 100 * 100 == 30.099999999999994
    assert not spread([85, 100, 115]).unstable
    assert spread([0, 0, 0.1]).percent is None
    assert spread([0, 0, 0.1]).unstable
    assert (spread([0, 0, 0]).percent, spread([0, 0, 0]).unstable) == (0.0, False)
    assert (spread([50]).percent, spread([50]).unstable) == (0.0, False)
    assert (spread([40, 60]).percent, spread([40, 60]).unstable) == (40.0, True)
    assert (spread([]).percent, spread([]).unstable) == (0.0, False)


def test_the_median_of_an_even_count_is_the_mean_of_the_middle_two() -> None:
    assert median([100, 0, 80, 92]) == 86
    assert median([7]) == 7
    with pytest.raises(UsageError, match="no values"):
        median([])
    with pytest.raises(UsageError, match="finite"):
        median([float("nan")])


def test_the_board_score_leaves_out_the_unstable_and_the_reviewed() -> None:
    results = {
        "a": SubjectResult((100, 100, 92)),
        "b": SubjectResult((0, 0, 100)),
        "c": SubjectResult((0, 0, 0), under_review=True),
        "d": SubjectResult(()),
        "e": SubjectResult((80, 80, 80)),
    }
    assert board_score(results) == 90
    assert [results[name].excluded for name in "abcde"] == [
        None,
        "the runs lie too far apart",
        "the subject is under review",
        "no valid attempt",
        None,
    ]
    assert board_score({}) is None


def _entries(agent: str, subject: str, *tries: tuple[Outcome | None, float | None]) -> list[Entry]:
    return [Entry(agent, subject, outcome, total) for outcome, total in tries]


def test_the_board_ranks_and_removes_nobody() -> None:
    entries = [
        *_entries("good", "x", ("pass_full", 100), ("pass_full", 100), ("pass_full", 92)),
        *_entries("poor", "x", ("fail", 60), ("fail", 60), (None, None), ("timeout", 60)),
        *_entries("wild", "x", ("fail", 0), ("pass_full", 100), ("timeout", 0)),
        *_entries("absent", "x", (None, None)),
        *_entries("good", "hopeless", ("fail", 0)),
        *_entries("poor", "hopeless", ("fail", 30)),
    ]
    rows = board(entries)
    assert [(row.agent, row.score) for row in rows] == [("good", 100), ("poor", 60), ("absent", None), ("wild", None)]
    good, poor, absent, wild = rows
    assert (good.passed, good.counted, good.invalid, good.pass_rate) == (3, 4, 0, 0.75)
    assert (poor.passed, poor.counted, poor.invalid, poor.pass_rate) == (0, 4, 1, 0.0)
    assert (absent.counted, absent.invalid, absent.pass_rate) == (0, 1, None)
    assert wild.results["x"].spread.unstable
    assert good.results["hopeless"].excluded == "the subject is under review"
    assert under_review(entries) == {"hopeless"}
    released = board(entries, reviewed=frozenset({"hopeless"}))
    assert [(row.agent, row.score) for row in released[:2]] == [("good", 50), ("poor", 45)]


def test_one_agent_alone_puts_no_subject_under_review() -> None:
    assert under_review(_entries("a", "x", ("fail", 0), ("fail", 0))) == frozenset()
    assert under_review([*_entries("a", "x", ("fail", 0)), *_entries("b", "x", (None, None))]) == frozenset()


def test_an_empty_board_is_empty() -> None:
    assert board([]) == []


STD: Literal["standard"] = "standard"
TOP: Literal["stronger"] = "stronger"


@pytest.mark.parametrize(
    ("tries", "said", "then", "on_request"),
    [
        ([], "not_yet_verified", "standard", "standard"),
        ([("fail", STD, True)], "not_yet_verified", "standard", "standard"),
        ([("pass_full", STD, True)], "runs", "stop", "stop"),
        ([("fail", STD, True), ("pass_mock", STD, True)], "runs_with_mocks", "stop", "stop"),
        ([("fail", STD, True), ("timeout", STD, True)], "could_not_verify", "stop", "stronger"),
        ([("fail", STD, True), ("fail", STD, False)], "not_yet_verified", "standard", "standard"),
        ([("fail", STD, True), ("fail", STD, True), ("fail", TOP, True)], "could_not_verify", "stop", "stop"),
        ([("fail", STD, True), ("fail", STD, True), ("fail", TOP, False)], "could_not_verify", "stop", "stronger"),
        ([("fail", STD, True), ("fail", STD, True), ("pass_full", TOP, True)], "runs", "stop", "stop"),
        ([("fail", TOP, True)], "could_not_verify", "stop", "stop"),
        ([("pass_full", TOP, False), (None, STD, True)], "not_yet_verified", "standard", "standard"),
    ],
)
def test_adaptive_testing(
    tries: list[tuple[Outcome | None, Literal["standard", "stronger"], bool]], said: str, then: str, on_request: str
) -> None:
    attempts = [Attempt(*one) for one in tries]
    assert verdict(attempts) == said
    assert settled(attempts) is (verdict(attempts) is not Verdict.NOT_YET_VERIFIED)
    assert next_step(attempts) == then
    assert next_step(attempts, stronger_requested=True) == on_request


def test_numbers_are_rendered_apart_from_the_arithmetic() -> None:
    assert [number(value) for value in (0, 92.0, 86 + 2 / 3, 30.10, -0.0)] == ["0", "92", "86.67", "30.1", "0"]
    assert points(None) == "no score"
    assert spread_text(None, 3) == "unbounded"
    assert spread_text(40.0, 2) == "40 %"
    assert spread_text(0.0, 1) == "none"
