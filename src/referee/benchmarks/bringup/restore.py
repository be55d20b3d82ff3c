"""Before a command is believed, what steers it stands as it was pinned (methodology §5, edition 2).

For every command, hooks that each start of Python reads and that came from no package are moved away. For a test run,
the project's own test files and its runners' configuration are put back where they differ, and configuration that the
project does not have is moved away.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.starts import beside
from referee.benchmarks.bringup.steering import (
    PRUNED,
    merged_package_json,
    parts_on_tests,
    pinned_files,
    steers,
    steers_by_parts,
)
from referee.benchmarks.bringup.trusted import look
from referee.core.records import RestoredFacts
from referee.errors import MachineFault, ReportRejected
from referee.protocols import PROJECT, Machine

#: A configuration file larger than this is not compared part by part, bytes.
_MOST_CONFIG = 1_000_000
#: At most so many files are named in a record.
_NAMED = 500
#: What a file is called after it was moved away.
ASIDE = ".moved-by-referee"

#: Larger files are neither pinned ones that are compared nor worth reading, bytes.
_LISTED = 20_000_000
#: Links to directories are followed so many levels deep.
_DEEP = 4

_LIST = """
cd "$1" || exit 0
size=$2; shift 2
$B find . -type d \\( "$@" \\) -prune -o -type f -size "-${size}c" -print | $B sed 's/^/f /'
$B find . -type d \\( "$@" \\) -prune -o -type l -print | $B sed 's/^/l /'
"""
_SUMS = 'cd "$1" && shift && $B sha256sum -- "$@" 2>/dev/null; exit 0'
# A link at the place of a pinned directory becomes a directory with what it leads to, so that it can be put in order.
_UNLINK = (
    'cd "$1" && shift || exit 1; for name; do to=$($B readlink -f "$name"); $B mv -f "$name" "$name'
    + ASIDE
    + """"
[ ! -d "$to" ] || $B cp -a "$to" "$name" || exit 1; done"""
)
_MOVE = 'for file; do $B mv -f "$file" "$file' + ASIDE + '" || exit 1; done'


def hooks(machine: Machine) -> frozenset[tuple[str, str]]:
    """What every start of Python reads beside what packages brought: path and MD5 of each, for a fresh machine's own.

    Raises:
        MachineFault: the machine could not be asked.
    """
    return frozenset(beside(machine, tests=True))


def restore(machine: Machine, pinned: Path, *, tests: bool, before: Collection[tuple[str, str]] = ()) -> RestoredFacts:
    """Put back what steers a command.

    Args:
        machine: the attempt's machine, quiet.
        pinned: the placement's root on the host.
        before: ``hooks`` of the machine before the agent worked on it: they are its own.
        tests: the command is a test run; else only what every start of Python reads is put back.

    Returns:
        What was changed, or why it could not be looked at.
    """
    own = pinned_files(pinned / "project")
    restored: dict[str, bytes] = {}
    sums: dict[str, str] | None = None
    try:
        removed = [
            path for path, _ in sorted(set(beside(machine, tests=tests)) - set(before)) if not _pinned(path, own)
        ]
        if tests:
            removed += _unlinked(machine, own)
            there, _ = _there(machine)
            sums = _sums(machine, sorted(there & own.keys()))
            restored = _differing(machine, own, sums)
            removed += [f"{PROJECT}/{name}" for name in sorted(there - own.keys()) if _is_new(machine, name, own)]
        removed = list(dict.fromkeys(removed))
        _move(machine, [path for path in removed if not path.endswith(ASIDE)])
        if restored:
            machine.put(io.BytesIO(_tar(restored)), PROJECT)
    except MachineFault as exc:
        return RestoredFacts(restored=(), removed=(), could_not=exc.message)
    if sums is None:
        with contextlib.suppress(MachineFault):
            sums = _sums(machine, sorted(_there(machine)[0] & own.keys()))
    return RestoredFacts(
        restored=tuple(sorted(restored))[:_NAMED],
        removed=tuple(sorted(path.removesuffix(ASIDE) for path in removed))[:_NAMED],
        changed=None if sums is None else _changed(own, sums, restored),
    )


def _pinned(path: str, own: Mapping[str, Path]) -> bool:
    name = path.removeprefix(f"{PROJECT}/")
    return name in own or any(one.startswith(f"{name}/") for one in own)


def _changed(own: Mapping[str, Path], sums: Mapping[str, str], restored: Collection[str]) -> tuple[str, ...]:
    """The pinned files that the agent changed or took away and that stay so: mending a project is its task."""
    changed = (name for name in sorted(own) if name not in restored and sums.get(name) != _digest(own[name]))
    return tuple(itertools.islice(changed, _NAMED))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _there(machine: Machine) -> tuple[set[str], set[str]]:
    """The files and the links of the project in the machine, by their paths below it."""
    names = [word for name in sorted(PRUNED) for word in ("-o", "-name", name)][1:]
    done = look(machine, _LIST, PROJECT, str(_LISTED + 1), *names, timeout=120, max_output=16_000_000)
    if done.truncated:
        raise MachineFault("the project has more files after the session than can be looked at")
    found: dict[str, set[str]] = {"f": set(), "l": set()}
    for line in done.output.decode("utf-8", "replace").splitlines():
        kind, _, name = line.partition(" ./")
        if name and kind in found:
            found[kind].add(name)
    return found["f"], found["l"]


def _sums(machine: Machine, names: list[str]) -> dict[str, str]:
    """The SHA-256 of files below the project."""
    found = {}
    for at in range(0, len(names), 1000):
        some = [f"./{name}" for name in names[at : at + 1000]]
        done = look(machine, _SUMS, PROJECT, *some, timeout=120, max_output=16_000_000)
        for line in done.output.decode("utf-8", "replace").splitlines():
            digest, _, name = line.partition("  ./")
            if name:
                found[name] = digest
    return found


def _unlinked(machine: Machine, own: Mapping[str, Path]) -> list[str]:
    """Pinned directories that are links now become directories; what the links are called after being moved away."""
    directories = {parent.as_posix() for name in own for parent in PurePosixPath(name).parents}
    moved: list[str] = []
    for _ in range(_DEEP):
        links = sorted(_there(machine)[1] & directories) if own else []
        if not links:
            return moved
        if look(machine, _UNLINK, PROJECT, *links, timeout=120).exit_status != 0:
            break
        moved += [f"{PROJECT}/{name}{ASIDE}" for name in links]
    raise MachineFault("directories of the project lead elsewhere after the session, and cannot be looked at")


def _differing(machine: Machine, own: Mapping[str, Path], there: Mapping[str, str]) -> dict[str, bytes]:
    """What to put back: for each path below the project its bytes."""
    wanted: dict[str, bytes] = {}
    for name, path in own.items():
        whole, parts = steers(name), steers_by_parts(name)
        if not whole and not parts:
            continue
        data = path.read_bytes()
        if there.get(name) == hashlib.sha256(data).hexdigest():
            continue
        if whole:
            wanted[name] = data
            continue
        now = _read(machine, f"{PROJECT}/{name}")
        if now is None or parts_on_tests(name, now) == parts_on_tests(name, data):
            continue
        wanted[name] = merged_package_json(now, data) if name.endswith("package.json") else data
    return wanted


def _is_new(machine: Machine, name: str, own: Mapping[str, Path]) -> bool:
    """Whether a file that the project does not have steers its tests."""
    if not own:  # an installed package: what is unpacked here below may bring its own
        return "/" not in name and steers(name, new=True)
    if steers(name, new=True):
        return True
    if not steers_by_parts(name) or name.endswith(("package.json", "Makefile")):
        return False
    data = _read(machine, f"{PROJECT}/{name}")
    return data is not None and bool(parts_on_tests(name, data))


def _read(machine: Machine, path: str) -> bytes | None:
    try:
        return machine.read_file(path, max_bytes=_MOST_CONFIG)
    except ReportRejected:
        return None


def _move(machine: Machine, paths: list[str]) -> None:
    for at in range(0, len(paths), 100):
        done = look(machine, _MOVE, *paths[at : at + 100])
        if done.exit_status != 0:
            raise MachineFault("files that steer tests could not be moved away")


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
