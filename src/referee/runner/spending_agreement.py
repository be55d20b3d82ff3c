"""What a record says of a run's key must be what its lock and the log of its calls say."""

from __future__ import annotations

from pydantic import ValidationError

from referee.core.records import AttemptEnded, AttemptPlanned
from referee.core.spending import Exchange, SpendingFacts, cost_usd
from referee.core.spending_sums import summed
from referee.errors import Finding
from referee.protocols import Evidence
from referee.runner.key_of_run import EXCHANGES_NAME
from referee.runner.rejudge import read_named

#: Sums of costs may differ by how they were rounded, US dollars.
_ROUNDED_USD = 1e-6


def check_spending(planned: AttemptPlanned, end: AttemptEnded, evidence: Evidence) -> None:
    """Compare cap, model, cost and calls.

    Raises:
        Finding: the first thing that does not agree.
    """
    agent, spending = planned.lock.agent, end.spending
    if spending is None:
        if agent.cap_usd is not None and end.recording is not None:
            raise Finding(f"run {planned.run}: its agent worked with a key, and the record tells nothing of it")
        return
    if (spending.cap_usd, spending.model) != (agent.cap_usd, agent.model):
        raise Finding(f"run {planned.run}: its key had another cap or model than its lock names")
    if abs((spending.spent_usd or 0.0) - end.spent_usd) > _ROUNDED_USD:
        raise Finding(f"run {planned.run}: its record names two different sums that it spent")
    data = read_named(evidence, end.evidence, EXCHANGES_NAME)
    if data is not None:
        _sums(planned.run, spending, [_exchange(planned.run, line) for line in data.splitlines()])


def _sums(run: str, said: SpendingFacts, exchanges: list[Exchange]) -> None:
    """Each cost must follow from its tokens and price, each figure from the lines."""
    for number, one in enumerate(exchanges, 1):
        _cost(run, number, one)
    found = summed(exchanges)
    spent = found.spent_usd
    if said.spent_usd is not None and abs(spent - said.spent_usd) > _ROUNDED_USD:
        raise Finding(
            f"run {run}: its calls cost {spent:.6f} USD by their log, its record says {said.spent_usd:.6f} USD"
        )
    for name, what in _FIGURES.items():
        by_log, by_record = getattr(found, name), getattr(said, name)
        if by_record is not None and by_log != by_record:
            raise Finding(f"run {run}: {what} {by_log} by the log of its calls, {by_record} by its record")


def _cost(run: str, number: int, one: Exchange) -> None:
    if one.usage is not None and one.price is not None:
        expected = cost_usd(one.usage, one.price)
    elif one.usage is None and one.refused is None and not one.probe:
        expected = one.upper_usd
    else:
        return
    if abs(expected - one.cost_usd) > _ROUNDED_USD:
        raise Finding(
            f"run {run}: call {number} of its log cost {one.cost_usd:.6f} USD, "
            f"{expected:.6f} USD by its tokens and price"
        )


#: Figures of a record that follow from the log, and how each is told.
_FIGURES = {
    "refused": "calls refused:",
    "calls": "calls that went up:",
    "failed_upstream": "calls that the upstream failed:",
    "ended_by_upstream": "ended by its upstream:",
    "capped": "refused for its cap:",
    "input_tokens": "input tokens:",
    "cached_tokens": "cached tokens:",
    "output_tokens": "output tokens:",
}


def _exchange(run: str, line: bytes) -> Exchange:
    try:
        return Exchange.model_validate_json(line)
    except ValidationError as exc:
        raise Finding(f"run {run}: {EXCHANGES_NAME} has a line that is no call") from exc
