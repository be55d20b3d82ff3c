"""What follows from the log of a key's calls: the figures of its record, for its end and for ``verify``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from referee.core.spending import Exchange, Usage

_NANOS = 10**9
#: Statuses that mean: the upstream did not do its part. Some of these can be provoked: only a probe confirms them.
_FAILED = frozenset({401, 402, 403, 429})
_UNAUTHORIZED = 401
_SERVER_FAULT = 500


def nanos(usd: float) -> int:
    """US dollars in whole billionths, rounded up; the residue of how a float was computed does not count."""
    return math.ceil(round(usd * _NANOS, 3))


def failed(exchange: Exchange) -> bool:
    """Whether the upstream failed the call."""
    status = exchange.upstream_status
    return exchange.broke is not None or (status is not None and (status in _FAILED or status >= _SERVER_FAULT))


def went_up(exchange: Exchange) -> bool:
    """A call of the agent, neither refused, nor answered here (the list of models), nor given up while it waited."""
    tried = exchange.upstream_status is not None or exchange.broke is not None or exchange.upper_usd > 0
    return exchange.refused is None and not exchange.probe and tried


def asked_the_model(exchange: Exchange) -> bool:
    """Whether it went up to the model itself and its fate is known: tokens are counted by another service, and a call
    that was cut early says nothing of the upstream.
    """
    counted = exchange.path.endswith(("/count_tokens", ":countTokens"))
    return went_up(exchange) and not counted and (exchange.upstream_status is not None or exchange.broke is not None)


@dataclass(frozen=True)
class Sums:
    """The figures of ``SpendingFacts`` that follow from its log, under the same names."""

    spent_usd: float
    calls: int
    refused: int
    failed_upstream: int
    ended_by_upstream: bool
    capped: bool
    input_tokens: int
    cached_tokens: int
    output_tokens: int


def summed(exchanges: Sequence[Exchange]) -> Sums:
    """The figures of a log, in the order in which it was written."""
    sent = [one for one in exchanges if went_up(one)]
    usages = [one.usage or Usage(input=0, output=0) for one in sent]
    return Sums(
        spent_usd=sum(nanos(one.cost_usd) for one in sent) / _NANOS,
        calls=len(sent),
        refused=sum(one.times for one in exchanges if one.refused is not None),
        failed_upstream=sum(failed(one) for one in sent),
        ended_by_upstream=_ended_by_upstream(exchanges),
        capped=any(one.refused == "cap" for one in exchanges),
        input_tokens=sum(usage.input for usage in usages),
        cached_tokens=sum(usage.cached_input for usage in usages),
        output_tokens=sum(usage.output for usage in usages),
    )


def credential_refused(exchanges: Sequence[Exchange]) -> bool:
    """The run ended because its upstream took the real key no more: it refused the gateway's own last question too."""
    probes = [one for one in exchanges if one.probe]
    return _ended_by_upstream(exchanges) and probes[-1].upstream_status == _UNAUTHORIZED


def _ended_by_upstream(exchanges: Sequence[Exchange]) -> bool:
    """The last call to the model failed, and so did the last probe since one had worked (decision 0123)."""
    last_failed = probe_failed = False
    for one in exchanges:
        if one.probe:
            probe_failed = failed(one)
        elif asked_the_model(one):
            last_failed = failed(one)
            probe_failed = probe_failed and last_failed
    return last_failed and probe_failed
