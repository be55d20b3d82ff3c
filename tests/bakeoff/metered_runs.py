"""A metered target of the scripted server, and what its runs spent."""

from __future__ import annotations

from typing import Any

from referee.runner.bakeoff.ledger import spent_of_account
from tests.bakeoff.run_workspace import RunWorkspace

#: An answer of the scripted server has 120 + 15 tokens: 0.135 USD by this price.
PRICE = {"input": 1000.0, "output": 1000.0}
LEDGER: dict[str, Any] = {"channel": "metered-api", "metered": True, "credit": "ledger", "price": PRICE}
ACCOUNT = "SCRIPTED_API_KEY"


def spent(space: RunWorkspace) -> float:
    return float(sum(row["spent_usd"] for row in space.rows()))


def written(space: RunWorkspace) -> float:
    return spent_of_account(ACCOUNT, space.records)
