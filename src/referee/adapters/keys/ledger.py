"""What is known of keys that were issued: one small file a run, written before the key is made and after.

So a crash at any moment loses no key: the intent names it as its broker will know it. Never a secret stands here: the
id of a key is its digest or its number with the broker.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from referee.core.canonical import canonical_bytes
from referee.core.facts import Fact
from referee.core.spending import Broker, SpendingFacts
from referee.protocols import ModelNeed

State = Literal["intended", "issued", "closing", "closed"]

#: A key whose owner cannot be asked (another host) counts as left behind this long after it is of no use, seconds.
LATE_SECONDS = 3600.0


class Entry(Fact):
    """One key of one run.

    Args:
        run: whose key it is; ``name`` is what its broker calls it.
        key: its id with the broker; None until the broker has told it.
        ends_at: Unix seconds after which it is of no use to anybody.
        pid, started, boot, host: the process that owns it, and when that was started (clock ticks since boot).
        state: ``intended`` before it is made, ``issued``, ``closing`` once its run is over, ``closed`` when it is gone.
        spending: how it ended; None until it has.
    """

    format: Literal["referee.key/1"] = "referee.key/1"
    run: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    broker: Broker
    name: str
    key: str | None = None
    model: str
    cap_usd: float
    made_at: str
    ends_at: float
    pid: int
    started: int | None
    boot: str
    host: str
    state: State = "intended"
    spending: SpendingFacts | None = None

    def left_behind(self) -> bool:
        """Whether nobody needs the key any more: its run is over, or its owner is dead."""
        if self.state in {"closing", "closed"} or time.time() > self.ends_at + LATE_SECONDS:
            return True
        if self.host != platform.node():
            return False
        return self.boot != _boot() or self.started is None or _started(self.pid) != self.started


class Ledger:
    """The files of issued keys in a workspace: ``live/RUN.json`` until a key is gone, then ``closed/RUN.json``."""

    def __init__(self, directory: Path) -> None:
        self._live = directory / "live"
        self._closed = directory / "closed"

    def intend(self, run: str, broker: Broker, name: str, need: ModelNeed, *, cap_usd: float, ends_at: float) -> Entry:
        """Write down that a key is about to be made, owned by this process.

        Raises:
            FileExistsError: the run has or had a key.
            OSError: it could not be written.
        """
        if self.find(run) is not None:
            raise FileExistsError(f"the run {run} already has a key")
        entry = Entry(
            run=run,
            broker=broker,
            name=name,
            model=need.model,
            cap_usd=cap_usd,
            made_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            ends_at=ends_at,
            pid=os.getpid(),
            started=_started(os.getpid()),
            boot=_boot(),
            host=platform.node(),
        )
        self._write(entry)
        return entry

    def issued(self, entry: Entry, key: str) -> Entry:
        """Write down the id that the broker gave."""
        return self._change(entry, state="issued", key=key)

    def closing(self, entry: Entry) -> Entry:
        """Write down that the run is over: from now on any process may delete the key."""
        return self._change(entry, state="closing")

    def closed(self, entry: Entry, spending: SpendingFacts) -> Entry:
        """Write down that the key is gone, and what it spent."""
        ended = entry.model_copy(update={"state": "closed", "spending": spending})
        _write_durably(self._closed / f"{entry.run}.json", ended)
        with contextlib.suppress(FileNotFoundError):
            (self._live / f"{entry.run}.json").unlink()
        return ended

    def find(self, run: str) -> Entry | None:
        """What is known of the key of ``run``; None: it never had one, or its file cannot be read."""
        return _read(self._closed / f"{run}.json") or _read(self._live / f"{run}.json")

    def live(self) -> list[Entry]:
        """Every key that is not known to be gone, in order of run."""
        return [entry for entry in _entries(self._live) if _read(self._closed / f"{entry.run}.json") is None]

    def every(self) -> list[Entry]:
        """Every key that was ever issued here, in order of time."""
        return sorted([*_entries(self._closed), *self.live()], key=lambda entry: (entry.made_at, entry.run))

    def unreadable(self) -> list[str]:
        """Names of files that should tell of a key and cannot be read."""
        return [path.name for path in sorted(self._live.glob("*.json")) if path.exists() and _read(path) is None]

    def _change(self, entry: Entry, *, state: State, key: str | None = None) -> Entry:
        changed = entry.model_copy(update={"state": state, **({"key": key} if key is not None else {})})
        self._write(changed)
        return changed

    def _write(self, entry: Entry) -> None:
        _write_durably(self._live / f"{entry.run}.json", entry)


def _entries(directory: Path) -> Iterator[Entry]:
    for path in sorted(directory.glob("*.json")):
        entry = _read(path)
        if entry is not None:
            yield entry


def _read(path: Path) -> Entry | None:
    try:
        entry = Entry.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return entry if path.name == f"{entry.run}.json" else None


def _write_durably(path: Path, entry: Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.parent / f".{path.name}-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(canonical_bytes(entry.model_dump(mode="json")))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not live."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
