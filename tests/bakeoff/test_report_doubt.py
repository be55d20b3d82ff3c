"""What page and Markdown say where gold is in doubt, told from summaries made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from referee.publish.bakeoff import beside, figures, grounds, headline
from referee.publish.bakeoff.blocks import Items, Notice, Section, Table
from referee.publish.bakeoff.loud import left, scope
from referee.scoring.bakeoff.gold import NO_ANSWER
from tests.bakeoff.boards_by_hand import FIVE, summary_of
from tests.bakeoff.tallies import Rows, review, suite

FIRST, *REST = FIVE


def tables(section: Section) -> dict[str, list[list[str]]]:
    found = [block for block in section.blocks if isinstance(block, Table)]
    return {table.caption: [[cell.text for cell in row.cells] for row in table.rows] for table in found}


def said(section: Section) -> list[str]:
    found = [block for block in section.blocks if isinstance(block, Items | Notice)]
    return [f"{block.lead} {item}".strip() for block in found for item in block.items]


def test_targets_without_a_case_left_stand_apart_from_lane_limited_ones() -> None:
    field = [Rows(name).add(FIRST, [0, 0, 0], wrong="w1") for name in "ab"]
    summary = summary_of([*field, Rows("away").add(FIRST, [], infra=3)], suite([FIRST]))
    found = tables(beside.lane_limited(summary))
    lane, other = found
    assert lane.startswith("Lane-limited.")
    assert other.startswith("Without a case that ranks. Nothing stands against their lanes")
    assert [row[0] for row in found[lane]] == ["away"]
    assert [row[0] for row in found[other]] == ["a", "b"]
    [loud] = [line for line in said(headline.boards(summary)) if "left the ranking" in line]
    assert loud == (
        "1 of 1 case left the ranking until it is reviewed; with it: a · own infrastructure 0 %, "
        "b · own infrastructure 0 %."
    )


def test_several_reasons_are_several_lines() -> None:
    rows = Rows("t").add(FIRST, [1], infra=2).add(REST[0], [], infra=3)
    summary = summary_of([rows], told={"t": {"stopped": "breaker", "missing": (("z", 1),)}})
    [limited] = summary.lane_limited
    table = next(block for block in beside.lane_limited(summary).blocks if isinstance(block, Table))
    reasons = table.rows[0].cells[1]
    assert len(reasons.several) == len(limited.reasons) == 4
    assert reasons.text == "; ".join(reasons.several)


def test_silence_is_named_without_suspicion_and_a_lone_review_stands_out() -> None:
    field = [Rows(name).add(FIRST, [0, 0, 0], wrong=NO_ANSWER).fill(REST, [1, 1, 1]) for name in "ab"]
    summary = summary_of(field, reviews=[review("c", stands=False)])
    section = grounds.gold(summary, frozenset({"c"}))
    lines = said(section)
    assert any("No call where one is expected" in line and line.endswith(": a") for line in lines)
    assert any("Out although no two targets agree" in line and line.endswith("alone: c.") for line in lines)
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    assert [row.cells[0].href for row in table.rows] == ["cases/c.html"]
    assert left(summary.boards[0], summary).startswith(
        "1 of 5 cases left the ranking because its gold was found wrong; with it: a · own infrastructure 80 %"
    )


def test_a_board_of_one_case_and_a_board_without_doubt() -> None:
    summary = summary_of([Rows("t").add(FIRST, [1, 1, 1])], suite([FIRST]))
    headings = [getattr(block, "text", "") for block in headline.boards(summary).blocks]
    assert "The whole suite: 1 case of the arm suite" in headings
    lacking = summary_of([Rows("t").add(FIRST, [1, 1])], suite([FIRST]))
    headings = [getattr(block, "text", "") for block in headline.boards(lacking).blocks]
    assert "The whole suite: no target that may rank has answers yet" in headings
    assert scope(replace(summary.boards[0], cases=0)) == "The whole suite: every answered case left the ranking"
    assert left(summary.boards[0], summary) == ""


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.04986, "0.0499"),
        (0.049996, "0.049996"),
        (0.0500004, "0.0500004"),
        (0.05049, "0.0505"),
        (0.05, "0.050"),
        (0.0494, "0.049"),
        (0.0506, "0.051"),
        (0.2, "0.200"),
        (0.0004, "< 0.001"),
    ],
)
def test_a_p_value_is_never_rounded_onto_the_threshold_or_across_it(p: float, shown: str) -> None:
    assert figures.probability(p) == shown
    assert shown.startswith("<") or (float(shown) <= 0.05) == (p <= 0.05)
