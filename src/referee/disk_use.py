"""How much of a disk files take. Here, below the adapters, because both sandboxes count what their machines wrote."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable

_BLOCK = 512  # the unit of st_blocks, whatever the file system's own is (stat(2))


def allocated_bytes(directories: Iterable[str | os.PathLike[str]], *, stop: threading.Event | None = None) -> int:
    """Allocated bytes below ``directories``, a file of several names once; what cannot be looked into counts nothing.

    ``stop`` cuts it short.
    """
    total = 0
    linked: set[tuple[int, int]] = set()
    pending = [os.fspath(path) for path in directories]
    while pending and not (stop and stop.is_set()):
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif facts.st_nlink > 1:
                        if (facts.st_dev, facts.st_ino) in linked:
                            continue
                        linked.add((facts.st_dev, facts.st_ino))
                    total += facts.st_blocks * _BLOCK
    return total
