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
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.starts import asked_beside, beside
from referee.benchmarks.bringup.steering import (
    PRUNED,
    merged_package_json,
    parts_on_tests,
    pinned_files,
    steers,
    steers_by_parts,
)
from referee.benchmarks.bringup.trusted import Answer, Question, answered, ask, look, look_at
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

_PRUNE = " -o ".join(f"-name {name}" for name in sorted(PRUNED))
#: Names of pinned files go to the machine in pieces of so many bytes, so many of them in one question: limits of exec.
_PIECE, _PIECES = 100_000, 6

_LIST = f"""
cd "$1" || exit 0
$B find . -type d \\( {_PRUNE} \\) -prune -o -type f -size -{_LISTED + 1}c -print | $B sed 's/^/f /'
$B find . -type d \\( {_PRUNE} \\) -prune -o -type l -print | $B sed 's/^/l /'
"""
# Only of files that a walk comes upon, so that no link is followed and no pipe is read; a path of two lines is none.
_SUMS = f"""
cd "$1" && shift || exit 0
$B find . -type d \\( {_PRUNE} \\) -prune -o -type f -size -{_LISTED + 1}c ! -path '*
*' -print | $B awk '
  BEGIN {{
    for (i = 1; i < ARGC; i++) {{ n = split(ARGV[i], names, "\\n"); for (j = 1; j <= n; j++) own[names[j]] }}
    ARGC = 1
  }}
  $0 in own' "$@" | $B tr '\\n' '\\0' | $B xargs -0 -r $B sha256sum -- 2>/dev/null
exit 0
"""
_THERE = Question(_LIST, (PROJECT,), timeout=120, max_output=16_000_000)
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
    return frozenset(beside(machine, ask(machine, asked_beside(tests=True))))


class Standing:
    """How a machine stands before what steers a command is put back: what it is asked for that, and what it said.

    Args:
        pinned: the placement's root on the host.
        tests: the command is a test run.
    """

    def __init__(self, pinned: Path, *, tests: bool) -> None:
        self.own = pinned_files(pinned / "project")
        self.tests = tests
        self._answers: list[Answer | None] | None = None
        sums, *self._more = _sums_asked(self.own)
        self._asked = [asked_beside(tests=tests), sums, *([_THERE] if tests else [])]

    def ask_beside(self, machine: Machine, question: Question) -> Answer:
        """Ask the machine ``question``, and all of this by the same call, where that was not asked before.

        Raises:
            MachineFault: the machine could not be asked, or not in time.
        """
        if self._answers is not None:
            return ask(machine, question)
        first, *self._answers = look_at(machine, [question, *self._asked])
        return answered(first)

    def beside(self, machine: Machine) -> list[tuple[str, str]]:
        """``starts.beside``.

        Raises:
            MachineFault: the machine could not be asked, or not in time.
        """
        return beside(machine, answered(self._said(machine)[0]))

    def sums(self, machine: Machine) -> dict[str, str]:
        """The SHA-256 of the pinned files that the machine has.

        Raises:
            MachineFault: the machine could not be asked, or not in time.
        """
        return _sums_read([answered(self._said(machine)[1]), *(ask(machine, one) for one in self._more)])

    def there(self, machine: Machine) -> tuple[set[str], set[str]]:
        """The files and the links of the project, by their paths below it; for a test run.

        Raises:
            MachineFault: the machine could not be asked, or not in time, or there are too many.
        """
        return _there_read(answered(self._said(machine)[2]))

    def forget(self) -> None:
        """The machine has been changed: it is to be asked anew."""
        self._answers = None

    def _said(self, machine: Machine) -> list[Answer | None]:
        if self._answers is None:
            self._answers = look_at(machine, self._asked)
        return self._answers


def restore(
    machine: Machine,
    standing: Standing,
    *,
    before: Callable[[], Collection[tuple[str, str]]] = tuple,
) -> RestoredFacts:
    """Put back what steers a command; for one that is no test run only what every start of Python reads.

    Args:
        machine: the attempt's machine, quiet.
        standing: how it stands.
        before: ``hooks`` of such a machine as no agent has worked on: they are its own. Asked only where there are any.

    Returns:
        What was changed, or why it could not be looked at.
    """
    own = standing.own
    restored: dict[str, bytes] = {}
    sums: dict[str, str] | None = None
    try:
        found = {one for one in standing.beside(machine) if not _pinned(one[0], own)}
        removed = [path for path, _ in sorted(found - set(before() if found else ()))]
        if standing.tests:
            there, sums, unlinked = _unlinked(machine, standing)
            removed += unlinked
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
            sums = standing.sums(machine)
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


def _there_read(done: Answer) -> tuple[set[str], set[str]]:
    """The files and the links of the project in the machine, by their paths below it."""
    if done.truncated:
        raise MachineFault("the project has more files after the session than can be looked at")
    found: dict[str, set[str]] = {"f": set(), "l": set()}
    for line in done.output.decode("utf-8", "replace").splitlines():
        kind, _, name = line.partition(" ./")
        if name and kind in found:
            found[kind].add(name)
    return found["f"], found["l"]


def _sums_asked(own: Collection[str]) -> list[Question]:
    """How the machine is asked for the SHA-256 of pinned files, at least once."""
    pieces: list[str] = []
    lines: list[str] = []
    size = 0
    for name in sorted(own):
        lines.append(f"./{name}")
        size += len(lines[-1].encode("utf-8", "surrogateescape")) + 1
        if size >= _PIECE:
            pieces, lines, size = [*pieces, "\n".join(lines)], [], 0
    pieces += ["\n".join(lines)] if lines else []
    return [
        Question(_SUMS, (PROJECT, *pieces[at : at + _PIECES]), timeout=120, max_output=16_000_000)
        for at in range(0, max(1, len(pieces)), _PIECES)
    ]


def _sums_read(answers: Iterable[Answer]) -> dict[str, str]:
    found = {}
    for done in answers:
        for line in done.output.decode("utf-8", "replace").splitlines():
            digest, _, name = line.partition("  ./")
            if name:
                found[name] = digest
    return found


def _unlinked(machine: Machine, standing: Standing) -> tuple[set[str], dict[str, str], list[str]]:
    """Pinned directories that are links now become directories; what the links are called after being moved away.

    With it, the files of the project and the sums of the pinned ones as they stand then.
    """
    own = standing.own
    directories = {parent.as_posix() for name in own for parent in PurePosixPath(name).parents}
    moved: list[str] = []
    for _ in range(_DEEP):
        files, found = standing.there(machine)
        links = sorted(found & directories)
        if not links:
            return files, standing.sums(machine), moved
        if look(machine, _UNLINK, PROJECT, *links, timeout=120).exit_status != 0:
            break
        moved += [f"{PROJECT}/{name}{ASIDE}" for name in links]
        standing.forget()
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
