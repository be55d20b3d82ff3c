"""Meson: set up, compiled and tested in a directory of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import cmake, counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``meson.build`` that declares a project."""
    project = shop.project
    if not re.search(r"^\s*project\s*\(", look.text(project / "meson.build"), re.MULTILINE):
        return None
    files = "\n".join(look.text(path) for path in look.files(project, "meson.build"))
    programs = tuple(dict.fromkeys(re.findall(r"\bexecutable\s*\(\s*'([\w.+-]+)'", files)))[:20]
    directory = cmake.build_directory(project)
    serves = bool(programs) and look.matches(look.files(project, *cmake.SOURCES), cmake.SERVES)
    tested = bool(re.search(r"^\s*(?:foreach[\s\S]*?)?test\s*\(", files, re.MULTILINE))
    return Plan(
        ecosystem="meson",
        confidence=65,
        tools=(
            Tool("meson", ("meson",)),
            Tool("ninja", ("ninja-build",)),
            Tool("c++", ("build-essential",)),
            Tool("pkg-config", ("pkg-config",)),
            *((Tool("valac", ("valac",)),) if re.search(r"project\([^)]*'vala'", files) else ()),
        ),
        install=(f"meson setup {directory}", f"meson compile -C {directory}"),
        paths=(directory, f"{directory}/src"),
        programs=programs,
        tests=(Tests(f"meson test -C {directory} --print-errorlogs", counts.meson),) if tested else (),
        servers=tuple(Server(name) for name in programs[:2]) if serves else (),
        invocations=() if serves else programs[:2],
    )
