"""``null``, ``liar`` and ``stub``: built-in agents that must never pass; they guard the rules (methodology §5).

Each is one Python file that runs in the machine and needs nothing but the machine's own Python. No model takes part.
"""

from __future__ import annotations

from pathlib import Path

from referee.adapters.agents.bundled_agent import BundledAgent

#: Their names, with what each does.
REGRESSION_AGENTS = {
    "null": "does nothing, claims nothing",
    "liar": "does nothing, claims everything",
    "stub": "answers on the promised port with nothing behind it",
}

_PROGRAM = "agent.py"


def regression_agent(name: str, cache: Path) -> BundledAgent:
    """One of the three.

    Args:
        name: a key of ``REGRESSION_AGENTS``.
        cache: directory for prepared copies, by digest; can be deleted without loss.
    """
    source = Path(__file__).with_name("regression") / f"{name}.py"
    return BundledAgent(name, contents=lambda: {_PROGRAM: source.read_bytes()}, program=_PROGRAM, cache=cache)
