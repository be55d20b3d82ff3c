"""Progress on stderr: a live line on a terminal, plain lines elsewhere; never a byte on stdout."""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

from referee.publish import words

#: Control sequences and control characters, for the one line shown live; the recording keeps everything.
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x1f\x7f-\x9f]")


_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 30.0


class Spoken:
    """Sentences that stay, and on a terminal that wants progress a line (``_status``) that is shown live."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._status: Status | None = None if quiet or not console.is_terminal else console.status("")
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, sentence: str) -> None:
        """One line that stays."""
        if not self._quiet:
            self._console.print(words.visible(sentence), markup=False, highlight=False, soft_wrap=True)

    def warn(self, sentence: str) -> None:
        """One line that stays, also where progress is not wanted."""
        self._console.print(words.visible(sentence), markup=False, highlight=False, soft_wrap=True)


class Progress(Spoken):
    """Shows phases and, on a terminal, the session's latest line."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        super().__init__(console, quiet=quiet)
        self._phase = ""
        self._began = self._shown
        self._bytes = 0

    def tell(self, phase: str) -> None:
        """A phase begins."""
        self._phase = words.PHASES.get(phase, phase)
        self._began = self._shown = time.monotonic()
        self._bytes = 0
        if self._status is not None:
            self._status.update(self._phase)
        else:
            self.say(f"  {self._phase}")

    def output(self, data: bytes) -> None:
        """Bytes of the session: on a terminal its latest line, elsewhere a sign of life twice a minute."""
        self._bytes += len(data)
        now = time.monotonic()
        if now - self._shown < (_LIVE_SECONDS if self._status is not None else _PLAIN_SECONDS):
            return
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        latest = _CONTROL.sub("", lines[-1]) if lines else ""
        if not latest:
            return
        self._shown = now
        seconds = f"{now - self._began:.0f} s"
        if self._status is not None:
            text = latest[: max(20, self._console.width - 40)].replace("[", "(")
            self._status.update(f"{self._phase}, {seconds}  [dim]{text}[/dim]")
        else:
            self.say(f"  {self._phase}, {seconds}, {self._bytes} bytes so far: {latest[:100]}")
