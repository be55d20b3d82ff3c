"""One command on a terminal inside a machine: the engine's raw stream, read from the host."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

from docker.errors import NotFound

from referee.adapters.docker.engine import ENGINE_ERRORS, fault
from referee.adapters.docker.network import BUSYBOX
from referee.errors import MachineFault

#: Sets the terminal's size before the command starts: the engine's own resize comes too late for its first line.
SIZED = f'{BUSYBOX} stty rows "$1" cols "$2"; shift 2; exec "$@"'
KILLED = 137


class Stream:
    """The bytes of a hijacked engine connection."""

    def __init__(self, socket: Any) -> None:
        self._keep = socket
        self._socket = getattr(socket, "_sock", socket)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._ahead = self._read_ahead()

    def _read_ahead(self) -> bytes:
        """What the HTTP layer read beyond the response's header while parsing it."""
        response = getattr(self._keep, "_response", None)
        reader = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
        if reader is None or not hasattr(reader, "peek"):
            return b""
        self._socket.setblocking(False)
        try:
            return bytes(reader.read1(len(reader.peek(1))) or b"") if reader.peek(1) else b""
        except (BlockingIOError, OSError, ValueError):
            return b""
        finally:
            self._socket.setblocking(True)

    def read(self, size: int, timeout: float) -> bytes | None:
        """Up to ``size`` bytes, ``b""`` at the end, None after ``timeout`` silent seconds."""
        if self._ahead:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
            return taken
        if not self._poll.poll(max(0.0, timeout) * 1000):
            return None
        try:
            return bytes(self._socket.recv(size))
        except ConnectionError:
            return b""

    def write(self, data: bytes) -> None:
        """Send all of ``data``."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Let go of the connection."""
        for part in (self._keep, self._socket, getattr(self._keep, "_response", None)):
            try:
                if part is not None:
                    part.close()
            except (OSError, ValueError):
                continue


class DockerSession:
    """A command on a terminal (``protocols.Session``)."""

    def __init__(
        self,
        client: Any,
        container: str,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: str,
        columns: int,
        rows: int,
    ) -> None:
        self._client = client
        wrapped = [BUSYBOX, "sh", "-c", SIZED, "sh", str(rows), str(columns), *argv]
        try:
            self._exec = client.exec_create(
                container,
                wrapped,
                stdin=True,
                tty=True,
                workdir=cwd,
                environment={"TERM": "xterm-256color", **environment},
            )["Id"]
            self._stream = Stream(client.exec_start(self._exec, tty=True, socket=True))
        except ENGINE_ERRORS as exc:
            raise fault(exc, "starting the session") from exc
        self._status: int | None = None

    def read(self, size: int, timeout: float) -> bytes | None:
        """Up to ``size`` bytes; ``b""`` at the end of the stream; None when ``timeout`` seconds were silent."""
        got = self._stream.read(size, timeout)
        if got is None and self.exit_status(0) is not None:
            # A process that outlived the command may hold the terminal open; the command itself is over.
            return self._stream.read(size, 0) or b""
        return got

    def write(self, data: bytes) -> None:
        """Type ``data`` on the terminal."""
        try:
            self._stream.write(data)
        except OSError as exc:
            raise MachineFault("the session's terminal is gone") from exc

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size; nothing happens when the command has ended."""
        try:
            self._client.exec_resize(self._exec, height=rows, width=columns)
        except ENGINE_ERRORS:
            return

    def exit_status(self, timeout: float) -> int | None:
        """The command's exit status; None while it still runs after ``timeout`` seconds."""
        until = time.monotonic() + timeout
        pause = 0.005
        while self._status is None:
            self._status = exec_status(self._client, self._exec)
            left = until - time.monotonic()
            if self._status is None:
                if left <= 0:
                    return None
                time.sleep(min(pause, left))
                pause = min(pause * 2, 0.1)
        return self._status

    def close(self) -> None:
        """Let go of the stream."""
        self._stream.close()


def exec_status(client: Any, exec_id: str) -> int | None:
    """The exit status of an exec; None while it runs. One whose machine was killed ended by that kill."""
    try:
        seen = client.exec_inspect(exec_id)
        if seen.get("Running"):
            return None
        if seen.get("ExitCode") is not None:
            return int(seen["ExitCode"])
        # Neither running nor ended: it is only about to start, unless its machine is gone.
        return None if client.inspect_container(seen["ContainerID"])["State"]["Running"] else KILLED
    except NotFound:
        return KILLED
    except ENGINE_ERRORS as exc:
        raise fault(exc, "asking for a command's exit status") from exc
