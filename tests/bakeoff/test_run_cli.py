"""``referee bakeoff run``: one document on stdout, progress on stderr, an exit code that says how it ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from referee.cli.bakeoff_run import exit_code, progress_line
from referee.runner.bakeoff.target_run import Counts
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving
from tests.bakeoff.test_run_start import command

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

ONE_BY_ONE = "[retry]\ntries = 1\n[guards]\nconcurrency = 1\n"


def test_json_on_stdout_and_progress_on_stderr(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=12, repeats=1, plan=ONE_BY_ONE, good={}, bad={"model": "503"})
        space.freeze()
        done = command(space, "--json", SCRIPTED_API_KEY=KEY)
        again = command(space, "--json", "--quiet", "--target", "good", SCRIPTED_API_KEY=KEY)
        table = command(space, "--quiet", "--target", "good", SCRIPTED_API_KEY=KEY, COLUMNS="200")
    document = json.loads(done.stdout)
    assert document["schema"] == "referee.bakeoff-run/1"
    assert [(one["target"], one["rows"], one["durable"], one["ended"]) for one in document["targets"]] == [
        ("good", 12, 12, "complete"),
        ("bad", 8, 8, "breaker"),
    ]
    assert done.returncode == 4
    assert "good: 12 of 12" in done.stderr
    assert "bad: 8 of 12" in done.stderr
    assert "infrastructure errors 100%, stopped (breaker)" in done.stderr
    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout)["targets"][0]["missing"] == 0
    assert "good · own infrastructure" in table.stdout


def test_a_line_of_progress_says_rate_time_left_spend_and_errors() -> None:
    counts = Counts("one", 1000, rows=110, passed=90, infra=11, spent_usd=0.25, durable=100)
    assert progress_line(counts, 10.0) == (
        "one: 100 of 1000, 10.0/s, 1 min 30 s left, 0.2500 USD, infrastructure errors 10%"
    )
    assert progress_line(Counts("one", 5), 0.0) == "one: 0 of 5"


def test_exit_codes() -> None:
    complete, stopped = {"ended": "complete"}, {"ended": "budget"}
    assert exit_code({"interrupted": False, "targets": [complete]}) == 0
    assert exit_code({"interrupted": False, "targets": [complete, stopped]}) == 4
    assert exit_code({"interrupted": True, "targets": [complete]}) == 130
