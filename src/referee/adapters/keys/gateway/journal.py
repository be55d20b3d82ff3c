"""Exchanges on disk: one file a run, a line a call, written as the call ends, so that a crash leaves what was spent.

Metadata only, without any token: the run's key never stands there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pydantic import ValidationError

from referee.core.canonical import canonical_bytes
from referee.core.spending import Exchange


class Journal:
    """The files ``exchanges/RUN.jsonl`` below the workspace's ``keys``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "exchanges"
        self._open: dict[str, int] = {}

    def begin(self, run: str) -> None:
        """Make the file of ``run``.

        Raises:
            OSError: it cannot be made, or is there already.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW
        self._open[run] = os.open(self._path(run), flags, 0o600)

    def write(self, run: str, exchange: Exchange) -> None:
        """Append one line; it is the system's before this returns, and the disk's when the run is closed.

        Raises:
            OSError: it could not be written.
        """
        line = canonical_bytes(exchange.model_dump(mode="json")) + b"\n"
        handle = self._open.get(run)
        if handle is None or os.write(handle, line) != len(line):
            raise OSError(f"the exchanges of {run} cannot be written")

    def end(self, run: str) -> None:
        """No line follows."""
        handle = self._open.pop(run, None)
        if handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(handle)
            os.close(handle)

    def read(self, run: str) -> bytes | None:
        """The whole lines of ``run``; None where it has no file. A torn last line is left out."""
        try:
            data = self._path(run).read_bytes()
        except OSError:
            return None
        return data[: data.rfind(b"\n") + 1]

    def exchanges(self, run: str) -> list[Exchange]:
        """What ``read`` gives, as facts; lines that are none are left out."""
        found = []
        for line in (self.read(run) or b"").splitlines():
            with contextlib.suppress(ValidationError):
                found.append(Exchange.model_validate_json(line))
        return found

    def _path(self, run: str) -> Path:
        return self._directory / f"{run}.jsonl"
