"""What an archived market snapshot says: prices, uptime and speed of each provider. Shown, never a verdict (§13)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from referee.core.records import MarketSnapshot

#: Sources, by how their names begin.
ROUTER, LISTED = "openrouter", "genai-prices"
_MILLION = 1e6


@dataclass(frozen=True)
class Offer:
    """One provider's offer of the model: None is what it does not publish.

    Args:
        provider: who serves it.
        quantisation: as the provider says it.
        input_usd: US dollars for a million tokens of input, ``output_usd`` of output.
        uptime: of the last 30 minutes, percent.
        tokens_per_second: median output of the last 30 minutes.
    """

    provider: str
    quantisation: str | None
    input_usd: float | None
    output_usd: float | None
    uptime: float | None
    tokens_per_second: float | None


@dataclass(frozen=True)
class Market:
    """One snapshot with what could be read of it; ``why`` says why there is no offer."""

    snapshot: MarketSnapshot
    offers: tuple[Offer, ...]
    why: str | None


def market(snapshot: MarketSnapshot, data: bytes | None) -> Market:
    """Read a snapshot. Whatever the bytes, nothing is raised.

    Args:
        snapshot: the record.
        data: the archived document; None where none came.
    """
    if data is None:
        return Market(snapshot, (), snapshot.detail or "nothing was published")
    read = {ROUTER: _router, LISTED: _listed}.get(ROUTER if snapshot.source.startswith(ROUTER) else snapshot.source)
    if read is None:
        return Market(snapshot, (), f"what {snapshot.source} publishes is kept and not read")
    try:
        document = json.loads(data)
        offers = read(document)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Market(snapshot, (), "the archived document has another form than expected")
    return Market(snapshot, offers, None if offers else "no provider offered it")


def _router(document: Any) -> tuple[Offer, ...]:
    """OpenRouter's list of a model's endpoints; prices stand there in US dollars a token."""
    offers = []
    for one in document["data"]["endpoints"]:
        price = one.get("pricing") or {}
        offers.append(
            Offer(
                provider=str(one.get("provider_name") or one.get("name") or "unnamed"),
                quantisation=_text(one.get("quantization")),
                input_usd=_scaled(price.get("prompt")),
                output_usd=_scaled(price.get("completion")),
                uptime=_number(one.get("uptime_last_30m")),
                tokens_per_second=_median(one.get("throughput_last_30m")),
            )
        )
    return tuple(sorted(offers, key=lambda offer: (offer.provider, json.dumps(vars(offer)))))


def _listed(document: Any) -> tuple[Offer, ...]:
    """A published list price, as ``runner.bakeoff.market`` archives it."""
    prices = (_number(document["input_usd_per_million"]), _number(document["output_usd_per_million"]))
    return (Offer(str(document["provider"]), None, *prices, None, None),)


def _median(value: Any) -> float | None:
    return _number(value.get("p50")) if isinstance(value, dict) else _number(value)


def _scaled(value: Any) -> float | None:
    """A price a token, which may be written as a string, for a million; a negative one means that none is fixed."""
    number = _number(value)
    return None if number is None or number < 0 else round(number * _MILLION, 9)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in {"", "unknown"} else None
