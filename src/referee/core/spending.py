"""What an attempt's model may cost and did cost: prices, one exchange, the sum. Arithmetic only.

One attempt has one key of its own, with a cap (methodology §4, "the model key"). Amounts are US dollars. Prices are per
million tokens; a model without a price is an error, never free.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from referee.core.facts import Fact

#: The published cap of one run's key, US dollars (methodology §4).
CAP_USD = 3.0

#: The surfaces on which an agent speaks to its model.
Dialect = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini"]
Broker = Literal["gateway", "openrouter", "litellm"]


class Price(Fact):
    """US dollars per million tokens. ``cached_input``: input read from a cache; ``cache_write``: input put there;
    ``cache_write_long``: put there for an hour. What has no price of its own costs what it is a part of.

    ``per_request`` is added once a call. ``source`` says where the figures are from, with their date or version.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    cache_write_long: float | None = None
    per_request: float = 0.0
    source: str


class Usage(Fact):
    """Tokens of one exchange, as the upstream counted them. ``input`` is all input: cached and written included.

    ``cache_write_long``: of ``cache_write``, what was written for an hour.
    """

    input: int
    output: int
    cached_input: int = 0
    cache_write: int = 0
    cache_write_long: int = 0


class Exchange(Fact):
    """One call that a key made, as the gateway saw it: metadata only.

    Args:
        at: when it was begun (UTC, ISO 8601, milliseconds).
        dialect: on which surface; ``path`` as it was called, without its query.
        model: as the agent named it.
        status: what the agent was answered (HTTP).
        upstream_status: what the upstream answered; None where it was not asked or gave no answer.
        refused: why it was not sent upstream (``cap``, ``model``, ``path``, ``body``, ``busy``); None where it was.
        broke: how the upstream failed (``timeout``, ``connect``, ``reset``, ``protocol``, ``error``: said inside an
            answer); None where it did not.
        usage: None where the upstream told none: then ``cost_usd`` is the upper estimate, never 0.
        upper_usd: the estimate that was held before it was sent.
        cost_usd: what was settled.
        price: by which ``cost_usd`` follows from ``usage``: that of the step which the call's input reached.
        probe: asked by the gateway itself, to see whether the model answers anybody: no call of the agent, and none
            of its money.
        times: so many refused calls of one kind are told in this line.
    """

    at: str
    dialect: Dialect | None
    path: str
    model: str
    streamed: bool
    status: int
    upstream_status: int | None
    refused: str | None
    broke: str | None
    usage: Usage | None
    upper_usd: float
    cost_usd: float
    first_byte_ms: float | None
    latency_ms: float
    price: Price | None = None
    probe: bool = False
    times: int = 1


class SpendingFacts(Fact):
    """What the run's key spent, and what became of it: stands in the record of the attempt's end.

    Args:
        broker: who made the key.
        key: the key's name with its broker: never the secret.
        model: what it was for.
        cap_usd: the limit in force.
        spent_usd: the sum; None where the broker could not tell.
        calls: exchanges that went upstream; ``refused`` those that did not.
        failed_upstream: of the calls, those that the upstream failed (status 401, 402, 403, 429, 5xx, or no whole
            answer).
        ended_by_upstream: the last call of the run was one of these, and the gateway's own probe failed as well.
        capped: at least one call was refused because it might have exceeded the cap.
        broken: how the broker's own part failed under the run (its thread died, it could not forward or note a call);
            None where it did not. Such an attempt is not the agent's failure.
        price: what was reckoned with, and where it is from; None where the broker reckons itself.
        deleted: the key is confirmed to be dead; ``how`` says how that is known.
    """

    broker: Broker
    key: str
    model: str
    cap_usd: float
    spent_usd: float | None
    calls: int | None = None
    refused: int | None = None
    failed_upstream: int | None = None
    ended_by_upstream: bool = False
    capped: bool = False
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    broken: str | None = None
    price: Price | None = None
    deleted: bool
    how: str


def cost_usd(usage: Usage, price: Price) -> float:
    """What an exchange costs: cached and written input at their own prices, where there are any."""
    plain = max(0, usage.input - usage.cached_input - usage.cache_write)
    cached = price.cached_input if price.cached_input is not None else price.input
    written = price.cache_write if price.cache_write is not None else price.input
    long = price.cache_write_long if price.cache_write_long is not None else written
    tokens = plain * price.input + usage.cached_input * cached + usage.output * price.output
    tokens += (usage.cache_write - usage.cache_write_long) * written + usage.cache_write_long * long
    return tokens / 1e6 + price.per_request


def upper_usd(request_bytes: int, max_output_tokens: int, price: Price) -> float:
    """No less than what a request can cost: a token is at least one byte of it, output is at most what was asked for.

    Args:
        request_bytes: length of the request's body.
        max_output_tokens: the most that it can be answered with.
        price: of its model.
    """
    dearest = max(price.input, price.cached_input or 0.0, price.cache_write or 0.0, price.cache_write_long or 0.0)
    return (request_bytes * dearest + max_output_tokens * price.output) / 1e6 + price.per_request


def usd(amount: float) -> str:
    """An amount in words, as exact as it was set and without an exponent: ``3 USD``, ``0.000001 USD``."""
    return f"{Decimal(f'{amount:g}'):f} USD"
