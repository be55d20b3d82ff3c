"""A stranger's check of a built site: what it tells beside its results, and documents that have lost their form."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import referee
from referee.cli.app import make_app
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_PASS, CouldNotVerify, DigestMismatch, Finding
from referee.publish import pages
from referee.publish.facts import agents_of
from referee.publish.mapping import Mapping, keep_mapping, read_mapping
from referee.runner.verify_public import verify_public
from tests.branded_workspace import Branded

RUN, INDEX, BOARD = "runs/r-0/run.json", "index.json", "board.json"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of named agents."""
    made = Branded(tmp_path_factory.mktemp("told"))
    for number, harness in enumerate(("codex", "opencode")):
        made.write(harness, run=f"r-{number}", at=f"2026-11-30T12:5{number}:00.000Z")
    mapping = keep_mapping(made.root / "names.json", agents_of(made.records.read()))
    pages.build(made.facts(mapping), made.root / "site")
    assert verify_public(made.root / "site").runs == 2
    return made.root / "site"


def checked(site: Path, changed: dict[str, Any], names: Mapping | None = None) -> None:
    """Check the site with other documents in the place of its own, which are put back."""
    before = {name: (site / name).read_bytes() for name in changed}
    try:
        for name, document in changed.items():
            (site / name).write_bytes(json.dumps(document).encode())
        verify_public(site, names)
    finally:
        for name, data in before.items():
            (site / name).write_bytes(data)


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        document = document[step]
    return document


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        (RUN, ("report", "final_state"), "It runs, and more."),
        (RUN, ("report", "errors_fixed"), 3),
        (RUN, ("report",), None),
        (RUN, ("report_rejected",), "it was rejected"),
        (RUN, ("phases", 0, "error"), None),
        (RUN, ("phases",), []),
        (RUN, ("corroboration_reasons",), []),
        (RUN, ("files", 0, "bytes"), 1),
        (RUN, ("files", 0, "name"), "other.raw"),
        (RUN, ("end", "evidence_digest"), "sha256:" + "00" * 32),
        (RUN, ("lock", "agent", "digest"), "agent:sha256:" + "00" * 32),
        (RUN, ("lock", "agent", "label"), "Agent B"),
        (BOARD, ("standings", 0, "agent", "digest"), "agent:sha256:" + "00" * 32),
        (BOARD, ("standings", 0, "agent", "tier"), "stronger"),
        (BOARD, ("standings", 0, "spent", "total_usd"), 0.01),
        (BOARD, ("standings", 0, "spent"), None),
    ],
)
def test_a_stranger_finds_what_a_site_tells_beside_its_results(
    site: Path, name: str, place: tuple[Any, ...], value: object
) -> None:
    document = json.loads((site / name).read_bytes())
    at(document, place[:-1])[place[-1]] = value
    with pytest.raises(Finding):
        checked(site, {name: document})


@pytest.mark.parametrize("member", ["spent", "spending"])
def test_a_sum_that_run_and_index_tell_alike_is_still_that_of_the_end(site: Path, member: str) -> None:
    run, index, subject = (json.loads((site / name).read_bytes()) for name in (RUN, INDEX, "subjects/square.json"))
    summary = next(one for one in index["runs"] if one["run"] == "r-0")
    listed = next(one for one in subject["attempts"] if one["run"] == "r-0")
    for one in (run, summary, listed):
        one[member] = 0.01 if member == "spent" else {**one[member], "calls": 1}
    with pytest.raises(Finding, match="another sum that it spent"):
        checked(site, {RUN: run, INDEX: index, "subjects/square.json": subject})


def places(value: Any, depth: int, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of a document down to a depth; of a list the first."""
    if place:
        yield place
    if depth and isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, depth - 1, (*place, key))
    elif depth and isinstance(value, list) and value:
        yield from places(value[0], depth - 1, (*place, 0))


@pytest.mark.parametrize("name", [INDEX, BOARD, RUN])
def test_a_document_without_its_form_is_a_finding_and_no_fault_of_ours(site: Path, name: str) -> None:
    whole = json.loads((site / name).read_bytes())
    found = 0
    for place in places(whole, 3):
        values: tuple[Any, ...] = (None, [], "x")
        for value in values:
            document = copy.deepcopy(whole)
            holder = at(document, place[:-1])
            if value is None:
                del holder[place[-1]]
            else:
                holder[place[-1]] = value
            try:
                checked(site, {name: document})
            except Finding:
                found += 1
    assert found > 20


def by_another(site: Path) -> dict[str, Any]:
    """The index as if another version had built the site."""
    return {**json.loads((site / INDEX).read_bytes()), "built_by": "0.0.9\x1b[2J"}


def test_a_site_of_another_version_that_holds_says_so(site: Path) -> None:
    before = (site / INDEX).read_bytes()
    try:
        (site / INDEX).write_text(json.dumps(by_another(site)))
        checked = CliRunner().invoke(make_app("verify"), ["verify", "--site", str(site)])
    finally:
        (site / INDEX).write_bytes(before)
    assert (checked.exit_code, checked.stdout.splitlines()[0]) == (EXIT_PASS, "all holds")
    assert f"version 0.0.9\\x1b[2J built the site; it was checked by {referee.__version__}" in checked.stdout


def test_what_two_versions_find_otherwise_is_no_finding_and_does_not_hold(site: Path) -> None:
    run = json.loads((site / RUN).read_bytes())
    run["corroboration_reasons"] = ["as an earlier version found"]
    with pytest.raises(CouldNotVerify, match=r"says that version 0\.0\.9") as caught:
        checked(site, {INDEX: by_another(site), RUN: run})
    assert f"this is {referee.__version__}, which finds: run r-0: the reasons of its result" in caught.value.message
    before = {name: (site / name).read_bytes() for name in (INDEX, RUN)}
    try:
        (site / INDEX).write_text(json.dumps(by_another(site)))
        (site / RUN).write_text(json.dumps(run))
        told = CliRunner().invoke(make_app("verify"), ["verify", "--site", str(site), "--json"])
    finally:
        for name, data in before.items():
            (site / name).write_bytes(data)
    assert told.exit_code == EXIT_COULD_NOT_VERIFY
    assert json.loads(told.stdout) == {
        "schema": "referee.verify-site/1",
        "holds": None,
        "finding": caught.value.message,
    }


def test_changed_evidence_and_another_mapping_are_no_matter_of_version(site: Path) -> None:
    blob = min((site / "evidence").glob("*/*.bin"))
    data = blob.read_bytes()
    blob.unlink()  # a hard link to the store's
    blob.write_bytes(data + b" ")
    try:
        with pytest.raises(DigestMismatch):
            checked(site, {INDEX: by_another(site)})
    finally:
        blob.write_bytes(data)
    index = by_another(site)
    with pytest.raises(DigestMismatch, match="not the one that the site quotes"):
        checked(
            site, {INDEX: {**index, "names": "names:sha256:" + "00" * 32}}, read_mapping(site.parent / "names.json")
        )


def _a_pipe(site: Path) -> None:
    (site / RUN).unlink()
    os.mkfifo(site / RUN)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda site: (site / INDEX).write_bytes(b"[" * 100_000),
        lambda site: (site / INDEX).write_bytes(b"{}"),
        lambda site: (site / INDEX).write_bytes(b'{"runs": 3}'),
        _a_pipe,
        lambda site: (site / "evidence" / "00" / "directory.bin").mkdir(parents=True),
    ],
)
def test_a_site_that_is_none_is_a_finding(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    made = Branded(tmp_path)
    made.write("codex", run="r-0", at="2026-11-30T12:50:00.000Z")
    pages.build(made.facts(keep_mapping(tmp_path / "names.json", agents_of(made.records.read()))), tmp_path / "site")
    spoil(tmp_path / "site")
    with pytest.raises(Finding):
        verify_public(tmp_path / "site")
