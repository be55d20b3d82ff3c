"""What page and Markdown say where gold is in doubt, told from summaries made by hand."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from referee.adapters.catalog.workspace import Config, Workspace
from referee.cli.bakeoff_report import print_board
from referee.publish.bakeoff import beside, figures, grounds, headline
from referee.publish.bakeoff.blocks import Heading, Items, Notice, Plot, Section, Table
from referee.publish.bakeoff.loud import left, scope
from referee.scoring.bakeoff.gold import NO_ANSWER
from tests.bakeoff.boards_by_hand import FIVE, summary_of
from tests.bakeoff.tallies import TRAPS, Rows, case, review, suite

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


def test_heading_bars_and_rows_say_what_they_leave_out_and_the_rate_with_it(tmp_path: Path) -> None:
    doubted, wrong, *right = FIVE
    field = [
        Rows(name).add(doubted, [0, 0, 0], wrong="same").add(wrong, [0, 0, 0]).fill(right, [1, 1, 1]) for name in "ab"
    ]
    summary = summary_of(field, reviews=[review(wrong.id, stands=False)])
    blocks = headline.boards(summary).blocks
    [heading] = [block.text for block in blocks if isinstance(block, Heading)]
    out = "without 1 doubted case and 1 with a wrong gold"
    assert heading == f"The whole suite {out}: 3 of 5 cases of the arm suite"
    [plot] = [block for block in blocks if isinstance(block, Plot)]
    assert out in plot.caption
    assert [(bar.label, bar.value) for bar in plot.bars] == [
        ("a · own infrastructure", 1.0),
        ("a · own infrastructure, with all cases", pytest.approx(0.6)),
        ("b · own infrastructure", 1.0),
        ("b · own infrastructure, with all cases", pytest.approx(0.6)),
    ]
    [ranked] = [block for block in blocks if isinstance(block, Table) and block.caption.startswith("Ranked")]
    assert out in ranked.caption
    assert all((row.cells[5].below or "").startswith("with all cases 60 % [") for row in ranked.rows)
    shown = io.StringIO()
    print_board(Console(file=shown, width=300), summary, Workspace(tmp_path, Config()))
    assert f"{heading}\n" in shown.getvalue()
    assert f"referee bakeoff review p CASE -w {tmp_path} --stands" in shown.getvalue()
    assert shown.getvalue().count("60 % [23.1, 88.2], n = 5") == 2


def test_a_whole_board_has_one_bar_a_target() -> None:
    blocks = headline.boards(summary_of([Rows(name).fill(FIVE, [1, 1, 1]) for name in "ab"])).blocks
    [plot] = [block for block in blocks if isinstance(block, Plot)]
    assert len(plot.bars) == 2
    assert "without" not in plot.caption


def test_a_target_whose_cases_all_left_an_arm_is_told_in_a_whole_sentence(tmp_path: Path) -> None:
    lone = case("t0", "abstain", arm="traps")
    cases = suite([*FIVE, lone], TRAPS)
    field = [Rows(name).fill(FIVE, [1, 1, 1]).add(lone, [0, 0, 0], wrong="same") for name in "ab"]
    summary = summary_of(field, cases)
    lines = [line for line in said(beside.arms(summary)) if "a · own" in line]
    assert lines[0].endswith(
        "With all of them: a · own infrastructure 0 % [0, 79.3], n = 1; without any flagged one: no case is left"
    )
    shown = io.StringIO()
    print_board(Console(file=shown, width=300), summary, Workspace(tmp_path, Config()))
    told = "traps, never pooled: a · own infrastructure: no case is left; with all cases 0 % [0, 79.3], n = 1"
    assert told in shown.getvalue()


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
