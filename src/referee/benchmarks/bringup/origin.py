"""What tells a pinned project in files that it did not pin: its modules' names, texts in compiled programs, promises.

Read on the host, from the placement alone (methodology §5).
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.steering import pinned_files

#: Files of these languages are compiled to programs in which their texts stand word for word.
_COMPILED_FROM = frozenset(
    [
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".m", ".go", ".rs", ".zig", ".swift", ".d", ".nim", ".hs", ".ml"),
        *(".cs", ".java", ".kt", ".scala", ".v", ".cr", ".f90"),
    ]
)
#: Files that may be imported by their names.
_IMPORTED = frozenset({".py", ".pyx", ".pyi", ".so", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".rb", ".php"})
_DOCUMENTS = frozenset({".md", ".rst", ".txt", ".adoc", ".markdown", ".org", ""})
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
#: A text is cut where its language writes a character by another sign or puts a value in.
_PIECES = re.compile(r"\\.|\{[^{}\"]*\}")
_FUNCTION = re.compile(r"\b(?!if\b|for\b|while\b|switch\b)([A-Za-z_]\w{5,})\s*\([^;{}()]*\)[^;{}()]*\{")
#: Shorter texts may stand in any program, characters.
_TELLING = 6
#: Those of one file tell it where they have so many together.
_TOGETHER = 12
#: What is included or imported stands in no program.
_PATH = re.compile(r"[\w./-]+\.(?:h|hpp)|[\w.-]+(?:/[\w.-]+)+")
_MAIN = re.compile(r"\bmain\s*\(")
#: More texts of one tree, and larger files of it or of an archive, are not read.
_MOST_TEXTS, _MOST_FILE, _MOST_MEMBERS = 50_000, 1_000_000, 20_000
#: More of a machine's archive is not unpacked, bytes: what little is packed may become endless.
_MOST_UNPACKED = 64_000_000
#: More is not looked through for one program, texts times bytes: half a minute of a core.
_MOST_LOOKED = 60_000_000_000
_MOST_PROMISES, _LONGEST = 200, 2_000


@dataclass(frozen=True)
class _Sources:
    """What tells each pinned source file in a program, and whether some program of the project may have nothing."""

    telling: tuple[frozenset[str], ...]
    mute: bool


def of_the_project(data: bytes, pinned: Path) -> bool | None:
    """Whether a compiled program comes from the project's sources: half of one file's texts stand in it, or of the
    names of its functions.

    None where that cannot be told: the project has no sources that are compiled, or one with a ``main`` and nothing
    telling; or where there is too much to look through.

    Args:
        data: the program.
        pinned: the placement's root on the host.
    """
    sources = _sources(pinned / "project")
    every = _unpacked(data)
    if 2 * len(every) * sum(map(len, sources.telling)) > _MOST_LOOKED:
        return None
    if any(2 * sum(_stands_in(piece, every) for piece in pieces) >= len(pieces) for pieces in sources.telling):
        return True
    return None if sources.mute or not sources.telling else False


def _stands_in(piece: str, data: bytes) -> bool:
    return piece.encode() in data or piece.encode("utf-16-le") in data


def _unpacked(data: bytes) -> bytes:
    """An archive of classes with what is packed in it."""
    if not data.startswith(b"PK\x03\x04"):
        return data
    every, left = [data], _MOST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for one in archive.infolist()[:_MOST_MEMBERS]:
                if one.file_size <= min(left, _MOST_FILE):
                    left -= one.file_size
                    every.append(archive.read(one))
    except Exception:  # noqa: BLE001 — the machine's bytes, and each way to pack has its own errors
        return b"\n".join(every)
    return b"\n".join(every)


@lru_cache(maxsize=2)
def _sources(project: Path) -> _Sources:
    telling: list[frozenset[str]] = []
    mute, left = False, _MOST_TEXTS
    for name, path in pinned_files(project).items():
        if PurePosixPath(name).suffix not in _COMPILED_FROM or path.stat().st_size > _MOST_FILE:
            continue
        if left <= 0:
            mute = True
            break
        source = path.read_bytes().decode("utf-8", "replace")
        pieces = {piece for text in _TEXT.findall(source) for piece in _PIECES.split(text) if len(piece) >= _TELLING}
        texts = {piece for piece in pieces if not _PATH.fullmatch(piece)}
        found = [frozenset(one) for one in (texts, set(_FUNCTION.findall(source))) if sum(map(len, one)) >= _TOGETHER]
        telling += found
        mute = mute or (not found and _MAIN.search(source) is not None)
        left -= len(pieces)
    return _Sources(tuple(telling), mute)


@lru_cache(maxsize=2)
def module_names(root: Path) -> frozenset[str]:
    """What a program may import of the project: stems and directories of its files, names of its packages.

    Args:
        root: the placement's root on the host; archives of a package are looked into.
    """
    found: set[str] = set()
    for name, path in pinned_files(root / "project").items():
        found |= _names_of(name)
        if PurePosixPath(name).name == "package.json" and path.stat().st_size <= _MOST_FILE:
            package = _said(path.read_bytes(), "name")
            found |= set() if package is None else {package}
    for path in pinned_files(root / "subject").values():
        found |= {one for name in _members(path) for one in _names_of(name)}
    return frozenset(found)


def _names_of(name: str) -> set[str]:
    path = PurePosixPath(name)
    if path.suffix not in _IMPORTED:
        return set()
    return {path.name.split(".", 1)[0], *(part for part in path.parts[:-1] if part not in {"src", "lib"})}


@lru_cache(maxsize=2)
def packages(root: Path) -> frozenset[tuple[str, str]]:
    """Names and versions of the packages of Node in the pinned tree, as their ``package.json`` say.

    Args:
        root: the placement's root on the host.
    """
    every = (
        (_said(path.read_bytes(), "name"), _said(path.read_bytes(), "version"))
        for name, path in pinned_files(root / "project").items()
        if PurePosixPath(name).name == "package.json" and path.stat().st_size <= _MOST_FILE
    )
    return frozenset((name, version) for name, version in every if name is not None and version is not None)


def _said(data: bytes, key: str) -> str | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _members(path: Path) -> list[str]:
    """The names in a package's archive; its own name where it is none."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()[:_MOST_MEMBERS]
        with tarfile.open(path) as tar:
            names = []
            for member in tar:
                names.append(member.name)
                if len(names) >= _MOST_MEMBERS:
                    break
            return names
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError):
        return [path.name]


def promises(lines: Iterable[str], root: Path) -> tuple[tuple[str, str, str], ...]:
    """Lines of the pinned documentation that hold one of these lines, each between the lines before and behind it.

    Args:
        lines: of a reported result.
        root: the placement's root on the host.
    """
    wanted = [line for line in dict.fromkeys(" ".join(one.split()) for one in lines) if line]
    found: list[tuple[str, str, str]] = []
    for folder in ("project", "subject"):
        for name, path in pinned_files(root / folder).items():
            if PurePosixPath(name).suffix.lower() not in _DOCUMENTS or path.stat().st_size > _MOST_FILE:
                continue
            rows = [" ".join(row.split()) for row in path.read_bytes().decode("utf-8", "replace").splitlines()]
            rows = [row[:_LONGEST] for row in rows if row]
            padded = ["", *rows, ""]
            found += [
                (padded[at], row, padded[at + 2]) for at, row in enumerate(rows) if any(line in row for line in wanted)
            ]
            if len(found) >= _MOST_PROMISES:
                return tuple(found[:_MOST_PROMISES])
    return tuple(found)
