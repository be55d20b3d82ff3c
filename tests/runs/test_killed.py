"""``kill -9`` of the harness at random moments: records stay valid, evidence is kept, the next start reaps."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import GOOD_REPORT, REFEREE, containers, leaves_report, referee

pytestmark = [pytest.mark.engine, pytest.mark.slow]

MOMENTS = 10
WORKING = "for i in $(seq 40); do echo line $i; sleep 0.05; done"


def start(workspace: Path) -> subprocess.Popen[bytes]:
    command = leaves_report(GOOD_REPORT, before=WORKING)
    return subprocess.Popen(
        [
            "env", "--default-signal=HUP",  # a test run under nohup hands its deafness down, and the harness honours it
            *REFEREE, "bringup", "run", "square", "--agent", "command", "--command", command,
            "--workspace", str(workspace),
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def test_kill_9_at_ten_random_moments(subject: Path) -> None:
    workspace = subject.parent.parent
    chance = random.Random(20261130)
    planned = 0
    for _ in range(MOMENTS):
        harness = start(workspace)
        time.sleep(chance.uniform(0.3, 4.5))
        os.killpg(harness.pid, signal.SIGKILL)
        harness.wait()
        planned = count(workspace, "attempt-planned")
    done = referee("reap", "--json", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr
    assert not containers(workspace)
    checked = referee("verify", "--workspace", str(workspace))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert count(workspace, "attempt-ended") + count(workspace, "attempt-found") == planned
    assert planned >= MOMENTS // 2, "the moments must fall into attempts for this to show anything"
    found = [body for body in bodies(workspace) if body["kind"] == "attempt-found"]
    assert found, "at least one harness died during its attempt"
    assert all(body["cause"] == "harness_died" for body in found)
    kept = [ref for body in found for ref in body["evidence"] if ref["name"] == "session.raw" and ref["bytes"] > 0]
    assert kept, "the recording so far is kept"
    assert not any((workspace / "spool").iterdir())


def test_the_next_start_says_what_it_found(subject: Path) -> None:
    workspace = subject.parent.parent
    harness = start(workspace)
    deadline = time.monotonic() + 30
    while not any(path.stat().st_size for path in workspace.glob("spool/*/session.raw")):
        assert time.monotonic() < deadline, "the session never began"
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(harness.pid, signal.SIGKILL)
    harness.wait()
    done = referee(
        "bringup", "run", "square", "--agent", "command", "--command", "true", "--workspace", str(workspace)
    )  # fmt: skip
    assert "found: " in done.stderr
    assert "died during the attempt" in done.stderr
    assert not containers(workspace)


@pytest.mark.parametrize("polite", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_end_is_recorded_and_leaves_nothing(subject: Path, polite: signal.Signals) -> None:
    workspace = subject.parent.parent
    harness = start(workspace)
    deadline = time.monotonic() + 30
    while not any(path.stat().st_size for path in workspace.glob("spool/*/session.raw")):
        assert time.monotonic() < deadline, "the session never began"
        time.sleep(0.05)
    harness.send_signal(polite)
    assert harness.wait(timeout=60) == 130
    ended = [body for body in bodies(workspace) if body["kind"] == "attempt-ended"]
    assert [body["cause"] for body in ended] == ["interrupted"]
    assert not containers(workspace)
    assert referee("verify", "--workspace", str(workspace)).returncode == 0


def bodies(workspace: Path) -> list[dict[str, Any]]:
    lines = [
        line for file in sorted((workspace / "records").glob("*.jsonl")) for line in file.read_bytes().split(b"\n")[:-1]
    ]
    return [json.loads(line)["body"] for line in lines]


def count(workspace: Path, kind: str) -> int:
    return sum(1 for body in bodies(workspace) if body["kind"] == kind)
