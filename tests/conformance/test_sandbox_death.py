"""What an agent leaves behind is dead after ``quiet``, however it hid: nothing of it calls the gateway any more."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from referee.protocols import Machine, Sandbox

Make = Callable[..., Machine]

#: Every way of staying alive calls the host once in a while and says which way it is.
STAY = """
import ctypes, os, signal, socket, sys, time
ADDRESS, PORT = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)

def call(way):
    while True:
        try:
            with socket.create_connection((ADDRESS, PORT), 5) as there:
                there.sendall((way + "\\n").encode())
        except OSError:
            pass
        time.sleep(0.1)

def background(work, *, session=True, again=True):
    if os.fork():
        return
    if session:
        os.setsid()
    if again and os.fork():
        os._exit(0)
    for fd in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    try:
        work()
    finally:
        os._exit(1)

def renamed():
    source = "import sys; sys.argv = ['', %r, %r]; exec(open('/work/stay.py').read().split('#' + 'WAYS')[0]); "
    source += "libc.prctl(15, b'kworker/0:1', 0, 0, 0); call('renamed')"
    os.execv("/usr/bin/python3", ["[kworker/0:1]", "-c", source % (ADDRESS, str(PORT))])

def deaf():
    for number in set(range(1, 65)) - {9, 19}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    call("deaf")

def hidden():
    libc.prctl(4, 0, 0, 0, 0)  # not dumpable: its /proc files are not for its equals
    call("hidden")

def traced():
    child = os.fork()
    if not child:
        libc.ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        call("traced")
    while True:
        os.waitpid(child, 0)
        libc.ptrace(7, child, 0, 0)

def stopped():
    child = os.fork()
    if not child:
        call("stopped")
    while True:
        os.kill(child, signal.SIGSTOP); time.sleep(0.1); os.kill(child, signal.SIGCONT); time.sleep(0.3)

def reaper():
    libc.prctl(36, 1, 0, 0, 0)
    background(lambda: call("reaper"))
    while True:
        time.sleep(1)

def phoenix():
    while True:
        child = os.fork()
        if not child:
            call("phoenix")
        time.sleep(0.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

def nobody():
    os.setgid(65534)
    os.setuid(65534)
    call("nobody")

def nested():
    libc.unshare(0x10000000 | 0x20000000)
    if not os.fork():
        call("nested" if os.getpid() == 1 else "not nested")
    time.sleep(900)

#WAYS
background(lambda: call("child"), session=False, again=False)
background(lambda: call("orphan"), session=False)
background(lambda: call("daemon"))
for way in (renamed, deaf, hidden, traced, stopped, reaper, phoenix, nobody, nested):
    background(way)
os.execvp("sh", ["sh", "-c", "echo all up; sleep 900"])
"""

#: Where these cannot be had (one user only, no tracing, no namespaces of one's own), they are not there to be killed.
OPTIONAL = {"nobody", "traced", "nested", "not nested"}
WAYS = {"child", "orphan", "daemon", "renamed", "deaf", "hidden", "stopped", "reaper", "phoenix"} | OPTIONAL


class Calls:
    """A service at the gateway's address that counts who calls."""

    def __init__(self, address: str) -> None:
        self.by: Counter[str] = Counter()
        self._service = socket.create_server((address, 0))
        self.place = (address, int(self._service.getsockname()[1]))
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._service.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                self.by[connection.recv(100).decode().strip()] += 1

    def close(self) -> None:
        self._service.shutdown(socket.SHUT_RDWR)
        self._service.close()


@pytest.fixture
def calls(sandbox: Sandbox) -> Iterator[Calls]:
    made = Calls(sandbox.gateway_address())
    yield made
    made.close()


@pytest.mark.slow
def test_nothing_that_hid_calls_the_gateway_after_quiet(make: Make, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "stay.py").write_text(STAY)
    machine = make(gateway=calls.place, inputs={tmp_path / "stay.py": "/work/stay.py"})
    argv = ["python3", "/work/stay.py", calls.place[0], str(calls.place[1])]
    session = machine.session(argv, environment={}, cwd="/", columns=80, rows=24)
    until = time.monotonic() + 20
    while not {way for way, count in calls.by.items() if count > 1} >= WAYS - OPTIONAL and time.monotonic() < until:
        time.sleep(0.1)
    assert WAYS - OPTIONAL <= set(calls.by) <= WAYS, "not every way of hiding was tried"
    facts = machine.quiet()
    assert facts.confirmed
    assert "was found on" in facts.how, "the host's process table was not searched"
    assert facts.survivors_ended >= len(WAYS - OPTIONAL)
    time.sleep(0.3)  # what was on its way at the kill may still be counted
    then = dict(calls.by)
    machine.execute(["sleep", "1"], timeout=20)
    assert dict(calls.by) == then
    assert b"stay.py" not in _command_lines()
    session.close()


def _command_lines() -> bytes:
    """The command lines of all processes of this host."""
    seen = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            seen += path.read_bytes() + b"\n"
    return seen
