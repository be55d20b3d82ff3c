"""Which shards a report is made of, the raw export of their rows, and what the commands answer."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest

from referee.adapters.catalog.bakeoff_protocols import load_protocol
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import scan_shard
from referee.core.records import MarketSnapshot
from referee.errors import Finding, NothingMatched, UsageError
from referee.publish.bakeoff.export import COLUMNS, export
from referee.publish.bakeoff.report import write_report
from referee.runner.bakeoff.decide import decide
from referee.runner.bakeoff.freeze import freeze
from referee.runner.bakeoff.report import gather, shards_of
from tests.bakeoff.report_reading import Text, run
from tests.bakeoff.report_workspace import FORMULA, Verdict, World

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("world")).write()
    (world.root / "referee.toml").write_text("")
    run("report", "board", "--all", root=world.root)
    return world


@pytest.fixture(scope="module")
def report(world: World) -> Path:
    return world.root / "site" / "bakeoff" / "board"


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
    assert [one.snapshot.target for one in before.market] == ["own-strong"]
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
            shards_of(world.log, records, "board", names, every=False)
    with pytest.raises(NothingMatched, match="there is no shard"):
        shards_of(world.log, records, "board", ["results-gone.jsonl"], every=False)
    with pytest.raises(NothingMatched, match="was never frozen here, so it has no shard"):
        shards_of(world.log, records, "other", [], every=True)
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


def test_all_means_the_shards_under_the_freeze_in_force(tmp_path: Path) -> None:
    spare = World(tmp_path / "spare")
    before = spare.shard("own-strong", lambda *_: Verdict())
    assert shards_of(spare.log, spare.records, "board", [], every=True) == [spare.records / before]
    plan = spare.root / "protocols" / "board" / "protocol.toml"
    plan.write_text(plan.read_text().replace("repeats = 3", "repeats = 2"))
    decide(spare.log, "board", "Two repeats", reason="time", by="me", amends=True)
    spare.loaded = load_protocol(plan.parent)
    spare.frozen = freeze(spare.log, spare.evidence, spare.loaded, by="me", decision=1)
    after = spare.shard("own-strong", lambda *_: Verdict(), token="20261129T090000Z-cccc")
    assert shards_of(spare.log, spare.records, "board", [], every=True) == [spare.records / after]
    chosen = shards_of(spare.log, spare.records, "board", [before, after], every=False)
    summary = gather(spare.log, spare.evidence, "board", chosen).summary
    assert [row.about.target for row in summary.lane_limited] == ["own-strong"]
    assert len(summary.plan.protocol_digests) == 2


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
        (("report", "nope", "--all"), 5, "there is no protocol named 'nope' here"),
        (("report", "board", "--all", "--shard", "results-x.jsonl"), 2, "say two different things"),
        (("export", "board", "--all", "--shard", "results-x.jsonl"), 2, "say two different things"),
        (("pairs", "board", "own-strong", "weak-one", "--all", "--shard", "x"), 2, "say two different things"),
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
