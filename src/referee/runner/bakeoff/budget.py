"""The hard budget gate: before every metered call the remaining credit is read; below the floor it is blocked (§4).

What is read lags behind what is spent, calls run in parallel, and several targets may spend from one account: an upper
estimate of every call under way is held back from the account's credit, so that calls that are let through together
cannot run through the floor together. The estimate is durable before its call begins: a killed run is not forgotten.
Sums are made in whole billionths of a dollar: those of floats would leave a residue that lies above or below the floor.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from referee.adapters.store.spending import SpendLog
from referee.core.answers import Reading
from referee.core.bakeoff import Target
from referee.errors import CouldNotVerify, UsageError
from referee.protocols import Ask, Lane
from referee.runner.bakeoff.guards import Halt

#: Tokens of input, cached input (a part of it) and output -> US dollars.
Price = Callable[[int, int, int], float]

#: What an agent CLI may add to a question of its own, tokens: several turns of tens of thousands (bake-off §4).
_CLI_TOKENS = 200_000


#: Billionths of a dollar in one.
_NANOS = 10**9
#: A float tells so many digits without the residue of how it was computed.
_DIGITS = 14
_FEWEST, _MOST = 2, 9


@dataclass(frozen=True)
class Blocked:
    """Why no call is let through."""

    sentence: str


#: The run was halted meanwhile: no new call begins.
HALTED = Blocked("")


def price_of(target: Target) -> Price:
    """The price of a metered target: its own, else the published one of its model. An unknown price is never free.

    Raises:
        UsageError: no price is known.
    """
    own = target.price
    if own is not None:
        cached_price = own.input if own.cached_input is None else own.cached_input

        def explicit(inputs: int, cached: int, outputs: int) -> float:
            return ((inputs - cached) * own.input + cached * cached_price + outputs * own.output) / 1e6

        return explicit
    from genai_prices import Usage, calc_price  # noqa: PLC0415 — a large table

    name = target.price_model or target.model

    def published(inputs: int, cached: int, outputs: int) -> float:
        usage = Usage(input_tokens=inputs, cache_read_tokens=cached, output_tokens=outputs)
        # A price that is named outright need not be the endpoint's provider's.
        where = None if target.price_model else target.base_url
        return float(calc_price(usage, name, provider_api_url=where).total_price)

    try:
        published(1000, 0, 1000)
    except (LookupError, ValueError) as exc:
        raise UsageError(
            f"the price of the metered target {target.name} is not known",
            todo="give its file a [price] with input and output in US dollars for a million tokens, or a price_model",
        ) from exc
    return published


class Account:
    """The credit of one account, which all targets with its credential share.

    Args:
        lane: reads the remaining credit where the provider publishes it.
        stated: the credit that it begins with, for a ledger; None where the provider's is read.
        floor: below this much credit no call is made, US dollars.
        spent_before: what earlier runs spent from it, for a ledger.
        log: where it is written down what may be spent, before it is.
    """

    def __init__(self, lane: Lane, *, stated: float | None, floor: float, spent_before: float, log: SpendLog) -> None:
        self._lane = lane
        self._stated = None if stated is None else _credit(stated)
        self._floor = _cost(floor)
        self._spent_before = _cost(spent_before)
        self._log = log
        self._first_read: int | None = None
        self._held = 0
        self._under_way = 0
        self._spent = 0
        self._gate = asyncio.Lock()
        self._settled = asyncio.Event()

    @property
    def spent(self) -> float:
        """What this run has spent, US dollars."""
        return self._spent / _NANOS

    async def hold(self, upper: float, halt: Halt) -> Blocked | None:
        """Read the credit and hold ``upper`` back for one call; or say why the call is blocked.

        Where only what is held back stands in the way, it waits for a call under way to be settled, or for the halt.
        """
        held = _cost(upper)
        while True:
            async with self._gate:
                settled = self._settled
                try:
                    left = await self._remaining()
                    if left - self._held >= self._floor:
                        await asyncio.to_thread(self._log.at_most, (self._spent + self._held + held) / _NANOS)
                        if halt.asked:
                            return HALTED
                        self._held += held
                        self._under_way += 1
                        return None
                except CouldNotVerify as exc:
                    return Blocked(f"no call is let through: {exc.message}")
                if not self._under_way:
                    return Blocked(_below(left, self._floor))
            if not await halt.until(settled):
                return HALTED

    def settle(self, upper: float, cost: float) -> None:
        """Let go of what was held for one call, which cost so much."""
        self._under_way -= 1
        self._held = self._held - _cost(upper) if self._under_way else 0
        self._spent += _cost(cost)
        settled, self._settled = self._settled, asyncio.Event()
        settled.set()
        if cost > upper:  # the estimate was none: what is written down must not stay below what is spent
            try:
                self._log.at_most((self._spent + self._held) / _NANOS)
            except CouldNotVerify:
                return  # the log refuses from here on, and with it every further call

    def close(self) -> None:
        """Write down what was spent, where nothing is under way any more. Raises ``CouldNotVerify``."""
        self._log.close(None if self._under_way else self.spent)

    async def _remaining(self) -> int:
        if self._stated is not None:
            return self._stated - self._spent_before - self._spent
        told = await self._lane.credit_usd()
        if told is None:
            raise CouldNotVerify("the provider publishes no remaining credit")
        read = _credit(told)
        if self._first_read is None:
            self._first_read = read + self._spent
        return min(read, self._first_read - self._spent)


def _cost(usd: float) -> int:
    """Billionths of a dollar, rounded up: what is spent is never less than it was."""
    return math.ceil(Decimal(f"{usd:.{_DIGITS}g}") * _NANOS)


def _credit(usd: float) -> int:
    """Billionths of a dollar, to the nearest."""
    return round(Decimal(usd) * _NANOS)


def _below(left: int, floor: int) -> str:
    """That the credit is below the floor, with as many digits as it takes to see it."""
    shown = next((one for one in range(_FEWEST, _MOST) if _dollars(left, one) != _dollars(floor, one)), _MOST)
    limit = next((one for one in range(_FEWEST, shown) if not floor % 10 ** (_MOST - one)), shown)
    return f"the remaining credit, {_dollars(left, shown)} USD, is below the floor of {_dollars(floor, limit)} USD"


def _dollars(nanos: int, digits: int) -> str:
    return f"{Decimal(nanos) / _NANOS:.{digits}f}"


class Purse:
    """One metered target's way to its account: what its calls may cost, and what they did."""

    def __init__(self, target: Target, account: Account) -> None:
        self._price = price_of(target)
        self._account = account
        self._own_tokens = _CLI_TOKENS if target.lane == "cli" else 0

    def estimate(self, ask: Ask, request_bytes: int) -> float:
        """More than the call can cost: a token is a byte at least, and the answer is as long as it may be."""
        inputs, outputs = request_bytes + self._own_tokens, ask.sampling.max_tokens
        return max(self._price(inputs, 0, outputs), self._price(inputs, inputs, outputs))

    async def hold(self, upper: float, halt: Halt) -> Blocked | None:
        """Hold ``upper`` back for one call; or say why the call is blocked."""
        return await self._account.hold(upper, halt)

    def give_back(self, upper: float) -> None:
        """Let go of what was held for a call that was not made after all."""
        self._account.settle(upper, 0.0)

    def settle(self, upper: float, reading: Reading | None, *, answered: bool) -> float:
        """Let go of what was held for one call; return what the call cost, US dollars. Never raises.

        Args:
            upper: what was held.
            reading: the answer; None where the call was given up.
            answered: whether the server answered at all with success: without a count of tokens that makes sense such
                a call counts at its upper estimate, never as free.
        """
        cost = None if reading is None else counted_cost(self._price, reading)
        if cost is None:
            cost = upper if answered or reading is None else 0.0
        self._account.settle(upper, cost)
        return cost


def counted_cost(price: Price, reading: Reading) -> float | None:
    """What a call cost by the server's count of tokens; None where it gives none, or one that no call can have."""
    inputs, cached, outputs = reading.input_tokens, reading.cached_tokens or 0, reading.output_tokens
    if inputs is None or outputs is None or inputs < 1 or outputs < 0 or not 0 <= cached <= inputs:
        return None
    try:
        cost = price(inputs, cached, outputs)
    except (ArithmeticError, LookupError, ValueError):
        return None
    return cost if math.isfinite(cost) and cost >= 0 else None
