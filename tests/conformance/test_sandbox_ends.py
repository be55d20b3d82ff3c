"""What every sandbox promises at the end: quiet, limits, floods, destruction, reaping."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest

from referee.protocols import Machine, Session

Make = Callable[..., Machine]
Drain = Callable[..., bytes]

ENDLESS = {
    "nothing": "true",
    "nohup": "nohup sleep 900 >/dev/null 2>&1 &",
    "setsid": "setsid sh -c 'sleep 900 & sleep 900' >/dev/null 2>&1 &",
    "deaf": "setsid sh -c \"trap '' TERM HUP INT QUIT; while :; do sleep 1; done\" >/dev/null 2>&1 &",
    "double fork": "(setsid sh -c '(sleep 900 &) ; exec sleep 900' >/dev/null 2>&1 &) ; true",
    "fork bomb": "setsid python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass' 2>/dev/null &",
    "zombies": "python3 -c 'import os,time\nfor _ in range(100):\n  if not os.fork(): os._exit(0)\n"
    "os.setsid() if os.fork()==0 else None\ntime.sleep(900)' &",
    "file deleted": "cp /bin/sleep /work/s; setsid /work/s 900 & sleep 0.3; rm /work/s",
}


def start(machine: Machine, script: str) -> Session:
    """Start a shell script on a terminal."""
    return machine.session(["/bin/sh", "-c", script], environment={}, cwd="/", columns=80, rows=24)


def run(machine: Machine, script: str) -> str:
    """Run a shell script without a terminal; its output."""
    return machine.execute(["/bin/sh", "-c", script], timeout=60).output.decode(errors="replace")


@pytest.mark.parametrize("kind", list(ENDLESS))
def test_quiet_ends_everything_and_keeps_the_files(make: Make, kind: str) -> None:
    machine = make(limits=candidate_limits(pids=150))
    places = ["/work/kept", "/root/kept", "/tmp/kept"]
    run(machine, f"for f in {' '.join(places)}; do echo kept > $f; done")
    session = start(machine, f"{ENDLESS[kind]}\nsleep 1")
    session.exit_status(3)
    facts = machine.quiet()
    assert facts.confirmed, facts.how
    assert facts.how
    assert (facts.survivors_ended > 0) == (kind != "nothing")
    assert session.exit_status(10) is not None
    session.close()
    assert run(machine, f"cat {' '.join(places)}") == "kept\n" * 3
    assert machine.read_file("/work/kept", max_bytes=100) == b"kept\n"
    left = run(machine, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
    assert "900" not in left
    assert "os.fork" not in left


def test_session_works_after_quiet_and_quiet_again(make: Make, drain: Drain) -> None:
    machine = make()
    for _ in range(3):
        session = start(machine, "nohup sleep 900 & echo alive")
        assert b"alive" in drain(session, until=b"alive")
        assert machine.quiet().confirmed
        session.close()
    again = start(machine, "echo once more; exit 5")
    assert b"once more" in drain(again)
    assert again.exit_status(10) == 5
    again.close()


def test_a_process_may_outlive_its_session(make: Make, drain: Drain) -> None:
    machine = make()
    ticker = "nohup sh -c 'while :; do date >> /work/tick; sleep 0.05; done' >/dev/null 2>&1 &"
    session = start(machine, f"{ticker} while ! test -s /work/tick; do sleep 0.05; done; echo up; sleep 900")
    drain(session, until=b"up")
    session.close()
    run(machine, "rm -f /work/tick; sleep 0.5")
    assert machine.read_file("/work/tick", max_bytes=100_000)
    facts = machine.quiet()
    assert facts.confirmed
    assert facts.survivors_ended > 0
    run(machine, "rm -f /work/tick; sleep 0.3")
    assert machine.read_file("/work/tick", max_bytes=1000) is None


def test_a_sound_machine_has_no_trouble(make: Make) -> None:
    machine = make()
    run(machine, "head -c 5000000 /dev/urandom > /work/some")
    assert machine.trouble() is None


def test_a_full_disk_is_trouble(make: Make) -> None:
    limits = candidate_limits(disk_bytes=60_000_000)
    machine = make(limits=limits)
    assert machine.trouble() is None
    machine.execute(["/bin/sh", "-c", "head -c 100000000 /dev/zero > /work/fill; true"], timeout=60)
    assert wait_for_trouble(machine) == "disk"
    assert machine.quiet().confirmed


@pytest.mark.slow
def test_names_of_one_file_do_not_fill_the_disk(make: Make) -> None:
    machine = make(limits=candidate_limits(disk_bytes=60_000_000))
    run(machine, "head -c 30000000 /dev/urandom > /work/one; for i in 1 2 3 4; do ln /work/one /work/name-$i; done")
    time.sleep(5)
    assert machine.trouble() is None
    run(machine, "head -c 20000000 /dev/zero >> /work/one; head -c 20000000 /dev/urandom > /work/two; true")
    assert wait_for_trouble(machine) == "disk"


@pytest.mark.slow
def test_exhausted_memory_is_trouble(make: Make) -> None:
    machine = make(limits=candidate_limits(memory_bytes=200_000_000))
    hog = "import time\na=[]\nfor _ in range(60): a.append(b'x'*10_000_000)\ntime.sleep(20)"
    done = machine.execute(["python3", "-c", hog], timeout=60)
    assert done.exit_status != 0 or wait_for_trouble(machine) == "memory"
    assert machine.quiet().confirmed


def test_the_limit_on_processes_holds(make: Make, candidate: Any) -> None:
    if "pids" in candidate.lacks:
        pytest.skip("no control group can be made here")
    machine = make(limits=candidate_limits(pids=60))
    script = "import os,time\nn=0\ntry:\n  for _ in range(200):\n    if os.fork()==0: time.sleep(30); os._exit(0)\n"
    script += "    n+=1\nexcept OSError: pass\nprint(n, flush=True)\nos.killpg(0, 9)"
    done = machine.execute(["python3", "-c", script], timeout=60)
    assert 0 < int(done.output.split()[0]) < 60


def test_the_limit_on_open_files_holds(make: Make) -> None:
    machine = make(limits=candidate_limits(nofile=300))
    assert run(machine, "ulimit -n; ulimit -Hn").split() == ["300", "300"]


@pytest.mark.slow
def test_a_flood_streams_with_flat_memory(make: Make) -> None:
    machine = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session = start(machine, "stty raw; head -c 60000000 /dev/zero")
    total = 0
    deadline = time.monotonic() + 120
    while (data := session.read(65536, 5.0)) != b"" and time.monotonic() < deadline:
        total += len(data or b"")
    assert total == 60_000_000
    assert session.exit_status(10) == 0
    session.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kilobytes


def test_destroy_leaves_nothing_and_may_be_repeated(make: Make, candidate: Any) -> None:
    machine = make()
    session = start(machine, "mkdir -p /work/d && chmod 000 /work/d; setsid sleep 900 & sleep 900")
    session.exit_status(0.5)
    assert candidate.traces(machine.run)
    machine.destroy()
    machine.destroy()
    assert candidate.traces(machine.run) == []
    session.close()


CHILD = """
import sys, time
from referee.core.records import Limits
from referee.protocols import MachineSpec
{recipe}
machine = sandbox.create(MachineSpec(
    run={run!r}, workspace="conformance", deadline=time.time() + {seconds},
    limits=Limits(memory_bytes=500_000_000, cpus=1, pids=100, disk_bytes=1_000_000_000, nofile=1024)))
session = machine.session(
    ["/bin/sh", "-c", "setsid nohup sleep 900 >/dev/null 2>&1 & echo up; sleep 900"],
    environment={{}}, cwd="/", columns=80, rows=24)
while b"up" not in (chunk := session.read(100, 1.0) or b""):
    assert chunk or session.exit_status(0.0) is None, "the session ended before its command began"
print("up", flush=True)
sys.stdin.read()
"""


def owner(candidate: Any, run_name: str, *, seconds: float = 600) -> subprocess.Popen[str]:
    """A process of its own that made a machine and waits."""
    source = CHILD.format(recipe=textwrap.dedent(candidate.recipe), run=run_name, seconds=seconds)
    child = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    return child


def let_go(child: subprocess.Popen[str]) -> None:
    """End an owner as ``kill -9`` does."""
    child.kill()
    child.wait(30)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


@pytest.mark.alone
def test_reap_removes_the_machine_of_a_dead_owner_only(make: Make, candidate: Any) -> None:
    mine = make()
    other_run = f"conformance-orphan-{time.time_ns()}"
    child = owner(candidate, other_run)
    try:
        assert candidate.traces(other_run)
        candidate.sandbox.reap()
        assert candidate.traces(other_run), "a live owner's machine was taken away"
    finally:
        let_go(child)
    found = candidate.sandbox.reap()
    assert any(other_run in sentence for sentence in found), found
    assert candidate.traces(other_run) == []
    assert run(mine, "echo sound") == "sound\n"
    assert not any(other_run in sentence for sentence in candidate.sandbox.reap())


@pytest.mark.alone
def test_reap_removes_what_is_long_past_its_deadline(candidate: Any) -> None:
    run_name = f"conformance-late-{time.time_ns()}"
    child = owner(candidate, run_name, seconds=-86_400)
    try:
        found = candidate.sandbox.reap()
        assert any(run_name in sentence for sentence in found), found
        assert candidate.traces(run_name) == []
    finally:
        let_go(child)


def candidate_limits(**changes: Any) -> Any:
    """The suite's limits with some of them changed."""
    from referee.core.records import Limits  # noqa: PLC0415 — beside its one use

    numbers: dict[str, Any] = {
        "memory_bytes": 1_500_000_000,
        "cpus": 1.5,
        "pids": 400,
        "disk_bytes": 4_000_000_000,
        "nofile": 4096,
    }
    return Limits(**(numbers | changes))


def wait_for_trouble(machine: Machine, seconds: float = 30) -> str | None:
    """Ask for trouble until there is some."""
    deadline = time.monotonic() + seconds
    while (trouble := machine.trouble()) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return trouble
