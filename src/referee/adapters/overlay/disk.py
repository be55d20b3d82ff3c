"""Watches what a machine has written: there is no quota on a directory, so its size is measured again and again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from referee.disk_use import allocated_bytes

#: Measuring may take at most about a tenth of one core.
_REST_FACTOR = 10.0
_SHORTEST_REST = 0.5


class DiskWatch:
    """Measures in a thread of its own until stopped; ``exceeded`` stays true once the limit was reached."""

    def __init__(self, directories: list[Path], limit: int) -> None:
        self._directories = directories
        self._limit = limit
        self._stop = threading.Event()
        self.exceeded = False
        self.largest = 0
        self._thread = threading.Thread(target=self._watch, name="overlay-disk-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(10)

    def _watch(self) -> None:
        rest = _SHORTEST_REST
        while not self._stop.wait(rest):
            begun = time.monotonic()
            size = allocated_bytes(self._directories, stop=self._stop)
            self.largest = max(self.largest, size)
            self.exceeded = self.exceeded or size >= self._limit
            rest = max(_SHORTEST_REST, (time.monotonic() - begun) * _REST_FACTOR)
