"""What a person is told before calls are spent: that rows are made again, and that rows will not rank."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.adapters.store.aggregate import tally
from referee.adapters.store.shard_files import first_line
from referee.errors import Finding
from referee.runner.bakeoff.run import run_bakeoff
from tests.bakeoff import scripted_shapes as shapes
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import ScriptedServer, serving
from tests.bakeoff.test_run_sources import not_ranked
from tests.bakeoff.test_run_start import REFEREE, command

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

ONE_BY_ONE = "[retry]\ntries = 1\n[guards]\nconcurrency = 1\n"


def bakeoff(space: RunWorkspace, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*REFEREE, "bakeoff", name, "small", *arguments, "-w", str(space.root)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def asked(server: ScriptedServer) -> int:
    return len([got for got in server.got if "City" in got.question])


def shard_of(space: RunWorkspace, target: str) -> Path:
    openings = ((path, first_line(path)) for path in space.shards())
    (found,) = [path for path, opened in openings if opened is not None and opened.target.name == target]
    return found


def gone(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("take", "clause"),
    [
        (gone, "is gone with 4 rows"),
        (emptied, "holds 0 rows, where it held 4"),
        (cut, "holds 2 rows, where it held 4"),
    ],
)
def test_rows_that_are_taken_away_to_be_made_again_are_missed_before_a_call_and_by_each_report(
    tmp_path: Path, take: Callable[[Path], None], clause: str
) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one={}, two={})
        space.run()
        assert bakeoff(space, "report", "--all").stderr == ""
        shard = shard_of(space, "one")
        kept = shard.read_bytes()
        take(shard)
        before, heard = asked(server), list[tuple[str, int]]()
        begun = run_bakeoff(
            space.loaded, space.desk(), warn=lambda sentence: heard.append((sentence, asked(server))), names=["two"]
        )
        assert asyncio.run(begun).warnings == [], "it is no target of this run"
        done = command(space, "--quiet", "--json", SCRIPTED_API_KEY=KEY)
        made = asked(server) - before
    assert heard == []
    assert (done.returncode, made) == (0, 2 if take is cut else 4)
    (sentence,) = json.loads(done.stdout)["warnings"]
    assert done.stderr.splitlines() == [sentence]
    assert sentence.startswith(f"one: the shard {shard.name}")
    assert clause in sentence
    assert "put it back from a copy" in sentence
    with pytest.raises(Finding):
        space.verify()
    for name, more in (("report", ()), ("export", ("--to", str(tmp_path / "out")))):
        told = bakeoff(space, name, "--all", *more)
        assert told.returncode == 0
        assert told.stderr.startswith(f"warning: the shard {shard.name}")
        assert clause in told.stderr
        assert "put it back from a copy; as it is, `referee verify` fails" in told.stderr
        other = bakeoff(space, name, "--shard", shard_of(space, "two").name, *more)
        assert (other.returncode, other.stderr) == (0, "")
    shard.write_bytes(kept)
    if take is cut:  # the run went on from what was left of it
        with pytest.raises(Finding, match="holds 4 rows, it held 2 when"):
            space.verify()
    else:
        space.verify()


def test_a_missing_shard_is_said_before_the_first_call(tmp_path: Path) -> None:
    heard: list[int] = []
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=3, repeats=1)
        space.run()
        shard_of(space, "one").unlink()
        asyncio.run(run_bakeoff(space.loaded, space.desk(), warn=lambda _: heard.append(asked(server))))
        assert (heard, asked(server)) == ([3], 6)


def test_a_shard_that_was_put_back_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=3, repeats=1)
        space.run()
        shard = shard_of(space, "one")
        kept = shard.read_bytes()
        shard.unlink()
        shard.write_bytes(kept)
        assert space.run().warnings == []
        assert asked(server) == 3
        shard.unlink()
        none = bakeoff(space, "report", "--all")
        assert none.returncode == 5
        assert "every shard of the protocol small is gone" in none.stderr
        asyncio.run(run_bakeoff(space.loaded, space.desk()))
        shard.write_bytes(kept)
        space.verify()  # raises where it does not hold
    targets, _, _ = tally(space.shards())
    assert (targets[0].physical, targets[0].usable) == (6, 3)


def test_a_target_that_the_breaker_stopped_is_gone_on_with_only_with_a_warning(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    with serving(calls=right) as server:
        server.script = lambda got: "503" if "City" in got.question else None
        space = RunWorkspace(tmp_path, server.url, cases=12, repeats=1, plan=ONE_BY_ONE, one={})
        assert space.run().targets[0].ended == "breaker"
        shard = shard_of(space, "one")
        server.script = lambda got: None
        begun = run_bakeoff(space.loaded, space.desk(), warn=lambda sentence: heard.append((sentence, asked(server))))
        assert asyncio.run(begun).targets[0].ended == "complete"
        sentence = f"one: the rows that come now will not be ranked: the breaker stopped it in shard {shard.name}"
        assert heard == [(sentence, 8)]
        assert any("the circuit breaker stopped it" in reason for reason in not_ranked(space)["one"])
        assert space.run().warnings == [], "nothing is missing, so nothing is spent"


def test_a_target_whose_account_refused_goes_on_without_a_warning(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        server.script = lambda got: "402" if "City" in got.question else None
        space = RunWorkspace(tmp_path, server.url, cases=100, repeats=1, plan=ONE_BY_ONE)
        assert space.run().targets[0].ended == "account"
        server.script = lambda got: None
        report = space.run()
    assert (report.targets[0].ended, report.warnings) == ("complete", [])
    assert not_ranked(space) == {"one": []}, "as the page on reading a report says"


def test_another_model_that_answers_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=8, repeats=1, plan=ONE_BY_ONE)
        server.script = lambda got: "402" if asked(server) > 3 and "City" in got.question else None
        assert space.run().warnings == []
        server.script = lambda got: None
        plain = shapes.answer
        monkeypatch.setattr(shapes, "answer", lambda surface, model, calls: plain(surface, f"{model}-2026-11", calls))
        report = space.run()
    sentence = "one: another model answers than before, so it will not be ranked: ok and ok-2026-11"
    assert report.warnings == [sentence]
    assert any("2 different served models" in reason for reason in not_ranked(space)["one"])
