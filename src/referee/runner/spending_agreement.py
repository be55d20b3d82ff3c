"""What a record says of a run's key must be what its lock and the log of its calls say."""

from __future__ import annotations

from pydantic import ValidationError

from referee.core.records import AttemptEnded, AttemptPlanned
from referee.core.spending import Exchange, SpendingFacts
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
    spent, refused = sum(one.cost_usd for one in exchanges), sum(one.refused is not None for one in exchanges)
    if said.spent_usd is not None and abs(spent - said.spent_usd) > _ROUNDED_USD:
        raise Finding(
            f"run {run}: its calls cost {spent:.6f} USD by their log, its record says {said.spent_usd:.6f} USD"
        )
    if said.refused is not None and refused != said.refused:
        raise Finding(f"run {run}: {refused} calls were refused by their log, {said.refused} by its record")


def _exchange(run: str, line: bytes) -> Exchange:
    try:
        return Exchange.model_validate_json(line)
    except ValidationError as exc:
        raise Finding(f"run {run}: {EXCHANGES_NAME} has a line that is no call") from exc
