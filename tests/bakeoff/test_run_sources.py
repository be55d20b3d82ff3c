"""Rows of a run that was gone on with come from one source, as long as what they measure is the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.store.aggregate import tally
from referee.adapters.store.shard_files import first_line
from referee.core.provenance import said_apart, sources_differ, write_source
from referee.runner.bakeoff.run import Interrupts, RunReport, Tightened, run_bakeoff
from referee.runner.bakeoff.target_run import Counts
from referee.scoring.bakeoff.grid import grid_of
from referee.scoring.bakeoff.lanes import owed, reasons
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_plays import Got
from tests.bakeoff.scripted_server import serving
from tests.bakeoff.test_run_start import REFEREE, command

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

QUICK = "[retry]\ntries = 3\nfirst_seconds = 0.01\nmost_seconds = 0.05\n"
LOCAL: dict[str, Any] = {"channel": "local", "per_minute": 600.0}


def begin(space: RunWorkspace, **tightened: Any) -> RunReport:
    """A run that a person stops as soon as every target has a row."""
    space.freeze()
    interrupts = Interrupts()

    def tick(counts: Sequence[Counts]) -> None:
        if all(one.durable for one in counts) and not interrupts.halt.asked:
            interrupts.interrupt()

    begun = run_bakeoff(space.loaded, space.desk(), interrupts=interrupts, tick=tick, tightened=Tightened(**tightened))
    report = asyncio.run(begun)
    assert [one.ended for one in report.targets] == ["interrupted"] * len(report.targets)
    return report


def not_ranked(space: RunWorkspace) -> dict[str, list[str]]:
    """Why each target may not be ranked."""
    loaded = space.loaded
    due = owed(loaded.protocol, loaded.suite, loaded.subsets)
    targets, cases, *_ = tally(space.shards())
    grid = grid_of(loaded.suite, targets, cases)
    return {
        one.target.name: [
            note.sentence for note in reasons(one, loaded.protocol, due, grid.rows_by_case(one.target.name))
        ]
        for one in targets
    }


def test_the_embedded_target_ranks_after_a_run_that_was_gone_on_with(tmp_path: Path) -> None:
    floor = '[[targets]]\ntarget = "keyword-baseline"\n'
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, repeats=3, plan=floor, one={"per_minute": 600.0})
        begin(space, per_minute=600.0)
        assert space.run().warnings == []
    assert len(space.shards()) == 4
    assert not_ranked(space) == {"one": [], "keyword-baseline": []}
    # A port that is drawn anew at each start is of no row.
    assert {row["provenance"] for row in space.rows() if row["target"] == "keyword-baseline"} == {
        "endpoint=embedded; model=keyword-baseline"
    }


@pytest.mark.parametrize(("first", "second"), [("ok", "text"), ("429", "500"), ("400", "ok"), ("reset", "no-json")])
def test_what_a_probe_finds_is_no_source(tmp_path: Path, first: str, second: str) -> None:
    now = [first]

    def script(got: Got) -> str | None:
        return None if "City" in got.question else now[0]

    with serving(calls=right, script=script) as server:
        space = RunWorkspace(tmp_path, server.url, repeats=3, plan=QUICK, one=LOCAL)
        begin(space)
        now[0] = second
        assert space.run().warnings == []
    assert not_ranked(space) == {"one": []}
    openings = [opened for path in space.shards() if (opened := first_line(path)) is not None]
    openings.sort(key=lambda opened: opened.at)
    before, after = [opened.environment["verified"]["tool_choice required"] for opened in openings]
    assert before != after  # it is kept, where it belongs
    assert {row["provenance"] for row in space.rows()} == {
        f"endpoint={server.url.removeprefix('http://')}/v1; model=ok"
    }


def test_a_probe_is_tried_again_like_any_question(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(got: Got) -> str | None:
        if "City" in got.question:
            return None
        seen.append(got.body["tool_choice"])
        return ["429", "500", "ok"][min(seen.count(got.body["tool_choice"]), 3) - 1]

    with serving(calls=right, script=script) as server:
        space = RunWorkspace(tmp_path, server.url, plan=QUICK, one={"channel": "local"})
        space.run()
    assert seen == ["auto"] * 3 + ["required"] * 3
    opened = first_line(space.shards()[0])
    assert opened is not None
    assert opened.environment["verified"]["tool_choice required"] == "accepted, a call came"


def test_a_catalogue_is_asked_again_after_an_infrastructure_error(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        server.refuses["models"] = 503
        space = RunWorkspace(tmp_path, server.url, plan=QUICK)
        space.freeze()
        with pytest.raises(Exception, match="answers HTTP 503 to /models"):
            space.run()
        assert len([got for got in server.got if got.path == "/v1/models"]) == 3
        server.refuses["models"] = 400
        with pytest.raises(Exception, match="answers HTTP 400 to /models"):
            space.run()
        assert len([got for got in server.got if got.path == "/v1/models"]) == 4


def test_another_source_is_said_before_its_rows_and_named(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    with serving(calls=right) as server:
        server.listed["max_model_len"] = 8192
        space = RunWorkspace(tmp_path, server.url, repeats=3, one={"per_minute": 600.0})
        begin(space)
        there = len(space.rows())
        server.listed["max_model_len"] = 32768

        def warn(sentence: str) -> None:
            heard.append((sentence, len(space.rows())))

        report = asyncio.run(run_bakeoff(space.loaded, space.desk(), warn=warn))
    sentence = (
        "one: the rows that come now have another source than those that are there, so it will not be ranked: "
        "context: 8192 and 32768"
    )
    assert heard == [(sentence, there)]
    assert report.warnings == [sentence]
    assert not_ranked(space) == {"one": ["its rows come from 2 different sources (context: 32768 and 8192)"]}
    space.verify()


def test_the_command_says_what_is_not_missing_and_what_will_not_rank(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        server.listed["max_model_len"] = 8192
        space = RunWorkspace(tmp_path, server.url, repeats=3, one={"per_minute": 600.0}, two={})
        begin(space, per_minute=600.0)
        space.run("two")
        server.listed["max_model_len"] = 32768
        mixed = command(space, "--quiet", SCRIPTED_API_KEY=KEY)
        again = command(space, SCRIPTED_API_KEY=KEY)
    assert mixed.returncode == again.returncode == 0
    assert "one: the rows that come now have another source" in mixed.stderr
    assert "context: 8192 and 32768" in mixed.stdout
    assert mixed.stdout.count("nothing was missing") == 1
    assert again.stdout.count("nothing was missing") == 2
    assert "0 of 0" not in mixed.stdout + mixed.stderr + again.stdout + again.stderr


def test_an_interrupt_while_a_catalogue_is_asked_again_is_heeded(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        server.refuses["models"] = 503
        space = RunWorkspace(tmp_path, server.url, plan="[retry]\ntries = 20\nfirst_seconds = 50\n")
        space.freeze()
        argv = [*REFEREE, "bakeoff", "run", "small", "-w", str(space.root)]
        env = {**os.environ, "SCRIPTED_API_KEY": KEY}
        with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as run:
            while not server.got:
                assert run.poll() is None
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate(timeout=40)
    assert (run.returncode, said) == (130, "interrupted before the first row\n")
    assert space.shards() == []


def test_sources_are_compared_fact_by_fact() -> None:
    one = write_source("endpoint=a/v1", "m", {"revision": "abc", "context": "8192"})
    assert one == "endpoint=a/v1; model=m; context=8192; revision=abc"
    other = write_source("endpoint=b/v1", "m", {"context": "8192"})
    assert sources_differ([one, other]) == "endpoint: a/v1 and b/v1; revision: abc and not said"
    assert sources_differ([one, one]) == ""
    assert sources_differ(["endpoint=a; x y; model=m", "endpoint=a; x z; model=m"]) == "endpoint: a; x y and a; x z"
    assert sources_differ(["", "endpoint=a"]) == "endpoint: not said and a"
    assert said_apart(["a" * 60, *"bcdef"]) == f"{'a' * 48}… and b and c and d and 2 more"
