"""Limits on a whole machine through control groups, version 1 or 2, where this process may make them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from referee.core.records import Limits

_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 100_000
_PREFIX = "referee-overlay-"


@dataclass(frozen=True)
class Cgroup:
    """The control groups of one machine: one directory per controller (version 1), or one (version 2)."""

    version: int
    paths: dict[str, Path]
    in_force: dict[str, str]

    def admit(self, pid: int) -> None:
        """Move a process in; all it starts is born inside."""
        for path in set(self.paths.values()):
            (path / "cgroup.procs").write_text(str(pid))

    def usage(self) -> dict[str, int]:
        """Peak memory in bytes and used CPU in microseconds, as far as the kernel tells."""
        found: dict[str, int] = {}
        memory, cpu = self.paths.get("memory"), self.paths.get("cpuacct", self.paths.get("cpu"))
        names = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
        if memory and (text := _read(memory / names[self.version])):
            found["memory_peak_bytes"] = int(text)
        if cpu and self.version == 1 and (text := _read(cpu / "cpuacct.usage")):
            found["cpu_microseconds"] = int(text) // 1000
        if cpu and self.version == 2 and (value := _field(cpu / "cpu.stat", "usage_usec")) is not None:  # noqa: PLR2004
            found["cpu_microseconds"] = value
        return found

    def killed_for_memory(self) -> bool:
        """Whether the kernel has ended a process of the machine for its memory limit."""
        path = self.paths.get("memory")
        name = {1: "memory.oom_control", 2: "memory.events"}[self.version]
        return bool(path and _field(path / name, "oom_kill"))


def make_cgroup(machine: str, limits: Limits) -> Cgroup | None:
    """The control groups for a machine with ``limits`` in force, or None where they cannot be made."""
    try:
        unified = (_ROOT / "cgroup.controllers").exists()
        return _make_unified(machine, limits) if unified else _make_split(machine, limits)
    except OSError:
        remove_cgroup(machine)
        return None


def members(machine: str) -> set[int]:
    """The processes in the machine's control groups."""
    found: set[int] = set()
    for path in directories(machine):
        found.update(int(pid) for pid in _read(path / "cgroup.procs").split())
    return found


def directories(machine: str) -> list[Path]:
    """The control group directories of a machine that exist."""
    name = _PREFIX + machine
    candidates = [_ROOT / name, *(path / name for path in _ROOT.glob("*") if path.is_dir())]
    return [path for path in candidates if path.is_dir()]


def remove_cgroup(machine: str) -> None:
    """End what still lives in the machine's control groups and remove them."""
    for path in directories(machine):
        for attempt in range(50):
            with contextlib.suppress(OSError):
                for pid in _read(path / "cgroup.procs").split():
                    os.kill(int(pid), signal.SIGKILL)
            try:
                path.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01 * (attempt + 1))


def _make_unified(machine: str, limits: Limits) -> Cgroup | None:
    wanted = {"memory", "pids", "cpu"}
    if not wanted <= set(_read(_ROOT / "cgroup.controllers").split()):
        return None
    (_ROOT / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    path = _ROOT / (_PREFIX + machine)
    path.mkdir()
    (path / "memory.max").write_text(str(limits.memory_bytes))
    with contextlib.suppress(OSError):
        (path / "memory.swap.max").write_text("0")
    (path / "pids.max").write_text(str(limits.pids))
    (path / "cpu.max").write_text(f"{int(limits.cpus * _PERIOD)} {_PERIOD}")
    return Cgroup(2, dict.fromkeys(sorted(wanted), path), dict.fromkeys(("memory", "pids", "cpus"), "cgroup v2"))


def _make_split(machine: str, limits: Limits) -> Cgroup | None:
    settings = {
        "memory": [
            ("memory.limit_in_bytes", str(limits.memory_bytes)),
            ("memory.memsw.limit_in_bytes", str(limits.memory_bytes)),
        ],
        "pids": [("pids.max", str(limits.pids))],
        "cpu": [("cpu.cfs_period_us", str(_PERIOD)), ("cpu.cfs_quota_us", str(int(limits.cpus * _PERIOD)))],
        "cpuacct": [],
    }
    paths: dict[str, Path] = {}
    in_force: dict[str, str] = {}
    for controller, values in settings.items():
        parent = _ROOT / controller
        if not (parent / "cgroup.procs").exists():
            continue
        path = parent / (_PREFIX + machine)
        # Controllers may be mounted together under several names.
        path.mkdir(exist_ok=True)
        paths[controller] = path
        for name, value in values:
            if name.startswith("memory.memsw") and not (path / name).exists():
                continue
            if not (path / name).exists():
                break
            (path / name).write_text(value)
            in_force[{"cpu": "cpus"}.get(controller, controller)] = "cgroup v1"
    return Cgroup(1, paths, in_force) if paths else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _field(path: Path, name: str) -> int | None:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None
