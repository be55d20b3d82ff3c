"""The private mapping of neutral names: which letter is which exact configuration (methodology §1).

It stands in the workspace, never in the site, and only grows: a letter that was given stays. The site quotes its tagged
digest, and of each agent a tagged digest over letter, salt and configuration; so the mapping, or one entry of it, can
be revealed later and checked by anyone. The salts keep a configuration from being guessed by its digest.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from referee.adapters.store.durable import write_atomically
from referee.core.canonical import canonical_bytes, digest_of, strict_loads
from referee.core.records import AgentRef
from referee.errors import Finding, UsageError

FILE_NAME = "names.json"
SCHEMA = "referee.names/1"

#: Agents that must not pass: tests of the rules, shown apart on boards (methodology §8).
REGRESSION = frozenset({"null", "liar", "stub"})

#: Agents that ship with the referee name no maker and no model: they appear under their own name.
BUILT_IN = frozenset({"baseline", *REGRESSION})


class Named(BaseModel):
    """One agent: its letter, a salt of 256 bits, and its exact configuration as its runs' locks hold it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = Field(pattern=r"^Agent [A-Z]+$")
    salt: str = Field(pattern=r"^[0-9a-f]{64}$")
    agent: AgentRef

    def commitment(self) -> str:
        """The tagged digest that the site shows in the place of the configuration's own."""
        return digest_of("named-agent", self.document())

    def sealed(self, digest: str) -> str:
        """A fingerprint of evidence that is not served as it is: salted, so that nobody can try what it might be."""
        return digest_of("sealed", {"digest": digest, "salt": self.salt})

    def document(self) -> dict[str, Any]:
        """The entry as the mapping holds it."""
        return {"label": self.label, "salt": self.salt, "agent": self.agent.model_dump(mode="json", exclude_none=True)}


class Mapping(BaseModel):
    """All letters of a workspace, in the order in which they were given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["referee.names/1"] = Field(default="referee.names/1", alias="schema")
    agents: tuple[Named, ...] = ()

    def find(self, agent: AgentRef) -> Named | None:
        """The entry of an agent; None where it has none."""
        key = agent_key(agent)
        return next((one for one in self.agents if agent_key(one.agent) == key), None)

    def digest(self) -> str:
        """The tagged digest that the site quotes."""
        return digest_of("names", self.document())

    def document(self) -> dict[str, Any]:
        """The mapping as its file holds it."""
        return {"schema": SCHEMA, "agents": [one.document() for one in self.agents]}

    def as_of(self, digest: str | None) -> Mapping | None:
        """This mapping when it had that digest, with the letters given until then; None where it never had it."""
        grown = (self.model_copy(update={"agents": self.agents[:count]}) for count in range(len(self.agents) + 1))
        return next((one for one in grown if one.digest() == digest), None)

    def grown(self, agents: Iterable[AgentRef]) -> Mapping:
        """This mapping with a letter for every agent that is not built in and has none yet."""
        known = list(self.agents)
        keys = {agent_key(one.agent) for one in known}
        for agent in agents:
            if agent.name not in BUILT_IN and agent_key(agent) not in keys:
                keys.add(agent_key(agent))
                known.append(Named(label=f"Agent {letters(len(known))}", salt=secrets.token_hex(32), agent=agent))
        return self.model_copy(update={"agents": tuple(known)})


def agent_key(agent: AgentRef) -> str:
    """One fixed combination: the same name at another version or with another configuration is another agent."""
    return f"{agent.name} {agent.version} {agent.digest}"


def read_mapping(file: Path) -> Mapping:
    """The mapping in a file; an empty one where there is none.

    Raises:
        UsageError: it is no mapping.
        Finding: it gives one letter twice.
    """
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise UsageError(f"{file} is no regular file", todo="put the mapping of neutral names back from a copy")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Mapping()
    try:
        mapping = Mapping.model_validate(strict_loads(data))
    except (UsageError, ValidationError) as exc:
        raise UsageError(f"{file} is no mapping of neutral names", todo="restore it from a copy") from exc
    if len({one.label for one in mapping.agents}) < len(mapping.agents):
        raise Finding(f"{file} gives one letter to two agents", todo="restore it from a copy: letters never change")
    return mapping


def keep_mapping(file: Path, agents: Iterable[AgentRef]) -> Mapping:
    """The mapping in a file, grown by agents that have no letter yet, durably, for its owner's eyes only."""
    known = read_mapping(file)
    mapping = known.grown(agents)
    if mapping != known:
        write_atomically(file, canonical_bytes(mapping.document()) + b"\n", mode=0o600)
    return mapping


def check_letters(file: Path, site: Path) -> None:
    """Whether the mapping in ``file`` is the one that a built site quotes, or has grown from it.

    Letters given anew in the place of lost ones would call other agents, and other digests, by the same names.

    Raises:
        UsageError: the site quotes another mapping, or ``file`` is no mapping.
    """
    told = site / "index.json"
    try:
        index = json.loads(told.read_bytes() if told.is_file() else b"")  # a pipe would be waited for
    except (OSError, ValueError, RecursionError):
        return
    quoted = index.get("names") if isinstance(index, dict) else None
    if quoted is None or quoted == Mapping().digest() or read_mapping(file).as_of(quoted) is not None:
        return
    what = "the mapping of neutral names that the site in"
    raise UsageError(
        f"{file} is not {what} {site} quotes" if file.exists() else f"{file} is missing: {what} {site} quotes",
        todo=f"put it back from a copy; if there is none, remove {site} and what was published: letters are given anew",
    )


def letters(number: int) -> str:
    """A to Z, then AA, AB and so on."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
