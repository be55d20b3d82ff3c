"""What keeps a target from the board, whatever its rate: coverage, provenance, breaker, lane."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.bakeoff import Planned
from tests.bakeoff.boards_by_hand import FIVE, row_of, summary_of, why_limited
from tests.bakeoff.tallies import Rows, case, protocol, suite


def test_17_of_78_expected_rows_are_never_ranked_however_good() -> None:
    cases = [case(f"c{i:02}") for i in range(39)]
    rows = Rows("t").fill(cases[:8], [1, 1]).add(cases[8], [1])
    missing = tuple((one.id, k) for one in cases[8:] for k in (1, 2))[1:]
    told = {"t": {"expected": 78, "missing": missing}}
    summary = summary_of([rows], suite(cases), protocol(["t"], repeats=2), told=told)
    assert why_limited(summary, "t") == {"missing"}
    [limited] = summary.lane_limited
    assert limited.coverage.missing == 61
    assert "61 of 78 expected rows are missing" in limited.reasons[0].sentence
    assert (limited.headline_valid, limited.headline_passes) == (17, 17)
    assert summary.boards[0].rows == ()
    assert summary.boards[0].power is None


def test_69_times_402_are_never_counted_as_failures() -> None:
    cases = [case(f"c{i:02}") for i in range(26)]
    rows = Rows("t").fill(cases[:3], [1, 1, 1])
    for one in cases[3:]:
        rows.add(one, [], infra=3)
    told = {"t": {"infra": {"payment_required": 69}, "stopped": "account: HTTP 402"}}
    summary = summary_of([rows], suite(cases), told=told)
    assert why_limited(summary, "t") == {"infra", "account"}
    [limited] = summary.lane_limited
    assert limited.failures.failed == 0
    assert limited.failures.infra == 69
    assert limited.transport.infra_share == 69 / 78
    assert summary.totals.failures.failed == 0


def test_exactly_half_infrastructure_is_not_more_than_half() -> None:
    rows = Rows("t")
    for one in FIVE[:4]:
        rows.add(one, [1], infra=1)
    plan = protocol(["t"], repeats=2)
    assert row_of(summary_of([rows], suite(FIVE[:4]), plan), "t").figures.rate.n == 4
    rows = Rows("t").add(FIVE[0], [1], infra=1).add(FIVE[1], [], infra=2)
    assert why_limited(summary_of([rows], suite(FIVE[:2]), plan), "t") == {"infra"}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"missing": (("a", 1),)}, "missing"),
        ({"expected": 16}, "missing"),
        ({"unexpected": (("z", 1),)}, "unexpected"),
        ({"expected": 14}, "unexpected"),
        ({"missing": (("a", 1),), "unexpected": (("z", 1),)}, "missing"),  # the right number of the wrong rows
        ({"stopped": "breaker: 8 in a row"}, "breaker"),
        ({"stopped": "config: 401"}, "config"),
        ({"protocols": ("p1", "p2")}, "mixed-provenance"),
        ({"suites": ("s1", "s2")}, "mixed-provenance"),
        ({"targets": ("t1", "t2")}, "mixed-provenance"),
        ({"surfaces": ("l1", "l2")}, "mixed-provenance"),
        ({"models_served": ("m-2025", "m-2026")}, "mixed-provenance"),
        ({"provenances": ("endpoint=one", "endpoint=two")}, "mixed-provenance"),
        ({"provenances": ()}, "unknown-provenance"),
        ({"provenances": ("", "endpoint=one")}, "unknown-provenance"),
        ({"protocols": ()}, "unknown-provenance"),
        ({"targets": ("unknown",)}, "unknown-provenance"),
    ],
)
def test_what_keeps_a_target_from_the_board(told: dict[str, Any], code: str) -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1])
    assert code in why_limited(summary_of([rows], told={"t": told}), "t")


def test_a_target_that_the_breaker_stopped_is_not_ranked_by_going_on() -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1])
    summary = summary_of([rows], told={"t": {"ended": ("breaker", "complete"), "runs": ("r1", "r2")}})
    assert why_limited(summary, "t") == {"breaker"}
    [limited] = summary.lane_limited
    assert "stopped-before" in {note.code for note in limited.caveats}


@pytest.mark.parametrize("ended", ["account", "config"])
def test_a_target_whose_account_or_credential_was_set_right_ranks_and_says_so(ended: str) -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1])
    row = row_of(summary_of([rows], told={"t": {"ended": (ended, "complete"), "runs": ("r1", "r2")}}), "t")
    assert row.place == 1
    assert [note.sentence for note in row.caveats if note.code == "stopped-before"] == [
        f"an earlier run of it was stopped ({ended}); what was missing was run later"
    ]


@pytest.mark.parametrize(
    "stopped", ["interrupted: Ctrl-C", "budget: 3.00 left", "its runner was killed before the end"]
)
def test_a_complete_target_is_ranked_however_its_last_run_ended(stopped: str) -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1])
    assert row_of(summary_of([rows], told={"t": {"stopped": stopped}}), "t").place == 1


def test_a_target_that_the_protocol_does_not_name_or_that_ran_another_part_is_not_ranked() -> None:
    rows = Rows("t").fill(FIVE, [1, 1, 1])
    assert "unregistered" in why_limited(summary_of([rows], plan=protocol(["other"])), "t")
    plan = protocol([Planned(target="t", subset="quick")])
    assert why_limited(summary_of([rows], plan=plan), "t") == {"unregistered-subset"}
    assert summary_of([rows], plan=protocol(["t", "other"])).plan.not_run == ("other",)


def test_another_list_than_the_protocol_lays_down_is_not_ranked() -> None:
    rows = Rows("t").fill(FIVE, [1, 1])
    assert why_limited(summary_of([rows], plan=protocol(["t"], repeats=3)), "t") == {"other-list"}
    plan = protocol(["t"], repeats=1, arm_repeats={"suite": 2})
    assert row_of(summary_of([rows], plan=plan), "t").place == 1


def test_a_target_without_a_valid_attempt_is_not_ranked() -> None:
    rows = Rows("t")
    for one in FIVE:
        rows.add(one, [], refused=3)
    assert why_limited(summary_of([rows]), "t") == {"no-valid-case"}
