"""What tells an agent: the rules of its harness, and the words that stand for it."""

from __future__ import annotations

from referee.adapters.agents.harnesses.harness import Harness, load_harness
from referee.core.branding import Rules
from referee.core.records import AgentRef
from referee.errors import NothingMatched
from referee.publish.neutral import Brand

#: The name of an agent that is given by its command line alone.
ANY_COMMAND = "command"


def brand_of(agent: AgentRef) -> Brand:
    """The brand of an agent.

    Of one without a harness the words are its own name, in documents of ours alone: nothing tells where its commands
    begin in its recording, so nothing of it is masked. The name of every ``--command`` agent is an ordinary word.
    """
    harness = _harness(agent.harness)
    if harness is None:
        return Brand(Rules(), () if agent.name == ANY_COMMAND else (agent.name,))
    model = agent.model or ""
    own = [agent.name, model, model.rpartition("/")[2], agent.harness or ""]
    program = [harness.program, *harness.words]
    rules = Rules(
        banner=harness.banner,
        fields=harness.fields,
        names=tuple(dict.fromkeys(name for name in (*own, *program) if name)),
        tokens=() if not harness.fields else tuple(dict.fromkeys(name for name in own[1:3] if name)),
    )
    return Brand(rules, tuple(dict.fromkeys(word for word in (*own, *program) if word)))


def _harness(name: str | None) -> Harness | None:
    try:
        return None if name is None else load_harness(name)
    except NothingMatched:
        return None
