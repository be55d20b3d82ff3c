"""Who made a machine, written down before the machine exists, so that a later start can clear up."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from referee.adapters.overlay import cgroups

#: A machine this many seconds past its deadline is removed even when its owner lives.
LATE_SECONDS = 3600.0
_GONE_SECONDS = 20.0


@dataclass(frozen=True)
class Owner:
    """The harness process that made a machine. ``started`` is its start in clock ticks since the boot ``boot``."""

    machine: str
    run: str
    workspace: str
    deadline: float
    host: str
    boot: str
    pid: int
    started: int


def owner_of(machine: str, run: str, workspace: str, deadline: float) -> Owner:
    """This process as the owner of a machine."""
    pid = os.getpid()
    return Owner(machine, run, workspace, deadline, platform.node(), _boot(), pid, process_start(pid) or 0)


def write_owner(state: Path, owner: Owner) -> None:
    """Write the owner's file whole or not at all."""
    part = state / f".{owner.machine}.part"
    part.write_text(json.dumps(asdict(owner)))
    part.rename(owner_file(state, owner.machine))


def owner_file(state: Path, machine: str) -> Path:
    """Where the owner of a machine is written down; its directory stands beside it."""
    return state / f"{machine}.json"


def read_owners(state: Path) -> list[Owner]:
    """The owners of all machines that stand in ``state``; a file that cannot be read counts as a dead owner's."""
    owners: list[Owner] = []
    for part in state.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > LATE_SECONDS:
                part.unlink()
    for path in sorted(state.glob("*.json")):
        try:
            owners.append(Owner(**json.loads(path.read_text())))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError):
            owners.append(Owner(path.stem, path.stem, "", 0.0, platform.node(), "", 0, 0))
    return owners


def why_removable(owner: Owner) -> str | None:
    """Why a machine may be removed, or None when it may not."""
    if owner.deadline and time.time() > owner.deadline + LATE_SECONDS:
        return "its deadline has long passed"
    if owner.host != platform.node():
        return None
    alive = owner.boot == _boot() and process_start(owner.pid) == owner.started
    return None if alive else f"its harness (process {owner.pid}) is dead"


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not live (or is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def members(directory: Path) -> set[int]:
    """The live processes whose root is the machine in ``directory``, or that are in its control groups."""
    found = cgroups.members(directory.name)
    marks = (f"workdir={directory.name}.work", f"/{directory.name}/upper-0 ")
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            mounts = (path / "mountinfo").read_text(errors="replace")
        except OSError:
            continue
        if any(mark in mounts for mark in marks):
            found.add(int(path.name))
    return {pid for pid in found if process_start(pid) is not None}


def remove_machine(state: Path, machine: str, *, search: bool) -> None:
    """End what lives of a machine and remove all that is left of it; the owner's file goes last.

    Args:
        state: the directory of all machines.
        machine: the machine's name.
        search: look through all processes of the host for the machine's.
    """
    directory = state / machine
    deadline = time.monotonic() + _GONE_SECONDS
    while search and (pids := members(directory)) and time.monotonic() < deadline:
        for pid in pids:
            _kill(pid)
        time.sleep(0.02)
    cgroups.remove_cgroup(machine)
    if directory.exists():
        removed = subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=False, capture_output=True)
        if removed.returncode:
            # Directories without any permission: only an unprivileged owner meets them.
            subprocess.run(["chmod", "-R", "u+rwX", "--", directory], check=False, capture_output=True)
            subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=False, capture_output=True)
    if not directory.exists():
        owner_file(state, machine).unlink(missing_ok=True)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
