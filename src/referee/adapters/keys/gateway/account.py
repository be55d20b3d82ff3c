"""The purse of one run: what is spent, what is held for calls under way, what every call was.

Nothing is sent whose upper estimate, with all that is spent and held, would exceed the cap; so calls in parallel cannot
exceed it together. Lives on the gateway's loop; amounts are whole billionths of a dollar.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from referee.adapters.keys.gateway.estimate import Seen
from referee.adapters.keys.gateway.prices import Tariff
from referee.adapters.keys.gateway.upstream import Upstream
from referee.core.redaction import Redactor
from referee.core.spending import Exchange, Price, SpendingFacts, Usage
from referee.protocols import ModelNeed

_NANOS = 10**9
#: At most so many calls of one run are under way or wait; more are refused (``busy``).
MOST_AT_ONCE = 64
#: Statuses that mean: the upstream did not do its part. 401 and 402 are about our credential and credit. Not 403: some
#: providers say so to words that they do not like, which an agent or its project could use to have a run voided.
_FAILED = frozenset({401, 402, 429})
_SERVER_FAULT = 500


def nanos(usd: float) -> int:
    """US dollars in whole billionths, rounded up; the residue of how a float was computed does not count."""
    return math.ceil(round(usd * _NANOS, 3))


def failed(exchange: Exchange) -> bool:
    """Whether the upstream failed the call."""
    status = exchange.upstream_status
    return exchange.broke is not None or (status is not None and (status in _FAILED or status >= _SERVER_FAULT))


def _went_up(exchange: Exchange) -> bool:
    """Neither refused, nor answered here (the list of models), nor given up by the agent while it waited."""
    tried = exchange.upstream_status is not None or exchange.broke is not None or exchange.upper_usd > 0
    return exchange.refused is None and tried


@dataclass
class Account:
    """One key of one run.

    Args:
        run: whose it is; ``key`` is what it is called in records.
        need: what it is for.
        upstream: where its calls go.
        tariff: what they cost.
        cap_usd: its limit.
        ends_at: Unix seconds after which it is dead.
        redactor: knows what must not stand in the metadata.
        write: where each exchange is written down at once.
    """

    run: str
    key: str
    need: ModelNeed
    upstream: Upstream
    tariff: Tariff
    cap_usd: float
    ends_at: float
    redactor: Redactor
    write: Callable[[Exchange], None]
    closed: bool = False
    exchanges: list[Exchange] = field(default_factory=list)
    under_way: set[asyncio.Task[object]] = field(default_factory=set)
    broken: str | None = None

    def __post_init__(self) -> None:
        self.seen = Seen()
        self._cap = nanos(self.cap_usd)
        self._spent = 0
        self._held = 0
        self._changed = asyncio.Event()

    @property
    def spent_usd(self) -> float:
        """What its calls cost so far."""
        return self._spent / _NANOS

    async def hold(self, upper_usd: float) -> bool:
        """Hold the upper estimate of one call; False where it could exceed the cap.

        Where only calls under way stand in its way, it waits until they are settled.
        """
        upper = nanos(upper_usd)
        while self._spent + self._held + upper > self._cap:
            if self.closed or self._spent + upper > self._cap:
                return False
            await self._changed.wait()
        self._held += upper
        return True

    def settle(self, upper_usd: float, cost_usd: float) -> float:
        """Let go of what was held for a call and count what it cost; returns that, as it was counted."""
        cost = nanos(cost_usd)
        self._held -= nanos(upper_usd)
        self._spent += cost
        # All that wait look again.
        self._changed.set()
        self._changed = asyncio.Event()
        return cost / _NANOS

    def note(self, exchange: Exchange) -> None:
        """Write an exchange down. The record counts what happened, also where it could not be written."""
        self.exchanges.append(exchange)
        try:
            self.write(exchange)
        except (OSError, ValueError) as exc:
            self.broken = f"a call could not be noted: {type(exc).__name__}"

    def facts(self, *, deleted: bool, how: str) -> SpendingFacts:
        """What stands in the record."""
        return summed(
            self.exchanges,
            key=self.key,
            model=self.need.model,
            cap_usd=self.cap_usd,
            broken=self.broken,
            price=self.tariff.listed,
            deleted=deleted,
            how=how,
        )


def summed(
    exchanges: list[Exchange],
    *,
    key: str,
    model: str,
    cap_usd: float,
    broken: str | None,
    price: Price | None,
    deleted: bool,
    how: str,
) -> SpendingFacts:
    """The facts of a key from its exchanges."""
    sent = [one for one in exchanges if _went_up(one)]
    usages = [one.usage or Usage(input=0, output=0) for one in sent]
    return SpendingFacts(
        broker="gateway",
        key=key,
        model=model,
        cap_usd=cap_usd,
        spent_usd=sum(nanos(one.cost_usd) for one in sent) / _NANOS,
        calls=len(sent),
        refused=sum(one.refused is not None for one in exchanges),
        failed_upstream=sum(failed(one) for one in sent),
        ended_by_upstream=bool(sent) and failed(sent[-1]),
        capped=any(one.refused == "cap" for one in exchanges),
        input_tokens=sum(usage.input for usage in usages),
        cached_tokens=sum(usage.cached_input for usage in usages),
        output_tokens=sum(usage.output for usage in usages),
        broken=broken,
        price=price,
        deleted=deleted,
        how=how,
    )
