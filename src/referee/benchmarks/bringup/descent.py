"""Whether a file of the machine comes from the pinned project: as it was, mended or built (methodology §5)."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.steering import pinned_files
from referee.core.live_lines import live_lines
from referee.protocols import PROJECT

#: More of a pinned tree than this is not read, bytes; larger files of it are passed over.
_MOST_BYTES, _MOST_FILE = 30_000_000, 1_000_000
#: Shorter lines tell nothing of where they come from, characters.
_TELLING = 4
#: What an agent writes by itself, rather than a compiler of another language's sources.
_BUILT = (".js", ".mjs", ".cjs")
_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_IN_EVERY_SERVER = frozenset(
    [
        *("require", "http", "https", "createServer", "listen", "const", "function", "return", "strict", "exports"),
        *("Object", "defineProperty", "__esModule", "value", "true", "__importDefault", "default", "console"),
    ]
)
_WRITTEN = (".sh", ".bash", ".py", "")


def descends(place: str, text: str, pinned: Path) -> bool:
    """Whether a script is the project's own, however it came where it stands.

    So it is where half of its lines that may run stand in the pinned tree; or, below the project, where that has a file
    of the same stem, or where it is in a language that others are compiled to and in a directory that the project does
    not have.

    Args:
        place: its absolute path in the machine, links followed.
        text: what it holds.
        pinned: the placement's root on the host.
    """
    lines, stems, folders = _pinned(pinned / "project")
    own = _live(place, text)
    if own and 2 * len(own & lines) >= len(own):
        return True
    path = PurePosixPath(place)
    if not path.is_relative_to(PROJECT):
        return False
    compiled = path.suffix not in _WRITTEN
    return (compiled or path.suffix == "") and (
        path.stem in stems or (compiled and path.parent.relative_to(PROJECT).as_posix() not in folders)
    )


def is_mended_or_built(place: str, text: str, pinned: Path) -> bool:
    """Whether a server below the project is its own: as an agent mended it, or as a build made it of a source.

    Half of its lines that may run stand in the file that is pinned there, and half of that file's in it; or it is
    JavaScript, and half of its words stand in pinned files of the same stem.

    Args:
        place: its absolute path in the machine.
        text: what it holds.
        pinned: the placement's root on the host.
    """
    path = PurePosixPath(place)
    if not path.is_relative_to(PROJECT):
        return False
    files = pinned_files(pinned / "project")
    there = files.get(path.relative_to(PROJECT).as_posix())
    if there is not None:
        live, was = _live(place, text), _live(place, _read(there))
        return _half(live, _lines(_read(there))) and _half(was, live)
    sources = [file for name, file in files.items() if PurePosixPath(name).stem == path.stem]
    known = {word for file in sources for word in _WORD.findall(_read(file))}
    words = {word for line in live_lines(text, path.name) for word in _WORD.findall(line)}
    return path.suffix in _BUILT and _half(words - _IN_EVERY_SERVER, known)


def _half(found: set[str], known: set[str]) -> bool:
    return bool(found) and 2 * len(found & known) >= len(found)


def _read(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace") if file.stat().st_size <= _MOST_FILE else ""


@lru_cache(maxsize=2)
def _pinned(project: Path) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The telling lines of a tree, the stems of its files and its directories."""
    files = pinned_files(project)
    lines: set[str] = set()
    left = _MOST_BYTES
    for path in files.values():
        size = path.stat().st_size
        if size <= min(left, _MOST_FILE):
            left -= size
            lines |= _lines(path.read_bytes().decode("utf-8", "replace"))
    paths = [PurePosixPath(name) for name in files]
    return (
        frozenset(lines),
        frozenset(path.stem for path in paths),
        frozenset(path.parent.as_posix() for path in paths),
    )


def _live(place: str, text: str) -> set[str]:
    """The telling lines that may ever run: others can be there to tell nothing but a false descent."""
    return _lines("\n".join(live_lines(text, PurePosixPath(place).name)))


def _lines(text: str) -> set[str]:
    found = {" ".join(line.split()) for line in text.splitlines()}
    return {line for line in found if len(line) >= _TELLING and not line.startswith(("#", "//"))}
