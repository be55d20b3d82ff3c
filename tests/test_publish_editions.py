"""Attempts of several editions in one workspace: each figure is of one edition, and says of which (methodology §14)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from referee.errors import UsageError
from referee.publish import pages
from referee.publish.facts import Facts
from referee.scoring.boards import Entry, board, by_edition, under_review
from referee.scoring.verdicts import speaking
from tests.publish_workspace import Try, Written
from tests.test_publish_terminal import one_document, referee

#: ``square`` passes by its claim under edition 1 and fails its corroboration under edition 2.
TRIES = (
    Try("r-claimed1", "square", edition=1, printed=b"no\n", rerun_status=1),
    Try("r-claimed2", "square", edition=1, printed=b"no\n", rerun_status=1, index=2),
    Try("r-checked1", "square", printed=b"no\n", rerun_status=1, index=3),
    Try("r-checked2", "square", printed=b"no\n", rerun_status=1, index=4),
    Try("r-early", "mailer", edition=1),
    Try("r-invalid", "mailer", b"{}", index=2),
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = Written(tmp_path_factory.mktemp("editions"))
    written.write(TRIES)
    pages.build(Facts(written.records.read(), written.evidence), written.root / "site")
    return written.root


def document(workspace: Path, name: str) -> Any:
    return json.loads((workspace / "site" / name).read_bytes())


def test_each_edition_has_a_board_of_its_own(workspace: Path) -> None:
    found = document(workspace, "board.json")
    older = found["other_editions"]
    assert (found["edition"], [one["edition"] for one in older]) == (2, [1])
    (line,), (claimed,) = found["standings"], older[0]["standings"]
    assert {one["subject"]: [total["run"] for total in one["totals"]] for one in line["subjects"]} == {
        "mailer": [],
        "square": ["r-checked1", "r-checked2"],
    }
    assert (line["rank"], line["score"], line["passed"], line["attempts_counted"]) == (1, 80, 0, 2)
    assert (claimed["rank"], claimed["score"], claimed["passed"], claimed["attempts_counted"]) == (1, 100, 3, 3)
    assert not any(one["unstable"] for one in (*line["subjects"], *claimed["subjects"]))
    assert one_document(referee(workspace, "board", "--json")) == found


def test_a_claim_of_an_earlier_edition_is_no_verdict_of_the_later(workspace: Path) -> None:
    found = {one["subject"]: one for one in document(workspace, "index.json")["subjects"]}
    square, mailer = found["square"], found["mailer"]
    assert (square["edition"], square["verdict"], square["attempts_counted"]) == (2, "could_not_verify", 2)
    (claimed,) = square["other_editions"]
    assert (claimed["edition"], claimed["verdict"], claimed["decided_by"]) == (1, "runs", "r-claimed1")
    assert (mailer["edition"], mailer["verdict"]) == (1, "runs"), "no complete attempt under edition 2"
    assert [(one["edition"], one["verdict"], one["attempts_invalid"]) for one in mailer["other_editions"]] == [
        (2, "not_yet_verified", 1)
    ]
    assert referee(workspace, "verdict", "square").returncode == 4


def test_pages_and_terminal_say_of_which_edition_a_figure_is(workspace: Path) -> None:
    site = workspace / "site"
    page = (site / "board.html").read_text()
    assert page.index('id="edition-2"') < page.index('id="edition-1"')
    assert page.count('id="agent-1"') == page.count('id="edition-1-agent-1"') == 1
    said = "Edition 1, by its own attempts: runs (2 counted, 0 invalid)"
    for name in ("index.html", "subjects/square.html"):
        assert said in (site / name).read_text(), name
    assert (site / "subjects/square.html").read_text().count('<span class="tag">edition 1</span>') == 2
    printed = referee(workspace, "board").stdout
    assert printed.index("edition 2: attempts") < printed.index("edition 1: attempts")
    told = referee(workspace, "verdict", "square").stdout
    assert "edition   2" in told
    assert "edition 1, by its own attempts: runs, 2 counted, 0 invalid" in told
    assert {one["edition"] for one in one_document(referee(workspace, "show", "--json"))["runs"]} == {1, 2}


def test_attempts_of_two_editions_are_refused_a_common_figure() -> None:
    entries = [Entry("a", "x", "fail", 60), Entry("b", "x", "pass_full", 100, edition=1)]
    for figure in (board, under_review):
        with pytest.raises(UsageError, match="several editions"):
            figure(entries)
    assert [(edition, [one.agent for one in part]) for edition, part in by_edition(entries).items()] == [
        (2, ["a"]),
        (1, ["b"]),
    ]


def test_the_newest_edition_with_a_complete_attempt_speaks() -> None:
    assert speaking([(1, True), (2, False)]) == 1
    assert speaking([(1, False), (2, False)]) == 2
    assert speaking([(1, True), (2, True)]) == 2
    with pytest.raises(UsageError):
        speaking([])
