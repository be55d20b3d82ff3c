"""The empty homes of calls: where they are made, that nothing above them is read, and that none is left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from referee.errors import ConfigError

#: What programs read as instructions in the directories above the one they work in.
_INSTRUCTIONS = (
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules", "opencode.json"),
    *("opencode.jsonc", ".claude", ".codex", ".cursor", ".gemini", ".opencode"),
)

#: Seconds for what left its group to be gone once it was killed; and after which an unheld directory is a dead run's.
_DEATH_SECONDS = 5.0
_SETTLED_SECONDS = 60.0
_LOOK_SECONDS = 0.02


class Homes:
    """The homes of one lane, in a directory of their own that is held by a lock for as long as the lane is open.

    What a killed run left, homes and programs that still run in them, is removed by the next lane in the same place.

    Raises:
        ConfigError: there is no place above which nothing is read as instructions.
    """

    def __init__(self, spool: Path) -> None:
        place = quiet_place(spool)
        _sweep(place)
        self.root = Path(tempfile.mkdtemp(prefix="cli-", dir=place))
        self._held: int | None = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def place(self, prompt: str) -> Path:
        """A new directory for one call: an empty home, an empty directory to work in, one for what is temporary."""
        place = Path(tempfile.mkdtemp(prefix="call-", dir=self.root))
        for name in ("home", "work", "tmp"):
            (place / name).mkdir()
        furnish(place, {"prompt": prompt})
        return place

    def close(self) -> None:
        """End what still runs in one of the homes, wherever it went, and remove them all. May be called twice."""
        if self._held is not None:
            _clear(self.root)
            os.close(self._held)
            self._held = None


def furnish(directory: Path, files: Mapping[str, str]) -> None:
    """Write files, each by its path below the directory."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def quiet_place(spool: Path) -> Path:
    """A directory above which nothing stands that a program would read as instructions: the spool, or a temporary one.

    Raises:
        ConfigError: something stands above both.
    """
    spool.mkdir(parents=True, exist_ok=True)
    found: list[Path] = []
    for place in (spool.resolve(), Path(tempfile.gettempdir()).resolve()):
        above = [up / name for up in (place, *place.parents) for name in _INSTRUCTIONS if (up / name).exists()]
        if not above:
            return place
        found += above
    raise ConfigError(
        f"agent CLIs would read {found[-1]} as instructions in every call",
        todo="move it away, or set TMPDIR to a directory below none of the kind",
    )


def strays(below: Path) -> tuple[int, ...]:
    """The processes whose ``HOME`` lies in the directory ``below``: started by a call, wherever they went since."""
    mark = f"HOME={below}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if any(name.startswith(mark) for name in (entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return tuple(sorted(found))


def _sweep(place: Path) -> None:
    """Clear the directories of lanes whose run is dead: nobody holds them, and they are not just being made."""
    for root in place.glob("cli-*"):
        with contextlib.suppress(OSError):
            about = root.lstat()
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < _SETTLED_SECONDS:
                continue
            held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(root)
            finally:
                os.close(held)


def _clear(root: Path) -> None:
    until = time.monotonic() + _DEATH_SECONDS
    while (found := strays(root)) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)
    shutil.rmtree(root, ignore_errors=True)
