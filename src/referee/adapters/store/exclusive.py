"""A writer's own file: created exclusively, locked as long as its process lives, never opened for writing again."""

from __future__ import annotations

import fcntl
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from referee.adapters.store.durable import sync_directory


def create_exclusively(root: Path, prefix: str, suffix: str) -> tuple[int, str]:
    """Make ``root/<prefix>-<token><suffix>`` durably; return its locked descriptor and its name. Raises ``OSError``."""
    made = not root.is_dir()
    root.mkdir(parents=True, exist_ok=True)
    if made:
        sync_directory(root.parent)
    name = f"{prefix}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(8)}{suffix}"
    descriptor = os.open(root / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    # Blocking: a reader that asks whether the writer lives holds the lock for the time of one question.
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    sync_directory(root)
    return descriptor, name


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of ``data``. Raises ``OSError``: how much of it stands there is then not known."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def writer_lives(descriptor: int) -> bool:
    """Whether the file's writer still holds its lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
