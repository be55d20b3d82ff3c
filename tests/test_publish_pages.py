"""The pages of a workspace in every state: what they say, what they link, and that nothing in them runs."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.core.records import AttemptEnded
from referee.core.report import parse_report
from referee.core.spending import SpendingFacts
from referee.errors import Finding, UsageError
from referee.publish import pages, words
from referee.publish.attachments import WHAT
from referee.publish.facts import Facts
from referee.runner.seal import NAMES
from tests.publish_workspace import HOSTILE, OBSERVED, TRIES, Try, Written, report
from tests.read_pages import Page, build, document, read


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Written:
    written = Written(tmp_path_factory.mktemp("workspace"))
    written.write()
    build(written)
    return written


def test_every_page_is_well_formed_and_every_link_resolves(workspace: Written) -> None:
    site = workspace.root / "site"
    found = sorted(site.rglob("*.html"))
    assert len(found) == 3 + len({one.subject for one in TRIES}) + len(TRIES)
    for file in found:
        page = Page(file.read_text(encoding="utf-8"))
        assert len(page.ids) == len(set(page.ids))
        assert sum(tag == "h1" for tag, _ in page.tags) == 1
        assert sum(tag == "main" for tag, _ in page.tags) == 1
        for link in page.links:
            parts = urlsplit(link)
            assert not parts.scheme, f"{file.name} links {link}"
            assert not parts.netloc
            target = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
            assert target.is_file(), f"{file.name} links {link}, which is not there"
            assert target.is_relative_to(site)
            if parts.fragment and target.suffix == ".html":
                assert parts.fragment in Page(target.read_text(encoding="utf-8")).ids


def test_every_page_forbids_what_it_does_not_need(workspace: Written) -> None:
    for file in (workspace.root / "site").rglob("*.html"):
        page = Page(file.read_text(encoding="utf-8"))
        policy = next(given["content"] or "" for tag, given in page.tags if "Content-Security-Policy" in given.values())
        assert policy.startswith("default-src 'none'")
        assert "unsafe-inline" not in policy
        assert "http" not in policy
        assert not any(name.startswith("on") or name == "style" for _, given in page.tags for name in given)
        assert not any(tag == "style" for tag, _ in page.tags)
        assert all(given.get("src") for tag, given in page.tags if tag == "script")


def test_tables_have_captions_and_scoped_heads(workspace: Written) -> None:
    for name in ("index.html", "board.html", "subjects/square.html", "runs/r-000000000pass.html"):
        page = read(workspace, name)
        tables = sum(tag == "table" for tag, _ in page.tags)
        assert tables
        assert sum(tag == "caption" for tag, _ in page.tags) == tables
        assert all(given.get("scope") for tag, given in page.tags if tag == "th")


def test_hostile_text_is_text(workspace: Written) -> None:
    page = read(workspace, "runs/r-000000hostile.html")
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert sum(tag == "img" for tag, _ in page.tags) == 0
    raw = (workspace.root / "site/runs/r-000000hostile.html").read_bytes()
    assert b"\x1b" not in raw
    assert "\u202e".encode() not in raw
    assert "{{7*7}}" in page.text
    assert "49" not in re.findall(r"\b49\b", page.text)
    assert page.text.count('document.title="owned"') >= 5
    assert "\\x1b]0;owned\\x07\\u202e" in page.text
    assert HOSTILE.split("\x1b", maxsplit=1)[0] in read(workspace, "runs/r-0000000fail01.html").text


def test_what_was_observed_beside_the_re_run_is_shown(workspace: Written) -> None:
    text = read(workspace, "runs/r-000000hostile.html").text
    for said in (
        "while the command ran again",
        "8123",
        "as pinned: tests/test_a.py",
        "On a fresh machine without the project",
        "Chosen input 1",
        "stopped at its time limit",
    ):
        assert said in text
    assert "Listening ports and sockets" not in read(workspace, "runs/r-000000000pass.html").text


def test_the_cast_script_carries_text_only(workspace: Written) -> None:
    script = (workspace.root / "site/runs/r-000000hostile/cast-1.js").read_text("ascii")
    match = re.fullmatch(r'refereeCast\(1, ("(?:[^"\\]|\\.)*")\);\n', script)
    assert match is not None
    cast = json.loads(match[1])
    assert "12 squared is 144" in cast
    assert "owned" not in cast
    assert "\\u001b]" not in cast


@pytest.mark.parametrize(
    ("subject", "verdict", "words"),
    [
        ("square", "runs", "runs"),
        ("mailer", "runs_with_mocks", "runs with mocks"),
        ("pygraphviz", "could_not_verify", "could not verify"),
        ("slowbuild", "not_yet_verified", "not yet verified"),
        ("segno", "not_yet_verified", "not yet verified"),
    ],
)
def test_verdicts_are_said_in_words(workspace: Written, subject: str, verdict: str, words: str) -> None:
    page = read(workspace, f"subjects/{subject}.html")
    assert words in page.text
    assert "broken" not in page.text.lower()
    assert document(workspace, f"subjects/{subject}.json")["verdict"] == verdict


def test_a_run_page_holds_all_that_a_result_needs(workspace: Written) -> None:
    text = read(workspace, "runs/r-000000000pass.html").text
    one = document(workspace, "runs/r-000000000pass/run.json")
    assert one["schema"] == "referee.run/1"
    for said in (
        "93.33 of 100",
        "pass, verified for real",
        "pypi:square==1.2.0",
        "standard, 1 h 30 min 0 s",
        "referee-env:default",
        "sha256:" + "12" * 32,
        "sha256:" + "34" * 32,
        "instructions:sha256:" + "56" * 32,
        "Make it run. <i>Be honest.</i>",
        "memory 4 GiB",
        "apt-get install libgraphviz-dev",
        "square printed 144 for 12, the quickstart works.",
        "a security boundary",
        "bash 5.2.15-2+b7",
        "Nothing is recorded as masked",
        one["evidence"],
        *(file["digest"] for file in one["files"]),
    ):
        assert said in text, said
    assert one["report"]["final_state"] == "square printed 144 for 12 — the quickstart works."


def test_both_editions_are_shown_and_the_one_of_the_run_counts(workspace: Written) -> None:
    one = document(workspace, "runs/r-0000contradic/run.json")
    assert [(score["edition"], score["total"], score["counts"]) for score in one["scores"]] == [
        (1, 100, False),
        (2, 80, True),
    ]
    assert one["total"] == 80
    text = read(workspace, "runs/r-0000contradic.html").text
    assert "Contradicted: flagged for a person." in text
    assert "contradicted and a person has not looked at it" in text


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("r-000000invalid", "Invalid: not counted. the recording reached its size cap"),
        ("r-0000rejected1", "The report was rejected: the report's field 'started': Field required"),
        ("r-0000000found1", "Invalid: not counted. the harness died during the attempt"),
        ("r-00000000open1", "No end is recorded."),
        ("r-00000overlay1", "Overlay: no security boundary, never publishable."),
        ("r-00000overlay1", "its budget was 60 s; the published standard budget is 5400 s"),
        ("r-000000timeout", "the time limit ended the agent's work"),
    ],
)
def test_what_does_not_count_is_shown_with_its_reason(workspace: Written, run: str, said: str) -> None:
    assert said in read(workspace, f"runs/{run}.html").text
    assert run in (workspace.root / "site/subjects" / f"{_subject(run)}.html").read_text()


def test_excluded_figures_stay_on_the_board_and_are_marked(workspace: Written) -> None:
    text = read(workspace, "board.html").text
    assert "the runs lie too far apart" in text
    assert "the subject is under review" in text
    board = document(workspace, "board.json")
    assert [line["agent"]["label"] for line in board["standings"]] == ["Agent A", "baseline"]
    own = next(line for line in board["standings"] if line["agent"]["label"] == "baseline")
    sets = {one["subject"]: one for one in own["subjects"]}
    assert sets["wobbly"]["excluded"]
    assert len(sets["wobbly"]["totals"]) == 3
    assert own["attempts_invalid"] == 3
    assert own["subjects_counted"] < len(sets)


def test_the_page_lists_what_the_recording_tells_that_the_agent_did(tmp_path: Path) -> None:
    def announced(**said: Any) -> bytes:
        return b"\x1b]7713;referee.step;" + base64.b64encode(json.dumps({"key": "k", **said}).encode()) + b"\x07"

    told = [announced(n=1, command="make <b>all</b>"), announced(n=1, ended=True, status=2, took=1.0)]
    told += [announced(n=2, write="/work/new.py", text="x = 1")]
    written = Written(tmp_path)
    written.write((Try("r-1", "a", raw_more=b"".join(told)), Try("r-2", "a", index=2)))
    build(written)
    page = read(written, "runs/r-1.html").text
    assert "What the recording tells that the agent did: 2 steps" in page
    assert "status 2 make <b>all</b>" in page
    assert "file written: /work/new.py" in page
    assert "What the recording tells that the agent did" not in read(written, "runs/r-2.html").text


def test_every_file_of_evidence_is_said_to_be_what_it_is() -> None:
    assert [name for name in (*NAMES, "masked.json", "manifest.json") if name not in WHAT] == []


@pytest.mark.parametrize(
    ("status", "said"), [(127, "it must not succeed there, and did not"), (0, "it succeeded there")]
)
def test_the_page_says_what_the_negative_control_is_for(tmp_path: Path, status: int, said: str) -> None:
    assert OBSERVED.control is not None
    control = OBSERVED.control.model_copy(update={"exit_status": status})
    written = Written(tmp_path)
    written.write((Try("r-1", "a", observed=OBSERVED.model_copy(update={"control": control})),))
    build(written)
    assert f"exit status {status}Empty directories stand" in read(written, "runs/r-1.html").text
    assert said in read(written, "runs/r-1.html").text


def test_a_run_that_its_keys_cap_stopped_looks_like_one(tmp_path: Path) -> None:
    written = Written(tmp_path)
    spending = SpendingFacts(
        broker="gateway", key="k", model="m", cap_usd=3.0, spent_usd=2.99, capped=True, deleted=True, how="so"
    )
    written.write((Try("r-1", "a", None, spending=spending), Try("r-2", "a", None, index=2)))
    build(written)
    page = read(written, "runs/r-1.html").text
    assert "cap stopped its calls. Its key had a cap of 3.00 USD" in page
    assert "Caps of the recording reached" in page
    assert "cap stopped its calls" not in read(written, "runs/r-2.html").text


def test_agents_appear_under_neutral_identities(workspace: Written) -> None:
    for file in (workspace.root / "site").rglob("*"):
        if file.suffix in {".html", ".json"}:
            assert b"acme-coder" not in file.read_bytes(), file
    one = document(workspace, "runs/r-000000vendor1/run.json")
    assert one["agent"] == "Agent A"
    assert one["agent_digest"] == "agent:sha256:" + "ef" * 32


def test_figures_and_raw_files_come_from_the_same_bytes(workspace: Written) -> None:
    for record in workspace.records.read():
        if not isinstance(record, AttemptEnded):
            continue
        page = workspace.root / "site/runs" / f"{record.run}.html"
        links = [link for link in Page(page.read_text()).links if link.endswith(".bin")]
        digests = {"sha256:" + hashlib.sha256((page.parent / link).read_bytes()).hexdigest() for link in links}
        assert digests == {ref.digest for ref in record.evidence}


def test_evidence_is_downloaded_never_shown(workspace: Written) -> None:
    page = read(workspace, "runs/r-000000hostile.html")
    linked = [given for tag, given in page.tags if tag == "a" and (given.get("href") or "").endswith(".bin")]
    assert linked
    assert all(given.get("download") for given in linked)


def test_an_empty_workspace_has_pages_too(tmp_path: Path) -> None:
    written = Written(tmp_path)
    build(written)
    assert "No attempt has been recorded yet" in read(written, "index.html").text
    assert "No attempt has been recorded yet" in read(written, "board.html").text


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_anywhere(workspace: Written) -> None:
    program = (
        "import sys, locale, contextlib\nfrom pathlib import Path\nfrom tests.publish_workspace import Written\n"
        "from referee.publish import pages\nfrom referee.publish.facts import Facts\n"
        "with contextlib.suppress(locale.Error):\n    locale.setlocale(locale.LC_ALL, '')\n"
        "written = Written(Path(sys.argv[1]))\n"
        "pages.build(Facts(written.records.read(), written.evidence), Path(sys.argv[2]))\n"
    )
    for zone, language, seed in (("Pacific/Kiritimati", "tr_TR.UTF-8", "1"), ("America/St_Johns", "C", "2")):
        again = workspace.root / f"again-{seed}"
        environment = {**os.environ, "TZ": zone, "LC_ALL": language, "PYTHONHASHSEED": seed}
        argv = [sys.executable, "-c", program, str(workspace.root), str(again)]
        subprocess.run(argv, check=True, env=environment, cwd=Path(__file__).parents[1])
        assert _listing(again) == _listing(workspace.root / "site")


def test_a_directory_that_is_no_site_is_left_alone(workspace: Written, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mother.txt").write_text("dear mother")
    with pytest.raises(UsageError, match="no built site"):
        pages.build(Facts([], workspace.evidence), tmp_path / "letters")
    assert (tmp_path / "letters" / "to-mother.txt").read_text() == "dear mother"


def test_names_that_would_leave_the_site_are_refused(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "../../outside"),))
    with pytest.raises(Finding, match="no name for a page"):
        build(written)
    assert not (tmp_path / "site").exists()


@pytest.fixture(scope="module")
def rendered(workspace: Written) -> Callable[[str], Page]:
    """The page of a run whose report says a text wherever it can."""
    facts = Facts(workspace.records.read(), workspace.evidence)
    run = facts.run(facts.find("r-000000000pass"))
    whole = facts.detail(run)
    template = pages.templates().get_template("run.html")

    def of(text: str) -> Page:
        errors = [{"what": text, "fixed": True, "how": text}]
        said = json.dumps(report(final_state=text, errors=errors, verified_how=text)).encode()
        detail = dataclasses.replace(whole, report=parse_report(said), report_rejected=text, instructions=text)
        return Page(template.render(root="../", policy="", here="", run=run, detail=detail, cast=None, cast_fault=text))

    return of


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_text_of_an_agent_is_shown_and_nothing_but_shown(rendered: Callable[[str], Page], text: str) -> None:
    shown = rendered(text)
    assert shown.tags == rendered("harmless").tags
    assert re.sub(r"\s+", " ", words.visible(text)).strip() in shown.text


def test_the_flow_picture_is_one_and_the_same() -> None:
    docs = Path(__file__).parents[1] / "docs" / "flow.svg"
    wide, narrow = ((pages.ASSETS / name).read_text(encoding="utf-8") for name in ("flow.svg", "flow-narrow.svg"))
    assert docs.read_text(encoding="utf-8") == wide
    said = [
        re.sub(r"<style>.*?</style>|<[^>]*>|[^a-z ]", " ", text, flags=re.DOTALL).split() for text in (wide, narrow)
    ]
    assert sorted(said[0]) == sorted(said[1])


def _subject(run: str) -> str:
    return next(one.subject for one in TRIES if one.run == run)


def _listing(root: Path) -> dict[str, str]:
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
