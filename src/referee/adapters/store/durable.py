"""Two moves that make a file durable."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Sync a directory, so that the names in it survive a crash."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace ``path`` by ``data`` in one step: a reader sees the old bytes or the new, never half.

    For what is derived only: records and evidence are never replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
