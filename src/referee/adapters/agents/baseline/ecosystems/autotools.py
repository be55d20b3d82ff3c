"""Autotools: ``configure`` made where it is missing, ``make``, ``make check``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with ``configure`` or what it is made from."""
    project = shop.project
    source = look.first(project, "configure.ac", "configure.in")
    script = look.first(project, "autogen.sh", "bootstrap", "bootstrap.sh", "buildconf", "autogen")
    ready = (project / "configure").is_file()
    if not ready and source is None:
        return None
    made = () if ready else (_generate(script),)
    said = look.text(source) if source else ""
    automade = (project / "Makefile.am").is_file()
    return Plan(
        ecosystem="autotools",
        confidence=63 if ready or automade else 58,
        tools=(Tool("cc", ("build-essential",)), Tool("make", ("make",)), *(() if ready else _tools(said, project))),
        install=(*made, "sh ./configure", "make -j2"),
        paths=(".", "src", "bin"),
        programs=programs_of(project),
        tests=(Tests("make check", counts.any_runner), Tests("make test", counts.any_runner)),
        environment={"NOCONFIGURE": "1", "GNULIB_SKIP": "1"},
    )


def _generate(script: Path | None) -> str:
    """The project's own script where it only generates, else ``autoreconf``."""
    if script is not None and "git " not in look.text(script) and "submodule" not in look.text(script):
        return f"{'bash' if 'bash' in look.text(script)[:30] else 'sh'} ./{script.name}"
    return "mkdir -p m4 && autoreconf -fiv"


def _tools(said: str, project: Path) -> tuple[Tool, ...]:
    wanted = [Tool("autoconf", ("autoconf",)), Tool("automake", ("automake",))]
    if re.search(r"LT_INIT|PROG_LIBTOOL|LTDL", said) or any(project.glob("m4/libtool.m4")):
        wanted.append(Tool("libtoolize", ("libtool",)))
    if re.search(r"AM_GNU_GETTEXT|AM_ICONV|IT_PROG_INTLTOOL", said):
        wanted += [Tool("autopoint", ("autopoint",)), Tool("msgfmt", ("gettext",))]
    if re.search(r"PKG_(?:CHECK|PROG)", said):
        wanted.append(Tool("pkg-config", ("pkg-config",)))
    for macro, name, package in (("AC_PROG_(?:YACC|BISON)", "bison", "bison"), ("A[CM]_PROG_LEX", "flex", "flex")):
        if re.search(macro, said):
            wanted.append(Tool(name, (package,)))
    return tuple(wanted)


def programs_of(project: Path) -> tuple[str, ...]:
    """Names of the programs that automake's files say are built."""
    names: list[str] = []
    for path in look.files(project, "Makefile.am"):
        text = look.text(path).replace("\\\n", " ")
        for value in re.findall(r"^(?:bin|noinst|sbin)_PROGRAMS\s*\+?=\s*(.*)$", text, re.MULTILINE):
            names += [name for name in value.split() if re.fullmatch(r"[\w.+-]+", name)]
    return tuple(dict.fromkeys(names))[:20]
