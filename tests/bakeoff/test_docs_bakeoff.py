"""Every figure and table of the bake-off's published methodology is the one that the program uses."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from referee.adapters.lanes import surfaces
from referee.adapters.suites import bundled_suite
from referee.core.bakeoff import Bootstrap, Channel, Guards, Protocol, Sampling
from referee.core.cases import CATEGORIES
from referee.publish.bakeoff.export import COLUMNS
from referee.scoring.answers import read
from referee.scoring.bakeoff import lanes, statistics

TEXT = (Path(__file__).parents[2] / "docs" / "bakeoff.md").read_text("utf-8")
FLAT = " ".join(TEXT.split())


def section(number: int) -> str:
    found = re.search(rf"^## {number}\. .*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"section {number} is missing"
    return found[0]


def rows(text: str, head: str) -> list[list[str]]:
    """The body of the table whose header row begins with ``head``."""
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith(f"| {head} |"))
    table = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return table


def test_its_sections_are_numbered_from_0_to_13() -> None:
    assert [int(number) for number in re.findall(r"^## (\d+)\. ", TEXT, re.MULTILINE)] == list(range(14))


def test_its_figures_are_those_of_the_program() -> None:
    assert f"z = {statistics.Z}" in section(2)
    assert f"{Protocol.model_fields['repeats'].default} repeats of each case" in section(2)
    assert f"Fewer than {lanes.VIABILITY_PLUS} cases" in section(0)
    assert f"From {lanes.GATE} private" in section(0)
    assert f"below {Guards().credit_floor_usd:.2f} US dollars" in section(4)
    assert f"After {Guards().breaker} infrastructure errors" in section(11)
    assert f"more than {Guards().infra_share:.0%}".replace("%", " %") in section(11)
    assert f"{Bootstrap().iterations:,} draws" in section(12)
    assert f"{Sampling().max_tokens} to 8192 tokens" in section(7)
    needed = statistics.questions_needed(0.03)
    assert f"{needed} questions for 3 points" in section(12)


def test_the_guards_cannot_be_loosened_beyond_what_it_says() -> None:
    for field, loosened in (("breaker", 9), ("infra_share", 0.6), ("credit_floor_usd", 2.99)):
        with pytest.raises(ValueError, match=field):
            Guards.model_validate({field: loosened})


def test_its_table_of_lanes_is_that_of_the_surfaces() -> None:
    table = {row[0].strip("`"): row for row in rows(section(4), "channel")}
    assert set(table) == set(get_args(Channel))
    for channel, way in surfaces._WAYS.items():
        assert table[channel][4] == way.readable_as
        assert (table[channel][2] == "native") == (channel != "agent-cli")


def test_its_categories_suite_and_columns_are_those_of_the_program() -> None:
    assert re.findall(r"`([a-z-]+)`", section(8))[:5] == list(CATEGORIES)
    suite = bundled_suite("s1")
    arms = Counter(case.arm for case in suite.cases)
    assert arms == {"suite": 35 + 10, "abstain-traps": 14, "ordering-v2": 5, "ordering-v1": 5}
    kinds = Counter(case.source.get("trap") for case in suite.cases if case.arm == "abstain-traps")
    assert sorted(kinds.values()) == [4, 10]
    assert ", ".join(name for name, _, _ in COLUMNS) in FLAT


@pytest.mark.parametrize(
    ("status", "body", "blame", "name"),
    [
        (503, "{}", "infra", None),
        (429, "{}", "infra", None),
        (402, "{}", "account", None),
        (429, '{"error": {"code": "insufficient_quota", "message": "x"}}', "account", None),
        (400, '{"detail": "DEGRADED function cannot be invoked"}', "infra", "endpoint_degraded"),
        (404, '{"detail": "Not found for account"}', "config", "endpoint_unavailable"),
        (401, "{}", "config", None),
        (422, "{}", "config", None),
        (413, "{}", "case", None),
        (400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}', "case", None),
        (400, '{"error": {"code": "content_filter", "message": "x"}}', "model", None),
    ],
)
def test_its_table_of_faults_is_that_of_the_reader(status: int, body: str, blame: str, name: str | None) -> None:
    reading = read(status, {}, body.encode(), broke=None, detail="", streamed=False, shape="openai-chat", inlined=False)
    assert reading.fault is not None
    assert reading.fault.blame == blame
    told = [row for row in rows(section(10), "signal") if f"`{blame}`" in row[1]]
    assert told
    if name is not None:
        assert reading.fault.name == name
        assert any(f"`{name}`" in row[1] for row in told)


def test_a_timeout_is_infrastructure() -> None:
    reading = read(None, {}, b"", broke="timeout", detail="x", streamed=False, shape="openai-chat", inlined=False)
    assert reading.fault is not None
    assert reading.fault.blame == "infra"
