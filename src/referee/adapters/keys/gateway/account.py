"""The purse of one run: what is spent, what is held for calls under way, what every call was.

Nothing is sent whose upper estimate, with all that is spent and held, would exceed the cap; so calls in parallel cannot
exceed it together. Lives on the gateway's loop; amounts are whole billionths of a dollar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from referee.adapters.keys.gateway.estimate import Seen
from referee.adapters.keys.gateway.prices import Tariff
from referee.adapters.keys.gateway.upstream import Upstream
from referee.core.redaction import Redactor
from referee.core.spending import Exchange, Price, SpendingFacts
from referee.core.spending_sums import asked_the_model, failed, nanos, summed
from referee.protocols import ModelNeed

if TYPE_CHECKING:
    from referee.adapters.keys.gateway.probe import Prober

_NANOS = 10**9
#: So many refused calls of one run are noted one by one; of those that follow, so many of a kind in one line.
REFUSED_ONE_BY_ONE = 2_000
REFUSED_TOGETHER = 1_000
#: Calls of one run that go up, or are answered here: far more than any agent makes, and what a log may hold.
MOST_CALLS = 50_000
#: Of these, such as cost nothing (tokens counted, errors): so many at once, and so many a second from then on.
FREE_AT_ONCE = 1_000
FREE_PER_SECOND = 2.0
#: At most so many calls of one run are under way or wait; more are refused (``busy``).
MOST_AT_ONCE = 64


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
        self._noted = 0
        self._refused = 0
        self._together: dict[tuple[str | None, str | None, int], Exchange] = {}
        self._free = float(FREE_AT_ONCE)
        self._free_at = monotonic()
        #: A large request of the run is read by one call at a time.
        self.reading = asyncio.Semaphore(1)
        self.prober: Prober | None = None
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

    @property
    def swamped(self) -> bool:
        """Whether it has made more calls than any agent makes."""
        return self._noted >= MOST_CALLS or self._free_now() < 1

    @property
    def pestered(self) -> bool:
        """Whether so many calls were refused that one more need not be answered at once."""
        return self._refused >= REFUSED_ONE_BY_ONE

    def cost_nothing(self) -> None:
        """One of the calls that cost nothing was made."""
        self._free = self._free_now() - 1

    def _free_now(self) -> float:
        now = monotonic()
        self._free = min(float(FREE_AT_ONCE), self._free + (now - self._free_at) * FREE_PER_SECOND)
        self._free_at = now
        return self._free

    def note(self, exchange: Exchange) -> None:
        """Write an exchange down; refused ones of a kind together, once there are many."""
        if exchange.refused is None:
            self._noted += not exchange.probe
        else:
            self._refused += 1
            if self._refused > REFUSED_ONE_BY_ONE:
                kind = (exchange.refused, exchange.dialect, exchange.status)
                before = self._together.get(kind)
                one = exchange.model_copy(update={"path": "", "model": ""}) if before is None else before
                times = 1 if before is None else before.times + 1
                self._together[kind] = one.model_copy(update={"times": times})
                if times >= REFUSED_TOGETHER:
                    self._put(self._together.pop(kind))
                return
        self._put(exchange)
        if self.prober is not None and exchange.dialect is not None and asked_the_model(exchange) and failed(exchange):
            self.prober.suspect(exchange.dialect)

    def note_the_rest(self) -> None:
        """Write down what is still to be told together: no call follows."""
        for exchange in self._together.values():
            self._put(exchange)
        self._together = {}

    def _put(self, exchange: Exchange) -> None:
        """The record counts what happened, also where it could not be written."""
        self.exchanges.append(exchange)
        try:
            self.write(exchange)
        except (OSError, ValueError) as exc:
            self.broken = f"a call could not be noted: {type(exc).__name__}"

    def facts(self, *, deleted: bool, how: str) -> SpendingFacts:
        """What stands in the record."""
        return facts_of(
            self.exchanges,
            key=self.key,
            model=self.need.model,
            cap_usd=self.cap_usd,
            broken=self.broken,
            price=self.tariff.listed,
            deleted=deleted,
            how=how,
        )


def facts_of(
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
    return SpendingFacts(
        broker="gateway",
        key=key,
        model=model,
        cap_usd=cap_usd,
        broken=broken,
        price=price,
        deleted=deleted,
        how=how,
        **asdict(summed(exchanges)),
    )
