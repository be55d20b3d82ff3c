"""From nothing to a report at the command line: an own endpoint in five commands, and the demo, twice."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from referee.adapters.catalog.bakeoff_protocols import load_protocol
from referee.cli.bakeoff_init import ROTATING_CASES
from referee.cli.demo import bake_off
from referee.cli.wiring import open_stores
from tests.bakeoff.scripted_server import serving

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

REFEREE = [sys.executable, "-m", "referee.cli.app"]
DOCS = Path(__file__).parents[2] / "docs" / "bakeoff.md"


def referee(*argv: str, cwd: Path, code: int = 0) -> str:
    done = subprocess.run([*REFEREE, *argv], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_five_commands_of_the_document_make_a_board(tmp_path: Path) -> None:
    found = re.search(r"```console\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert found is not None
    lines = found[1].strip().splitlines()
    assert len(lines) == 5
    (tmp_path / "referee.toml").write_text("")
    with serving() as server:
        for line in lines:
            asked = line.replace("http://127.0.0.1:8000/v1", f"{server.url}/v1").replace("MODEL", "ok")
            program, *argv = shlex.split(asked)
            assert program == "referee"
            said = referee(*argv, cwd=tmp_path)
    assert "keyword-baseline" in said
    assert "mine" in said
    report = json.loads((tmp_path / "site" / "bakeoff" / "first" / "report.json").read_bytes())
    board = report["summary"]["boards"][0]
    assert {row["about"]["target"] for row in board["rows"]} == {"mine", "keyword-baseline"}
    assert report["summary"]["totals"]["physical_rows"] == 2 * 69 * 3
    assert (tmp_path / "site" / "index.html").is_file()
    assert "first" in (tmp_path / "site" / "bakeoff" / "index.html").read_text()
    held = json.loads(referee("verify", "--json", cwd=tmp_path))
    assert held["holds"]
    assert held["reports"] == {"compared": 1, "not_compared": [], "partial": []}
    page = (tmp_path / "site" / "bakeoff" / "first" / "cases" / "s1-simple-01.html").read_text("utf-8")
    place = re.search(r"referee bakeoff answer (answers-\S+\.log) (\d+) (\d+) (sha256:[0-9a-f]{64})", page)
    assert place is not None
    said = referee("bakeoff", "answer", *place.groups(), cwd=tmp_path)
    assert "try 1: status 200" in said
    assert '"tool_calls"' in said
    log, offset, length, digest = place.groups()
    referee("bakeoff", "answer", log, offset, length, digest.replace("a", "b"), cwd=tmp_path, code=1)
    referee("bakeoff", "answer", f"../answers/{log}", offset, length, digest, cwd=tmp_path, code=2)


def test_the_demo_runs_twice_and_asks_nothing_again(tmp_path: Path) -> None:
    stores = open_stores(tmp_path / "ws")
    with (tmp_path / "out").open("w") as file:
        page, complete = bake_off(stores, Console(file=file, width=200))
    assert complete
    first = page.read_bytes()
    with (tmp_path / "out").open("a") as file:
        assert bake_off(open_stores(tmp_path / "ws"), Console(file=file, width=200)) == (page, True)
    assert page.read_bytes() == first
    assert len(list(stores.workspace.records.glob("results-*.jsonl"))) == 1
    assert (tmp_path / "out").read_text().count("keyword-baseline through keyword-baseline") == 2


@pytest.mark.slow
def test_a_demo_whose_protocol_changed_begins_a_new_one(tmp_path: Path) -> None:
    stores = open_stores(tmp_path / "ws")
    with (tmp_path / "out").open("w") as file:
        bake_off(stores, Console(file=file))
        plan = stores.workspace.protocols / "demo" / "protocol.toml"
        plan.write_text(plan.read_text().replace("repeats = 3", "repeats = 1"))
        page, _ = bake_off(open_stores(tmp_path / "ws"), Console(file=file))
    assert page.parent.name == "demo-2"
    assert load_protocol(stores.workspace.protocols / "demo-2").protocol.repeats == 3


@pytest.mark.slow
def test_a_private_seed_makes_fresh_cases_of_gate_size(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text("")
    for name in ("spring", "autumn"):
        referee("bakeoff", "init", name, "--suite", "rotating", cwd=tmp_path)
        referee("bakeoff", "freeze", name, cwd=tmp_path)
    seed = tmp_path / "private" / "seed"
    assert seed.stat().st_mode & 0o077 == 0
    spring, autumn = (load_protocol(tmp_path / "protocols" / name) for name in ("spring", "autumn"))
    assert len(spring.suite.cases) == len(autumn.suite.cases) == 300
    assert spring.files["cases.json"] != autumn.files["cases.json"]
    assert seed.read_text().strip() not in spring.files["cases.json"].decode()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("mine", "--channel", "nowhere"), "channel: Input should be"),
        (("mine", "--sovereignty", "none"), "name the model's sovereignty class"),
        (("mine", "--base-url", "ftp://x"), "base_url is no address"),
        (("mine", "--key-env", "sk-1234567890abcdef"), "key_env is no name of an environment variable"),
        (("mine", "--channel", "metered-api"), "--credit-usd 10 and --price INPUT OUTPUT"),
        (("mine", "--credit-usd", "10"), "--credit-usd 10 and --price INPUT OUTPUT"),
        (("keyword-baseline",), "is there already"),
        (("../x",), "is no name of a target"),
    ],
)
def test_a_target_that_cannot_be_used_is_not_written(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    given = {"--model": "m", "--base-url": "http://127.0.0.1:1/v1", "--channel": "local", "--sovereignty": "eu-origin"}
    given |= dict(zip(argv[1::2], argv[2::2], strict=True))
    options = [part for pair in given.items() for part in pair]
    done = subprocess.run(
        [*REFEREE, "bakeoff", "targets", "add", argv[0], *options, "-w", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "1234567890abcdef" not in done.stderr
    assert not (tmp_path / "targets").exists()


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (("--channel", "local"), {'self_host = "feasible"'}),
        (("--channel", "local", "--self-host", "costly"), {'self_host = "costly"'}),
        (
            ("--channel", "metered-api", "--credit-usd", "10", "--price", "0.4", "2"),
            {"metered = true", 'credit = "ledger"', "credit_usd = 10.0", "input = 0.4", "output = 2.0"},
        ),
        (
            ("--channel", "router", "--base-url", "https://openrouter.ai/api/v1"),
            {"metered = true", 'credit = "openrouter"', 'market = "openrouter"'},
        ),
        (
            ("--channel", "own-infrastructure", "--precision", "bf16", "--context", "32768", "--revision", "abc"),
            {'precision = "bf16"', "context = 32768", 'revision = "abc"', 'self_host = "feasible"'},
        ),
    ],
)
def test_a_target_of_every_channel_can_be_added(tmp_path: Path, argv: tuple[str, ...], lines: set[str]) -> None:
    given = {"--base-url": "http://127.0.0.1:1/v1", "--model": "m", "--sovereignty": "eu-origin", "--key-env": "EKEY"}
    options = [part for pair in given.items() if pair[0] not in argv for part in pair]
    argv = ("bakeoff", "targets", "add", "mine", *options, *argv, "-w", str(tmp_path))
    file = Path(referee(*argv, cwd=tmp_path).strip())
    assert lines <= set(file.read_text("utf-8").splitlines())
    referee("bakeoff", "targets", "show", "mine", "-w", str(tmp_path), cwd=tmp_path)


def test_init_says_what_it_plans_and_where_the_seed_is(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text("")
    said = referee("bakeoff", "init", "first", cwd=tmp_path)
    assert "planned: keyword-baseline; no --target was given" in said
    said = referee("bakeoff", "init", "second", "--target", "keyword-baseline", "--suite", "rotating", cwd=tmp_path)
    assert f"second: {ROTATING_CASES} cases of the suite" in said
    assert f"the private seed drawn now and kept in {tmp_path / 'private' / 'seed'}" in said
    assert "no --target" not in said
    third = json.loads(referee("bakeoff", "init", "third", "--suite", "rotating", "--json", cwd=tmp_path))
    assert (third["cases"], third["seed"]) == (ROTATING_CASES, str(tmp_path / "private" / "seed"))
    done = subprocess.run(
        [*REFEREE, "bakeoff", "init", "fourth", "--suite", "nosuch"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "s1" in done.stderr
    assert "rotating" in done.stderr


@pytest.mark.parametrize("command", [("bringup",), ("bakeoff", "freeze"), ("bakeoff", "decide")])
def test_a_command_waits_for_no_library_that_it_does_not_use(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "referee.cli.app", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded & {"duckdb", "numpy", "scipy", "aiohttp", "jinja2"} == set()
