"""Fetched subjects by digest: a copy appears whole or not at all, and is checked again each time it is used."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from referee.adapters.sources.tree import tree_sha256

_SEAL = "seal"
_WORK = "work"
_HALF_MADE = (".incoming-", ".scratch-", ".discarded-")
_LEFT_BEHIND_SECONDS = 24 * 3600


class Cache:
    """Directories under ``root``, one a key; each holds ``work/`` and the ``seal`` (digest) of it.

    Several processes may use one cache: a copy is made under a name of its own and renamed into place, and
    whoever comes second throws his away.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, key: str) -> Path | None:
        """The ``work`` directory kept under ``key``; None when there is none, or it is no longer as it was sealed."""
        entry = self.root / key
        try:
            seal = (entry / _SEAL).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            self._discard(entry)
            return None
        if _seal_of(entry / _WORK) != seal:
            self._discard(entry)
            return None
        return entry / _WORK

    def publish(self, key: str, build: Callable[[Path], None]) -> Path:
        """Let ``build`` fill an empty ``work`` directory, seal it and put it under ``key``."""
        entry = self.root / key
        entry.parent.mkdir(parents=True, exist_ok=True)
        self._sweep()
        incoming = Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.root))
        try:
            work = incoming / _WORK
            work.mkdir()
            build(work)
            (incoming / _SEAL).write_text(_seal_of(work), encoding="ascii")
            incoming.chmod(0o755)
            try:
                incoming.rename(entry)
            except OSError:
                if not (entry / _SEAL).is_file():
                    raise
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        return entry / _WORK

    def _sweep(self) -> None:
        """Remove what a killed process left half made a day ago or longer."""
        for entry in self.root.glob(".*"):
            with contextlib.suppress(FileNotFoundError):
                if entry.name.startswith(_HALF_MADE) and time.time() - entry.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                    shutil.rmtree(entry, ignore_errors=True)

    def scratch(self) -> tempfile.TemporaryDirectory[str]:
        """A temporary directory on the cache's own disk."""
        self.root.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".scratch-", dir=self.root)

    def _discard(self, entry: Path) -> None:
        if not entry.exists():
            return
        aside = Path(tempfile.mkdtemp(prefix=".discarded-", dir=self.root))
        with contextlib.suppress(FileNotFoundError):
            entry.rename(aside / "entry")
        shutil.rmtree(aside, ignore_errors=True)


def _seal_of(work: Path) -> str:
    # Of a repository `.git` counts too here: what a machine gets is what was fetched.
    parts = [
        f"{name}:{tree_sha256(work / name, with_git=True)}" for name in ("project", "subject") if (work / name).is_dir()
    ]
    return " ".join(parts)
