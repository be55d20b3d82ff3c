"""Before a command is believed, what steers it stands as it was pinned (methodology §5, edition 2).

For every command, hooks that each start of Python reads and that came from no package are moved away. For a test run,
the project's own test files and its runners' configuration are put back where they differ, and configuration that the
project does not have is moved away.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

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

_SUMS = """
cd "$1" || exit 0
shift
$B find . -type d \\( "$@" \\) -prune -o -type f -print0 | $B xargs -0 -r $B sha256sum
"""
# Beside the project: what every start of Python, or of any program, reads, unless a package brought it; configuration
# above the project.
_BESIDE = """
hex() { $B od -An -v -tx1 | $B tr -d ' \\n'; }
owned() {
  $B grep -qs "^$2," "$3"/*.dist-info/RECORD && return 0
  sum=$($B md5sum "$1" | $B cut -d ' ' -f 1)
  $B grep -qsxF -- "$sum  ${1#/}" /var/lib/dpkg/info/*.md5sums && return 0
  $B grep -qsxF -- " $1 $sum" /var/lib/dpkg/status
}
tell() { echo "found $($B md5sum "$1" | $B cut -d ' ' -f 1) $(printf %s "$1" | hex)"; }
$B find /etc /usr/lib /usr/local/lib /root /work /opt /home /srv /tmp \\
  -type d \\( -path /opt/agent -o -path /usr/local/lib/referee -o -name node_modules -o -name .git \\) -prune \\
  -o -type f \\( -name sitecustomize.py -o -name usercustomize.py -o -name '*.pth' \\) -print 2>/dev/null |
while IFS= read -r file; do
  name=${file##*/} directory=${file%/*}
  case $name in
    *-nspkg.pth) continue;;
    _virtualenv.pth) [ "$($B cat "$file")" = 'import _virtualenv' ] && continue;;
    *.pth) $B grep -q '^import[[:space:]]' "$file" || continue;;
  esac
  owned "$file" "$name" "$directory" || tell "$file"
done
[ ! -s /etc/ld.so.preload ] || tell /etc/ld.so.preload
[ "$1" = tests ] || exit 0
for directory in / /work; do
  for name in conftest.py pytest.ini .pytest.ini tox.ini setup.cfg jest.config.js jest.config.ts jest.config.json; do
    [ ! -f "${directory%/}/$name" ] || tell "${directory%/}/$name"
  done
done
"""
_MOVE = 'for file; do $B mv -f "$file" "$file' + ASIDE + '" || exit 1; done'


def hooks(machine: Machine) -> frozenset[tuple[str, str]]:
    """What every start of Python reads beside what packages brought: path and MD5 of each, for a fresh machine's own.

    Raises:
        MachineFault: the machine could not be asked.
    """
    return frozenset(_beside(machine, tests=True))


def restore(
    machine: Machine, pinned: Path, *, tests: bool, before: Collection[tuple[str, str]] = ()
) -> RestoredFacts | None:
    """Put back what steers a command.

    Args:
        machine: the attempt's machine, quiet.
        pinned: the placement's root on the host.
        before: ``hooks`` of the machine before the agent worked on it: they are its own.
        tests: the command is a test run; else only what every start of Python reads is looked at.

    Returns:
        What was changed, or None where the machine could not be asked.
    """
    own = pinned_files(pinned / "project")
    try:
        there = _there(machine) if own and tests else {}
        restored = _differing(machine, own, there) if tests else {}
        removed = [f"{PROJECT}/{name}" for name in there if name not in own and _is_new(machine, name)]
        new = [found[0] for found in _beside(machine, tests=tests) if found not in before]
        removed += [path for path in new if path.removeprefix(f"{PROJECT}/") not in own]
        removed = list(dict.fromkeys(removed))
        if removed:
            _move(machine, removed)
        if restored:
            machine.put(io.BytesIO(_tar(restored)), PROJECT)
    except MachineFault:
        return None
    return RestoredFacts(restored=tuple(sorted(restored))[:_NAMED], removed=tuple(sorted(removed))[:_NAMED])


def _there(machine: Machine) -> dict[str, str]:
    """The files of the project in the machine: their paths below it and their SHA-256."""
    names = [word for name in sorted(PRUNED) for word in ("-o", "-name", name)][1:]
    done = look(machine, _SUMS, PROJECT, *names, timeout=120, max_output=16_000_000)
    found = {}
    for line in done.output.decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ./")
        if name:
            found[name] = digest
    return found


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


def _is_new(machine: Machine, name: str) -> bool:
    """Whether a file that the project does not have steers its tests."""
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


def _beside(machine: Machine, *, tests: bool) -> list[tuple[str, str]]:
    done = look(machine, _BESIDE, "tests" if tests else "starts", timeout=60)
    found = []
    for line in done.output.decode("ascii", "replace").splitlines():
        match line.split():
            case ["found", digest, value]:
                found.append((bytes.fromhex(value).decode("utf-8", "surrogateescape"), digest))
    return found


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
