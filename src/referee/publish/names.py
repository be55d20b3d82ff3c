"""How an agent is called on public pages: a neutral identity that leads to its exact configuration (methodology §1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from referee.core.records import AgentRef
from referee.publish.views import AgentView
from referee.publish.words import short

#: Agents that ship with the referee name no maker and no model: they appear under their own name.
BUILT_IN = frozenset({"baseline", "null", "liar", "stub"})


def agent_key(agent: AgentRef) -> str:
    """One fixed combination: the same name at another version or with another configuration is another agent."""
    return f"{agent.name} {agent.version} {agent.digest}"


class AgentNames:
    """The names of all agents of a site. Agents that share a name are told apart by the beginning of their digest.

    Args:
        agents: every agent, in the order in which it was first planned; letters are given in this order.
        neutral: False shows every agent's own name, as a terminal in its evaluator's hands does.
    """

    def __init__(self, agents: Iterable[AgentRef], *, neutral: bool) -> None:
        self._views: dict[str, AgentView] = {}
        distinct = {agent_key(agent): agent for agent in agents}
        named = Counter(agent.name for agent in distinct.values())
        letters = 0
        for key, agent in distinct.items():
            mark = f" ({short(agent.digest)[:8]})" if named[agent.name] > 1 else ""
            own = on_pages = agent.name + mark
            if agent.name not in BUILT_IN:
                on_pages = f"Agent {_letters(letters)}"
                letters += 1
            shown = on_pages if neutral else own
            version = agent.version if shown == own else None
            self._views[key] = AgentView(shown, on_pages, agent.digest, agent.tier, version)

    def view(self, agent: AgentRef) -> AgentView:
        """How this agent is shown."""
        return self._views[agent_key(agent)]


def _letters(number: int) -> str:
    """A to Z, then AA, AB and so on."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
