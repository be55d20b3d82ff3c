"""What the page on reading a report names is there, and the ways out that it shows work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.bakeoff.report_reading import run
from tests.bakeoff.report_workspace import World
from tests.bakeoff.test_report import SECTIONS

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

TEXT = (Path(__file__).parents[2] / "docs" / "reading-a-report.md").read_text("utf-8")


def test_every_section_that_it_names_stands_in_the_report() -> None:
    order, _, _ = TEXT.partition("| word | meaning |")
    named = re.findall(r"\*\*(.+?)\*\*", order)
    titles = [title.partition(":")[0] for title in SECTIONS.values()]
    assert len(named) > 10
    assert [name.rstrip(".") for name in named if name.rstrip(".") not in titles] == []


def test_it_is_linked_and_its_links_lead_somewhere() -> None:
    docs = Path(__file__).parents[2] / "docs"
    assert "(reading-a-report.md)" in (docs / "bakeoff.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert [link for link in links if not (docs / link).is_file()] == []


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path).write()
    (world.root / "referee.toml").write_text("")
    return world


def test_its_reviews_bring_the_cases_back(world: World) -> None:
    block = re.search(r"```console\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    lines = [line.strip() for line in block[1].strip().splitlines()]
    assert len(lines) == 3
    for line in lines:
        found = re.fullmatch(r'referee bakeoff (\S+) first(.*?)(?: --note "(.*)")?', line)
        assert found is not None
        note = () if found[3] is None else ("--note", found[3])
        run(found[1], "board", *found[2].split(), *note, root=world.root)
    summary = json.loads((world.root / "site" / "bakeoff" / "board" / "report.json").read_bytes())["summary"]
    assert [board["waiting"] for board in summary["boards"]] == [[], []]
    assert {case["review"] for case in summary["gold"]} == {"stands", "wrong"}


def test_a_new_measurement_is_laid_down_by_a_rule_and_a_decision(world: World) -> None:
    assert "lay down in\n  `protocol.toml` under `rules`" in TEXT
    plan = world.root / "protocols" / "board" / "protocol.toml"
    rules = re.sub(r"(?m)^rules = \[\]$", "", plan.read_text("utf-8"))
    plan.write_text(f'rules = ["Run again: the server was changed on 28 November."]\n{rules}', "utf-8")
    run("decide", "board", "Run all again", "--reason", "the sources differ", "--amends", root=world.root)
    run("freeze", "board", "--decision", "3", root=world.root)
    assert "has no shard yet" in run("report", "board", "--all", root=world.root, code=5).stderr
