"""Watches how much a machine has written, where the engine itself cannot limit it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from referee.adapters.docker.engine import ENGINE_ERRORS, connect
from referee.disk_use import allocated_bytes
from referee.errors import EngineUnavailable

POLL_SECONDS = 2.0
#: Without a hint that something was written, the size is still taken this often.
AT_LEAST_EVERY = 30.0


class DiskWatch:
    """A thread that measures the machine's writable layer every two seconds, and less when nothing is written.

    Measuring walks the layer's files. So where the engine's disk can be seen from here, a walk is made only when
    that disk has lost a quarter of what the machine may still write.
    """

    def __init__(self, container: str, limit: int, root: str) -> None:
        self.exceeded = False
        self.size = 0
        self._client: Any = None
        self._container = container
        self._limit = limit
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="referee-disk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, without waiting for a walk under way."""
        self._over.set()

    def _watch(self) -> None:
        try:
            self._client = connect(timeout=600)  # of its own: a walk may take long
        except EngineUnavailable:
            return  # Machine.trouble() says so as soon as it is asked
        try:
            self._measure()
        finally:
            self._client.close()

    def _measure(self) -> None:
        free_then = _free(self._root)
        walked = time.monotonic()
        pause = POLL_SECONDS
        while not self._over.wait(pause):
            free = _free(self._root)
            waited = time.monotonic() - walked
            unseen = free is None or free_then is None
            lost = 0 if free is None or free_then is None else free_then - free
            if not unseen and waited < AT_LEAST_EVERY and lost < (self._limit - self.size) / 4:
                continue
            began = time.monotonic()
            if not self._walk():
                return
            free_then, walked = free, time.monotonic()
            pause = max(POLL_SECONDS, min(20.0, 5 * (walked - began)))  # a slow walk must not become the load

    def _walk(self) -> bool:
        """Measure once; False when there is nothing left to measure or to find out."""
        try:
            url = self._client._url("/containers/{0}/json", self._container)  # noqa: SLF001 — the SDK has no size=1
            seen = self._client.get(url, params={"size": 1}, timeout=600)
            if not seen.ok:
                return False
            told = seen.json()
            self.size = int(told.get("SizeRw") or 0)
            if self.size > self._limit:  # of apparent sizes: one sparse file may look like a full disk
                allocated = _allocated((told.get("GraphDriver") or {}).get("Data", {}).get("UpperDir"), self._over)
                self.size = self.size if allocated is None else allocated
        except (*ENGINE_ERRORS, ValueError, AttributeError):
            return not self._over.is_set()
        self.exceeded = self.exceeded or self.size > self._limit
        return not self.exceeded


def _allocated(layer: str | None, stop: threading.Event) -> int | None:
    """Bytes that the layer's files take on the disk; None where it cannot be seen, as with an engine elsewhere."""
    if not layer or not os.access(layer, os.R_OK | os.X_OK):
        return None
    return allocated_bytes([layer], stop=stop)


def _free(root: str) -> int | None:
    """Free bytes of the engine's disk; None where it cannot be seen, as with an engine elsewhere."""
    try:
        found = os.statvfs(root)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize
