"""The harness's own log of one attempt: phases with their times, one JSON line each, kept as evidence."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path


class Journal:
    """Writes ``harness.jsonl``: ``{"phase", "began", "seconds"}``, times in seconds since the attempt began.

    Args:
        file: the log, in the attempt's spool directory.
        tell: called with each phase's name as it begins.
    """

    def __init__(self, file: Path, tell: Callable[[str], None]) -> None:
        self._directory = file.parent
        self._file = file.open("a", encoding="utf-8")
        self._tell = tell
        self._start = time.monotonic()
        self._phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; a phase that fails is written with its error and raised on."""
        self._tell(name)
        began = time.monotonic()
        error: str | None = None
        try:
            yield
        except BaseException as exc:
            error = "interrupted" if isinstance(exc, KeyboardInterrupt) else f"{type(exc).__name__}: {exc}"
            raise
        finally:
            seconds = round(time.monotonic() - began, 4)
            self._phases[name] = seconds
            line: dict[str, object] = {"phase": name, "began": round(began - self._start, 4), "seconds": seconds}
            if error is not None:
                line["error"] = error
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()

    def close(self) -> dict[str, float]:
        """Close the log; the seconds of each phase."""
        self._file.close()
        return dict(self._phases)

    def sweep(self) -> None:
        """Remove the spool directory: all of it is sealed evidence now."""
        shutil.rmtree(self._directory, ignore_errors=True)


def now() -> str:
    """The time as records write it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
