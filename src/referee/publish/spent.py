"""What a run's model cost, in words and as JSON: of its key's cap, in how many calls, for how many tokens."""

from __future__ import annotations

from typing import Any

from referee.core.records import AttemptEnded, AttemptFound
from referee.core.spending import SpendingFacts
from referee.publish import words
from referee.scoring.money import Spent

#: What of a key's facts is public: figures. Its name, broker and model tell who the agent is.
_PUBLIC = {
    "cap_usd",
    "spent_usd",
    "calls",
    "refused",
    "failed_upstream",
    "capped",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "deleted",
}


def spent_words(ended: AttemptEnded | AttemptFound | None) -> str:
    """One line on what a run spent: ``0.42 USD of its key's cap of 3.00 USD, in 12 calls``."""
    if not isinstance(ended, AttemptEnded):
        return "not recorded"
    facts = ended.spending
    if facts is None:
        return words.money(ended.spent_usd)
    said = f"{_amount(facts.spent_usd)} of its key's cap of {words.money(facts.cap_usd)}{_calls(facts)}"
    if facts.capped:
        said += "; calls that might have exceeded the cap were refused: the cap is one of the conditions"
    if not facts.deleted:
        said += "; the key is not confirmed to be deleted"
    return said


def _amount(usd: float | None) -> str:
    if usd is None:
        return "an amount that its broker could not tell"
    return "less than 0.0001 USD" if 0 < usd < 0.0001 else words.money(usd)  # noqa: PLR2004 — what money still shows


def sum_words(spent: Spent) -> str:
    """One line on what an agent's attempts spent together."""
    said = f"{_amount(spent.total_usd)} in {words.count(spent.attempts, 'attempt')}, invalid ones included"
    if spent.median_usd is not None:
        said += f"; {_amount(spent.median_usd)} in the middle one of those that count"
    if spent.capped:
        said += f"; {words.count(spent.capped, 'attempt')} reached the cap of the key"
    if spent.unknown:
        said += f"; not known of {words.count(spent.unknown, 'attempt')}"
    return said


def spent_document(ended: AttemptEnded | AttemptFound | None) -> dict[str, Any] | None:
    """The figures of a run's key as JSON; None where it had none."""
    if not isinstance(ended, AttemptEnded) or ended.spending is None:
        return None
    return ended.spending.model_dump(mode="json", include=_PUBLIC)


def _calls(facts: SpendingFacts) -> str:
    if facts.calls is None:
        return ""
    said = f", in {words.count(facts.calls, 'call')}"
    if facts.input_tokens is not None and facts.output_tokens is not None:
        cached = f", {facts.cached_tokens:,} of them cached" if facts.cached_tokens else ""
        said += f" ({facts.input_tokens:,} tokens in{cached}, {facts.output_tokens:,} out)"
    if facts.failed_upstream:
        said += f", {facts.failed_upstream} of which the model's server failed"
    return said
