"""A run that is killed or interrupted at any moment loses no row, and going on makes every slot exactly once usable."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from referee.adapters.store.aggregate import tally
from referee.adapters.store.shard_files import scan_shard
from referee.runner.bakeoff.run import run_bakeoff
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

SLOW = pytest.mark.slow
REFEREE = str(Path(sys.executable).with_name("referee"))


@contextmanager
def running(space: RunWorkspace, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """``referee bakeoff run`` in a process group of its own."""
    process = subprocess.Popen(
        [REFEREE, "bakeoff", "run", "small", "-w", str(space.root), *arguments],
        env={**os.environ, "SCRIPTED_API_KEY": KEY},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for_rows(space: RunWorkspace, count: int, process: subprocess.Popen[str], seconds: float = 30.0) -> None:
    """Until so many lines stand in the newest shard, as any reader sees them."""
    before = set(space.shards()[:-1])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fresh = [path for path in space.shards() if path not in before]
        if fresh and sum(path.read_bytes().count(b"\n") for path in fresh) > count:
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    raise AssertionError("no rows came")


def _go_on(space: RunWorkspace) -> None:
    report = asyncio.run(run_bakeoff(space.loaded, space.desk()))
    os._exit(0 if report.targets[0].ended == "complete" else 1)


def test_kill_9_at_random_moments_and_going_on_makes_every_slot_once(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    seen: set[tuple[str, str, int]] = set()
    with serving(calls=right, delay=0.08, keep=False) as server:
        space = RunWorkspace(tmp_path, server.url, cases=150, repeats=2, plan="[guards]\nconcurrency = 16\n")
        space.freeze()
        for kill in [True] * 8 + [False]:
            child = multiprocessing.get_context("fork").Process(target=_go_on, args=(space,))
            child.start()
            assert child.pid is not None
            if kill:
                child.join(0.1 + chance.random() * 0.3)
                assert child.exitcode is None, "it ended before it was killed: this test tests nothing"
                os.kill(child.pid, signal.SIGKILL)
            child.join(60)
            assert child.exitcode == (-signal.SIGKILL if kill else 0)
            slots = space.slots()
            assert seen <= set(slots), "a row that stood there is gone"
            seen = set(slots)
            space.verify()
    assert set(slots.values()) == {1}
    assert len(slots) == 300
    targets, _, _ = tally([path for path in space.shards() if path.read_bytes().count(b"\n")])
    assert (targets[0].usable, targets[0].physical, targets[0].missing, targets[0].unexpected) == (300, 300, (), ())
    assert "unclosed" in targets[0].ended


@pytest.mark.parametrize(
    "polite", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=SLOW), pytest.param(signal.SIGHUP, marks=SLOW)]
)
def test_one_interrupt_lets_calls_under_way_finish_and_closes_the_shard(tmp_path: Path, polite: signal.Signals) -> None:
    with serving(calls=right, delay=0.3) as server:
        space = RunWorkspace(tmp_path, server.url, cases=40, repeats=1, plan="[guards]\nconcurrency = 4\n")
        space.freeze()
        with running(space) as process:
            wait_for_rows(space, 4, process)
            process.send_signal(polite)
            _, said = process.communicate(timeout=30)
        asked = len([got for got in server.got if "City" in got.question])
    assert process.returncode == 130, said
    assert "stopping: calls under way may finish" in said
    shard = scan_shard(space.shards()[0])
    assert shard.closed is not None
    assert shard.closed.ended == "interrupted"
    assert shard.fact.rows == asked, "an answer that was paid for is not in the shard"


def test_a_second_interrupt_gives_up_at_once_and_loses_no_row(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=40, repeats=1, plan="[guards]\nconcurrency = 4\n")
        space.freeze()
        server.script = lambda got: "slow" if len([one for one in server.got if "City" in one.question]) > 8 else None
        with running(space) as process:
            wait_for_rows(space, 8, process)
            process.send_signal(signal.SIGINT)
            time.sleep(0.4)
            assert process.poll() is None
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
            assert time.monotonic() - began < 5
        assert process.returncode == 130, said
        shard = scan_shard(space.shards()[0])
        assert shard.closed is not None
        assert (shard.closed.ended, shard.fact.rows) == ("interrupted", 8)
        server.script = lambda got: None
        assert space.run().targets[0].missing == 32
    assert set(space.slots().values()) == {1}


def test_what_waits_for_a_retry_is_given_up_at_an_interrupt_and_leaves_no_row(tmp_path: Path) -> None:
    plan = "[retry]\ntries = 5\nfirst_seconds = 60.0\n[guards]\nconcurrency = 2\n"
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=1, plan=plan)
        space.freeze()
        server.script = lambda got: "503" if "City" in got.question else None
        with running(space) as process:
            end = time.monotonic() + 30
            while len([one for one in server.got if "City" in one.question]) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            threading.Event().wait(0.2)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    assert process.returncode == 130
    assert space.rows() == []
    shard = scan_shard(space.shards()[0])
    assert shard.closed is not None
    assert shard.closed.ended == "interrupted"


def test_an_interrupt_while_an_endpoint_is_checked_ends_the_run_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        space = RunWorkspace(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        space.freeze()
        with running(space) as process:
            silent.settimeout(30)
            held, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            process.communicate(timeout=20)
            assert time.monotonic() - began < 5
            held.close()
    assert process.returncode == 130
    assert space.shards() == []


def test_a_torn_last_line_is_kept_aside_and_reported(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=1)
        space.run()
        space.unseal()
        shard = space.shards()[0]
        whole = shard.read_bytes()
        lines = whole.splitlines(keepends=True)
        for cut in (1, len(lines[-2]) - 1):  # one byte of a line, and all of it but its line feed
            torn = b"".join(lines[:-2]) + lines[-2][:cut]
            shard.write_bytes(torn)
            targets, _, facts = tally([shard])
            assert (facts[0].rows, facts[0].torn_bytes) == (5, cut)
            assert (targets[0].usable, len(targets[0].missing)) == (5, 1)
            assert shard.read_bytes() == torn
            verified = space.verify()
            assert f"{cut} bytes after line 6 are a torn line and no row" in verified.torn[0]
            assert "no row names 1 of its answers: one, case-00000" in verified.loose[0]
