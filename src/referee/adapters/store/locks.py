"""Locks that a process holds as long as it lives: who gets one knows that nobody else is at the same work."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from referee.errors import CouldNotVerify


def open_lock(root: Path, name: str) -> int:
    """The descriptor of the empty file ``root/name`` that a lock is held on, made where there is none.

    Raises ``OSError``.
    """
    root.mkdir(parents=True, exist_ok=True)
    return os.open(root / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)


@contextlib.contextmanager
def alone(root: Path, work: str, *, busy: str, todo: str) -> Iterator[None]:
    """Hold the lock of a piece of work; a kill lets go of it.

    Args:
        root: the directory of records; the lock is a hidden, empty file in it.
        work: names the work, in any characters.
        busy: what is wrong when somebody else holds it.
        todo: what to do then.

    Raises:
        CouldNotVerify: somebody else holds it, or it cannot be made.
    """
    name = f".lock-{hashlib.sha256(work.encode()).hexdigest()[:32]}"
    try:
        descriptor = open_lock(root, name)
    except OSError as exc:
        raise CouldNotVerify(
            f"no lock can be made in {root.name}: {exc.strerror}", todo="see that the workspace can be written"
        ) from exc
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CouldNotVerify(busy, todo=todo) from None
        yield
    finally:
        os.close(descriptor)
