"""What a machine sees of the host: its system directories as lower layers, and nothing of its people.

Only the directories of the operating system show through (``_SYSTEM``). Everything else at the top — homes,
other disks, workspaces — is hidden; homes, ``/tmp``, ``/run`` and ``/work`` are new and empty. The hiding is done
in the upper layer (opaque directories and whiteouts), so what is written there stays with the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

_SYSTEM = frozenset({"bin", "etc", "lib", "lib32", "lib64", "libx32", "libo32", "opt", "sbin", "usr", "var"})
#: Directories of every machine that begin empty, with their modes.
_EMPTY = {
    "/dev": 0o755,
    "/home": 0o755,
    "/media": 0o755,
    "/mnt": 0o755,
    "/proc": 0o755,
    "/root": 0o700,
    "/run": 0o755,
    "/srv": 0o755,
    "/sys": 0o755,
    "/tmp": 0o1777,  # noqa: S108 — the machine's own
    "/var/tmp": 0o1777,  # noqa: S108 — the machine's own
    "/work": 0o755,
}
#: Below the system directories, what belongs to engines of the host.
_HIDDEN = ("/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/etc/docker")
#: Files that hosts often mount or link from elsewhere: copied, so that names resolve.
_COPIED = ("/etc/resolv.conf", "/etc/hosts")
_REAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "squashfs", "erofs", "bcachefs"})

HOSTNAME = "referee"
#: How deep below the root a rootless machine's own local directories go: /usr/local/lib/python3/dist-packages.
_LOCAL_DEPTH = 5


#: One layer to mount: where, over which lower directory ("" for none: a plain directory), from which upper one.
Layer = dict[str, str]


def prepare_layers(directory: Path, *, rootless: bool, hide: Sequence[Path]) -> list[Layer]:
    """Make the upper layers of a machine below ``directory``; what to mount, in order, outermost first.

    As root, one overlay covers ``/`` and each disk of the host at or below a system directory has its own. The
    kernel lets no unprivileged user overlay a directory that has mounts below it, so there the root is a plain
    directory and each system directory without such mounts is an overlay of its own.

    Args:
        directory: the machine's own directory.
        rootless: whether an unprivileged user will mount them.
        hide: further host paths that must not be seen, e.g. the directory of the machines itself.
    """
    wanted = {Path(name) for name in _HIDDEN} | {path.resolve() for path in hide}
    hidden = {path for path in wanted if not wanted.intersection(path.parents)}
    plan = _Plan(directory, "user.overlay.opaque" if rootless else "trusted.overlay.opaque")
    if rootless:
        _show_piecewise(plan, hidden)
    else:
        _show_whole(plan)
    for name, mode in _EMPTY.items():
        plan.empty(Path(name), mode)
    for path in hidden:
        if path.is_dir() and path.parts[1] in _SYSTEM:
            plan.empty(path, 0o755)
    plan.empty(Path("/run/lock"), 0o1777)
    for name in _COPIED:
        _copy(plan, Path(name))
    return plan.layers


class _Plan:
    """The layers so far, and what is put into their upper directories."""

    def __init__(self, directory: Path, attribute: str) -> None:
        self._directory = directory
        self._attribute = attribute
        self.layers: list[Layer] = []

    def add(self, at: str, lower: str) -> None:
        """Add a layer at the machine's path ``at``."""
        upper = self._directory / f"upper-{len(self.layers)}"
        upper.mkdir()
        _like(Path(at), upper)
        self.layers.append({"at": at, "lower": lower, "upper": upper.name})

    def place(self, path: Path) -> Path:
        """Where ``path`` stands in the upper layers, its parents made like the host's."""
        layer = self._layer(path)
        place, lower = self._directory / layer["upper"], Path(layer["at"])
        for part in path.relative_to(layer["at"]).parts[:-1]:
            place, lower = place / part, lower / part
            if not place.exists():
                place.mkdir()
                _like(lower, place)
        return place / path.name

    def empty(self, path: Path, mode: int) -> None:
        """Make ``path`` an empty directory, whatever the host has there."""
        place = self.place(path)
        place.mkdir(exist_ok=True)
        place.chmod(mode)
        if self._layer(path)["lower"]:
            os.setxattr(place, self._attribute, b"y")

    def _layer(self, path: Path) -> Layer:
        return max((one for one in self.layers if path.is_relative_to(one["at"])), key=lambda one: len(one["at"]))


def _show_whole(plan: _Plan) -> None:
    for at in ("/", *_system_mounts()):
        plan.add(at, at)
    for entry in os.scandir("/"):
        if entry.name not in _SYSTEM and f"/{entry.name}" not in _EMPTY:
            _whiteout(plan.place(Path("/", entry.name)))


def _show_piecewise(plan: _Plan, hidden: set[Path]) -> None:
    plan.add("/", "")
    for entry in sorted(Path("/").iterdir()):
        if entry.name in _SYSTEM:
            _split(plan, entry, _mount_points(), hidden | {Path(name) for name in _EMPTY})
    _own_local(plan)


def _split(plan: _Plan, path: Path, mounts: set[Path], empties: set[Path]) -> None:
    """Show a host path in a rootless machine: as one overlay where nothing is mounted below, else piece by piece."""
    place = plan.place(path)
    if path.is_symlink():
        place.symlink_to(path.readlink())
    elif not path.is_dir():
        with contextlib.suppress(OSError):
            shutil.copy2(path, place)
    elif path in empties or not os.access(path, os.R_OK | os.X_OK):
        place.mkdir()
    elif not any(path in mount.parents for mount in mounts):
        place.mkdir()
        plan.add(str(path), str(path))
    else:
        place.mkdir()
        _like(path, place)
        for child in sorted(path.iterdir()):
            _split(plan, child, mounts, empties)


def _own_local(plan: _Plan) -> None:
    """Let a rootless machine add files to /usr/local and /opt: an upper directory's owner is the merged one's."""
    plan.place(Path("/opt/x"))
    for where, names, _ in os.walk("/usr/local"):
        plan.place(Path(where, "x"))
        if len(Path(where).parts) > _LOCAL_DEPTH:
            names.clear()


def _system_mounts() -> list[str]:
    """Where the host has other disks mounted at or below its system directories, outermost first."""
    found: set[str] = set()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        at, kind = left.split()[4], right.split()[0]
        hidden = any(at == name or at.startswith(f"{name}/") for name in _HIDDEN)
        plain = "\\" not in at and ":" not in at and "," not in at
        if at != "/" and at.split("/")[1] in _SYSTEM and kind in _REAL and plain and not hidden and Path(at).is_dir():
            found.add(at)
    return sorted(found)


def _mount_points() -> set[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {Path(line.split()[4].encode().decode("unicode_escape")) for line in lines}


def _whiteout(place: Path) -> None:
    # A character device 0/0 is overlayfs' whiteout: the name is not there.
    os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))


def _copy(plan: _Plan, path: Path) -> None:
    try:
        text = path.read_bytes()
    except OSError:
        return
    if path.name == "hosts" and HOSTNAME.encode() not in text.split():
        text += f"\n127.0.1.1 {HOSTNAME}\n".encode()
    place = plan.place(path)
    place.write_bytes(text)
    place.chmod(0o644)


def _like(model: Path, place: Path) -> None:
    """Give a directory of the upper layer the mode and owner of the host's."""
    try:
        facts = model.stat()
    except OSError:
        return
    place.chmod(stat.S_IMODE(facts.st_mode))
    with contextlib.suppress(PermissionError):
        os.chown(place, facts.st_uid, facts.st_gid)
