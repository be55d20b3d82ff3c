"""What enters a figure of the pages and what does not: no score, agents made to fail, changed or lost evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from referee.core.failure import Cause
from referee.core.records import AttemptEnded
from referee.runner.verify_public import verify_public
from tests.publish_workspace import FAILED, Try, Written, report
from tests.read_pages import build, document, read


def test_an_agent_without_a_score_stands_at_the_bottom(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(
        (
            Try("r-1", "a", agent="maker-1", cause=None, report=None),
            Try("r-2", "a", agent="maker-2", printed=b"nothing of it", rerun_status=1),
            Try("r-3", "b", agent="baseline"),
        )
    )
    build(written)
    board = document(written, "board.json")["standings"]
    assert [(line["agent"]["label"], line["rank"]) for line in board] == [
        ("baseline", 1),
        ("Agent A", None),
        ("Agent B", None),
    ]
    page = read(written, "board.html").text
    assert "unranked" in page
    assert "no score" in page


def test_agents_that_must_not_pass_hold_no_rank_and_bring_no_subject_under_review(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(
        (
            Try("r-1", "a", agent="liar", edition=1),
            Try("r-2", "a", agent="null", report=None),
            Try("r-3", "a", FAILED, rerun_status=None),
            Try("r-4", "b", agent="maker-1", sandbox="overlay"),
        )
    )
    build(written)
    found = document(written, "board.json")
    board = [*found["standings"], *(line for other in found["other_editions"] for line in other["standings"])]
    assert [(line["agent"]["label"], line["rank"], line["regression_agent"]) for line in board] == [
        ("baseline", 1, False),
        ("Agent A", None, False),
        ("null", None, True),
        ("liar", None, True),
    ]
    assert [line["subjects_counted"] for line in board] == [1, 0, 1, 1]
    assert not document(written, "subjects/a.json")["under_review"]
    assert read(written, "board.html").text.count("test of the rules") == 2
    assert verify_public(written.root / "site").agents == 4


@pytest.mark.parametrize(("edition", "claim"), [(1, report()), (2, None)])
def test_agents_that_must_not_pass_say_nothing_of_a_project(
    tmp_path: Path, edition: int, claim: dict[str, Any] | None
) -> None:
    """Neither a liar's pass under the first edition nor two failures of an agent that does nothing."""
    written = Written(tmp_path)
    written.write(tuple(Try(f"r-{number}", "a", claim, agent="liar", edition=edition) for number in (1, 2)))
    build(written)
    subject = document(written, "subjects/a.json")
    assert (subject["verdict"], len(subject["attempts"])) == ("not_yet_verified", 2)


def test_what_can_never_be_published_is_shown_and_enters_no_public_figure(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(
        (
            Try("r-1", "a", FAILED, rerun_status=None),
            Try("r-2", "a", sandbox="overlay", index=2),
            Try("r-3", "only-overlay", sandbox="overlay"),
            Try("r-4", "only-short", FAILED, rerun_status=None, seconds=60),
            Try("r-5", "only-short", FAILED, rerun_status=None, seconds=60, index=2),
            Try("r-6", "a", FAILED, rerun_status=None, cap_usd=0.01, agent="command"),
        )
    )
    build(written)
    line, capped = document(written, "board.json")["standings"]
    assert (capped["score"], capped["attempts_counted"], capped["attempts_never_publishable"]) == (None, 0, 1)
    assert capped["subjects"][0]["never_publishable"][0]["why"] == ["another spending cap"]
    sets = {one["subject"]: one for one in line["subjects"]}
    assert [one["total"] for one in sets["a"]["totals"]] == [line["score"]]
    assert sets["a"]["never_publishable"] == [{"run": "r-2", "total": 100.0, "why": ["no security boundary"]}]
    assert sets["only-overlay"]["median"] is None
    assert (line["attempts_counted"], line["passed"], line["pass_rate"]) == (1, 0, 0.0)
    assert (line["attempts_never_publishable"], line["attempts_invalid"], line["subjects_counted"]) == (4, 0, 1)
    page = read(written, "board.html").text
    assert "4 not counted" in page
    assert "not counted: 100 never publishable: no security boundary" in page
    assert "no attempt that can be published" in page

    verdicts = {name: document(written, f"subjects/{name}.json") for name in sets}
    said = {name: (one["verdict"], one["rests_on_never_publishable"]) for name, one in verdicts.items()}
    assert said == {
        "a": ("not_yet_verified", False),
        "only-overlay": ("runs", True),
        "only-short": ("could_not_verify", True),
    }
    assert (verdicts["a"]["decided_by"], verdicts["a"]["attempts_never_publishable"]) == ("r-1", 2)
    assert verdicts["only-overlay"]["attempts_counted"] == 1
    left_out = "leaves out 2 attempts that can never be published (no security boundary, another spending cap)"
    rests_on = "rests on 2 attempts that can never be published (another time limit)"
    for name, words_of_it in (("a", left_out), ("only-short", rests_on)):
        assert f"This verdict {words_of_it}" in read(written, f"subjects/{name}.html").text
        assert words_of_it in read(written, "index.html").text
    assert "100 of 100never publishable: no security boundary" in read(written, "runs/r-3.html").text


def test_of_failures_the_best_is_named(tmp_path: Path) -> None:
    written = Written(tmp_path)
    started = {**FAILED, "started": True}
    written.write(
        (
            Try("r-1", "a", None, cause=Cause.DEADLINE),
            Try("r-2", "a", started, rerun_status=None, index=2),
            Try("r-3", "a", started, rerun_status=None, index=3),
            Try("r-4", "a", FAILED, rerun_status=None, index=4),
        )
    )
    build(written)
    subject = document(written, "subjects/a.json")
    assert (subject["verdict"], subject["decided_by"]) == ("could_not_verify", "r-2")


def test_a_lost_blob_is_said_and_nothing_is_scored_from_it(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "square"), Try("r-2", "square", report(final_state="Another."), index=2)))
    lost = next(ref for ref in _ended(written, "r-1").evidence if ref.name == "report.json")
    written.evidence.path(lost.digest).unlink()
    build(written)
    text = read(written, "runs/r-1.html").text
    assert "missing from the store" in text
    assert "it cannot be judged" in text
    assert document(written, "runs/r-1/run.json")["total"] is None
    assert document(written, "runs/r-2/run.json")["total"] == 100


def test_changed_bytes_are_not_scored(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "square"),))
    ref = next(ref for ref in _ended(written, "r-1").evidence if ref.name == "report.json")
    path = written.evidence.path(ref.digest)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"144", b"145"))
    build(written)
    assert document(written, "runs/r-1/run.json")["valid"] is False


def test_an_attempt_at_an_earlier_pin_is_shown_and_enters_no_figure(tmp_path: Path) -> None:
    written = Written(tmp_path)
    failed = report(started=False, test_depth="tier3_none", verified_how="not verified")
    written.write(
        (Try("r-1", "square", pin="pypi:square==1.1.0"), Try("r-2", "square", failed, rerun_status=None, index=2))
    )
    build(written)
    one = document(written, "subjects/square.json")
    assert one["verdict"] == "not_yet_verified"
    assert one["attempts_at_earlier_pins"] == 1
    assert "earlier pin" in read(written, "subjects/square.html").text


def _ended(written: Written, run: str) -> AttemptEnded:
    return next(one for one in written.records.read() if isinstance(one, AttemptEnded) and one.run == run)
