"""``command``: any command line as an agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from referee.core.canonical import digest_of
from referee.errors import ConfigError
from referee.protocols import AGENT_HOME, Access, AgentStart, ModelNeed, PlacedFile

#: Where a command that has a model finds its address, name and key: one JSON object, for root alone.
MODEL_FILE = "/run/agent/model.json"


@dataclass(frozen=True)
class CommandAgent:
    """A command line, run inside the machine in the project's directory.

    ``files``: a host directory that appears read-only at ``/opt/agent``, or None. ``argv`` is not
    given to a shell: name one (``["bash", "-c", "…"]``) where one is wanted. ``need``: the model that it
    is given, or None.
    """

    name: str
    version: str
    argv: tuple[str, ...]
    tier: Literal["standard", "stronger"] = "standard"
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Path | None = None
    need: ModelNeed | None = None

    @property
    def harness(self) -> str | None:
        """``command`` where it is given a model; else None."""
        return "command" if self.need is not None else None

    def placed(self, access: Access, mission: Mapping[str, object]) -> Mapping[str, PlacedFile]:  # noqa: ARG002 — the seam's
        """The way to its model, where it has one; the mission is a file already."""
        if self.need is None:
            return {}
        told = {"base_url": access.base_url, "model": access.model, "dialect": self.need.dialect, "key": access.secret}
        return {MODEL_FILE: PlacedFile(json.dumps(told, indent=2).encode() + b"\n", 0o600)}

    def digest(self) -> str:
        """Tagged digest of command, environment, files and, where there is one, the model."""
        content: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "argv": list(self.argv),
            "environment": dict(self.environment),
            "files": _listing(self.files),
        }
        if self.need is not None:
            content |= {"model": self.need.model, "dialect": self.need.dialect, "upstream": self.need.upstream}
        return digest_of("agent", content)

    def prepare(self) -> AgentStart:
        """Say how the command is started."""
        if self.files is not None and not self.files.is_dir():
            raise ConfigError(
                f"agent {self.name}: the directory of its files, {self.files}, does not exist",
                todo="correct `files` in the agent's file",
            )
        inputs = {self.files: AGENT_HOME} if self.files is not None else {}
        return AgentStart(argv=self.argv, environment=self.environment, inputs=inputs)


def shell_command(line: str) -> tuple[str, ...]:
    """The argv that gives one command line to a shell."""
    return ("/bin/bash", "-c", line)


def _listing(directory: Path | None) -> dict[str, str] | None:
    if directory is None or not directory.is_dir():
        return None
    files: Sequence[Path] = sorted(path for path in directory.rglob("*") if path.is_file())
    return {file.relative_to(directory).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
