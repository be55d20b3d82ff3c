"""A session whose command runs on the host itself, on a pseudo-terminal: for tests and measurements."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path


class HostPtySession:
    """``protocols.Session`` over a child process of this one. Not a machine: nothing confines the command.

    Args:
        argv: the command; found by ``environment``'s PATH.
        environment: the command's whole environment; None inherits.
        cwd: where it starts.
        columns: the terminal's width.
        rows: the terminal's height.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | str = "/",
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        env = dict(os.environ if environment is None else environment)
        self._status: int | None = None
        self._closed = False
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            _become(argv, env, cwd, columns, rows)
        self.resize(columns, rows)
        os.set_blocking(self._master, False)
        self._poller = select.poll()
        self._poller.register(self._master, select.POLLIN)
        self._pidfd = os.pidfd_open(self.pid)

    def fileno(self) -> int:
        """The terminal's master side."""
        return self._master

    def read(self, size: int, timeout: float) -> bytes | None:
        """Up to ``size`` bytes; ``b""`` at the end of the stream; None when ``timeout`` seconds were silent."""
        if not self._poller.poll(max(0.0, timeout) * 1_000):
            return None
        try:
            return os.read(self._master, size)
        except BlockingIOError:
            return None
        except OSError as exc:
            return _end_or_raise(exc)

    def write(self, data: bytes) -> None:
        """Type ``data`` on the terminal; waits while the terminal takes no more."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._master, view) :]
            except BlockingIOError:
                select.select([], [self._master], [], 1.0)

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def exit_status(self, timeout: float) -> int | None:
        """The command's exit status (128 + n when signal n ended it); None while it runs after ``timeout``."""
        if self._status is None and select.select([self._pidfd], [], [], max(0.0, timeout))[0]:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            self._status = code if code >= 0 else 128 - code
        return self._status

    def end(self, grace: float = 5.0) -> None:
        """Kill the command and what it left in its process group, and wait for it; harmless when all have ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.exit_status(grace)

    def close(self) -> None:
        """Let go of the terminal (the command gets SIGHUP); ``end`` kills it."""
        if not self._closed:
            self._closed = True
            os.close(self._master)
            if self._status is not None:
                os.close(self._pidfd)


def _end_or_raise(exc: OSError) -> bytes:
    # Linux reports EIO on the master when no process holds the terminal any more.
    if exc.errno == errno.EIO:
        return b""
    raise exc


def _become(argv: Sequence[str], env: dict[str, str], cwd: Path | str, columns: int, rows: int) -> None:
    """In the child: turn into the command, or exit 127 with a sentence on the terminal."""
    try:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.chdir(cwd)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a command would inherit that
            signal.signal(ignored, signal.SIG_DFL)
        os.execvpe(argv[0], list(argv), env)  # noqa: S606 — an argument list, as everywhere
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
    finally:
        os._exit(127)
