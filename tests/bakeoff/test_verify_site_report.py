"""A stranger's check of a site with a bake-off: what its raw exports give again, and what of it is not made again."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.cli.site import build_site
from referee.cli.wiring import open_stores
from referee.errors import (
    EXIT_COULD_NOT_VERIFY,
    EXIT_NOTHING_MATCHED,
    EXIT_PASS,
    CouldNotVerify,
    DigestMismatch,
    Finding,
)
from referee.publish.bakeoff.export import COLUMNS
from referee.publish.bakeoff.report import write_report
from referee.runner.bakeoff.plan import suite_digest
from referee.runner.bakeoff.report import gather
from referee.runner.bakeoff.verify_site_report import SiteReports, verify_site_reports
from tests.bakeoff.report_workspace import World, strong

pytestmark = pytest.mark.slow

EXPORTS = ("attempts.csv", "attempts.jsonl", "attempts.parquet")
RATE = ("boards", 0, "rows", 0, "figures", "rate")


def built(world: World) -> Path:
    """The site of a workspace whose rows say the digest that real runs give the suite."""
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    plan = replace(basis.summary.plan, suite_digests=(suite_digest(world.loaded),))
    stores = open_stores(world.root)
    site = stores.workspace.site
    write_report(replace(basis, summary=replace(basis.summary, plan=plan)), site / "bakeoff" / "board")
    build_site(stores)
    return site


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(World(tmp_path_factory.mktemp("made") / "ws").write())


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "site"))


def edit(site: Path, change: Callable[[Any], object]) -> None:
    file = site / "bakeoff" / "board" / "report.json"
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document, ensure_ascii=False))


def at(document: Any, *place: str | int) -> Any:
    for step in place:
        document = document[step]
    return document


def sum_again(board: Path) -> None:
    lines = [f"{hashlib.sha256((board / name).read_bytes()).hexdigest()}  {name}\n" for name in EXPORTS]
    (board / "SHA256SUMS").write_text("".join(lines))


def other_rows(site: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Give all three exports other rows, and sums that fit."""
    board = site / "bakeoff" / "board"
    rows = [json.loads(line) for line in (board / "attempts.jsonl").read_text().splitlines()]
    change(rows)
    (board / "attempts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ", ".join(f"{name}: '{kind}'" for name, kind, _ in COLUMNS)
    with duckdb.connect() as database:
        read = f"SELECT * FROM read_json('{board / 'attempts.jsonl'}', columns = {{{columns}}})"
        database.execute(f"COPY ({read}) TO '{board / 'attempts.csv'}' (FORMAT csv, HEADER true)")
        database.execute(f"COPY ({read}) TO '{board / 'attempts.parquet'}' (FORMAT parquet)")
    sum_again(board)


def verify(site: Path, *more: str) -> Result:
    return CliRunner().invoke(make_app("verify"), ["verify", "--site", str(site), *more])


def test_a_whole_site_holds_and_says_what_was_checked_and_what_was_not(site: Path) -> None:
    rows = len((site / "bakeoff" / "board" / "attempts.jsonl").read_text().splitlines())
    assert verify_site_reports(site) == SiteReports(reports=1, exports=3, attempts=rows)
    told = verify(site)
    assert (told.exit_code, told.stdout.splitlines()[0]) == (EXIT_PASS, "what a site alone can show holds")
    assert f"{rows} in the exports, counted again" in told.stdout
    assert "whether an attempt rightly passed" in told.stdout
    assert "0 files" not in told.stdout
    document = json.loads(verify(site, "--json").stdout)
    assert document["bakeoffs"] == {"reports": 1, "exports": 3, "attempts": rows, "not_compared": []}


def test_rows_that_were_written_again_as_they_were_hold(site: Path) -> None:
    other_rows(site, lambda rows: None)
    assert verify_site_reports(site).reports == 1


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ((*RATE, "value"), 0.9111, "the interval of the rate 0.9111"),
        ((*RATE, "passes"), 110, "a rate or count of own-strong"),
        ((*RATE, "wilson", "low"), 0.8, "the interval of the rate"),
        ((*RATE[:-1], "bootstrap", "low"), 0.5, "a rate or count of own-strong"),
        ((*RATE[:-1], "failures", "failed"), 3, "a rate or count of own-strong"),
        (("boards", 0, "rows", 0, "coverage", "usable"), 9, "the counts of own-strong"),
        (("boards", 0, "rows", 0, "transport", "graded"), 9, "the counts of own-strong"),
        (("boards", 0, "rows", 0, "about", "lane"), "other", "the counts of own-strong"),
        (("boards", 0, "rows", 0, "cluster"), 7, "who is tied with whom"),
        (("boards", 0, "pairs", 0, "separated"), True, "a paired test of its board"),
        (("lane_limited", 0, "headline_passes"), 1, "a rate or count of"),
        (("arms", 0, "rows", 0, "figures", "cases"), 40, "a rate or count of"),
        (("totals", "physical_rows"), 9, "the number of its rows"),
        (("totals", "graded"), 9, "its graded or passed attempts"),
        (("totals", "by_arm", 0, "valid"), 9, "the counts of the arm"),
        (("totals",), [], "has not the form"),
        ((*RATE[:-1], "pass_hat", -1, "k"), 0, "needs k of at least 1"),
    ],
)
def test_a_changed_number_is_found(site: Path, place: tuple[str | int, ...], value: object, said: str) -> None:
    def change(document: Any) -> None:
        *above, last = ("summary", *place)
        inner = at(document, *above)
        assert inner[last] != value
        inner[last] = value

    edit(site, change)
    index = site / "bakeoff" / "index.json"
    listed = json.loads(index.read_bytes())
    if place == ("totals", "physical_rows"):
        listed["reports"][0]["rows"] = value
        index.write_text(json.dumps(listed))
    match = "holds no report" if place == ("totals",) else said
    with pytest.raises(Finding, match=match):
        verify_site_reports(site)
    assert isinstance(verify(site).exception, Finding)


def test_a_report_that_agrees_with_itself_is_held_against_the_export(site: Path, tmp_path: Path) -> None:
    """Numbers, Markdown and pages of better results, beside the export of the true ones."""
    better = World(tmp_path / "better")
    for target in ("own-strong", "free-tier", "weak-one", "cli-agent"):
        better.shard(target, strong, model_served="tiny")
    forged = built(better)
    assert verify_site_reports(forged).reports == 1
    for name in (*EXPORTS, "SHA256SUMS"):
        shutil.copy(site / "bakeoff" / "board" / name, forged / "bakeoff" / "board" / name)
    with pytest.raises(Finding, match=r"is not what|are not what|tells nothing of the target"):
        verify_site_reports(forged)


def test_passes_moved_between_arms_are_found_though_each_sum_fits(site: Path) -> None:
    def move(rows: list[dict[str, Any]]) -> None:
        own = [row for row in rows if row["target"] == "own-strong" and row["run_id"].endswith("aaaa")]
        passed = next(row for row in own if row["passed"] and row["case_id"].startswith("s1-simple"))
        failed = next(row for row in own if row["passed"] is False and row["category"] == "abstain")
        passed["passed"], failed["passed"] = False, True

    other_rows(site, move)
    with pytest.raises(Finding, match="is not what the export gives"):
        verify_site_reports(site)


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_that_is_gone_or_changed_is_found(site: Path, name: str) -> None:
    file = site / "bakeoff" / "board" / name
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    with pytest.raises(DigestMismatch, match=f"{name} is missing, or has other bytes"):
        verify_site_reports(site)
    file.unlink()
    with pytest.raises(DigestMismatch, match=f"{name} is missing, or has other bytes"):
        verify_site_reports(site)


def test_sums_that_leave_an_export_out_are_found(site: Path) -> None:
    sums = site / "bakeoff" / "board" / "SHA256SUMS"
    lines = sums.read_text().splitlines(keepends=True)
    sums.write_text("".join(lines[1:]))
    with pytest.raises(Finding, match=r"does not name attempts\.csv"):
        verify_site_reports(site)
    for text in ("", "x\n", f"{lines[0]}{'0' * 64}  ../report.json\n"):
        sums.write_text(text)
        with pytest.raises(Finding, match=r"is missing or empty|no sum of a file"):
            verify_site_reports(site)
    sums.unlink()
    with pytest.raises(Finding, match="is missing or empty"):
        verify_site_reports(site)


def test_three_exports_that_do_not_say_the_same_are_found(site: Path) -> None:
    board = site / "bakeoff" / "board"
    with (board / "attempts.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    turned = next(row for row in rows if row[7] == "false")
    turned[7] = "true"
    with (board / "attempts.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    sum_again(board)
    with pytest.raises(Finding, match=r"attempts\.csv does not say the same as attempts\.jsonl in row \d+"):
        verify_site_reports(site)
    (board / "attempts.parquet").write_bytes(b"PAR1")
    sum_again(board)
    with pytest.raises(Finding, match=r"attempts\.parquet cannot be read"):
        verify_site_reports(site)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Bake-off", "# The bake-off", "its beginning"),
        (r"35\.2 %", r"95\.2 %", "the section "),
        ("## The protocol, as it is frozen", "## Results\n\n100 %\n\n## The protocol, as it is frozen", "the sections"),
    ],
)
def test_markdown_that_says_other_than_the_numbers_is_found(site: Path, old: str, new: str, said: str) -> None:
    file = site / "bakeoff" / "board" / "report.md"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(Finding, match=rf"report\.md is not what report\.json says: {said}"):
        verify_site_reports(site)


def test_a_suite_that_is_not_at_hand_is_said_and_is_not_said_to_hold(site: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "own").write()  # its rows say a digest that no bundled suite has
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    write_report(basis, site / "bakeoff" / "board")
    told = verify(site)
    assert told.exit_code == EXIT_COULD_NOT_VERIFY, told.output
    assert told.stdout.startswith("what could be compared holds; not all could be\n")
    assert "which this program does not bring" in told.stdout
    assert verify(site, "--json").exit_code == EXIT_COULD_NOT_VERIFY
    edit(site, lambda document: at(document, "summary", *RATE).update(value=0.9111))
    assert isinstance(verify(site).exception, Finding)


def test_more_drawings_than_memory_holds_are_not_drawn(site: Path) -> None:
    edit(site, lambda document: document["summary"]["plan"].update(bootstrap_iterations=10**12))
    refused = verify(site).exception
    assert isinstance(refused, CouldNotVerify)
    assert "drawings, more than" in refused.message


def test_a_site_in_a_directory_with_the_signs_of_a_pattern_holds(site: Path) -> None:
    odd = site.with_name("a[1]*'s site?")
    site.rename(odd)
    assert verify_site_reports(odd).reports == 1


def test_what_differs_in_a_report_of_another_version_is_no_finding_and_does_not_hold(site: Path) -> None:
    edit(site, lambda document: document.update(built_by="0.0.9", limitations=[]))
    told = verify(site)
    assert told.exit_code == EXIT_COULD_NOT_VERIFY, told.output
    assert "version 0.0.9 wrote the report board" in told.stdout
    (site / "bakeoff" / "board" / "attempts.csv").unlink()  # bytes are no matter of version
    assert isinstance(verify(site).exception, DigestMismatch)


def test_a_report_that_was_taken_out_or_not_listed_is_found(site: Path) -> None:
    board = site / "bakeoff" / "board"
    (board / "report.json").rename(board / "else.json")
    with pytest.raises(Finding, match=r"board has no report\.json"):
        verify_site_reports(site)
    shutil.rmtree(board)
    with pytest.raises(Finding, match="does not list the reports"):
        verify_site_reports(site)


def test_a_site_with_nothing_in_it_does_not_hold(site: Path) -> None:
    shutil.rmtree(site / "bakeoff")
    told = verify(site)
    assert getattr(told.exception, "exit_code", told.exit_code) == EXIT_NOTHING_MATCHED
    assert "all holds" not in told.output
