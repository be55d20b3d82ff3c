"""One life of a machine: its namespaces, from their making to the confirmed death of all that was in them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import referee
from referee.adapters.overlay import wire
from referee.adapters.overlay.cgroups import Cgroup
from referee.adapters.overlay.owner import members
from referee.errors import MachineFault

_START_SECONDS = 30.0
_ANSWER_SECONDS = 30.0
_DEATH_SECONDS = 60.0
_INHERITED = {"LANG": "C.UTF-8"}
#: What this Python itself may need to start.
_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME")
_PROGRAM = "import sys; sys.path.append(sys.argv[2]); from referee.adapters.overlay.inside import main; main()"


class Namespace:
    """The running first process of a machine and the socket to it; safe for several threads."""

    def __init__(self, config: dict[str, Any], cgroup: Cgroup | None) -> None:
        self._directory = Path(config["directory"])
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        self._sock = ours
        source = str(Path(referee.__file__).parent.parent)
        with theirs:
            self._launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, str(theirs.fileno()), source],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=_INHERITED | {name: os.environ[name] for name in _KEPT if name in os.environ},
                cwd="/",
            )
        self._first = -1
        try:
            if cgroup is not None:
                cgroup.admit(self._launcher.pid)
            self._start(config)
        except (OSError, MachineFault) as exc:
            self.end()
            reason = exc.message if isinstance(exc, MachineFault) else str(exc)
            raise MachineFault(
                f"the machine could not be started: {reason}",
                todo="See whether this kernel allows overlay mounts and namespaces for this user.",
            ) from exc

    def _start(self, config: dict[str, Any]) -> None:
        self._sock.settimeout(_START_SECONDS)
        wire.send(self._sock, config)
        ready = False
        while self._first < 0 or not ready:
            received = wire.receive(self._sock)
            if received is None:
                raise MachineFault("its first process ended at once")
            message = received[0]
            if "error" in message:
                raise MachineFault(message["error"])
            if "pid" in message:
                self._first = os.pidfd_open(message["pid"])
            ready = ready or "ready" in message

    def alive(self) -> bool:
        """Whether the first process lives."""
        return self._launcher.poll() is None

    def ask(self, request: dict[str, Any], *, seconds: float = _ANSWER_SECONDS) -> tuple[dict[str, Any], list[int]]:
        """One request and its answer.

        Raises:
            MachineFault: the machine does not answer, or says that it could not do it.
        """
        with self._lock:
            try:
                self._sock.settimeout(seconds)
                wire.send(self._sock, request)
                received = wire.receive(self._sock)
            except OSError as exc:
                # An answer that comes late would be taken for the next one's: the socket is of no more use.
                self._sock.close()
                raise MachineFault(f"the machine does not answer: {exc}") from exc
        if received is None:
            raise MachineFault("the machine's first process has ended")
        message, fds = received
        if "error" in message:
            for fd in fds:
                os.close(fd)
            raise MachineFault(f"the machine could not do what was asked ({request['op']}): {message['error']}")
        return message, fds

    def end(self) -> tuple[bool, int]:
        """Kill everything and wait for its absence: (confirmed, how many processes of the agent were ended).

        The kernel ends every process of a PID namespace with its first one, and the first one cannot be reaped
        before the others are gone; so the launcher's end, which waits for it, is the proof. The host's process
        table is then searched all the same.
        """
        count = 0
        with contextlib.suppress(MachineFault, OSError):
            if self.alive() and self._first >= 0:
                count = int(self.ask({"op": "count"}, seconds=5.0)[0]["processes"])
        if self._first >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            os.close(self._first)
            self._first = -1
        with contextlib.suppress(OSError):
            self._sock.close()
        try:
            self._launcher.wait(_DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            self._launcher.kill()
            return False, count
        deadline = time.monotonic() + _DEATH_SECONDS
        while (left := members(self._directory)) and time.monotonic() < deadline:
            time.sleep(0.01)
        return not left, count
