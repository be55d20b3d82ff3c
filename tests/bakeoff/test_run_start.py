"""What stands against a start is said in one sentence, before the first call, and nothing is lost by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from referee.adapters.store.shards import Commits
from referee.core.redaction import Redactor
from referee.errors import CouldNotVerify, Finding, NothingMatched, UsageError
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

REFEREE = [str(Path(sys.executable).with_name("referee"))]


def command(space: RunWorkspace, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "SCRIPTED_API_KEY"}
    return subprocess.run(
        [*REFEREE, "bakeoff", "run", "small", "-w", str(space.root), *arguments],
        env={**clean, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_protocol_that_is_not_frozen_is_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        done = command(space, SCRIPTED_API_KEY=KEY)
        assert server.got == []
    assert done.returncode == 1
    assert "the protocol small is not frozen" in done.stderr
    assert space.shards() == []


def test_a_changed_protocol_is_refused_and_the_line_named(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        space.freeze()
        file = tmp_path / "protocols" / "small" / "protocol.toml"
        file.write_text(file.read_text().replace("repeats = 2", "repeats = 1"))
        done = command(space, SCRIPTED_API_KEY=KEY)
        assert server.got == []
    assert done.returncode == 1
    assert "repeats = 2" in done.stderr
    assert "repeats = 1" in done.stderr


def test_a_changed_target_is_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        space.freeze()
        space.write_target("one", server.url, deadline_seconds=5.0)
        done = command(space, SCRIPTED_API_KEY=KEY)
    assert done.returncode == 1
    assert "targets/one.toml" in done.stderr


def test_a_missing_credential_aborts_every_target(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, free={"key_env": "SCRIPTED_API_KEY"}, paid={"key_env": "OTHER_KEY"})
        space.freeze()
        done = command(space, SCRIPTED_API_KEY=KEY)
        assert server.got == []
    assert done.returncode == 2
    assert "the environment variable OTHER_KEY is not set" in done.stderr
    assert space.shards() == []


def test_a_credential_too_short_to_be_redacted_is_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        space.freeze()
        done = command(space, SCRIPTED_API_KEY="hunter2")
        assert server.got == []
    assert done.returncode == 2
    assert "SCRIPTED_API_KEY has fewer than 8 characters" in done.stderr
    assert "hunter2" not in done.stderr


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        space.freeze()
        with pytest.raises(NothingMatched, match="the protocol small has no target twoo"):
            space.run("twoo")
        with pytest.raises(UsageError, match="named twice"):
            space.run("one", "one")


def test_a_model_that_is_not_in_the_live_catalogue_is_refused_before_any_call(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, one={}, two={"model": "hearsay"})
        with pytest.raises(CouldNotVerify, match="hearsay"):
            space.run()
        assert [got for got in server.got if "City" in got.question] == []
    assert space.shards() == []


def test_an_endpoint_that_does_not_answer_is_no_skip(tmp_path: Path) -> None:
    space = RunWorkspace(tmp_path, "http://127.0.0.1:9")
    space.freeze()
    done = command(space, SCRIPTED_API_KEY=KEY)
    assert done.returncode == 4
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_catalogue_of_cases_is_refused(tmp_path: Path) -> None:
    space = RunWorkspace(tmp_path, "http://127.0.0.1:9")
    cases = tmp_path / "protocols" / "small" / "cases.json"
    whole = cases.read_text()
    for broken, said in ((whole[:-40], "not JSON"), (whole.replace("case-000001", "case-000000"), "case-000000")):
        cases.write_text(broken)
        done = command(space, SCRIPTED_API_KEY=KEY)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_shard_that_was_changed_is_refused_and_a_torn_one_is_not(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1)
        space.run()
        shard = space.shards()[0]
        whole = shard.read_bytes()
        lines = whole.splitlines(keepends=True)
        space.unseal()
        shard.write_bytes(b"".join(lines[:3]) + lines[3][:50])
        assert space.run().targets[0].missing == 2
        assert set(space.slots().values()) == {1}
        shard.write_bytes(whole.replace(b'"passed":true', b'"passed":null', 1))
        with pytest.raises(Finding, match="line 3: does not continue the line before it"):
            space.run()
        shard.write_bytes(b"".join([*lines[:2], *lines[3:]]))
        with pytest.raises(Finding, match="line 3: says it is number 3, it stands at 2"):
            space.run()


def test_a_second_run_of_a_target_beside_a_living_one_is_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1)
        space.run()
        from referee.adapters.store.shard_files import scan_shard  # noqa: PLC0415

        opened = scan_shard(space.shards()[0]).opened
        commits = Commits(space.records, tmp_path / "answers", Redactor({}), lambda: None)
        commits.open_shard(opened)
        try:
            with pytest.raises(CouldNotVerify, match="another run of one under this protocol is under way"):
                space.run()
        finally:
            commits.close()
        assert space.run().targets[0].ended == "complete"


def test_a_full_disk_stops_the_run_and_keeps_what_was_written(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from referee.cli.app import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"sys.argv = ['referee', 'bakeoff', 'run', 'small', '-w', {str(tmp_path)!r}]\n"
        "main()\n"
    )
    with serving(calls=right, delay=0.01) as server:
        space = RunWorkspace(tmp_path, server.url, cases=400, repeats=1, plan="[guards]\nconcurrency = 2\n")
        space.freeze()
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "SCRIPTED_API_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        asked = server.count
        assert done.returncode == 4, done.stderr
        assert "a row could not be written: File too large" in done.stderr
        assert asked < 200, "the run went on without writing"
        kept = len(space.rows())
        assert kept > 0
        assert space.run().targets[0].missing == 400 - kept
    assert set(space.slots().values()) == {1}
    assert len(space.slots()) == 400
