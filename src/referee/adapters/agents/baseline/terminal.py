"""Runs commands the way a person at a terminal does: shows each, streams what it says, ends what hangs."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import announce
from .payload.verify import ports_of

_HEAD = 40_000
_TAIL = 160_000
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
_PROMPT = re.compile(r"(\?|:|>|\(y/n\)|\[y/n\]|\(yes/no\)|\(yes\)|\u203a|\u276f)\s*(\S{0,40})\s*$", re.IGNORECASE)
#: A command that is silent for so many seconds after a line that looks like a question is waiting for an answer.
PROMPT_SILENCE = 25.0


@dataclass(frozen=True)
class Result:
    """A finished command. ``code`` is None when it was killed for time; negative for a signal."""

    command: str
    code: int | None
    output: str
    seconds: float
    waiting: bool = False
    ports: tuple[int, ...] = ()
    cwd: str = ""

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with status 0."""
        return self.code == 0

    @property
    def crashed(self) -> bool:
        """Whether a fatal signal ended it (segmentation fault, abort, illegal instruction, bus error)."""
        return self.code in {-11, -6, -4, -7, 139, 134, 132, 135}

    @property
    def killed(self) -> bool:
        """Whether SIGKILL of someone else ended it: most often for memory."""
        return self.code in {-9, 137}

    def last_lines(self, count: int = 3) -> str:
        """The last lines that say something, on one line."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return " / ".join(lines[-count:])[:300]


def plain(text: str) -> str:
    """``text`` without escape sequences, with carriage-return overwrites resolved to separate lines."""
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def say(text: str) -> None:
    """Print a line of our own on the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _Ends:
    """Keeps the first and the last bytes of a stream."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()

    def add(self, data: bytes) -> None:
        room = _HEAD - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * _TAIL:
            del self.tail[:-_TAIL]

    def text(self) -> str:
        gap = b"\n[...]\n" if len(self.tail) >= _TAIL else b""
        return plain((bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace"))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: a request first, then by force."""
    for sent, grace in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            continue
        if sent is signal.SIGKILL:
            return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def run(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    show: bool = True,
    serving: bool = False,
) -> Result:
    """Run a shell line with stdin closed, streaming its output; kill its whole group after ``timeout`` seconds.

    ``serving``: a command that opens a port of its own and keeps it is stopped early, with ``ports`` set.
    """
    if show:
        say(f"$ {command}")
    started = time.monotonic()
    number = announce.begins(command, cwd=cwd, env=env, seconds=timeout)
    process = subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    ends = _Ends()
    ports: list[int] = []
    code, waiting = _follow(process, ends, started + timeout, show=show, ports=ports if serving else None)
    announce.ended(number, status=code, took=time.monotonic() - started)
    if ports:
        say(f"[it listens on port {ports[0]}: stopped for now]")
    elif code is None and not waiting and show:
        say(f"[stopped after {timeout:.0f} s]")
    return Result(command, code, ends.text(), time.monotonic() - started, waiting, tuple(ports), str(cwd))


def _follow(  # noqa: C901 — one loop that must see everything at once
    process: subprocess.Popen[bytes], ends: _Ends, until: float, *, show: bool, ports: list[int] | None
) -> tuple[int | None, bool]:
    """Copy output until the end of the process; (status, waiting). Background children may keep the pipe open."""
    if process.stdout is None:  # a pipe was asked for, so this cannot be
        return process.wait(), False
    stream = process.stdout
    last = asked = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        open_ = True
        while True:
            now = time.monotonic()
            if now >= until:
                end_group(process)
                return None, False
            if ports is not None and now - asked > 1.5:  # noqa: PLR2004 — often enough to see a server
                asked = now
                found = ports_of(process.pid)
                if found and now - last > 1.0:
                    ports.extend(found)
                    end_group(process)
                    return None, False
            if open_ and selector.select(timeout=min(0.5, until - now)):
                data = os.read(stream.fileno(), 65536)
                open_ = bool(data)
                last = time.monotonic()
                ends.add(data)
                if show and data:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                continue
            code = process.poll()
            if code is not None:
                return code, False
            if not open_:
                time.sleep(0.05)
            if now - last > PROMPT_SILENCE and _asks(ends):
                say("[it waits for an answer: stopped]")
                end_group(process)
                return None, True


def _asks(ends: _Ends) -> bool:
    text = ends.text()[-2000:]
    if text.endswith("\n"):  # a question stays on its line
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and bool(_PROMPT.search(lines[-1][-200:]))
