"""What this host's own process table says of a machine, where the engine runs on this host."""

from __future__ import annotations

import time
from pathlib import Path

#: How long a process that has just been killed may still stand in the table.
SETTLE_SECONDS = 10.0


def belongs_to(pid: int, container: str) -> bool:
    """Whether a process is in a container's control group, by the group's name, which holds the container's id."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text(errors="replace")
    except OSError:
        return False


def alive_in(container: str) -> set[int]:
    """The processes in a container's control group that live on, asked until there is none or for some seconds."""
    until = time.monotonic() + SETTLE_SECONDS
    while (left := _living(container)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def _living(container: str) -> set[int]:
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if belongs_to(pid, container) and not _is_dead(pid)}


def _is_dead(pid: int) -> bool:
    """Whether only an entry of it is left, which its parent has not yet taken."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}
