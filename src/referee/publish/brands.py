"""What tells an agent: the rules of its harness, and the words that stand for it."""

from __future__ import annotations

from referee.adapters.agents.harnesses.harness import Harness, load_harness
from referee.core.branding import Rules
from referee.core.records import AgentRef
from referee.errors import NothingMatched
from referee.publish.neutral import Brand


def brand_of(agent: AgentRef) -> Brand:
    """The brand of an agent; of one without a harness its own name alone."""
    harness = _harness(agent.harness)
    model = agent.model or ""
    own = [agent.name, model, model.rpartition("/")[2], agent.harness or ""]
    program = [] if harness is None else [harness.program, *harness.words]
    rules = Rules(
        banner=() if harness is None else harness.banner,
        fields=() if harness is None else harness.fields,
        names=tuple(dict.fromkeys(name for name in (*own, *program) if name)),
        tokens=() if harness is None or not harness.fields else tuple(dict.fromkeys(name for name in own[1:3] if name)),
    )
    return Brand(rules, tuple(dict.fromkeys(word for word in (*own, *program) if word)))


def _harness(name: str | None) -> Harness | None:
    try:
        return None if name is None else load_harness(name)
    except NothingMatched:
        return None
