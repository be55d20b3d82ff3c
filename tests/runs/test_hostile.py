"""Agents and projects that do not behave: each ends in a correct record, and nothing is left."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runs.conftest import GOOD_REPORT, REFEREE, Measured, containers, leaves_report, referee

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Measure = Callable[..., Measured]

SMALL = "[machine]\nmemory_bytes = 268435456\npids = 200\ndisk_bytes = 300000000\n"


def verified(run: Measured) -> dict[str, object]:
    """``referee verify`` holds over the workspace; returns its document."""
    done = referee("verify", "--json", "--workspace", str(run.workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_a_fork_bomb_ends_at_the_deadline(measure: Measure) -> None:
    run = measure("bomb() { bomb | bomb & }; bomb; sleep 3600", "--budget-seconds", "15", config=SMALL)
    assert run.code == 4, run.stderr
    assert (run.attempt["valid"], run.attempt["outcome"], run.attempt["total"]) == (True, "timeout", 0)
    assert not containers(run.workspace)
    verified(run)


def test_a_process_that_ignores_sigterm_ends_at_the_deadline(measure: Measure) -> None:
    run = measure("trap '' TERM HUP INT; while :; do sleep 1; done", "--budget-seconds", "5")
    assert (run.attempt["valid"], run.attempt["outcome"]) == (True, "timeout")
    assert not containers(run.workspace)
    verified(run)


def test_what_the_agent_left_running_is_dead_before_anything_is_judged(measure: Measure) -> None:
    daemon = "nohup setsid sh -c 'while :; do date >> /work/alive; sleep 0.1; done' >/dev/null 2>&1 &\nsleep 1"
    check = "a=$(wc -l < /work/alive); sleep 2; b=$(wc -l < /work/alive); test $a -gt 3 -a $a = $b && expr $b - $a + 7"
    claim = {**GOOD_REPORT, "verified_how": {"command": check, "returned": "7"}}
    run = measure(leaves_report(claim, before=daemon))
    assert run.attempt["rerun"]["exit_status"] == 0, "nothing was written in two seconds after the agent's end"
    assert run.attempt["quiet"]["confirmed"] is True
    assert run.attempt["quiet"]["survivors_ended"] >= 1
    assert not containers(run.workspace)


def test_a_flood_of_500_mb_reaches_the_announced_cap(measure: Measure) -> None:
    run = measure(
        leaves_report(GOOD_REPORT, before="yes 0123456789abcdef | head -c 500000000"),
        config="[recording]\nmax_bytes = 50000000\n",
    )
    assert run.code == 4
    assert (run.attempt["valid"], run.attempt["cause"]) == (True, "recording_limit")
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert "cap of 50000000 bytes" in run.attempt["reason"]
    assert not containers(run.workspace)
    assert run.attempt["recording"]["caps_reached"] == ["size"]
    verified(run)


def test_the_memory_of_the_harness_stays_flat_under_a_flood(measure: Measure, tmp_path: Path) -> None:
    run = measure(
        leaves_report(GOOD_REPORT, before="yes 0123456789abcdef | head -c 500000000"),
        config="[recording]\nmax_bytes = 1000000000\n",
        peak=tmp_path / "peak",
    )
    assert run.attempt["outcome"] == "pass_full", run.attempt
    assert run.attempt["recording"]["bytes"] > 500_000_000
    assert 20_000 < int((tmp_path / "peak").read_text()) < 250_000, "kilobytes at the peak of the harness"


def test_a_full_disk_inside_the_machine_is_named(measure: Measure) -> None:
    run = measure("head -c 2000000000 /dev/zero > /work/fill; sleep 60", "--budget-seconds", "120", config=SMALL)
    assert run.code == 4
    assert (run.attempt["valid"], run.attempt["cause"]) == (True, "disk_limit")
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert "disk" in run.attempt["reason"]
    assert not containers(run.workspace)
    verified(run)


def test_an_agent_cannot_have_its_machine_ended_for_memory_to_void_its_attempt(measure: Measure) -> None:
    doom = "echo 1000 > /proc/1/oom_score_adj; python3 -c \"b = b'x' * 400_000_000\"; sleep 2"
    run = measure(doom, "--budget-seconds", "60", config=SMALL)
    assert run.code == 4
    assert run.attempt["valid"] is True, run.attempt["reason"]
    assert run.attempt["cause"] in {None, "memory_limit"}
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert not containers(run.workspace)


def test_a_sparse_file_is_no_full_disk(measure: Measure) -> None:
    run = measure(
        leaves_report(GOOD_REPORT, before="truncate -s 900G /work/map; cp /usr/bin/python3.11 /work/p; sleep 8"),
        config=SMALL.replace("200", "250"),
    )
    assert run.attempt["outcome"] == "pass_full", run.attempt["reason"]


@pytest.mark.parametrize("blow", ["kill -9 -1", "kill -TERM 1", "kill -9 1", "pkill -9 sleep; pkill -9 busybox"])
def test_an_agent_cannot_end_its_machine_to_void_its_attempt(measure: Measure, blow: str) -> None:
    run = measure(blow, "--budget-seconds", "60")
    assert run.code == 4
    assert run.attempt["valid"] is True, run.attempt["reason"]
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert not containers(run.workspace)


def test_a_machine_that_vanishes_under_the_rerun_is_no_verdict_on_the_agent(subject: Path) -> None:
    workspace = subject.parent.parent
    claim = {**GOOD_REPORT, "verified_how": {"command": "sleep 100", "returned": ""}}
    harness = subprocess.Popen(
        [
            *REFEREE, "bringup", "run", "square", "--agent", "command", "--command", leaves_report(claim), "--json",
            "--budget-seconds", "6", "--workspace", str(workspace),
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not any('"report"' in path.read_text() for path in workspace.glob("spool/*/harness.jsonl")):
        assert time.monotonic() < until, "the report was never read"
        time.sleep(0.02)
    time.sleep(0.5)
    subprocess.run(["docker", "rm", "-f", *containers(workspace)], check=True, capture_output=True)
    out, _ = harness.communicate(timeout=120)
    first, again = json.loads(out)["attempts"]
    assert (first["valid"], first["retry"], first["cause"], first["total"]) == (False, True, "machine_fault", None)
    assert "while the report's command ran again" in first["reason"]
    assert (again["valid"], again["corroboration"]) == (True, "not_observed")
    assert not containers(workspace)
