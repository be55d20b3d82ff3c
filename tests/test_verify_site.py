"""``referee verify`` and what lies beside records and scores: the built site, and strays among the evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.core.records import AttemptPlanned, Correction, Replayed
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_PASS, Finding, UsageError
from referee.publish import pages
from referee.publish.facts import Facts, agents_of
from referee.publish.mapping import keep_mapping
from referee.runner.verify_site import SiteVerified, verify_site
from tests.publish_workspace import Try, Written


@pytest.fixture
def built(tmp_path: Path) -> Written:
    written = Written(tmp_path)
    written.write((Try("r-1", "square"), Try("r-2", "mailer", sandbox="overlay"), Try("r-3", "square", end="open")))
    pages.build(Facts(written.records.read(), written.evidence), tmp_path / "site")
    return written


def look(written: Written) -> SiteVerified:
    return verify_site(Facts(written.records.read(), written.evidence), written.root / "site")


def replace(path: Path, data: bytes) -> None:
    """Give ``path`` other bytes without touching the evidence that it may be a hard link to."""
    path.unlink()
    path.write_bytes(data)


def test_a_whole_site_is_compared_file_by_file(built: Written) -> None:
    there = [path for path in (built.root / "site").rglob("*") if path.is_file()]
    assert look(built) == SiteVerified(there=True, not_compared="", files=len(there))


def test_no_site_is_no_fault(tmp_path: Path) -> None:
    assert look(Written(tmp_path)) == SiteVerified(there=False, not_compared="", files=0)


def _edit(name: str) -> Callable[[Path], None]:
    def edit(site: Path) -> None:
        path = site / name
        replace(path, path.read_bytes() + b"<!-- better -->")

    return edit


def _blob(site: Path) -> None:
    _edit(str(min(site.glob("evidence/*/*.bin")).relative_to(site)))(site)


def _a_run_more(site: Path) -> None:
    index = json.loads((site / "index.json").read_bytes())
    index["runs"].append({**index["runs"][0], "run": "r-9"})
    replace(site / "index.json", json.dumps(index).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_edit("index.html"), "index.html is not what records and evidence give"),
        (_edit("board.json"), "board.json is not what records and evidence give"),
        (_edit("runs/r-1.html"), "r-1.html is not what records and evidence give"),
        (_edit("assets/site.css"), "site.css is not what records and evidence give"),
        (lambda site: (site / "subjects/mailer.html").unlink(), "subjects/mailer.html, which records and evidence"),
        (lambda site: (site / "runs/r-8.html").write_text("more"), "r-8.html is no page that records"),
        (lambda site: replace(site / "index.json", b"{}"), "index.json is not what"),
        (lambda site: replace(site / "index.json", b"[" * 100_000), "index.json is not what"),
        (_blob, "is not the evidence that its name says"),
        (_a_run_more, "index.json is not what"),
    ],
)
def test_the_first_page_that_differs_is_named(built: Written, change: Callable[[Path], object], said: str) -> None:
    change(built.root / "site")
    with pytest.raises(Finding, match=said):
        look(built)


def test_a_site_older_than_the_records_is_compared_with_what_they_held_then(built: Written) -> None:
    files = look(built).files
    built.records.append(Correction(run="r-1", at="2026-11-30T09:00:00.000Z", note="looked at"))
    built.write((Try("r-4", "square", index=2), Try("r-5", "later", agent="maker-1")))
    assert look(built) == SiteVerified(there=True, not_compared="", files=files, older=True)
    _edit("runs/r-1.html")(built.root / "site")
    with pytest.raises(Finding, match=r"r-1\.html is not what records"):
        look(built)


def test_a_site_that_leaves_out_an_earlier_run_is_not_called_old(built: Written) -> None:
    index = built.root / "site" / "index.json"
    document = json.loads(index.read_bytes())
    document["runs"] = [run for run in document["runs"] if run["run"] != "r-2"]
    replace(index, json.dumps(document).encode())
    with pytest.raises(Finding, match="leaves out the run r-2"):
        look(built)


def test_the_letters_of_an_older_site_are_those_of_its_day(tmp_path: Path) -> None:
    written = Written(tmp_path)

    def mapped() -> Facts:
        records = written.records.read()
        return Facts(records, written.evidence, mapping=keep_mapping(tmp_path / "names.json", agents_of(records)))

    written.write((Try("r-1", "square", agent="maker-1"),))
    pages.build(mapped(), tmp_path / "site")
    written.write((Try("r-2", "square", agent="maker-2"),))
    assert verify_site(mapped(), tmp_path / "site").older


def test_a_replay_makes_a_site_old_and_not_wrong(built: Written) -> None:
    planned = next(record for record in built.records.read() if isinstance(record, AttemptPlanned))
    built.records.append(
        Replayed(
            run="r-1",
            replay="p-1",
            at="2026-11-30T09:00:00.000Z",
            environment=planned.lock.environment,
            commands=0,
            ran=0,
            stopped_at=None,
            detail="",
            rerun=None,
            evidence=(),
            evidence_digest="sha256:" + "0" * 64,
        )
    )
    assert look(built).older
    pages.build(Facts(built.records.read(), built.evidence), built.root / "site")
    assert not look(built).older


def test_a_site_of_another_version_is_not_compared(built: Written) -> None:
    index = built.root / "site" / "index.json"
    replace(index, json.dumps({**json.loads(index.read_bytes()), "built_by": "0.0.9"}).encode())
    assert "built by version 0.0.9" in look(built).not_compared


def test_what_was_not_compared_is_not_said_to_hold(tmp_path: Path) -> None:
    """Whoever changes a page may write any version into the index: then "all holds" would be too much."""
    written = Written(tmp_path)
    written.write((Try("r-1", "square", end="open"),))
    pages.build(Facts(written.records.read(), written.evidence), tmp_path / "site")
    replace(tmp_path / "site" / "board.html", b"better")
    index = tmp_path / "site" / "index.json"
    replace(index, json.dumps({**json.loads(index.read_bytes()), "built_by": "0.0.9"}).encode())
    verified = CliRunner().invoke(make_app("verify"), ["verify", "--workspace", str(tmp_path)])
    assert verified.exit_code == EXIT_COULD_NOT_VERIFY, verified.output
    assert verified.stdout.startswith("what could be compared holds; not all could be\n")


@pytest.fixture
def lettered(tmp_path: Path) -> Path:
    """A workspace with one named agent and a built site."""
    Written(tmp_path).write((Try("r-1", "square", agent="maker-1", end="open"),))
    assert invoke("site", "build", tmp_path).exit_code == EXIT_PASS
    assert invoke("verify", tmp_path).exit_code == EXIT_PASS
    return tmp_path


def invoke(*arguments: str | Path) -> Result:
    *command, workspace = map(str, arguments)
    return CliRunner().invoke(make_app(command[0]), [*command, "--workspace", workspace])


def test_a_missing_mapping_is_said_to_be_missing_and_no_page_to_be_changed(lettered: Path) -> None:
    (lettered / "names.json").unlink()
    verified = invoke("verify", lettered)
    assert verified.exit_code == EXIT_COULD_NOT_VERIFY, verified.output
    assert "names.json, which says what each letter of the site stands for, is missing" in verified.stdout
    assert "so the site was not compared: put it back from a copy" in verified.stdout
    assert json.loads(invoke("verify", "--json", lettered).stdout)["site"]["todo"] == "put it back from a copy"


def test_letters_are_not_given_anew_beside_a_site_that_quotes_the_old_ones(lettered: Path) -> None:
    kept = (lettered / "names.json").read_bytes()
    other = json.loads(kept)
    other["agents"][0]["salt"] = "0" * 64
    before = (lettered / "site" / "index.json").read_bytes()
    for lost in (None, json.dumps({**other, "agents": []}), json.dumps(other)):
        (lettered / "names.json").unlink()
        if lost is not None:
            (lettered / "names.json").write_text(lost)
        refused = invoke("site", "build", lettered).exception
        assert isinstance(refused, UsageError)
        assert "the mapping of neutral names that the site in" in refused.message
        assert (lettered / "site" / "index.json").read_bytes() == before
        (lettered / "names.json").write_bytes(kept)
    assert invoke("site", "build", lettered).exit_code == EXIT_PASS


def test_another_mapping_is_said_to_be_another(lettered: Path) -> None:
    names = json.loads((lettered / "names.json").read_bytes())
    names["agents"][0]["salt"] = "0" * 64
    (lettered / "names.json").write_text(json.dumps(names))
    refused = invoke("verify", lettered).exception
    assert isinstance(refused, Finding)
    assert refused.message == "the site quotes another mapping of neutral names than names.json holds"


def test_strays_among_the_evidence_are_named_and_blobs_are_not(built: Written) -> None:
    root = built.root / "evidence"
    blob = next(iter(built.evidence.digests())).removeprefix("sha256:")
    (root / "ab").mkdir(exist_ok=True)
    (root / "ab" / "stray").write_bytes(b"x")
    (root / "zz").mkdir()
    (root / "zz" / blob).write_bytes(b"x")
    (root / ".incoming-1-x").write_bytes(b"")
    (root / "link").symlink_to(root / blob[:2])
    before = len(list(built.evidence.digests()))
    assert [str(path) for path in built.evidence.strays()] == ["link", "ab/stray", f"zz/{blob}"]
    assert len(list(built.evidence.digests())) == before
