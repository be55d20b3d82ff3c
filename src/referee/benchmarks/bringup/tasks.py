"""What a script of ``package.json`` or a target of a Makefile runs, where the agent wrote or changed it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from referee.errors import MachineFault, ReportRejected
from referee.protocols import PROJECT, Machine

#: How tasks are named beside files (``scoring.shell_words.task_of``).
TASKS = ("npm:", "make:")
_MOST_BYTES = 1_000_000
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGET = re.compile(r"(?m)^([A-Za-z0-9_][\w ./-]*)::?(?!=)([^\n]*)\n((?:\t[^\n]*\n?|[ \t]*\n)*)")


def task_text(machine: Machine, task: str, cwd: str, pinned: Path) -> str | None:
    """The shell text of a task; None where it is none, or stands so in the project as pinned.

    Args:
        machine: the attempt's machine, quiet.
        task: ``npm:NAME`` or ``make:NAME``; without a name the first target.
        cwd: the directory in which it is run.
        pinned: the placement's root on the host.
    """
    kind, _, name = task.partition(":")
    for file in ("package.json",) if kind == "npm" else _MAKEFILES:
        now = _read(machine, f"{cwd}/{file}")
        if now is not None:
            text = _of(kind, name, now)
            return None if text == _of(kind, name, _pinned(cwd, file, pinned)) else text
    return None


def _of(kind: str, name: str, data: bytes | None) -> str | None:
    text = (data or b"").decode("utf-8", "replace")
    return _script(text, name) if kind == "npm" else _recipe(text + "\n", name)


def _script(text: str, name: str) -> str | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    scripts = document.get("scripts") if isinstance(document, dict) else None
    found = scripts.get(name) if isinstance(scripts, dict) else None
    return found if isinstance(found, str) else None


def _recipe(text: str, name: str) -> str | None:
    for match in _TARGET.finditer(text):
        names, recipe = match.group(1).split(), match.group(3)
        if not name or name in names:
            lines = [_line(line[1:]) for line in recipe.split("\n") if line.startswith("\t") and line.strip()]
            # A target without a recipe, or with more in other targets, is not understood.
            return "\n".join(["set -e", *lines]) if lines and not match.group(2).strip() else None
    return None


def _line(line: str) -> str:
    bare = line.lstrip("@+- \t")
    ignored = "-" in line[: len(line) - len(bare)]
    bare = bare.replace("$$", "$")
    return f"{bare} || true" if ignored else bare


def _read(machine: Machine, path: str) -> bytes | None:
    try:
        return machine.read_file(path, max_bytes=_MOST_BYTES)
    except (ReportRejected, MachineFault):
        return None


def _pinned(cwd: str, file: str, pinned: Path) -> bytes | None:
    below = cwd.removeprefix(PROJECT).strip("/")
    if not cwd.startswith(PROJECT) or ".." in below:
        return None
    place = pinned / "project" / below / file
    try:
        return place.read_bytes() if place.is_file() and not place.is_symlink() else None
    except OSError:
        return None
