"""A plain Makefile: ``make``, then ``make check`` or ``make test``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import cmake, counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

NAMES = ("GNUmakefile", "makefile", "Makefile")
#: Recipes that only hand work to another tool of the tree; a better plan than make knows how.
_HANDS_ON = r"^\t@?-?(?:docker|npm|yarn|pnpm|pip3?|poetry|uv|cargo|go|bundle|composer|mvn|gradle|terraform|helm)\b"


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a Makefile in its root."""
    project = shop.project
    path = look.first(project, *NAMES)
    if path is None:
        return None
    text = look.text(path)
    targets = targets_of(text)
    compiles = any(look.files(project, ".c", ".cc", ".cpp", ".cxx", ".f90", ".asm", ".s", ".pas"))
    handed = bool(re.search(_HANDS_ON, text, re.MULTILINE)) and not compiles
    tests = tuple(Tests(f"make {name}", counts.any_runner) for name in ("check", "test", "tests") if name in targets)
    programs = programs_of(project, text, targets)
    serves = compiles and look.matches(look.files(project, *cmake.SOURCES), cmake.SERVES)
    starts = [Server(f"make {name}") for name in ("serve", "start", "run", "dev", "server") if name in targets]
    runs = tuple(entry.command for entry in starts) if compiles and not serves else ()
    return Plan(
        ecosystem="make",
        confidence=20 if handed else 55 if compiles else 40,
        tools=(Tool("make", ("make",)), *((Tool("cc", ("build-essential",)),) if compiles else ())),
        install=("make",),
        paths=(".", "bin", "build", "src", "out"),
        programs=programs,
        tests=tests,
        servers=(*(Server(f"./{name}") for name in programs[:1] if serves), *(() if runs else starts)),
        invocations=runs,
    )


def targets_of(text: str) -> tuple[str, ...]:
    """Explicit targets, in order."""
    found = re.findall(r"^([A-Za-z0-9_./ -]+?)\s*::?(?![:=])", text, re.MULTILINE)
    return tuple(dict.fromkeys(name for group in found for name in group.split() if not name.startswith(".")))


def programs_of(project: Path, text: str, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Targets and variables that name a built program: by a source of the same name, or by the usual variables."""
    usual = r"^(?:TARGET|PROG(?:RAM)?|BIN(?:ARY)?|EXE(?:CUTABLE)?|NAME|OUT(?:PUT)?)\s*[:?]?=\s*(\S+)\s*$"
    said = re.findall(usual, text, re.MULTILINE)
    named = [value for value in said if re.fullmatch(r"[\w./+-]+", value)]
    stems = {path.stem for path in look.files(project, *cmake.SOURCES)}
    built = [name for name in targets if Path(name).name in stems and "." not in Path(name).name]
    return tuple(dict.fromkeys(Path(name).name for name in (*named, *built) if not name.endswith("/")))[:10]
