"""The lane to an agent CLI against programs that behave badly: nothing of them outlives the call, nothing leaks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.lanes.cli import process
from referee.adapters.lanes.cli.lane import CliLane
from referee.errors import CouldNotVerify
from referee.protocols import Said
from tests.bakeoff.cli_programs import KEY, environ_of, lives, program, question, say, target, use

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute


def test_status_output_and_errors_come_as_they_are(tmp_path: Path) -> None:
    said = say(tmp_path, "sys.stdout.write('out'); sys.stderr.write('two\\nlines'); sys.exit(3)")
    assert (said.status, said.body, said.broke, said.detail) == (3, b"out", None, "two lines")
    assert said.headers == {"content-type": "application/json", "x-program": "cursor"}


def test_a_program_that_ignores_the_polite_signal_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.3)
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, 1); time.sleep(600)'])
    print(os.getpid(), child.pid, flush=True)
    time.sleep(600)
    """
    said = say(tmp_path, code, deadline=1.5)
    assert (said.status, said.broke) == (None, "timeout")
    assert said.detail.startswith("no end within 1.5 s")
    leader, child = map(int, said.body.split())
    assert not lives(leader)
    assert not lives(child)


def test_a_polite_program_may_say_a_last_word(tmp_path: Path) -> None:
    code = """
    def end(*_):
        print('bye', flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    time.sleep(600)
    """
    said = say(tmp_path, code, deadline=1.0)
    assert (said.broke, said.body) == ("timeout", b"bye\n")


def test_only_its_own_group_is_signalled(tmp_path: Path) -> None:
    """Another process of the test, started in the test's own group, lives through the deadline."""
    code = "time.sleep(600)"

    async def both(lane: CliLane) -> tuple[Said, bool]:
        other = await asyncio.create_subprocess_exec("sleep", "60")
        said = await lane.ask(question(), 0.5)
        alive = lives(other.pid)
        other.kill()
        await other.wait()
        return said, alive

    said, alive = use(target(program(tmp_path, code)), tmp_path / "spool", both)
    assert said.broke == "timeout"
    assert alive


def test_what_it_leaves_in_its_group_is_ended_and_cannot_hold_the_call(tmp_path: Path) -> None:
    """The child keeps the pipes open; the answer is taken all the same, at once."""
    code = """
    child = subprocess.Popen(['sleep', '600'])
    print(child.pid, flush=True)
    """
    said = say(tmp_path, code, deadline=60.0)
    assert (said.status, said.broke) == (0, None)
    assert said.latency_ms < 30_000
    assert not lives(int(said.body))


def test_what_leaves_its_group_is_ended_when_the_lane_is_closed(tmp_path: Path) -> None:
    code = """
    child = subprocess.Popen(['sleep', '600'], start_new_session=True)
    print(child.pid, flush=True)
    """

    async def one(lane: CliLane) -> tuple[Said, bool]:
        said = await lane.ask(question(), 60.0)
        return said, lives(int(said.body))

    said, alive_before = use(target(program(tmp_path, code)), tmp_path / "spool", one)
    assert alive_before
    assert not lives(int(said.body))


def test_an_interrupted_call_leaves_no_program_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"""
    open({str(mark)!r}, 'w').write(str(os.getpid()))
    time.sleep(600)
    """

    async def interrupt(lane: CliLane) -> None:
        asking = asyncio.ensure_future(lane.ask(question(), 600.0))
        while not mark.exists() or not mark.read_text(encoding="utf-8"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not lives(int(mark.read_text(encoding="utf-8")))

    use(target(program(tmp_path, code)), tmp_path / "spool", interrupt)


def test_what_a_killed_run_left_is_ended_and_removed_by_the_next(tmp_path: Path) -> None:
    """The run is killed without a chance to clean up; its program and its home go when the next lane is opened."""
    mark, spool = tmp_path / "pid", tmp_path / "spool"
    code = f"""
    open({str(mark)!r}, 'w').write(str(os.getpid()))
    time.sleep(600)
    """
    aim = target(program(tmp_path, code))
    run = f"""
import asyncio
from pathlib import Path
from tests.bakeoff.cli_programs import environ_of, question, CliLane, Target
aim = Target.model_validate_json({aim.model_dump_json()!r})
lane = CliLane(aim, spool=Path({str(spool)!r}), environ=environ_of())
asyncio.run(lane.ask(question(), 600.0))
"""
    runner = subprocess.Popen([sys.executable, "-c", run], cwd=Path(__file__).parents[2])
    until = time.monotonic() + 60
    while not mark.exists() or not mark.read_text(encoding="utf-8"):
        assert runner.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    left = next(spool.glob("cli-*"))
    os.utime(left, (1, 1))
    held = CliLane(aim, spool=spool, environ=environ_of())
    assert lives(int(mark.read_text(encoding="utf-8")))  # the run still holds its homes
    runner.kill()
    runner.wait()
    assert lives(int(mark.read_text(encoding="utf-8")))
    asyncio.run(held.close())
    use(aim, spool, lambda lane: lane.credit_usd())
    assert not lives(int(mark.read_text(encoding="utf-8")))
    assert list(spool.iterdir()) == []


def test_an_endless_output_is_cut_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.run, "__kwdefaults__", {"most_output": 100_000})
    said = say(tmp_path, "while True: sys.stdout.write('x' * 10_000)", deadline=60.0)
    assert (said.status, said.broke, len(said.body)) == (None, "too-long", 100_000)


def test_a_program_ended_by_a_signal_gives_no_answer(tmp_path: Path) -> None:
    said = say(tmp_path, "print('half', flush=True); os.kill(os.getpid(), 9)")
    assert (said.status, said.broke) == (None, "killed")
    assert said.detail.startswith("ended by signal 9")


def test_the_credential_never_stands_in_the_detail(tmp_path: Path) -> None:
    code = """
    key = os.environ['CURSOR_API_KEY']
    sys.stderr.write(('x' * 15_000 + key + ' ' + 'y' * 990 + key + '\\n') * 3 + 'header: ' + key)
    """
    said = say(tmp_path, code)
    assert "header: [LANE_KEY]" in said.detail
    assert all(KEY[start : start + 8] not in said.detail for start in range(len(KEY) - 8))


def test_the_program_gets_the_named_variables_and_no_others(tmp_path: Path) -> None:
    aim = target(program(tmp_path, "print(json.dumps(dict(os.environ)))"), cli={"inherit": ["COLOUR", "ABSENT"]})
    environ = environ_of(COLOUR="red", SECRET_OF_THE_HOST="x", HOME="/root", CURSOR_API_KEY="another")

    async def both(lane: CliLane) -> tuple[Said, str]:
        return await lane.ask(question(), 20.0), (await lane.check()).verified["environment"]

    said, declared = use(aim, tmp_path / "spool", both, environ)
    seen = json.loads(said.body)
    # LC_CTYPE is Python's own doing.
    assert sorted(seen.keys() - {"LC_CTYPE"}) == declared.split()
    assert (seen["COLOUR"], seen["CURSOR_API_KEY"]) == ("red", KEY)
    assert "SECRET_OF_THE_HOST" not in seen
    assert Path(seen["HOME"]).is_relative_to(tmp_path / "spool")


def test_the_source_of_a_programs_rows_is_what_a_start_finds_again(tmp_path: Path) -> None:
    aim = target(program(tmp_path, "print('x')"), cli={"inherit": ["COLOUR"]})
    first = use(aim, tmp_path / "one", lambda lane: lane.check(), environ_of())
    again = use(aim, tmp_path / "two", lambda lane: lane.check(), environ_of(NOT_NAMED="x"))
    other = use(aim, tmp_path / "two", lambda lane: lane.check(), environ_of(COLOUR="red"))
    assert first.pins == again.pins
    assert set(first.pins) == {"program", "executable", "home", "environment"}
    assert [name for name in first.pins if first.pins[name] != other.pins[name]] == ["environment"]


def test_home_and_place_of_work_are_empty_and_new_for_every_call(tmp_path: Path) -> None:
    code = """
    places = [os.environ['HOME'], os.getcwd(), os.environ['TMPDIR']]
    print(json.dumps([places, [os.listdir(place) for place in places]]))
    for place in places: open(place + '/left', 'w')
    """

    async def twice(lane: CliLane) -> list[Any]:
        return [json.loads((await lane.ask(question(), 20.0)).body) for _ in range(2)]

    first, second = use(target(program(tmp_path, code)), tmp_path / "spool", twice)
    assert first[1] == second[1] == [[], [], []]
    assert set(first[0]).isdisjoint(second[0])
    assert list((tmp_path / "spool").iterdir()) == []


def test_calls_at_once_do_not_meet(tmp_path: Path) -> None:
    code = "time.sleep(0.3); print(json.dumps([os.environ['HOME'], sys.argv[-1]]))"

    async def many(lane: CliLane) -> list[Said]:
        return await asyncio.gather(*(lane.ask(question(f"question {n}"), 60.0) for n in range(6)))

    answers = [json.loads(said.body) for said in use(target(program(tmp_path, code)), tmp_path / "spool", many)]
    assert [text for _, text in answers] == [f"question {n}" for n in range(6)]
    assert len({home for home, _ in answers}) == 6


def test_a_question_too_long_for_an_argument_is_said(tmp_path: Path) -> None:
    said = say(tmp_path, "print('never')", text="x" * 200_000)
    assert (said.status, said.broke, said.body) == (None, "connect", b"")
    assert "cannot be started" in said.detail


def test_a_program_that_is_not_there_is_refused_at_the_check(tmp_path: Path) -> None:
    aim = target(tmp_path / "nowhere")
    with pytest.raises(CouldNotVerify, match="is not there") as caught:
        use(aim, tmp_path / "spool", lambda lane: lane.check())
    assert "1.2.3" in caught.value.todo
    said = use(aim, tmp_path / "spool", lambda lane: lane.ask(question(), 5.0))
    assert said.broke == "connect"


def test_a_program_without_a_version_is_refused_at_the_check(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("#!/bin/sh\necho no number; exit 1\n", encoding="utf-8")
    path.chmod(0o755)
    with pytest.raises(CouldNotVerify, match="does not say its version"):
        use(target(path), tmp_path / "spool", lambda lane: lane.check())


def test_the_check_never_hands_out_the_credential(tmp_path: Path) -> None:
    path = tmp_path / "spy"
    path.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen; echo 1.2.3\n", encoding="utf-8")
    path.chmod(0o755)
    use(target(path), tmp_path / "spool", lambda lane: lane.check())
    assert KEY not in (tmp_path / "seen").read_text(encoding="utf-8")
