"""Listening ports and the processes behind them, read in real machines of both kinds."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.docker.sandbox import DockerSandbox
from referee.adapters.overlay.sandbox import OverlaySandbox, overlay_available
from referee.benchmarks.bringup.listeners import Watch, listening
from referee.core.listening import read_listening
from referee.core.records import Limits, ListenerFacts
from referee.protocols import Machine, MachineSpec, Sandbox

LIMITS = Limits(memory_bytes=1_000_000_000, cpus=1.0, pids=200, disk_bytes=2_000_000_000, nofile=2048)
WAIT = "import socket, sys, time; s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET); "
SERVE = WAIT + "s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(); time.sleep(600)"


@pytest.fixture(
    params=[pytest.param("docker", marks=pytest.mark.engine), pytest.param("overlay", marks=pytest.mark.slow)]
)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    if request.param == "overlay" and (why := overlay_available(tmp_path)):
        pytest.skip(why)
    sandbox: Sandbox = DockerSandbox() if request.param == "docker" else OverlaySandbox(tmp_path)
    made = sandbox.create(MachineSpec(f"r-listen-{uuid.uuid4().hex[:8]}", "test", time.time() + 300, LIMITS))
    try:
        yield made
    finally:
        made.destroy()


def place(machine: Machine) -> None:
    """The program that listens, as a file."""
    done = machine.execute(["/bin/sh", "-c", 'printf %s "$1" > /tmp/serve.py', "sh", SERVE], timeout=20)
    assert done.exit_status == 0, done.output


def serve(machine: Machine, address: str, port: int, *, user: str = "root") -> None:
    """A process of ``user`` that listens and leaves the command that started it."""
    place(machine)
    start = f"cd /tmp && exec /usr/bin/python3 serve.py {address} {port}"
    told = f"su -s /bin/sh {user} -c '{start}' >/dev/null 2>&1 & sleep 1"
    done = machine.execute(["/bin/sh", "-c", told], timeout=30)
    assert done.exit_status == 0, done.output


def on(found: tuple[ListenerFacts, ...], port: int) -> ListenerFacts:
    (one,) = [fact for fact in found if fact.port == port]
    return one


def test_the_process_behind_a_port_is_told_whoever_owns_it(machine: Machine) -> None:
    serve(machine, "127.0.0.1", 18123)
    serve(machine, "0.0.0.0", 18124, user="www-data")
    found = listening(machine)
    assert on(found, 18123).address == "127.0.0.1"
    theirs = on(found, 18124)
    assert (theirs.address, theirs.cwd) == ("0.0.0.0", "/tmp")
    assert theirs.argv[0] == "/usr/bin/python3"
    assert theirs.argv[-2:] == ("0.0.0.0", "18124")
    assert str(theirs.executable).startswith("/usr/bin/python3")


@pytest.mark.engine
def test_no_program_of_the_machine_is_asked(tmp_path: Path) -> None:
    machine = DockerSandbox().create(MachineSpec(f"r-{tmp_path.name}", "test", time.time() + 300, LIMITS))
    try:
        serve(machine, "127.0.0.1", 18125)
        gone = "for p in sh bash stat readlink awk sed od cat ls find sort tr; do rm -f /bin/$p /usr/bin/$p; done"
        machine.execute(["/bin/sh", "-c", gone], timeout=20)
        assert on(listening(machine), 18125).argv[-1] == "18125"
    finally:
        machine.destroy()


def test_a_watch_sees_what_comes_and_goes(machine: Machine) -> None:
    seen: list[tuple[ListenerFacts, ...]] = []
    place(machine)
    with Watch(machine, seen.append) as watch:
        command = "timeout 3 /usr/bin/python3 /tmp/serve.py 127.0.0.1 18126; exit 0"
        machine.execute(["/bin/sh", "-c", command], timeout=30)
    assert watch.found is not None
    assert on(watch.found, 18126).argv[-1] == "18126"
    assert len(seen) > 1


def test_what_listens_as_a_short_command_ends_is_seen(machine: Machine) -> None:
    place(machine)
    wait = "until grep -qs ':46CF ' /proc/net/tcp; do sleep 0.02; done"
    with Watch(machine, lambda _: None) as watch:
        left = f"/usr/bin/python3 /tmp/serve.py 127.0.0.1 18127 >/tmp/out 2>&1 & {wait}"
        assert machine.execute(["/bin/sh", "-c", left], timeout=30).exit_status == 0
    assert watch.found is not None
    assert on(watch.found, 18127).argv[-1] == "18127"


OTHERS = """\
import socket, time
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 18129))
asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asks.connect(("127.0.0.1", 18129))
for path in ("/tmp/a socket", "\\0abstract"):
    one = socket.socket(socket.AF_UNIX)
    one.bind(path)
    one.listen()
    globals()[path] = one
time.sleep(600)
"""


def test_datagrams_and_unix_sockets_are_told_too(machine: Machine) -> None:
    told = 'printf %s "$1" > /tmp/others.py; cd /tmp; /usr/bin/python3 others.py >/dev/null 2>&1 & sleep 1'
    machine.execute(["/bin/sh", "-c", told, "sh", OTHERS], timeout=20)
    found = [one for one in listening(machine) if one.argv[-1:] == ("others.py",)]
    assert [(one.over, one.port, one.address) for one in found] == [
        ("unix", 0, "/tmp/a socket"),
        ("unix", 0, "@abstract"),
        ("udp", 18129, "127.0.0.1"),
    ]


def test_the_kernels_table_is_read_in_both_families() -> None:
    rows = """\
row 4 0100007F:1F90 0 11
row 6 00000000000000000000000001000000:1F91 33 12
row 6 nonsense 0 13
row 4 00000000:0050 0 14
row u4 0100007F:1F90 0 15
unix 16 /tmp/a socket
socket 15 7
socket 16 7
socket 11 7
socket 12 8
exe 7 2f7573722f62696e2f78
argv 7 61006220630a00
cwd 8 2f746d70
"""
    found = read_listening(rows)
    assert [(one.over, one.port, one.address, one.pid, one.argv) for one in found] == [
        ("unix", 0, "/tmp/a socket", 7, ("a", "b c\n")),
        (None, 8080, "127.0.0.1", 7, ("a", "b c\n")),
        ("udp", 8080, "127.0.0.1", 7, ("a", "b c\n")),
        (None, 8081, "::1", 8, ()),
    ]
    assert (found[1].executable, found[3].cwd) == ("/usr/bin/x", "/tmp")
