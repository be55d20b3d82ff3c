"""A verdict without its lane is incomplete, everywhere (bake-off §4); and which limitations are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from referee.publish.bakeoff.attempts import case_document, open_attempts
from referee.publish.bakeoff.blocks import Facts, Heading, Items, Notice, Para, Plot, Section, Table
from referee.publish.bakeoff.headline import limitations
from referee.publish.bakeoff.report import document
from referee.publish.bakeoff.who import every_about, label
from referee.runner.bakeoff.decide import review
from referee.runner.bakeoff.report import gather
from tests.bakeoff.report_workspace import TARGETS, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world")).write()


def test_no_target_is_named_without_its_lane(world: World) -> None:
    """Whatever a block says of a target, its lane stands beside the name: in the text itself, or just below it."""
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    whole = document(basis, [], 0)
    case = world.loaded.suite.by_id[world.case_ending("03")]
    lanes = {about.target: label(about) for about in every_about(basis.summary)}
    assert lanes["cli-agent"] == "cli-agent · agent CLI claude 2.1.0"
    with open_attempts(basis.shards, world.root) as (cases, _):
        rows = next(rows for name, rows, _ in cases if name == case.id)
    page = case_document(case, world.loaded.suite, rows, len(rows), lanes)
    seen = 0
    bare = re.compile(rf"(?<![\w-])({'|'.join(TARGETS)})(?![\w-])(?! · |\.toml)")
    for section in (*whole.sections, *page.sections):
        for text, below in said_in(section):
            seen += any(name in text for name in TARGETS)
            assert not bare.search(text) or " through " in below, (section.id, text)
    assert seen > 100


def test_the_line_on_gold_counts_each_case_by_what_became_of_it(world: World) -> None:
    def line() -> str:
        basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
        lines = [text for text, _ in said_in(limitations(basis.summary)) if text.startswith("Gold-suspect cases")]
        assert len(lines) == 1
        return lines[0]

    end = "1 of arms or cases that never rank. Rates are shown with and without them."
    wrong = "1 out of it, as a review found the gold wrong"
    assert line() == f"Gold-suspect cases: 8 out of the ranking until reviewed; {wrong}; {end}"
    suite, note = world.loaded.suite, {"note": "looked", "by": "me"}
    review(world.log, "board", "s1-hard-03", stands=True, **note, suite=suite)
    stands = "1 back in it, as a review let it stand"
    assert line() == f"Gold-suspect cases: 7 out of the ranking until reviewed; {stands}; {wrong}; {end}"
    review(world.log, "board", "s1-hard-01", stands=False, **note, suite=suite)
    wrong = wrong.replace("1", "2", 1)
    assert line() == f"Gold-suspect cases: 7 out of the ranking until reviewed; {stands}; {wrong}; {end}"


def said_in(section: Section) -> Iterator[tuple[str, str]]:
    """Every text of a section, with what stands below it."""
    for block in section.blocks:
        match block:
            case Table():
                yield from ((head, "") for head in block.heads)
                yield from ((one.text, one.below or "") for row in block.rows for one in row.cells)
            case Items() | Notice():
                yield from ((item, "") for item in block.items)
            case Facts():
                yield from ((value.text, value.below or "") for name, value in block.pairs)
            case Plot():
                yield from ((bar.label, "") for bar in block.bars)
            case Heading() | Para():
                yield block.text, ""
