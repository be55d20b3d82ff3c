"""Agents as a workspace writes them down: ``agents/NAME.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from referee.adapters.catalog.workspace import one_sentence
from referee.core import toml_text
from referee.core.spending import Dialect
from referee.errors import ConfigError, NothingMatched

#: Agents that need no file: ``command`` with ``--command``.
BUILT_IN = ("baseline", "command", "null", "liar", "stub")


class AgentFile(BaseModel):
    """One agent file: a shipped ``harness`` with a model, or a ``command`` of one's own.

    Args:
        version: needed with ``command``; a harness brings its own.
        command: the command line; ``files`` (relative to the file's directory) and ``environment`` go with it alone,
            for what a harness is given is the same for everybody.
        model: as the upstream names it; ``upstream`` is the workspace's, ``[upstreams.NAME]``.
        dialect: the surface that a ``command`` with a model speaks; a harness knows its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["referee.agent/1"] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    version: str | None = Field(default=None, min_length=1)
    command: tuple[str, ...] | str | None = None
    tier: Literal["standard", "stronger"] = "standard"
    environment: dict[str, str] = {}
    files: str | None = None
    harness: str | None = None
    model: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+=~-]*$")
    upstream: str | None = None
    dialect: Dialect | None = None

    def breach(self) -> tuple[str, str] | None:
        """What the fields say against each other, and what to do; None where they agree."""
        if self.harness is not None:
            given = [name for name in ("command", "files", "environment", "dialect") if getattr(self, name)]
            if given:
                return f"an agent of a harness takes no {given[0]}", f"leave {given[0]} out, or leave harness out"
            return self._lacks(f"the harness {self.harness}", ("model", "upstream"))
        if not self.command:
            return "it names neither a harness nor a command", "give one of the two"
        if self.version is None:
            return "an agent with a command needs a version", 'add one, for example version = "1"'
        if any(getattr(self, name) is not None for name in _WHAT):
            return self._lacks("a command that is given a model", tuple(_WHAT))
        return None

    def _lacks(self, who: str, fields: tuple[str, ...]) -> tuple[str, str] | None:
        missing = next((name for name in fields if getattr(self, name) is None), None)
        return None if missing is None else (f"{who} needs a field {missing}", _WHAT[missing])


#: The fields of an agent with a model, and how each is given.
_WHAT = {
    "model": 'say model = "NAME", as the upstream names it',
    "upstream": 'say upstream = "NAME" of an [upstreams.NAME] in referee.toml',
    "dialect": 'say dialect = "openai-chat", "openai-responses", "anthropic-messages" or "gemini"',
}


def load_agent_file(name: str, directory: Path) -> AgentFile:
    """Read ``directory/NAME.toml``.

    Raises:
        NothingMatched: there is no such file.
        ConfigError: it is no TOML, breaks the schema, has another name than its file, or its fields contradict each
            other.
    """
    file = directory / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(sorted({*BUILT_IN, *(path.stem for path in directory.glob("*.toml") if path.is_file())}))
        raise NothingMatched(f"there is no agent named {name!r}", todo=f"known agents: {known}")
    try:
        found = AgentFile.model_validate(toml_text.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} is no TOML: {exc}") from exc
    except ValidationError as exc:
        raise ConfigError(f"{file}: {one_sentence(exc, AgentFile)}") from exc
    if found.name != name:
        raise ConfigError(
            f"{file}: the file is called {name} and its name is {found.name}", todo="make the two the same"
        )
    breach = found.breach()
    if breach is not None:
        raise ConfigError(f"{file}: {breach[0]}", todo=breach[1])
    return found
