"""Steps done again on real machines: shells kept and not kept, background work, changes, limits, empty input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.docker.sandbox import DockerSandbox
from referee.benchmarks.bringup.redo import Redo, StoppedHere
from referee.core.records import Limits
from referee.core.sessions.steps import Step, Told
from referee.protocols import Machine, MachineSpec

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LIMITS = Limits(memory_bytes=1 << 30, cpus=1.0, pids=256, disk_bytes=1 << 30, nofile=1024)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    sandbox = DockerSandbox(workspace="replay-tests")
    made = sandbox.create(
        MachineSpec(run="p-redo", workspace="replay-tests", deadline=time.time() + 600, limits=LIMITS)
    )
    made.execute(("/bin/mkdir", "-p", "/work/project"), timeout=20)
    try:
        yield made
    finally:
        made.destroy()


def command(text: str, **more: object) -> Step:
    return Step.model_validate({"kind": "command", "text": text, **more})


def redo(machine: Machine, *steps: Step, processes: str = "fresh") -> tuple[list[int | None], bytes]:
    """The statuses of the steps, and the log of them all."""
    log: list[bytes] = []
    told = Told.model_validate({"processes": processes, "steps": steps})
    doing = Redo(machine, told, deadline=time.monotonic() + 120, write=log.append)
    return [doing.do(number).status for number in range(1, len(steps) + 1)], b"".join(log)


def test_a_fresh_process_each_keeps_nothing_but_files(machine: Machine) -> None:
    statuses, log = redo(
        machine,
        command("export A=kept; cd /tmp; echo made > /tmp/file"),
        command('echo "[$A] $PWD $(cat /tmp/file)"'),
        command("exit 7"),
        command("pwd", cwd="/usr"),
        command("pwd", cwd="/nowhere"),
        command('echo "$GIVEN"', environment={"GIVEN": "by the harness"}),
    )
    assert statuses == [0, 0, 7, 0, 126, 0]
    assert b"[] /work/project made" in log
    assert b"\n/usr\n" in log
    assert b"by the harness" in log


def test_each_command_is_given_to_the_shell_of_the_session(machine: Machine) -> None:
    asks = command('echo "version ${BASH_VERSION:-none}"')
    said: dict[str, bytes] = {}
    for interpreter in ("bash", "sh"):
        log: list[bytes] = []
        told = Told.model_validate({"interpreter": interpreter, "steps": (asks,)})
        assert Redo(machine, told, deadline=time.monotonic() + 60, write=log.append).do(1).status == 0
        said[interpreter] = b"".join(log)
    assert b"version 5." in said["bash"]
    assert b"version none" in said["sh"]


def test_a_process_each_that_begins_where_the_last_one_stood(machine: Machine) -> None:
    statuses, log = redo(
        machine,
        command("export A=kept; cd /usr/lib; false"),
        command('echo "[$A] $PWD"', then_cwd="/work/project"),
        command('echo "now $PWD"'),
        processes="place",
    )
    assert statuses == [1, 0, 0]
    assert b"[] /usr/lib" in log
    assert b"now /work/project" in log


def test_one_kept_shell_keeps_exports_functions_place_and_jobs(machine: Machine) -> None:
    statuses, log = redo(
        machine,
        command("export A=kept; cd /usr; greet() { echo hello $1; }"),
        command('greet "$A"; pwd'),
        command("sleep 300 & echo started"),
        command("jobs -r | grep -c sleep"),
        command("sleep 60", seconds=1, stopped=True),
        command('echo "still $A"'),
        command("exit 3"),
        command('echo "anew [$A]"'),
        processes="kept",
    )
    assert statuses == [0, 0, 0, 0, None, 0, 0, 0]
    assert b"hello kept\n/usr" in log
    assert b"still kept" in log
    assert b"anew []" in log, "a shell that ended is begun anew"


def test_what_runs_in_the_background_runs_on_between_commands(machine: Machine) -> None:
    statuses, log = redo(
        machine,
        command("python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 1"),
        command("curl -sf http://127.0.0.1:8123/ >/dev/null && echo reached"),
        command("sleep 1; echo late > /tmp/late", background=True),
        command("test -e /tmp/late || echo not yet; sleep 2; cat /tmp/late"),
    )
    assert statuses == [0, 0, 0, 0]
    assert b"reached" in log
    assert b"not yet\nlate" in log


def test_a_question_gets_no_answer_and_a_limit_ends_what_hangs(machine: Machine) -> None:
    began = time.monotonic()
    statuses, log = redo(
        machine, command("read -r answer || echo nobody"), command("sleep 100", seconds=1, stopped=True)
    )
    assert statuses == [0, None]
    assert b"nobody" in log
    assert b"stopped at its limit" in log
    assert time.monotonic() - began < 30


def test_much_output_is_cut_in_the_log_and_counted_whole(machine: Machine) -> None:
    log: list[bytes] = []
    told = Told(steps=(command("head -c 3000000 /dev/zero | tr '\\0' x; echo end; exit 1"),))
    done = Redo(machine, told, deadline=time.monotonic() + 60, write=log.append).do(1)
    assert done.bytes == 3_000_004
    assert done.tail.endswith("end\n")
    assert len(b"".join(log)) < 70_000


def test_changes_are_made_again_exactly_or_the_replay_stops_there(machine: Machine) -> None:
    statuses, log = redo(
        machine,
        Step(kind="write", path="deep/er/file.txt", text="one two one\n"),
        Step(kind="replace", path="/work/project/deep/er/file.txt", old="one", text="1", every=True),
        Step(kind="replace", path="deep/er/file.txt", old="1", text="$HOME `x` \\n"),
        command("cat deep/er/file.txt"),
        Step(kind="remove", path="deep/er/file.txt"),
        command("test ! -e deep/er/file.txt"),
    )
    assert statuses == [None, None, None, 0, None, 0]
    assert b"$HOME `x` \\n two 1\n" in log
    for step, said in (
        (Step(kind="replace", path="/no/such", old="a", text="b"), "is not there"),
        (Step(kind="replace", path="/etc/hostname", old="no such text", text="b"), "does not hold the text"),
    ):
        with pytest.raises(StoppedHere, match=said):
            redo(machine, step)


def test_the_time_of_the_run_ends_a_replay(machine: Machine) -> None:
    told = Told(steps=(command("true"),))
    with pytest.raises(StoppedHere, match="time limit"):
        Redo(machine, told, deadline=time.monotonic() - 1, write=lambda _: None).do(1)


def test_no_path_of_this_host_is_needed(tmp_path: Path, machine: Machine) -> None:
    statuses, _ = redo(machine, command(f"test ! -e {tmp_path}"))
    assert statuses == [0]
