"""Who made a machine, so that a later harness can tell whether its maker still lives.

Engine objects carry these labels; a machine whose maker is gone, or whose deadline has long passed, is reaped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

RUN_LABEL = "referee.run"
DEADLINE_LABEL = "referee.deadline"
WORKSPACE_LABEL = "referee.workspace"
OWNER_LABEL = "referee.owner"
ROLE_LABEL = "referee.role"

#: Seconds after a machine's deadline during which a living harness may still be judging it.
GRACE_SECONDS = 600.0


def this_process() -> str:
    """This harness: host, boot, process id and the process's start, so that a reused process id is no proof of life."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{_boot()}/{pid}/{_started(pid)}"


def why_stale(labels: Mapping[str, str], now: float) -> str | None:
    """Why something with these labels may be removed; None while it must be left alone."""
    parts = labels.get(OWNER_LABEL, "").split("/")
    if len(parts) == 4 and parts[0] == socket.gethostname():  # noqa: PLR2004 — the four parts of this_process()
        _, boot, pid, started = parts
        if boot != _boot() or not pid.isdigit() or started != _started(int(pid)):
            return "its harness is dead"
    try:
        deadline = float(labels.get(DEADLINE_LABEL, ""))
    except ValueError:
        return None
    return "its deadline has long passed" if now > deadline + GRACE_SECONDS else None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _started(pid: int) -> str:
    """Clock ticks from boot to the process's start; empty for a process that is not there (or is a zombie)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]
