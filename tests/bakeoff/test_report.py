"""The report: the same bytes wherever it is built, everything that must stand in it, nothing in it that runs."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.errors import Finding
from referee.publish.bakeoff import markdown
from referee.publish.bakeoff.report import write_report
from referee.publish.facts import Facts
from referee.publish.mapping import FILE_NAME, read_mapping
from referee.publish.words import visible
from referee.runner.bakeoff.report import gather
from referee.runner.verify_site import verify_site
from tests.bakeoff.report_reading import Text, run, run_apart, tree
from tests.bakeoff.report_workspace import HOSTILE, World

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

SECTIONS = {
    "board": "Headline",
    "limitations": "Limitations that may not be left out",
    "ground": "What this report stands on",
    "lanes": "Lanes and what they leave uncontrolled",
    "pairs": "Which pairs a paired test separates",
    "categories": "Categories and languages",
    "arms": "Additions: arms beside the headline",
    "lane-limited": "Not ranked",
    "gold": "Trust in the gold",
    "failures": "Where attempts failed",
    "coverage": "Coverage and transport",
    "power": "What difference this report can detect",
    "latency": "Latency",
    "comparisons": "Registered comparisons and matched lanes",
    "market": "Market snapshots",
    "protocol": "The protocol, as it is frozen",
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
        "an indication, no gate): free-tier · hosted free tier, own-strong · own infrastructure",
        "Subset rows, not to be compared with full rows: cli-agent · agent CLI claude 2.1.0 (s1-20)",
        "Unpinnable lanes: temperature and seed cannot be set for cli-agent · agent CLI",
        "The arm abstain-traps is never pooled into the headline",
        "The arm ordering-v1 is never pooled into the headline, and is unranked",
        "Gold-suspect cases: 8 out of the ranking until reviewed; 1 out of it, as a review found the gold wrong; 1",
        "Latency includes the lane",
        "Abstention is discipline, not helpfulness",
        "1075 physical rows in 6 shards; of the usable ones 580 stand in the capability arm, 288 in additions",
        "2 decisions, 1 of which amend the protocol; 1 logged late",
        "the host's user configuration",
        "more than 50",
        "http-402 177",
        "targets/cli-agent.toml (s1-20)",
        "sampling.temperature",
        "guards.credit",
        "bootstrap.seed",
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
    page = Text.of(report / "index.html")
    assert "Gold trust: the same rates with and without the flagged cases" in page
    traps = next(arm for arm in summary["arms"] if arm["arm"] == "abstain-traps" and arm["subset"] is None)
    _, _, doubled = page.partition("abstain-traps: 12 cases")[2].partition("With all of them:")
    for row in traps["rows"]:
        assert row["with_flagged"]["n"] == row["figures"]["rate"]["n"] + 2
        said = f"{100 * row['with_flagged']['value']:.1f}".removesuffix(".0")
        assert re.search(rf"{row['about']['target']} · .*? {said} %", doubled)


def test_a_case_has_a_page_with_reasons_and_evidence(world: World, report: Path) -> None:
    page = Text.of(report / "cases" / f"{world.case_ending('03')}.html")
    assert "argument date: expected 2026-07-24, got 24.07.2026" in page
    assert "referee bakeoff answer answers-20261127T090000Z-aaaa.log 60 10 sha256:" + "ab" * 32 in page
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


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        ("argument `room` is missing", ["room"], "argument room is missing"),
        ("`referee bakeoff report NAME` writes it", ["referee bakeoff report NAME"], None),
        ("`a`, `b` and a lone ` one", ["a", "b"], "a, b and a lone ` one"),
        ("`` nothing `` in it", [], None),
        ("an odd `|` cell, `https://evil.example` and `\\`", [], None),
    ],
)
def test_markdown_sets_as_code_what_stands_between_backticks(raw: str, code: list[str], said: str | None) -> None:
    shown = markdown.prose(raw)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(f"| {shown} |\n|---|\n| {shown} |\n")
    for inline in (token for token in tokens if token.type == "inline"):
        children = inline.children or []
        assert {child.type for child in children} <= {"text", "text_special", "code_inline"}
        found = [child.content for child in children if child.type == "code_inline"]
        assert found == code
        assert said in {None, "".join(child.content for child in children)}


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
    facts = Facts(
        RecordFiles(world.root / "records").read(),
        LocalEvidence(world.root / "evidence"),
        mapping=read_mapping(world.root / FILE_NAME),
    )
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
    assert re.search(r"\d+ rows more without a line here; failed ones come first", page)
    assert page.count("answers-2026") == 4


def test_where_a_section_says_it_comes_from_is_there(report: Path) -> None:
    named = set()
    for page in (report / "index.html", report / "cases" / "s1-simple-03.html"):
        for backed in re.findall(r"Backed by <code>(.*?)</code>", page.read_text("utf-8")):
            named |= set(re.findall(r"\b[a-z]+(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?", backed))
    assert len(named) > 12
    for name in named - {"cases.json"}:
        room, _, thing = f"referee.{name}".rpartition(".")
        if thing[0].isupper():
            assert hasattr(importlib.import_module(room), thing), name
        else:
            importlib.import_module(f"referee.{name}")
