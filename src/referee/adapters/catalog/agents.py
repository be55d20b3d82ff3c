"""Agents as a workspace writes them down: ``agents/NAME.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from referee.adapters.catalog.workspace import one_sentence
from referee.errors import ConfigError, NothingMatched


class AgentFile(BaseModel):
    """One agent file. ``files`` is relative to the file's own directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["referee.agent/1"] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    version: str = Field(min_length=1)
    command: tuple[str, ...] | str
    tier: Literal["standard", "stronger"] = "standard"
    environment: dict[str, str] = {}
    files: str | None = None


def load_agent_file(name: str, directory: Path) -> AgentFile:
    """Read ``directory/NAME.toml``.

    Raises:
        NothingMatched: there is no such file.
        ConfigError: it is no TOML or breaks the schema.
    """
    file = directory / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(["baseline", "command", *sorted(path.stem for path in directory.glob("*.toml"))])
        raise NothingMatched(f"there is no agent named {name!r}", todo=f"known agents: {known}")
    try:
        return AgentFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} is no TOML: {exc}") from exc
    except ValidationError as exc:
        raise ConfigError(f"{file}: {one_sentence(exc)}") from exc
