"""A terminal inside a machine, held by its master side."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import time

from referee.errors import MachineFault

_STATUS = struct.Struct("!i")
_KILLED = 137
_STUCK_SECONDS = 10.0


class StatusPipe:
    """Tells when a program of the machine has ended, and how."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._status: int | None = None

    def fileno(self) -> int:
        """For poll: readable once the program has ended."""
        return self._fd

    def wait(self, timeout: float) -> int | None:
        """The exit status; None while the program runs. A machine that was ended killed it: 137."""
        if self._status is None and self._fd >= 0 and _readable(self._fd, timeout):
            data = os.read(self._fd, _STATUS.size)
            self._status = _STATUS.unpack(data)[0] if len(data) == _STATUS.size else _KILLED
        return self._status

    def close(self) -> None:
        """Let go; a status that is already there is kept."""
        if self._fd >= 0:
            self.wait(0)
            os.close(self._fd)
            self._fd = -1


class OverlaySession:
    """One command on a terminal inside a machine (``protocols.Session``)."""

    def __init__(self, master: int, status: int) -> None:
        os.set_blocking(master, False)
        self._master = master
        self._status = StatusPipe(status)
        self._ended = False

    def read(self, size: int, timeout: float) -> bytes | None:
        """Up to ``size`` bytes; ``b""`` at the end; None after ``timeout`` silent seconds."""
        if self._ended or self._master < 0:
            return b""
        if not _readable(self._master, timeout):
            return None
        try:
            data = os.read(self._master, size)
        except BlockingIOError:
            return None
        except OSError:
            # EIO: no process holds the terminal any more.
            data = b""
        self._ended = not data
        return data

    def write(self, data: bytes) -> None:
        """Type ``data``. Raises ``MachineFault`` when the terminal takes nothing for ten seconds."""
        rest = memoryview(data)
        deadline = time.monotonic() + _STUCK_SECONDS
        poll = select.poll()
        poll.register(self._master, select.POLLOUT)
        while rest:
            poll.poll(200)
            try:
                rest = rest[os.write(self._master, rest) :]
                deadline = time.monotonic() + _STUCK_SECONDS
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise MachineFault("the terminal of the machine takes no input") from None
            except OSError as exc:
                raise MachineFault(f"the terminal of the machine is gone: {exc}") from exc

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; the kernel tells the foreground processes."""
        try:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        except OSError as exc:
            raise MachineFault(f"the terminal of the machine is gone: {exc}") from exc

    def exit_status(self, timeout: float) -> int | None:
        """The command's exit status; None while it still runs after ``timeout`` seconds."""
        return self._status.wait(timeout)

    def close(self) -> None:
        """Let go of the terminal: its processes are hung up, what ignores that lives on."""
        if self._master >= 0:
            with contextlib.suppress(OSError):
                os.close(self._master)
            self._master = -1
        self._status.close()


def _readable(fd: int, timeout: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout) * 1000))
