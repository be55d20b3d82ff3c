"""Reviews by command: of what the shards show as suspect, one or all; what was reviewed stays visible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from referee.core.records import GoldReviewed, ShardAnnounced
from referee.runner.bakeoff.decide import review, reviews_of
from tests.bakeoff.report_reading import run, tree
from tests.bakeoff.report_workspace import World

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

NOTE = ("--note", "looked")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path).write()
    (world.root / "referee.toml").write_text("")
    return world


def reviews(world: World) -> list[GoldReviewed]:
    return reviews_of(world.log.read_bakeoff(), "board")


def summary(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("report", "board", "--all", "--json", root=world.root).stdout)["summary"]
    return found


def waiting(world: World) -> set[str]:
    return {case["case"] for case in summary(world)["gold"] if case["suspect"] and case["review"] == "unreviewed"}


def test_all_that_wait_are_reviewed_at_once_with_a_record_each(world: World) -> None:
    before = waiting(world)
    assert len(before) > 3
    done = run("review", "board", "--all-suspects", "--stands", *NOTE, "--by", "me", root=world.root)
    assert len(done.stdout.splitlines()) == len(before)
    made = reviews(world)[1:]  # the first one is the world's own
    assert {one.case for one in made} == before
    assert {(one.stands, one.note, one.by) for one in made} == {(True, "looked", "me")}
    assert waiting(world) == set()
    [first, *_] = summary(world)["boards"]
    assert (first["waiting"], first["cases"], first["of"]) == ([], first["of"] - 1, first["of"])
    again = run("review", "board", "--all-suspects", "--wrong", *NOTE, root=world.root, code=5)
    assert "no case of board waits for a review" in again.stderr
    assert len(reviews(world)) == len(made) + 1


def test_all_at_once_in_json(world: World) -> None:
    document = json.loads(run("review", "board", "--all-suspects", "--wrong", *NOTE, "--json", root=world.root).stdout)
    assert {one["stands"] for one in document["reviews"]} == {False}
    assert len(document["reviews"]) == len(reviews(world)) - 1


def test_a_case_that_nothing_makes_suspect_is_not_reviewed(world: World) -> None:
    calm = next(case for case in world.loaded.suite.by_id if case not in {g["case"] for g in summary(world)["gold"]})
    done = run("review", "board", calm, "--wrong", *NOTE, root=world.root, code=2)
    assert f"do not show the case {calm} as suspect" in done.stderr
    assert "referee bakeoff decide board" in done.stderr
    assert len(reviews(world)) == 1
    # What is suspect only beside another shard is none where that shard is not named.
    suspect = min(waiting(world))
    alone = ("--shard", next(name for name in world.shards if "free-tier" in name))
    assert "as suspect" in run("review", "board", suspect, "--wrong", *NOTE, *alone, root=world.root, code=2).stderr
    assert suspect in run("review", "board", suspect, "--wrong", *NOTE, root=world.root).stdout


def test_an_earlier_review_stays_visible_and_can_be_put_right(world: World) -> None:
    """Records of a time when any case could be reviewed, or when other shards were there."""
    calm = next(case for case in world.loaded.suite.by_id if case not in {g["case"] for g in summary(world)["gold"]})
    review(world.log, "board", calm, stands=False, note="of old", by="me", suite=world.loaded.suite)
    [shown] = [case for case in summary(world)["gold"] if case["case"] == calm]
    assert (shown["suspect"], shown["review"], shown["review_note"], shown["ranks"]) == (
        False,
        "wrong",
        "of old",
        False,
    )
    run("review", "board", calm, "--stands", *NOTE, root=world.root)
    [shown] = [case for case in summary(world)["gold"] if case["case"] == calm]
    assert (shown["review"], shown["ranks"]) == ("stands", True)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("review", "board", "--wrong", *NOTE), "of one case, or of all that wait"),
        (("review", "board", "s1-simple-03", "--all-suspects", "--wrong", *NOTE), "of one case, or of all that wait"),
        (("review", "board", "--all-suspects", "--stands", "--note", "x" * 2001), "2001 characters, more than 2000"),
        (("review", "board", "--all-suspects", "--stands", "--note", " "), "needs a note"),
        (("decide", "board", "x" * 2001, "--reason", "y"), "the decision has 2001 characters"),
        (("decide", "board", "x", "--reason", "y" * 54_000), "the reason has 54000 characters"),
    ],
)
def test_what_is_refused(world: World, argv: tuple[str, ...], said: str) -> None:
    before = world.log.read_bakeoff()
    done = run(*argv, root=world.root, code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert world.log.read_bakeoff() == before


def test_terminal_and_report_say_first_that_cases_left_the_ranking(world: World) -> None:
    said = run("report", "board", "--all", root=world.root).stdout.splitlines()
    [loud] = [line for line in said[:3] if line.startswith("! ")]
    [first, *_] = summary(world)["boards"]
    assert f"{len(first['waiting'])} of {first['of']} cases left the ranking until they are reviewed, 1 because" in loud
    rates = {row["about"]["target"]: 100 * row["with_flagged"]["value"] for row in first["rows"]}
    for name, rate in rates.items():
        assert any(f"{name} · " in part and f" {rate:.1f}".removesuffix(".0") in part for part in loud.split(", "))
    text = (world.root / "site" / "bakeoff" / "board" / "report.md").read_text("utf-8")
    assert text.index("left the ranking until they are reviewed") < text.index("tie cluster")
    run("review", "board", "--all-suspects", "--stands", *NOTE, root=world.root)
    assert "until they are reviewed" not in run("report", "board", "--all", root=world.root).stdout


def test_a_report_warns_of_answers_that_are_gone_and_is_the_same_to_the_byte(world: World) -> None:
    (world.root / "answers").mkdir(exist_ok=True)
    for name in world.shards:
        world.log.append(
            ShardAnnounced(
                run="r",
                protocol="board",
                protocol_digest=world.frozen.digest,
                target="t",
                at="2026-11-27T09:00:00+00:00",
                shard=name,
                answers=name.replace("results-", "answers-").replace(".jsonl", ".log"),
                after=(),
            )
        )
        (world.root / "answers" / name.replace("results-", "answers-").replace(".jsonl", ".log")).touch()
    assert run("report", "board", "--all", root=world.root).stderr == ""
    before = tree(world.root / "site" / "bakeoff" / "board")
    gone = "answers-free-tier-20261127T090000Z-aaaa.log"
    (world.root / "answers" / gone).unlink()
    said = run("report", "board", "--all", root=world.root).stderr
    assert said.startswith(f"warning: {gone}: gone from answers/")
    assert tree(world.root / "site" / "bakeoff" / "board") == before
    out = str(world.root / "out")
    assert gone in run("export", "board", "--all", "--to", out, root=world.root).stderr
    other = ("--shard", next(name for name in world.shards if "weak-one" in name))
    assert run("export", "board", *other, "--to", out, root=world.root).stderr == ""
