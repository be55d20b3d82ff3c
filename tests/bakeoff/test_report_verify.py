"""A report in the site is made again from the shards that it names; whatever was changed is found by file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from referee.cli.site import build_site
from referee.cli.wiring import open_stores
from referee.errors import Finding
from referee.publish.bakeoff.report import write_report
from referee.runner.bakeoff.decide import decide, review
from referee.runner.bakeoff.report import gather
from referee.runner.bakeoff.verify_report import ReportsVerified, verify_reports
from tests.bakeoff.report_workspace import World

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "ws").write()
    write(world)
    return world


def write(world: World) -> None:
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    stores = open_stores(world.root)
    write_report(basis, stores.workspace.site / "bakeoff" / "board")
    build_site(stores)


def verified(world: World) -> ReportsVerified:
    return verify_reports(world.log, world.evidence, world.records, world.root / "site")


def test_a_report_that_nobody_touched_holds(world: World) -> None:
    assert verified(world) == ReportsVerified(compared=1)


@pytest.mark.parametrize("file", ["index.html", "report.md", "report.json", "attempts.csv", "cases/s1-simple-03.html"])
def test_a_changed_file_is_named(world: World, file: str) -> None:
    changed = world.root / "site" / "bakeoff" / "board" / file
    data = changed.read_bytes()
    changed.unlink()  # the site links files: others' bytes stay
    new = data.replace(b"2026-11-27T09:00:01", b"2026-11-27T09:00:02").replace(b"argument", b"arguments")
    new = new.replace(b"tiny-", b"huge-")
    assert new != data
    changed.write_bytes(new)
    with pytest.raises(Finding, match=rf"{file} is not what the named shards give"):
        verified(world)


def test_a_file_too_many_and_one_too_few_are_named(world: World) -> None:
    board = world.root / "site" / "bakeoff" / "board"
    (board / "more.html").write_text("x")
    with pytest.raises(Finding, match=r"more\.html is no part of the report"):
        verified(world)
    (board / "more.html").unlink()
    (board / "cases" / "s1-simple-03.html").unlink()
    with pytest.raises(Finding, match=r"s1-simple-03\.html is not what"):
        verified(world)


def test_a_report_older_than_the_log_is_not_compared_and_says_so(world: World) -> None:
    decide(world.log, "board", "Later", reason="x", by="me")
    assert verified(world).not_compared == ("the report board is older than the log of its protocol",)
    write(world)
    assert verified(world) == ReportsVerified(compared=1)
    review(world.log, "board", "s1-hard-03", stands=True, note="looked", by="me", suite=world.loaded.suite)
    assert verified(world).not_compared == ("the report board is older than the log of its protocol",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: b"[" * 100_000, "holds no report"),
        (lambda _: b"[]", "holds no report"),
        (
            lambda shown: json.dumps({**shown, "summary": {**shown["summary"], "gold": [3]}}).encode(),
            "form of a report",
        ),
        (
            lambda shown: json.dumps({**shown, "summary": {**shown["summary"], "shards": [3]}}).encode(),
            "names no shards",
        ),
    ],
)
def test_a_report_of_another_form_is_a_finding(world: World, change: Callable[[Any], bytes], said: str) -> None:
    file = world.root / "site" / "bakeoff" / "board" / "report.json"
    shown = json.loads(file.read_bytes())
    file.unlink()
    file.write_bytes(change(shown))
    with pytest.raises(Finding, match=said):
        verified(world)


def test_a_report_of_fewer_shards_says_which_it_leaves_out(world: World) -> None:
    left_out = world.shards[-1]
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards[:-1]])
    write_report(basis, world.root / "site" / "bakeoff" / "board")
    done = verified(world)
    assert done.compared == 1
    total = len(world.shards)
    assert done.partial == (
        f"the report board is of {total - 1} of {total} shards under its freeze; it leaves out {left_out}",
    )


def test_a_shard_that_is_gone_or_broken_is_a_finding(world: World) -> None:
    shard = world.records / world.shards[0]
    data = shard.read_bytes()
    shard.write_bytes(data.replace(b'"passed":true', b'"passed":null', 1))
    with pytest.raises(Finding, match=shard.name):
        verified(world)
    shard.unlink()
    with pytest.raises(Finding, match="there is no shard"):
        verified(world)
