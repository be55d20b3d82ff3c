"""What an ecosystem says about a tree: data, carried out by ``drive``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..workshop import Workshop


@dataclass(frozen=True)
class Tool:
    """A command that must be there, and the Debian packages that bring it, in order of preference."""

    command: str
    packages: tuple[str, ...]


@dataclass(frozen=True)
class Tests:
    """The project's own tests: a shell line, and how many passed by its output (None: it cannot be told).

    ``work``: whether a failure is worked through the table of troubles.
    """

    command: str
    passed: Callable[[str], int | None]
    share: float = 0.3
    work: bool = True


@dataclass(frozen=True)
class Server:
    """A documented way to start a server: a shell line that does not come back, and paths to ask for."""

    command: str
    paths: tuple[str, ...] = ("/",)


@dataclass(frozen=True)
class Plan:
    """How to bring a tree up.

    Attributes:
        ecosystem: its name, as the report says it.
        confidence: 0-100; the surest plan is carried out first, a failed one may be followed by the next.
        tools: commands needed before anything else.
        prepare: called with the shop before the steps (write a .env, choose a version); may run commands.
        install: shell lines run in the project through the trouble table; all must succeed.
        paths: directories put on PATH for all commands (relative to the project, or absolute).
        programs: names of the commands that this project itself provides (their runs verify something).
        packages: import names of the project (Python), or its package name (Node).
        languages: README block kinds that can be run: "shell", "python", "javascript".
        tests: the project's own test-suites, best first.
        servers: ways to start it as a server, best first.
        invocations: real uses of its programs, for when the README shows none.
        environment: extra environment for all commands.
        exercises: shell lines that use the library by what its names promise, worked through the table, when neither
            README nor tests prove anything.
        source: called when nothing above verified anything: fetches the sources of this very version and returns their
            README (or None) and the tests they bring.
        pages: called last of all: pages of those sources' documentation that show how to begin, the likeliest first.
        instead: documented commands that this plan stands in for: their first words -> the line that does it here.
        check: a shell line that proves that the install took (an import, a built file); empty when install proves it.
    """

    ecosystem: str
    confidence: int
    tools: tuple[Tool, ...] = ()
    prepare: Callable[[Workshop], None] | None = None
    install: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    languages: frozenset[str] = frozenset({"shell"})
    tests: tuple[Tests, ...] = ()
    servers: tuple[Server, ...] = ()
    invocations: tuple[str, ...] = ()
    exercises: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    source: Callable[[Workshop], tuple[Path | None, tuple[Tests, ...]]] | None = None
    pages: Callable[[Workshop], list[Path]] | None = None
    check: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
