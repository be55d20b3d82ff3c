"""How an agent is called on public pages: a neutral identity, committed to by a digest (methodology §1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from referee.core.records import AgentRef
from referee.publish.mapping import BUILT_IN, Mapping, Named, agent_key, letters
from referee.publish.views import AgentView
from referee.publish.words import short

__all__ = ["BUILT_IN", "AgentNames", "agent_key"]


class AgentNames:
    """The names of all agents of a site. Agents that share a name are told apart by the beginning of their digest.

    Args:
        agents: every agent, in the order in which it was first planned; letters are given in this order.
        neutral: False shows every agent's own name, as a terminal in its evaluator's hands does.
        mapping: the workspace's private mapping; a letter that stands there stays. None: letters for this once, and
            configurations under their own digests, which is not for the public.
    """

    def __init__(self, agents: Iterable[AgentRef], *, neutral: bool, mapping: Mapping | None = None) -> None:
        self._views: dict[str, AgentView] = {}
        self._mapping = mapping or Mapping()
        self.neutral = neutral
        #: The tagged digest of the mapping; None where there is none.
        self.digest = mapping.digest() if mapping is not None and neutral else None
        distinct = {agent_key(agent): agent for agent in agents}
        named = Counter(agent.name for agent in distinct.values())
        given = {one.label for one in self._mapping.agents}
        free = (f"Agent {letters(number)}" for number in range(len(distinct) + len(given)))
        unused = (label for label in free if label not in given)
        for key, agent in distinct.items():
            mark = f" ({short(agent.digest)[:8]})" if named[agent.name] > 1 else ""
            own = on_pages = agent.name + mark
            entry = self._mapping.find(agent)
            if agent.name not in BUILT_IN:
                on_pages = entry.label if entry is not None else next(unused)
            shown = on_pages if neutral else own
            version = agent.version if shown == own else None
            digest = entry.commitment() if neutral and entry is not None else agent.digest
            self._views[key] = AgentView(shown, on_pages, digest, agent.tier, version)

    def view(self, agent: AgentRef) -> AgentView:
        """How this agent is shown."""
        return self._views[agent_key(agent)]

    def named(self, agent: AgentRef) -> Named | None:
        """The agent's entry in the mapping; None for one that ships with the referee, or where names are shown."""
        return self._mapping.find(agent) if self.neutral else None
