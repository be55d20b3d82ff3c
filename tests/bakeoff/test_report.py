"""The report: the same bytes wherever it is built, everything that must stand in it, nothing in it that runs."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from markdown_it import MarkdownIt

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import scan_shard
from referee.cli.app import main
from referee.core.records import MarketSnapshot
from referee.errors import Finding, NothingMatched, UsageError
from referee.publish.bakeoff import markdown
from referee.publish.bakeoff.export import COLUMNS, export
from referee.publish.bakeoff.report import write_report
from referee.publish.facts import Facts
from referee.publish.words import visible
from referee.runner.bakeoff.report import gather, shards_of
from referee.runner.verify_site import verify_site
from tests.bakeoff.report_workspace import FORMULA, HOSTILE, Verdict, World

SECTIONS = {
    "board": "Headline",
    "limitations": "Limitations that may not be left out",
    "ground": "What this report stands on",
    "lanes": "Lanes and what they leave uncontrolled",
    "pairs": "Which pairs a paired test separates",
    "categories": "Categories and languages",
    "arms": "Additions: arms beside the headline",
    "lane-limited": "Lane-limited: not ranked",
    "gold": "Trust in the gold",
    "failures": "Where attempts failed",
    "coverage": "Coverage and transport",
    "power": "What difference this report can detect",
    "latency": "Latency",
    "comparisons": "Registered comparisons and matched lanes",
    "market": "Market snapshots",
    "decisions": "Decision log",
    "evidence": "Evidence",
    "cases": "Cases and their attempts",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("world")).write()
    (world.root / "referee.toml").write_text("")
    run("report", "board", "--all", root=world.root)
    return world


@pytest.fixture(scope="module")
def report(world: World) -> Path:
    return world.root / "site" / "bakeoff" / "board"


@dataclass(frozen=True)
class Done:
    """What a command answered."""

    code: int
    stdout: str
    stderr: str


def run(*argv: str, root: Path, code: int = 0) -> Done:
    """One command of the group in this process: what counts here is what it says and its exit code."""
    said, complained = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        patched.setattr(sys, "argv", ["referee", "bakeoff", *argv, "-w", str(root)])
        with pytest.raises(SystemExit) as ended:
            main()
    done = Done(int(ended.value.code or 0), said.getvalue(), complained.getvalue())
    assert done.code == code, done.stderr
    return done


def run_apart(*argv: str, root: Path, environment: dict[str, str]) -> None:
    """One command of the group in a process of its own, under other settings."""
    command = [sys.executable, "-m", "referee.cli.app", "bakeoff", *argv, "-w", str(root)]
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True, timeout=120, check=True)


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_report_is_the_same_to_the_byte_elsewhere(world: World, report: Path, tmp_path: Path) -> None:
    first = tree(report)
    assert {"index.html", "report.md", "report.json", "attempts.csv", "attempts.parquet", "SHA256SUMS"} < set(first)
    elsewhere = tmp_path / "another place"
    shutil.copytree(world.root, elsewhere, ignore=shutil.ignore_patterns("site"))
    named = [part for shard in reversed(world.shards) for part in ("--shard", shard)]
    settings = {"TZ": "Pacific/Kiritimati", "LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "17"}
    run_apart("report", "board", *named, root=elsewhere, environment=settings)
    again = tree(elsewhere / "site" / "bakeoff" / "board")
    assert list(again) == list(first)
    assert [name for name in first if first[name] != again[name]] == []


def test_no_path_of_this_machine_stands_in_the_report(world: World, report: Path) -> None:
    texts = {name: data for name, data in tree(report).items() if not name.endswith(".parquet")}
    assert [name for name, data in texts.items() if str(world.root).encode() in data or b"/tmp/" in data] == []


def test_every_section_stands_in_page_and_markdown(report: Path) -> None:
    page = (report / "index.html").read_text("utf-8")
    text = (report / "report.md").read_text("utf-8")
    assert re.findall(r'<h2 id="([a-z-]+)">', page) == list(SECTIONS)
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == list(SECTIONS.values())
    assert page.count("Backed by <code>") == len(SECTIONS)


@pytest.mark.parametrize(
    "said",
    [
        "Model plus lane: a row never measures a model alone",
        "Tier viability+ (30 cases or more, not of gate quality: an indication, no gate): free-tier, own-strong",
        "Subset rows, not to be compared with full rows: cli-agent (s1-20)",
        "Unpinnable lanes: temperature and seed cannot be set for cli-agent",
        "The arm abstain-traps is never pooled into the headline",
        "The arm ordering-v1 is never pooled into the headline, and is unranked",
        "Latency includes the lane",
        "Abstention is discipline, not helpfulness",
        "1075 physical rows in 6 shards; of the usable ones 580 stand in the capability arm, 288 in additions",
        "2 decisions, 1 of which amend the protocol; 1 logged late",
        "the host's user configuration",
        "more than 50",
        "http-402 177",
    ],
)
def test_what_may_not_be_left_out_stands_there(report: Path, said: str) -> None:
    page = " ".join(Text.of(report / "index.html").split())
    assert said in page


def test_the_numbers_of_the_page_are_those_of_the_json(report: Path) -> None:
    summary = json.loads((report / "report.json").read_bytes())["summary"]
    page = Text.of(report / "index.html")
    rows = [row for board in summary["boards"] for row in board["rows"]]
    assert [row["about"]["target"] for row in rows] == ["own-strong", "free-tier", "weak-one", "cli-agent"]
    for row in rows:
        rate = row["figures"]["rate"]
        wilson = rate["wilson"]
        said = " ".join(
            f"{100 * value:.1f}".removesuffix(".0") for value in (rate["value"], wilson["low"], wilson["high"])
        )
        assert said in page.replace("[", "").replace("]", "").replace(",", "").replace(" %", "")
    assert [row["about"]["target"] for row in summary["lane_limited"]] == ["out-of-funds"]


def test_gold_suspects_are_reported_with_and_without(world: World, report: Path) -> None:
    summary = json.loads((report / "report.json").read_bytes())["summary"]
    suspects = {case["case"]: case for case in summary["gold"]}
    wrong = suspects[world.case_ending("03")]
    assert wrong["review"] == "wrong"
    assert not wrong["ranks"]
    first = summary["boards"][0]["rows"][0]
    assert first["with_flagged"]["n"] > first["without_flagged"]["n"]
    assert "Gold trust: the same rates with and without the flagged cases" in Text.of(report / "index.html")


def test_a_case_has_a_page_with_reasons_and_evidence(world: World, report: Path) -> None:
    page = Text.of(report / "cases" / f"{world.case_ending('03')}.html")
    assert "argument `date`: expected 2026-07-24, got 24.07.2026" in page
    assert "answers-20261127T090000Z-aaaa.log at 60, 10 bytes" in page
    assert "sha256:" + "ab" * 32 in page
    assert page.count("does not count: an older row fills the slot") == 3
    assert len(list((report / "cases").iterdir())) == 69


def test_nothing_hostile_becomes_markup(report: Path) -> None:
    for path in report.rglob("*.html"):
        found = Text()
        found.feed(path.read_text("utf-8"))
        assert not found.tags & {"script", "img", "iframe", "object", "style", "form", "b", "strong"}, path.name
        assert all(not link.startswith(("http", "javascript", "//")) for link in found.links), path.name
        assert "\x1b" not in found.text
        assert "\u202e" not in found.text
    assert "owned" in Text.of(report / "index.html")


def test_nothing_hostile_becomes_markup_in_markdown(report: Path) -> None:
    text = (report / "report.md").read_text("utf-8")
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(text)
    flat = [token for top in tokens for token in (top, *(top.children or ()))]
    assert not [token for token in flat if token.type in {"html_inline", "html_block", "image", "strong_open"}]
    assert {str(token.attrGet("href")).split("/")[0] for token in flat if token.type == "link_open"} == {"cases"}
    assert not re.search(r"(?<!\\)https?://", text)
    headings = [flat[at + 1].content for at, token in enumerate(flat) if token.type == "heading_open"]
    assert "heading" not in headings
    tables = sum(token.type == "table_open" for token in flat)
    assert tables >= 15
    for table in re.findall(r"(?m)(?:^\|.*\n)+", text):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table.splitlines()[0]


@pytest.mark.parametrize(
    "raw",
    [
        HOSTILE,
        "# x",
        "- x",
        "1. x",
        "2) x",
        "+ x",
        "= x",
        "2026-11-30 x",
        "-",
        "1)",
        "a | b",
        "`x`",
        "_a_ *b* ~~c~~",
        "<b>",
        "&lt;",
        "www.evil.example",
        "a@b.example",
    ],
)
def test_markdown_shows_text_as_itself(raw: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown.text(raw))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children) == " ".join(visible(raw).split())


def test_the_export_has_every_row_on_ten_columns(world: World, report: Path) -> None:
    summary = json.loads((report / "report.json").read_bytes())["summary"]
    with (report / "attempts.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    names = [name for name, _, _ in COLUMNS]
    assert names == [
        *("run_id", "started_at", "target", "lane", "case_id"),
        *("category", "k_idx", "passed", "infra_class", "latency_ms"),
    ]
    assert rows[0] == names
    lines = [json.loads(line) for line in (report / "attempts.jsonl").read_text().splitlines()]
    parquet = duckdb.read_parquet(str(report / "attempts.parquet"))
    assert parquet.columns == names
    columnar = [dict(zip(names, row, strict=True)) for row in parquet.fetchall()]
    assert len(rows) - 1 == len(lines) == len(columnar) == summary["totals"]["physical_rows"] == 1075
    assert lines == columnar
    slots = {(line["target"], line["case_id"], line["k_idx"]) for line in lines}
    assert len(slots) == 1075 - 207  # nothing is deduplicated
    assert {line["passed"] for line in lines} == {True, False, None}
    first = scan_shard(world.records / min(world.shards))
    assert lines[0]["run_id"] == first.opened.run
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=report, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.count(": OK") == 3


def test_a_formula_stays_text_in_the_csv(world: World, tmp_path: Path) -> None:
    spare = World(tmp_path / "spare")
    name = spare.shard("own-strong", lambda *_: Verdict(), run=FORMULA)
    export([scan_shard(spare.records / name)], tmp_path / "out")
    with (tmp_path / "out" / "attempts.csv").open(newline="") as file:
        assert {row["run_id"] for row in csv.DictReader(file)} == {"'" + FORMULA}
    assert FORMULA in (tmp_path / "out" / "attempts.jsonl").read_text()


def test_a_torn_line_is_no_row_and_is_named(tmp_path: Path) -> None:
    spare = World(tmp_path / "spare")
    whole = spare.shard("own-strong", lambda *_: Verdict())
    last = (spare.records / whole).read_bytes().splitlines()[-2]
    torn = spare.shard("own-strong", lambda *_: Verdict(), token="20261129T090000Z-cccc", torn=last)
    basis = gather(spare.log, spare.evidence, "board", [spare.records / whole, spare.records / torn])
    write_report(basis, tmp_path / "site" / "bakeoff" / "board")
    out = tmp_path / "site" / "bakeoff" / "board"
    assert basis.summary.totals.physical_rows == 414
    assert len((out / "attempts.jsonl").read_text().splitlines()) == 414
    assert f"{len(last)} bytes of a torn last line" in Text.of(out / "index.html")


def test_markets_of_later_runs_are_no_part_of_a_report(world: World) -> None:
    shard = world.records / world.shards[0]
    before = gather(world.log, world.evidence, "board", [shard])
    assert [one.target for one in before.market] == ["own-strong"]
    later = MarketSnapshot(
        run="r-later", protocol="board", target="own-strong", at="2027-01-01", source="x", said=None, detail="later"
    )
    log = RecordFiles(world.root / "records", kind="bakeoff")
    log.append(later)
    assert gather(log, world.evidence, "board", [shard]).market == before.market


def test_shards_are_named_and_whole_or_refused(world: World, tmp_path: Path) -> None:
    records, named = world.records, world.shards
    for names, said in (
        ([], "no shard is named"),
        (["../records/" + named[0]], "bears a path"),
        ([str(records / named[0])], "bears a path"),
        ([named[0], named[0]], "is named twice"),
        (["attempts-x.jsonl"], "is no name of a shard"),
    ):
        with pytest.raises(UsageError, match=said):
            shards_of(records, "board", names, every=False)
    with pytest.raises(NothingMatched, match="there is no shard"):
        shards_of(records, "board", ["results-gone.jsonl"], every=False)
    with pytest.raises(NothingMatched, match="has no shard yet"):
        shards_of(records, "other", [], every=True)
    broken = tmp_path / named[0]
    broken.write_bytes((records / named[0]).read_bytes().replace(b'"passed":true', b'"passed":null', 1))
    with pytest.raises(Finding, match=r"does not continue|canonical"):
        gather(world.log, world.evidence, "board", [broken])
    with pytest.raises(Finding, match="is not frozen"):
        gather(world.log, world.evidence, "other", [records / named[0]])
    foreign = World(tmp_path / "foreign")
    lines = (records / named[0]).read_bytes().replace(b'"protocol":"board"', b'"protocol":"bored"')
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / named[0]).write_bytes(lines)
    with pytest.raises(Finding):
        gather(foreign.log, foreign.evidence, "board", [tmp_path / "x" / named[0]])


def test_the_site_lists_the_report_and_keeps_it(world: World, report: Path) -> None:
    before = tree(report)
    done = subprocess.run(
        [sys.executable, "-m", "referee.cli.app", "site", "build", "-w", str(world.root)],
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0
    assert tree(report) == before
    listed = Text.of(report.parent / "index.html")
    assert "board" in listed
    assert json.loads((report.parent / "index.json").read_bytes())["reports"][0]["shards"] == 6
    site = world.root / "site"
    facts = Facts(RecordFiles(world.root / "records").read(), LocalEvidence(world.root / "evidence"))
    assert verify_site(facts, site).not_compared == ""
    (site / "bakeoff" / "stray.html").write_text("x")
    with pytest.raises(Finding, match="stray"):
        verify_site(facts, site)
    (site / "bakeoff" / "stray.html").unlink()


def test_every_link_of_the_report_leads_somewhere(world: World, report: Path) -> None:
    for path in report.parent.rglob("*.html"):
        found = Text()
        found.feed(path.read_text("utf-8"))
        for link in found.links:
            target, _, fragment = link.partition("#")
            there = (path.parent / target).resolve() if target else path
            assert there.is_file(), f"{path.name}: {link}"
            assert not fragment or f'id="{fragment}"' in there.read_text("utf-8"), f"{path.name}: {link}"


@pytest.mark.parametrize(
    ("argv", "schema", "keys"),
    [
        (
            ("report", "board", "--all"),
            "referee.bakeoff-report-written/1",
            {"protocol", "page", "open", "shards", "summary"},
        ),
        (("pairs", "board", "own-strong", "weak-one", "--all"), "referee.bakeoff-pairs/1", {"protocol", "comparison"}),
        (("decisions", "board"), "referee.bakeoff-decisions/1", {"protocol", "freezes", "amending", "decisions"}),
        (("targets", "list"), "referee.bakeoff-targets/1", {"targets"}),
        (("targets", "show", "own-strong"), "referee.bakeoff-target/1", {"target", "surface"}),
        (("freeze", "board"), "referee.bakeoff-freeze/1", {"protocol", "at", "digest", "files", "by", "decision"}),
    ],
)
def test_json_is_one_document_with_its_schema(world: World, argv: tuple[str, ...], schema: str, keys: set[str]) -> None:
    document: dict[str, Any] = json.loads(run(*argv, "--json", root=world.root).stdout)
    assert document["schema"] == schema
    assert set(document) == {"schema", *keys}


def test_a_pair_that_was_not_registered_says_so(world: World) -> None:
    asked = run("pairs", "board", "weak-one", "own-strong", "--all", root=world.root).stdout
    assert "it was not registered before the run" in asked
    registered = run("pairs", "board", "free-tier", "own-strong", "--all", root=world.root).stdout
    assert "one model, two lanes" in registered
    assert "it was not registered" not in registered


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("report", "board"), 2, "no shard is named"),
        (("report", "nope", "--all"), 5, "has no shard yet"),
        (("report", "board", "--shard", "/etc/passwd"), 2, "bears a path"),
        (("pairs", "board", "own-strong", "own-strong", "--all"), 2, "compared with itself"),
        (("pairs", "board", "own-strong", "gone", "--all"), 5, "have no row of gone"),
        (("targets", "show", "gone"), 5, "no target named 'gone'"),
        (("init", "board"), 2, "is there already"),
        (("init", "x/y"), 2, "is no name of a protocol"),
        (("init", "new", "--suite", "nothing"), 5, "no suite named 'nothing'"),
        (("init", "new", "--suite", "nothing.json"), 5, "there is no file"),
        (("init", "new", "--target", "gone"), 5, "no target named 'gone'"),
        (("decide", "board", "x", "--reason", "y", "--on", "yesterday"), 2, "is no day"),
        (("review", "board", "gone", "--wrong", "--note", "x"), 5, "has no case 'gone'"),
    ],
)
def test_bad_input_is_one_sentence_and_its_exit_code(world: World, argv: tuple[str, ...], code: int, said: str) -> None:
    done = run(*argv, root=world.root, code=code)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert not (world.root / "protocols" / "new").exists()


class Text(HTMLParser):
    """The text of a page, its tags and its links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: set[str] = set()
        self.links: list[str] = []

    @classmethod
    def of(cls, path: Path) -> str:
        read = cls()
        read.feed(path.read_text("utf-8"))
        return read.text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_report_of_very_many_cases_says_what_has_no_page(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("referee.publish.bakeoff.attempts.MOST_CASES", 5)
    monkeypatch.setattr("referee.publish.bakeoff.attempts.MOST_ATTEMPTS", 4)
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    write_report(basis, tmp_path / "board")
    paged = sorted(path.stem for path in (tmp_path / "board" / "cases").iterdir())
    assert len(paged) == 5
    assert "64 further cases have no page here" in Text.of(tmp_path / "board" / "index.html")
    page = Text.of(tmp_path / "board" / "cases" / f"{paged[0]}.html")
    assert re.search(r"\d+ passed or excluded rows are left out", page)
    assert page.count("answers-2026") == 4
