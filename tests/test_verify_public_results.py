"""A stranger with the site alone finds what a forger changed consistently: results, runs, places, evidence."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from referee.errors import CouldNotVerify, Finding
from referee.publish import pages
from referee.publish.facts import Facts, agents_of
from referee.publish.mapping import keep_mapping
from referee.runner.verify_public import verify_public
from tests.publish_workspace import FAILED, MOCKED, Try, Written, report

OTHER_PIN = "pypi:square==1.1.0 sha256:" + "cd" * 32
TRIES = (
    Try("r-old", "square", pin=OTHER_PIN),
    Try("r-first", "square", FAILED, rerun_status=None, index=2),
    Try("r-second", "square", FAILED, rerun_status=None, index=3),
    Try("r-claim", "square", edition=1, index=4),
    Try("r-mocked", "mailer", MOCKED),
    Try("r-overlay", "mailer", sandbox="overlay", index=2),
    Try("r-rejected", "mailer", b"{}", index=3),
    Try("r-open", "segno", end="open"),
    Try("r-found", "segno", None, end="found", index=2),
    Try("r-liar", "square", agent="liar"),
    Try("r-vendor1", "square", agent="acme-coder-9000"),
    Try("r-vendor2", "mailer", FAILED, rerun_status=None, agent="acme-coder-9000"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = Written(tmp_path_factory.mktemp("public"))
    written.write(TRIES)
    records = written.records.read()
    mapping = keep_mapping(written.root / "names.json", agents_of(records))
    pages.build(Facts(records, written.evidence, mapping=mapping), written.root / "site")
    return written.root / "site"


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "site"))


def edit(file: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))


def everywhere(site: Path, run: str, change: Callable[[Any], object]) -> None:
    """Change what every document says of a run: its own, the index's, its subject's."""
    edit(site / "runs" / run / "run.json", change)
    for file in (site / "index.json", *(site / "subjects").glob("*.json")):
        edit(
            file,
            lambda told: [
                change(one) for key in ("runs", "attempts") for one in told.get(key, ()) if one["run"] == run
            ],
        )


def drop(site: Path, run: str) -> None:
    """Take a run out of every document, with its own."""
    for file in (site / "index.json", *(site / "subjects").glob("*.json")):
        edit(
            file,
            lambda told: [
                told.update({key: [one for one in told[key] if one["run"] != run]})
                for key in ("runs", "attempts")
                if key in told
            ],
        )
    shutil.rmtree(site / "runs" / run)


def of_subject(site: Path, subject: str, change: Callable[[Any], object]) -> None:
    edit(site / "subjects" / f"{subject}.json", change)
    edit(site / "index.json", lambda told: [change(one) for one in told["subjects"] if one["subject"] == subject])


def swap_report(site: Path) -> None:
    """A better report in the place of the real one, named by its own digest, and all results made to follow."""
    data = json.dumps(report()).encode()
    digits = hashlib.sha256(data).hexdigest()
    place = site / "evidence" / digits[:2] / f"{digits}.bin"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)
    new = {"digest": f"sha256:{digits}", "bytes": len(data)}

    def change(run: Any) -> None:
        for file in (*run["files"], *run["end"]["evidence"]):
            if file["name"] == "report.json":
                file.update(new)

    edit(site / "runs" / "r-first" / "run.json", change)


def forged_manifest(site: Path) -> None:
    digits = json.loads((site / "runs/r-first/run.json").read_bytes())["evidence"].rpartition(":")[2]
    (site / "evidence" / digits[:2] / f"{digits}.bin").unlink()


def line(site: Path, number: int, **values: Any) -> None:
    edit(site / "board.json", lambda told: told["standings"][number].update(values))


FORGERIES: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    (
        "a verdict",
        lambda site: of_subject(site, "square", lambda one: one.update(verdict="runs_with_mocks")),
        "verdict",
    ),
    ("who decided", lambda site: of_subject(site, "mailer", lambda one: one.update(decided_by="r-overlay")), "verdict"),
    (
        "the other edition's verdict",
        lambda site: of_subject(site, "square", lambda one: one["other_editions"].clear()),
        "verdict",
    ),
    (
        "a subject's page",
        lambda site: edit(site / "subjects/square.json", lambda one: one.update(pin="x")),
        "say the same",
    ),
    ("a rank", lambda site: line(site, 1, rank=1), "board.json"),
    (
        "a median",
        lambda site: edit(site / "board.json", lambda t: t["standings"][0]["subjects"][0].update(median=1)),
        "board",
    ),
    ("the order", lambda site: edit(site / "board.json", lambda told: told["standings"].reverse()), "board.json"),
    ("a test of the rules ranked", lambda site: line(site, -1, regression_agent=False), "board.json"),
    (
        "an edition's board left out",
        lambda site: edit(site / "board.json", lambda t: t["other_editions"].clear()),
        "boards",
    ),
    (
        "two editions in one board",
        lambda site: edit(
            site / "board.json", lambda t: t["standings"].extend(t.pop("other_editions")[0]["standings"])
        ),
        "boards of the editions",
    ),
    ("a run taken away", lambda site: drop(site, "r-first"), "attempt 2 at square by baseline is not in the site"),
    (
        "a run left out of the index",
        lambda site: edit(site / "index.json", lambda t: t.update(runs=[r for r in t["runs"] if r["run"] != "r-open"])),
        "attempt 1 at segno by baseline is not in the site",
    ),
    ("a run twice", lambda site: edit(site / "index.json", lambda told: told["runs"].append(told["runs"][0])), "twice"),
    ("a run at an old pin", lambda s: everywhere(s, "r-first", lambda run: run.update(current_pin=False)), "its pin"),
    (
        "a run said to be unpublishable",
        lambda s: everywhere(s, "r-first", lambda run: run.update(never_publishable=["no security boundary"])),
        "ever be published",
    ),
    ("a run said to be open", lambda site: everywhere(site, "r-first", lambda run: run.update(state="open")), "state"),
    (
        "a row",
        lambda site: edit(site / "runs/r-mocked/run.json", lambda run: run["scores"][1]["rows"][2].update(points=0)),
        "score",
    ),
    ("the rows of a list", lambda s: everywhere(s, "r-mocked", lambda run: run["rows"].update(fixes=0)), "its result"),
    (
        "an outcome",
        lambda site: everywhere(site, "r-mocked", lambda run: run.update(outcome="pass_full")),
        "its result",
    ),
    ("a run's edition", lambda site: everywhere(site, "r-claim", lambda run: run.update(edition=2)), "edition"),
    (
        "a run's agent",
        lambda site: everywhere(site, "r-vendor2", lambda run: run.update(agent="baseline")),
        "the manifest of its evidence is not in the site",
    ),
    ("a report swapped", swap_report, "its files are not those that the manifest"),
    ("a manifest taken away", forged_manifest, "manifest of its evidence is not in the site"),
)


def test_a_site_of_two_editions_holds(site: Path) -> None:
    done = verify_public(site)
    assert (done.runs, done.agents) == (len(TRIES), 4), "three agents under edition 2, one under edition 1"


@pytest.mark.parametrize(("forge", "said"), [row[1:] for row in FORGERIES], ids=[row[0] for row in FORGERIES])
def test_a_stranger_finds_what_was_forged(site: Path, forge: Callable[[Path], object], said: str) -> None:
    forge(site)
    with pytest.raises(Finding, match=said):
        verify_public(site)


def test_a_revealed_mapping_is_held_against_the_runs_of_every_edition(tmp_path: Path) -> None:
    """An agent that was only measured under an older edition stands on no line of the newest board."""
    written = Written(tmp_path)
    written.write((Try("r-now", "square"), Try("r-then", "square", edition=1, agent="acme-coder-9000")))
    mapping = keep_mapping(tmp_path / "names.json", agents_of(written.records.read()))
    site = tmp_path / "site"
    pages.build(Facts(written.records.read(), written.evidence, mapping=mapping), site)
    assert verify_public(site, mapping).names
    (named,) = mapping.agents
    other = "sha256:" + "ab" * 32
    for file in site.rglob("*.json"):
        file.write_text(file.read_text().replace(named.commitment(), other))
    assert verify_public(site).runs == 2, "nothing that the site says of itself tells"
    with pytest.raises(Finding, match=f"{named.label} is not the configuration"):
        verify_public(site, mapping)


def test_a_site_from_before_editions_had_boards_is_not_called_changed(site: Path) -> None:
    edit(site / "index.json", lambda told: [run.pop("edition") for run in told["runs"]])
    with pytest.raises(CouldNotVerify, match="built before each edition"):
        verify_public(site)


def test_a_run_that_hides_its_edition_is_found(site: Path) -> None:
    everywhere(site, "r-claim", lambda run: run.pop("edition"))
    with pytest.raises(Finding):
        verify_public(site)
