"""The hard budget gate: before every metered call the remaining credit is read; below the floor it is blocked (§4).

What is read lags behind what is spent, and calls run in parallel: an upper estimate of every call under way is held
back from the credit, so that calls that are let through together cannot run through the floor together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from referee.core.answers import Reading
from referee.core.bakeoff import Target
from referee.errors import CouldNotVerify, UsageError
from referee.protocols import Ask, Lane

#: Tokens of input, cached input (a part of it) and output -> US dollars.
Price = Callable[[int, int, int], float]


@dataclass(frozen=True)
class Blocked:
    """Why the gate lets no call through."""

    sentence: str


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


class Purse:
    """The credit of one metered target.

    Args:
        lane: reads the remaining credit where the provider publishes it.
        target: says what it is metered by.
        floor: below this much credit no call is made, US dollars.
        spent_before: what earlier rows of the same account cost, for a ledger.
    """

    def __init__(self, lane: Lane, target: Target, *, floor: float, spent_before: float) -> None:
        self._lane = lane
        self._target = target
        self._price = price_of(target)
        self._floor = floor
        self._spent_before = spent_before
        self._first_read: float | None = None
        self._held = 0.0
        self._under_way = 0
        self.spent = 0.0
        self._gate = asyncio.Lock()
        self._settled = asyncio.Event()
        if target.credit != "openrouter" and target.credit_usd is None:
            raise UsageError(
                f"the metered target {target.name} names no credit, so no call of it can be let through",
                todo='say credit = "ledger" and credit_usd, or credit = "openrouter", in its file',
            )

    def estimate(self, ask: Ask, request_bytes: int) -> float:
        """More than the call can cost: a token is a byte at least, and the answer is as long as it may be."""
        return self._price(request_bytes, 0, ask.sampling.max_tokens)

    async def hold(self, upper: float) -> Blocked | None:
        """Read the credit and hold ``upper`` back for one call; or say why the call is blocked.

        Where only what is held back stands in the way, it waits for a call under way to be settled.
        """
        while True:
            async with self._gate:
                self._settled.clear()
                try:
                    left = await self._remaining()
                except CouldNotVerify as exc:
                    return Blocked(f"the remaining credit could not be read: {exc.message}")
                if left - self._held >= self._floor:
                    self._held += upper
                    self._under_way += 1
                    return None
                if not self._under_way:
                    return Blocked(f"the remaining credit, {left:.2f} USD, is below the floor of {self._floor:.2f} USD")
            await self._settled.wait()

    def settle(self, upper: float, reading: Reading | None, *, answered: bool) -> float:
        """Let go of what was held for one call; return what the call cost, US dollars.

        Args:
            upper: what was held.
            reading: the answer; None where the call was given up.
            answered: whether the server answered at all with success: without a count of tokens such a call counts
                at its upper estimate, never as free.
        """
        self._under_way -= 1
        self._held = self._held - upper if self._under_way else 0.0
        if reading is not None and reading.input_tokens is not None and reading.output_tokens is not None:
            cost = self._price(reading.input_tokens, reading.cached_tokens or 0, reading.output_tokens)
        else:
            cost = upper if answered or reading is None else 0.0
        self.spent += cost
        self._settled.set()
        return cost

    async def _remaining(self) -> float:
        if self._target.credit != "openrouter":
            stated = self._target.credit_usd or 0.0
            return stated - self._spent_before - self.spent
        read = await self._lane.credit_usd()
        if read is None:
            raise CouldNotVerify("the provider publishes none")
        if self._first_read is None:
            self._first_read = read + self.spent
        return min(read, self._first_read - self.spent)
