"""What a model costs: the workspace's explicit price, else the price list's. A model without a price is an error.

The list is the one that comes with ``genai-prices``; nothing is fetched. Of prices that change with the hour the
dearest of the coming hours is taken. Where a provider charges more beyond so much input (tiers), the upper estimate
takes the dearest tier and the settlement the right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from referee.adapters.keys.gateway.upstream import Upstream
from referee.core.spending import Price, Usage, cost_usd
from referee.errors import ConfigError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

_LOOK_EVERY = timedelta(minutes=30)
_LOOKS = 6


@dataclass(frozen=True)
class Tariff:
    """The prices of one model.

    Args:
        steps: (more input tokens than this, the price then), ascending; the first is for any input.
        dearest: no figure of any step is above its own: for the upper estimate.
    """

    steps: tuple[tuple[int, Price], ...]
    dearest: Price

    @property
    def listed(self) -> Price:
        """The price of the first step: for records."""
        return self.steps[0][1]

    def of(self, usage: Usage) -> Price:
        """The price of an exchange: that of the step which its input reached."""
        return next(price for above, price in reversed(self.steps) if usage.input > above or above == 0)

    def cost_usd(self, usage: Usage) -> float:
        """What an exchange costs."""
        return cost_usd(usage, self.of(usage))


def tariff_of(upstream: Upstream, model: str) -> Tariff:
    """The prices of ``model`` at ``upstream``.

    Raises:
        ConfigError: no price is known, or the list calls it free: an unknown price is never free.
    """
    own = upstream.prices.get(model)
    if own is not None:
        return Tariff(steps=((0, own),), dearest=own)
    try:
        source, prices = _listed(upstream, model)
    except LookupError as exc:
        raise _unknown(upstream, model) from exc
    tariffs = [_tariff(price, source) for price in prices]
    found = [tariff for tariff in tariffs if tariff is not None]
    if not found or len(found) < len(tariffs):
        raise _unknown(upstream, model)
    return max(found, key=lambda tariff: tariff.dearest.input + tariff.dearest.output)


def _unknown(upstream: Upstream, model: str) -> ConfigError:
    return ConfigError(
        f"the price of the model {model} at the upstream {upstream.name} is not known",
        todo=f'give it in referee.toml: [upstreams.{upstream.name}.prices."{model}"] with input and output, US dollars '
        "per million tokens; or name the price list's provider as provider",
    )


def _listed(upstream: Upstream, model: str) -> tuple[str, list[ModelPrice]]:
    """The list's prices for the coming hours, and where they stand there."""
    import genai_prices  # noqa: PLC0415 — a large table
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    url = None if upstream.provider else upstream.base_url
    provider, found = get_snapshot().find_provider_model(model, None, upstream.provider, url)
    source = f"genai-prices {genai_prices.__version__}: {provider.id}/{found.id}"
    return source, _in_time(found)


def _in_time(model: ModelInfo) -> list[ModelPrice]:
    now = datetime.now(tz=UTC)
    prices: list[ModelPrice] = []
    for look in range(_LOOKS):
        price = model.get_prices(now + look * _LOOK_EVERY)
        if price not in prices:
            prices.append(price)
    return prices


def _tariff(price: ModelPrice, source: str) -> Tariff | None:
    """The list's price as steps; None where it does not say what input or output costs, or calls both free."""
    names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
    figures = {name: _steps(getattr(price, name, None)) for name in names}
    figures["output_mtok"] = _dearest_output(figures["output_mtok"], price)
    if not figures["input_mtok"] or not figures["output_mtok"]:
        return None
    per_request = sum(_steps(getattr(price, "requests_kcount", None)).values()) / 1000
    starts = sorted({start for steps in figures.values() for start in steps} | {0})

    def at(name: str, start: int) -> float | None:
        steps = figures[name]
        return steps[max(one for one in steps if one <= start)] if steps else None

    def most(name: str) -> float | None:
        return max(figures[name].values(), default=None)

    steps = []
    for start in starts:
        inputs, outputs = at("input_mtok", start), at("output_mtok", start)
        if inputs is None or outputs is None:
            return None
        cached, written = at("cache_read_mtok", start), at("cache_write_mtok", start)
        long = at("cache_write_1h_mtok", start)
        one = Price(input=inputs, output=outputs, cached_input=cached, cache_write=written, source=source)
        steps.append((start, one.model_copy(update={"per_request": per_request, "cache_write_long": long})))
    dearest = steps[0][1].model_copy(
        update={
            "input": most("input_mtok"),
            "output": most("output_mtok"),
            "cached_input": most("cache_read_mtok"),
            "cache_write": max((most("cache_write_mtok") or 0.0), (most("cache_write_1h_mtok") or 0.0)) or None,
            "cache_write_long": most("cache_write_1h_mtok"),
        }
    )
    if dearest.input <= 0 and dearest.output <= 0:
        return None
    return Tariff(steps=tuple(steps), dearest=dearest)


def _dearest_output(text: dict[int, float], price: ModelPrice) -> dict[int, float]:
    """What output costs, by the input from which it holds. Pictures and speech, which some models answer with, are
    dearer than text, and what was counted does not tell them apart: then all output costs what the dearest does.
    """
    if not text:
        return {}
    others = [
        _steps(value) for name, value in vars(price).items() if name.startswith("output_") and name != "output_mtok"
    ]
    every = [text, *(steps for steps in others if steps)]
    starts = sorted({start for steps in every for start in steps})
    return {start: max(steps[max(one for one in steps if one <= start)] for steps in every) for start in starts}


def _steps(value: Any) -> dict[int, float]:
    """A figure of the list by the input from which it holds; empty where it has none."""
    if value is None:
        return {}
    tiers = getattr(value, "tiers", None)
    if tiers is None:
        return {0: float(value)}
    return {0: float(value.base), **{tier.start: float(tier.price) for tier in tiers}}
