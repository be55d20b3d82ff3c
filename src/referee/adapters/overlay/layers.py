"""What a machine sees of the host: its system directories as lower layers, and nothing of its people.

Only the directories of the operating system show through (``_SYSTEM``). Everything else at the top — homes,
other disks, workspaces — is hidden; homes, ``/tmp``, ``/run`` and ``/work`` are new and empty. The hiding is done
in the upper layer (opaque directories and whiteouts), so what is written there stays with the machine.
"""

from __future__ import annotations

import contextlib
import os
import stat
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


def prepare_layers(directory: Path, *, rootless: bool, hide: list[Path]) -> list[dict[str, str]]:
    """Make the upper layers of a machine below ``directory``; what to mount, in order, outermost first.

    Args:
        directory: the machine's own directory.
        rootless: whether hiding is written as user attributes, which need no privilege.
        hide: further host paths that must not be seen, e.g. the directory of the machines itself.
    """
    attribute = "user.overlay.opaque" if rootless else "trusted.overlay.opaque"
    layers: list[dict[str, str]] = []
    for number, at in enumerate(["/", *_system_mounts()]):
        upper = directory / f"upper-{number}"
        upper.mkdir()
        _like(Path(at), upper)
        layers.append({"at": at, "lower": at, "upper": upper.name})
    root = directory / "upper-0"
    for entry in os.scandir("/"):
        if entry.name not in _SYSTEM and f"/{entry.name}" not in _EMPTY:
            _hide(root / entry.name, is_directory=entry.is_dir(follow_symlinks=False), attribute=attribute)
    for name, mode in _EMPTY.items():
        _empty(layers, directory, Path(name), attribute, mode)
    for path in [*(Path(name) for name in _HIDDEN), *hide]:
        real = path.resolve()
        if real.is_dir() and real.parts[1] in _SYSTEM:
            _empty(layers, directory, real, attribute, 0o755)
    (root / "run/lock").mkdir()
    (root / "run/lock").chmod(0o1777)
    for name in _COPIED:
        _copy(layers, directory, Path(name))
    return layers


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


def _place(layers: list[dict[str, str]], directory: Path, path: Path) -> Path:
    """Where ``path`` stands in the upper layers, its parents made like the host's."""
    layer = max((one for one in layers if path.is_relative_to(one["at"])), key=lambda one: len(one["at"]))
    place, lower = directory / layer["upper"], Path(layer["at"])
    for part in path.relative_to(layer["at"]).parts[:-1]:
        place, lower = place / part, lower / part
        if not place.exists():
            place.mkdir()
            _like(lower, place)
    return place / path.name


def _empty(layers: list[dict[str, str]], directory: Path, path: Path, attribute: str, mode: int) -> None:
    place = _place(layers, directory, path)
    place.mkdir(exist_ok=True)
    place.chmod(mode)
    os.setxattr(place, attribute, b"y")


def _hide(place: Path, *, is_directory: bool, attribute: str) -> None:
    try:
        # A character device 0/0 is overlayfs' whiteout: the name is not there.
        os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))
    except PermissionError:
        if is_directory:
            place.mkdir()
            os.setxattr(place, attribute, b"y")
        else:
            place.touch()


def _copy(layers: list[dict[str, str]], directory: Path, path: Path) -> None:
    try:
        text = path.read_bytes()
    except OSError:
        return
    if path.name == "hosts" and HOSTNAME.encode() not in text.split():
        text += f"\n127.0.1.1 {HOSTNAME}\n".encode()
    place = _place(layers, directory, path)
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
