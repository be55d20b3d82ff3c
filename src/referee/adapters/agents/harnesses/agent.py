"""An agent program that ships, with its model: what bring-up ranks (``protocols.Agent``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from referee.adapters.agents.harnesses.harness import Harness
from referee.adapters.agents.harnesses.install import Site, install
from referee.adapters.agents.harnesses.launch import ARGV, placed_files
from referee.adapters.agents.harnesses.task import task_text
from referee.core.canonical import digest_of
from referee.protocols import AGENT_HOME, Access, AgentStart, ModelNeed, PlacedFile


@dataclass(frozen=True)
class HarnessAgent:
    """One harness at its pinned version with one model, under the standard instructions.

    Args:
        name: its name on boards.
        program: the harness.
        version: the agent's version, as its file says.
        model: as the upstream names it.
        upstream: the workspace's upstream that serves it.
        site: where the program is installed.
        tier: standard or stronger.
    """

    name: str
    program: Harness
    version: str
    model: str
    upstream: str
    site: Site
    tier: Literal["standard", "stronger"] = "standard"

    @property
    def harness(self) -> str | None:
        """The harness's name."""
        return self.program.name

    @property
    def need(self) -> ModelNeed | None:
        """Its model, and the surface on which the program speaks to it."""
        return ModelNeed(model=self.model, dialect=self.program.dialect, upstream=self.upstream)

    def digest(self) -> str:
        """Tagged digest over the harness's description, locks and starter, the task's wording, and the model."""
        return digest_of(
            "agent",
            {
                "name": self.name,
                "version": self.version,
                "harness": self.program.name,
                "files": self.program.listing(),
                "model": self.model,
                "upstream": self.upstream,
            },
        )

    def prepare(self) -> AgentStart:
        """Install the program where it is not installed yet, check the installation, and say how it is started."""
        installed = install(self.program, self.site)
        return AgentStart(
            argv=ARGV, environment={}, inputs={installed.root: AGENT_HOME}, tree_digest=installed.tree_digest
        )

    def placed(self, access: Access, mission: Mapping[str, object]) -> Mapping[str, PlacedFile]:
        """The program's configuration, its task, its key."""
        return placed_files(self.program, access, task_text(mission))
