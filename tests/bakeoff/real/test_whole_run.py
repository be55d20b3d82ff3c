"""From a frozen plan to a report, by the commands a person types, on a real engine and through a real agent CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.suites import bundled_subsets, bundled_suite
from tests.bakeoff.real.model_server import MODEL, Script, model_server
from tests.loopback import beside_the_test

pytestmark = [pytest.mark.slow, pytest.mark.registry]

KEY = "sk-sentinel-0123456789abcdef"
REFEREE = Path(sys.executable).parent / "referee"

_ENGINE = """\
schema = "referee.target/1"
model = "random"
lane = "openai-chat"
channel = "local"
sovereignty = "eu-hostable-open-weight"
base_url = "{url}/v1"
"""
_AGENT = """\
schema = "referee.target/1"
model = "{model}"
lane = "cli"
channel = "agent-cli"
sovereignty = "us-closed"
base_url = "{url}/v1"
key_env = "LANE_KEY"
concurrency = 2

[cli]
program = "codex"
version = "0.169.0"
executable = "{executable}"
"""


@pytest.fixture
def silent() -> Iterator[tuple[str, Script]]:
    """A model that never calls, served from a thread of its own."""
    script = Script(text='{"tool_calls":[]}')
    with beside_the_test(model_server(script)) as url:
        yield url, script


def referee(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(REFEREE), *words, "--workspace", str(workspace)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": os.environ["PATH"], "HOME": str(workspace), "LANG": "C.UTF-8", "LANE_KEY": KEY},
    )


def rows(workspace: Path) -> list[dict[str, Any]]:
    found = []
    for shard in sorted((workspace / "records").glob("results-*.jsonl")):
        bodies = [json.loads(line)["body"] for line in shard.read_text(encoding="utf-8").splitlines()]
        found += [body for body in bodies if body["kind"] == "row"]
    return found


def test_a_bake_off_of_a_real_engine_and_a_real_agent(
    engine: str, agents: Mapping[str, Path], silent: tuple[str, Script], tmp_path: Path
) -> None:
    url, script = silent
    workspace = tmp_path / "ws"
    (workspace / "targets").mkdir(parents=True)
    (workspace / "referee.toml").touch()
    (workspace / "targets" / "engine.toml").write_text(_ENGINE.format(url=engine), encoding="utf-8")
    text = _AGENT.format(url=url, model=MODEL, executable=agents["codex"])
    (workspace / "targets" / "agent.toml").write_text(text, encoding="utf-8")
    made = referee(workspace, "bakeoff", "init", "first", "--target", "engine", "--target", "agent")
    assert made.returncode == 0, made.stderr
    plan = workspace / "protocols" / "first" / "protocol.toml"
    text = plan.read_text(encoding="utf-8").replace("repeats = 3", "repeats = 1")
    plan.write_text(text.replace('target = "agent"', 'target = "agent"\nsubset = "s1-12"'), encoding="utf-8")
    for words in (["bakeoff", "freeze", "first"], ["bakeoff", "run", "first", "--quiet"]):
        done = referee(workspace, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    suite = bundled_suite("s1")
    twelve = next(subset for subset in bundled_subsets("s1") if subset.name == "s1-12")
    found = rows(workspace)
    by_engine = [row for row in found if row["target"] == "engine"]
    by_agent = [row for row in found if row["target"] == "agent"]
    assert sorted((row["case_id"], row["k_idx"]) for row in by_engine) == sorted((case.id, 0) for case in suite.cases)
    assert sorted(row["case_id"] for row in by_agent) == sorted(twelve.cases)
    assert all(row["blame"] is None and row["infra_class"] is None for row in found)
    assert {row["case_id"] for row in by_agent if row["passed"]} == {
        name for name in twelve.cases if suite.by_id[name].abstains
    }
    assert len(script.asked) >= len(twelve.cases)

    reported = referee(workspace, "bakeoff", "report", "first", "--all")
    assert reported.returncode == 0, (reported.stdout, reported.stderr)
    verified = referee(workspace, "verify")
    assert verified.returncode == 0, (verified.stdout, verified.stderr)
    written = [path for path in workspace.rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    pages = "\n".join(path.read_text(encoding="utf-8") for path in written if path.suffix == ".md")
    assert "model plus harness" in pages
    assert list((workspace / "spool").glob("cli-*")) == []
