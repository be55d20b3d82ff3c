"""Looks at a tree without running anything: bounded in depth, number and size, blind to vendored directories."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: Directories that hold other people's or built files.
_FOREIGN = frozenset({
    "node_modules", "vendor", "third_party", "target", "build", "dist", "out", "obj", "venv", "__pycache__", "_build",
    "deps", "external", "subprojects",
})  # fmt: skip
_FILES = 4000
_BYTES = 400_000


def text(path: Path) -> str:
    """The beginning of a file as text; empty when it is not there or cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def first(project: Path, *names: str) -> Path | None:
    """The first of ``names`` that is a file in the root of the tree."""
    return next((project / name for name in names if (project / name).is_file()), None)


def files(project: Path, *suffixes: str, foreign: bool = False) -> Iterator[Path]:
    """Files with one of the suffixes, in a fixed order, at most some thousand."""
    seen = 0
    for directory, names, entries in os.walk(project):
        names[:] = sorted(n for n in names if foreign or (n not in _FOREIGN and not n.startswith(".")))
        for entry in sorted(entries):
            seen += 1
            if seen > _FILES:
                return
            if not suffixes or entry.endswith(suffixes):
                yield Path(directory, entry)


def matches(paths: Iterator[Path], pattern: str, *, most: int = 400) -> bool:
    """Whether a regular expression matches in one of the first files."""
    compiled = re.compile(pattern, re.MULTILINE)
    return any(compiled.search(text(path)) for _, path in zip(range(most), paths, strict=False))


def version(value: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing: ``1.21.5`` -> (1, 21, 5)."""
    return tuple(int(number) for number in re.findall(r"\d+", value)[:3])


_ROUTE = re.compile(r"""(?:\.|@\w+\.)(?:get|route|api_route)\(\s*(?:r|f)?['"`](/[\w./-]*)['"`]""")


def routes(project: Path, *suffixes: str) -> tuple[str, ...]:
    """Paths without parameters that the sources of a web application answer; the root first, at most six."""
    found = ["/"]
    for path in files(project, *suffixes):
        if {"test", "tests", "docs"} & set(path.relative_to(project).parts):
            continue
        found += [route for route in _ROUTE.findall(text(path)) if route not in found]
    return tuple(found[:6])
