"""``referee replay`` end to end: real attempts, replayed on pristine machines, judged, shown and verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import GOOD_REPORT, containers, measure, referee, subject

__all__ = ["measure", "subject"]

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: An agent that announces its steps, as docs/agents.md says.
AGENT = """
import base64, json, pathlib, subprocess
steps = {steps!r}
def say(**value):
    data = base64.b64encode(json.dumps({{"key": "k", **value}}).encode()).decode()
    print("\\x1b]7713;referee.step;" + data + "\\x07", end="", flush=True)
for n, line in enumerate(steps, start=1):
    say(n=n, command=line, cwd="/work/project")
    print("$", line, flush=True)
    done = subprocess.run(["bash", "-c", line], cwd="/work/project")
    say(n=n, ended=True, status=done.returncode, took=0.1)
{quietly}
pathlib.Path("/work/report.json").write_text({report!r})
"""


def report(command: str, returned: str) -> str:
    return json.dumps({**GOOD_REPORT, "verified_how": {"command": command, "returned": returned}})


def agent(*steps: str, command: str, returned: str = "12 squared is 144", quietly: str = "") -> str:
    """A command line that starts the announcing agent."""
    script = AGENT.format(steps=list(steps), report=report(command, returned), quietly=quietly)
    return f"cat > /tmp/agent.py <<'END_OF_AGENT'\n{script}\nEND_OF_AGENT\npython3 /tmp/agent.py"


def replay(workspace: Path, run: str = "last") -> tuple[int, dict[str, Any]]:
    done = referee("replay", run, "--json", "--quiet", "--workspace", str(workspace))
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def shown(workspace: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(referee("show", "last", "--json", "--workspace", str(workspace)).stdout)
    return document


def test_what_the_commands_alone_bring_about_is_reproducible(measure: Callable[..., Any]) -> None:
    command = "python3 /opt/thing/square.py 12"
    made = measure(agent("mkdir -p /opt/thing && cp square.py /opt/thing/", command, command=command))
    assert made.attempt["corroboration"] == "corroborated"
    code, document = replay(made.workspace)
    assert (code, document["status"]) == (0, "reproducible"), document["reason"]
    assert (document["commands"], document["ran"], document["stopped_at"]) == (2, 2, None)
    assert set(document["files"]) == {"commands.json", "replay.txt", "replay.json", "rerun.txt", "facts.json"}
    assert shown(made.workspace)["cold"] == "reproducible"
    assert "replayed        reproducible" in referee("show", "last", "--workspace", str(made.workspace)).stdout
    assert referee("site", "build", "--workspace", str(made.workspace)).returncode == 0
    page = (made.workspace / "site" / "runs" / f"{document['run']}.html").read_text()
    assert "reproducible" in page
    assert document["evidence"] in page
    checked = referee("verify", "--workspace", str(made.workspace))
    assert (checked.returncode, "replays       1" in checked.stdout) == (0, True), checked.stdout + checked.stderr
    assert containers(made.workspace) == []


def test_what_the_agent_did_unseen_is_not_reproducible(measure: Callable[..., Any]) -> None:
    hidden = 'pathlib.Path("/opt/s.py").write_bytes(pathlib.Path("/work/project/square.py").read_bytes())'
    made = measure(agent("python3 square.py 12", command="python3 /opt/s.py 12", quietly=hidden))
    assert made.attempt["corroboration"] == "corroborated", "warm, on its own machine, it holds"
    code, document = replay(made.workspace)
    assert (code, document["status"]) == (1, "not_reproducible"), document["reason"]
    assert document["network"]["reachable"] is True, "a machine of ours is asked before that is said"


def test_an_agent_that_does_not_tell_is_said_to_be_one(measure: Callable[..., Any]) -> None:
    made = measure(f"python3 square.py 12\ncat > /work/report.json <<'E'\n{json.dumps(GOOD_REPORT)}\nE")
    code, document = replay(made.workspace)
    assert (code, document["status"]) == (4, "could_not_be_replayed")
    assert document["reason"] == "the agent does not tell its commands"
    assert document["ran"] == 0
    assert referee("verify", "--workspace", str(made.workspace)).returncode == 0


def blob_of(workspace: Path, name: str) -> Path:
    """Where a file of the one replay's evidence lies."""
    records = [json.loads(line) for file in (workspace / "records").glob("*.jsonl") for line in file.open()]
    replayed = next(one["body"] for one in records if one["body"]["kind"] == "replayed")
    digits = str(next(ref["digest"] for ref in replayed["evidence"] if ref["name"] == name)).removeprefix("sha256:")
    return workspace / "evidence" / digits[:2] / digits


def test_evidence_of_a_replay_that_was_changed_is_found(measure: Callable[..., Any]) -> None:
    made = measure(agent("python3 square.py 12", command="python3 /work/project/square.py 12"))
    assert replay(made.workspace)[0] == 0
    for name in ("commands.json", "replay.json", "rerun.txt", "facts.json"):
        blob = blob_of(made.workspace, name)
        data = blob.read_bytes()
        blob.chmod(0o644)
        blob.write_bytes(data.replace(b"1", b"2", 1))
        checked = referee("verify", "--workspace", str(made.workspace))
        blob.write_bytes(data)
        assert (checked.returncode, name in checked.stderr) == (1, True), checked.stderr
    assert referee("verify", "--workspace", str(made.workspace)).returncode == 0


def test_a_run_that_is_not_there_and_another_environment(measure: Callable[..., Any], tmp_path: Path) -> None:
    made = measure(agent("true", command="python3 /work/project/square.py 12"))
    missing = referee("replay", "r-none", "--workspace", str(made.workspace))
    assert missing.returncode == 5
    (made.workspace / "referee.toml").write_text('[environment]\nvariant = "display"\n')
    other = referee("replay", "last", "--workspace", str(made.workspace))
    assert other.returncode == 4
    assert "was made in the environment" in other.stderr
    assert shown(made.workspace)["replays"] == [], "nothing was observed, so nothing is recorded"


@pytest.mark.registry
@pytest.mark.parametrize("name", ["env-example", "make-c"])
def test_what_baseline_did_is_reproducible(tmp_path: Path, name: str) -> None:
    done = referee("bringup", "run", name, "--quiet", "--workspace", str(tmp_path), timeout=900)
    assert done.returncode == 0, done.stderr
    code, document = replay(tmp_path)
    assert (code, document["status"]) == (0, "reproducible"), document["reason"]
    assert document["commands"] > 10
    assert referee("verify", "--workspace", str(tmp_path)).returncode == 0
