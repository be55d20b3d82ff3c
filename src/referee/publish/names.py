"""How an agent is called on public pages: a neutral identity that leads to its exact configuration (methodology §1)."""

from __future__ import annotations

from collections.abc import Iterable

from referee.core.records import AgentRef
from referee.publish.views import AgentView

#: Agents that ship with the referee name no maker and no model: they appear under their own name.
BUILT_IN = frozenset({"baseline", "null", "liar", "stub"})


def agent_key(agent: AgentRef) -> str:
    """One fixed combination: the same name at another version or with another configuration is another agent."""
    return f"{agent.name} {agent.version} {agent.digest}"


class AgentNames:
    """The names of all agents of a site.

    Args:
        agents: every agent, in the order in which it was first planned; letters are given in this order.
        neutral: False shows every agent's own name, as a terminal in its evaluator's hands does.
    """

    def __init__(self, agents: Iterable[AgentRef], *, neutral: bool) -> None:
        self._views: dict[str, AgentView] = {}
        letters = 0
        for agent in agents:
            key = agent_key(agent)
            if key in self._views:
                continue
            own = not neutral or agent.name in BUILT_IN
            label = agent.name if own else f"Agent {_letters(letters)}"
            letters += 0 if own else 1
            self._views[key] = AgentView(label, agent.digest, agent.tier, agent.version if own else None)

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
