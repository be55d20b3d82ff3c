"""The linter of suites: refuses by name what no model could be blamed for. Pure.

It runs when a suite is built, imported, frozen and run. What it looks for: a gold that its tool's schema forbids, that
no answer can satisfy, or that nothing in the case fixes; a prompt that contradicts its oracle; and whatever would let
one arm or language weigh more than it says. A case with a ``known_objection`` is reported and may stay, unranked.
"""

from __future__ import annotations

from referee.scoring.lint.objections import Objection
from referee.scoring.lint.prompts import contradictions
from referee.scoring.lint.suites import Refusal, lint, lint_subset, objections_to, without_refused

__all__ = [
    "Objection",
    "Refusal",
    "contradictions",
    "lint",
    "lint_subset",
    "objections_to",
    "without_refused",
]
