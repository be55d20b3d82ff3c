"""One command without a terminal: bounded output, and a death of the whole tree at the timeout."""

from __future__ import annotations

import contextlib
import secrets
import struct
import time
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

from referee.adapters.docker.engine import ENGINE_ERRORS, fault
from referee.adapters.docker.network import BUSYBOX
from referee.adapters.docker.session import Stream, exec_status
from referee.protocols import Completed

MARK = "REFEREE_COMMAND"
#: Seconds of silence after the command's end before its output counts as whole, though a child still holds the pipe.
SETTLE = 0.2
#: Seconds of silence after which the engine is asked whether a command has ended; and whether it is to be stopped.
ASK_EVERY = 0.1
STOP_EVERY = 0.01

#: Kills every process that carries the mark, shares a session with one, or descends from one; until none is found.
KILL_TREE = f"""
B={BUSYBOX}
round=0
while [ $round -lt 50 ]; do
  round=$((round + 1))
  seeds=""
  for p in /proc/[0-9]*; do
    if $B grep -q "{MARK}=$1" $p/environ 2>/dev/null; then seeds="$seeds ${{p#/proc/}}"; fi
  done
  doomed=$($B cat /proc/[0-9]*/stat 2>/dev/null | $B awk -v seeds="$seeds" '
    {{ pid = $1; rest = $0; sub(/^.*\\) /, "", rest); split(rest, f, " "); parent[pid] = f[2]; sid[pid] = f[4];
       if (f[1] == "Z") dead[pid] = 1 }}
    END {{
      n = split(seeds, s, " ")
      for (i = 1; i <= n; i++) {{ hit[s[i]] = 1; if (sid[s[i]] > 1) session[sid[s[i]]] = 1 }}
      for (again = 1; again;) {{
        again = 0
        for (p in parent) if (!(p in hit) && ((parent[p] in hit) || (sid[p] in session))) {{ hit[p] = 1; again = 1 }}
      }}
      for (p in hit) if (p > 1 && !(p in dead)) print p
    }}')
  if [ -z "$doomed" ]; then exit 0; fi
  kill -9 $doomed 2>/dev/null
  $B sleep 0.02
done
exit 1
"""


def run_command(
    client: Any,
    container: str,
    argv: Sequence[str],
    *,
    timeout: float,
    environment: Mapping[str, str] | None,
    cwd: str,
    max_output: int,
    stop: Event | None = None,
) -> Completed:
    """Run ``argv`` to its end or the timeout; keep the first ``max_output`` bytes of stdout and stderr together.

    Once ``stop`` is set, the command gets a line on its standard input, which without it is closed.
    """
    mark = secrets.token_hex(12)
    try:
        exec_id = client.exec_create(
            container,
            list(argv),
            workdir=cwd,
            environment={**(environment or {}), MARK: mark},
            stdin=stop is not None,
        )["Id"]
        stream = Stream(client.exec_start(exec_id, socket=True))
    except ENGINE_ERRORS as exc:
        raise fault(exc, "starting a command") from exc
    output = _Output(max_output)
    try:
        status = _collect(client, exec_id, stream, output, time.monotonic() + timeout, stop)
        if status is None:
            _kill(client, container, mark)
            _collect(client, exec_id, stream, output, time.monotonic() + 5)
    finally:
        stream.close()
    return Completed(status, bytes(output.kept), timed_out=status is None, truncated=output.truncated)


class _Output:
    """The engine's framed output: an eight-byte header with a length before each piece."""

    def __init__(self, limit: int) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._limit = limit
        self._pending = b""
        self._left = 0

    def feed(self, data: bytes) -> None:
        data = self._pending + data
        self._pending = b""
        while data:
            if self._left == 0:
                if len(data) < 8:  # noqa: PLR2004 — a frame's header
                    self._pending = data
                    return
                self._left = struct.unpack(">xxxxL", data[:8])[0]
                data = data[8:]
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            room = self._limit - len(self.kept)
            self.kept += piece[:room]
            self.truncated |= len(piece) > room


def _collect(
    client: Any, exec_id: str, stream: Stream, output: _Output, until: float, stop: Event | None = None
) -> int | None:
    """Read until the command has ended and its output is whole; its exit status, None when ``until`` came first."""
    quiet_since: float | None = None
    asked = time.monotonic()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            return exec_status(client, exec_id)
        if stop is not None and stop.is_set():
            stop = None
            with contextlib.suppress(OSError):  # it has ended by itself
                stream.write(b"\n")
        data = stream.read(65536, min(left, ASK_EVERY if stop is None else STOP_EVERY))
        if data == b"":
            return _ended(client, exec_id, until)
        if data:
            output.feed(data)
            quiet_since = None
            continue
        if stop is not None and time.monotonic() - asked < ASK_EVERY:
            continue
        asked = time.monotonic()
        if (status := exec_status(client, exec_id)) is not None:
            quiet_since = quiet_since or time.monotonic()
            if time.monotonic() - quiet_since >= SETTLE:
                return status


def _ended(client: Any, exec_id: str, until: float) -> int | None:
    """The stream is closed: the command has ended, or goes on without output."""
    while (status := exec_status(client, exec_id)) is None and time.monotonic() < until:
        time.sleep(0.005)
    return status


def _kill(client: Any, container: str, mark: str) -> None:
    try:
        killer = client.exec_create(container, [BUSYBOX, "sh", "-c", KILL_TREE, "sh", mark])["Id"]
        client.exec_start(killer)
    except ENGINE_ERRORS as exc:
        raise fault(exc, "killing a command at its timeout") from exc
