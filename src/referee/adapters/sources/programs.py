"""Running the clients (pip, npm, git): no terminal, no prompt, ended with all their children when time is up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.errors import SourceUnreachable

#: Seconds that one fetch by a client may take.
FETCH_SECONDS = 1800.0


@dataclass(frozen=True)
class Outcome:
    """How a client ended, and what it said."""

    status: int
    stdout: str
    stderr: str

    def last_words(self) -> str:
        """The last line of what it said that is not blank, for a message."""
        said = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        return said[-1][:300] if said else f"exit status {self.status}"


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    without: Collection[str] = (),
    seconds: float = FETCH_SECONDS,
) -> Outcome:
    """Run a client and wait.

    Args:
        argv: the program and its arguments.
        cwd: where it runs; an empty directory keeps it from finding a project's own settings.
        environment: added to this process's environment, from which proxies and CA bundles come.
        without: names left out of it.
        seconds: after these it is killed.

    Raises:
        SourceUnreachable: the program is not installed, or its time was up.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={key: value for key, value in os.environ.items() if key not in without} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as exc:
        raise SourceUnreachable(
            f"{argv[0]} is not installed, without it the subject cannot be fetched", todo=f"install {argv[0]}"
        ) from exc
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as exc:
        _end(process)
        raise SourceUnreachable(f"{argv[0]} did not finish within {seconds:.0f} seconds") from exc
    except BaseException:
        _end(process)
        raise
    return Outcome(process.returncode, stdout, stderr)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
