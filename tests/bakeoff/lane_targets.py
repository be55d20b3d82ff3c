"""Targets that lead to the scripted server, for the tests of lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from referee.adapters.lanes.lane import HttpLane
from referee.adapters.lanes.make import make_http_lane
from referee.core.bakeoff import LaneKind, Sampling, Target
from referee.protocols import Ask, Said, WireTool

KEY = "sk-sentinel-4Qm9Xv2LtB7cRw8Z"
ENVIRON = {"SCRIPTED_API_KEY": KEY}
SURFACES: tuple[LaneKind, ...] = ("openai-chat", "openai-responses", "anthropic-messages", "ollama")

WEATHER = WireTool(
    "get_weather",
    "Weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
T = TypeVar("T")


def question(*, required: bool = False, seed: int | None = 42, tools: tuple[WireTool, ...] = (WEATHER,)) -> Ask:
    messages = (("system", "You call tools."), ("user", "Wie ist das Wetter in Köln?"))
    return Ask(messages, tools, require_call=required, sampling=Sampling(seed=seed, max_tokens=512))


def target(url: str, model: str = "ok", lane: LaneKind = "openai-chat", **more: Any) -> Target:
    base = url if lane == "ollama" else f"{url}/v1"
    plain = {"channel": "own-infrastructure", "sovereignty": "eu-origin", "key_env": "SCRIPTED_API_KEY"}
    return Target.model_validate({"name": "scripted", "model": model, "lane": lane, "base_url": base, **plain, **more})


def with_lane(
    aim: Target, use: Callable[[HttpLane], Awaitable[T]], environ: Mapping[str, str] = ENVIRON, **more: Any
) -> T:
    """Make the lane, use it on a loop of its own, and let go of it."""

    async def run() -> T:
        lane = make_http_lane(aim, environ, **more)
        try:
            return await use(lane)
        finally:
            await lane.close()

    return asyncio.run(run())


def ask(aim: Target, asked: Ask | None = None, deadline: float = 10.0, **more: Any) -> Said:
    """One question through a fresh lane."""
    return with_lane(aim, lambda lane: lane.ask(asked or question(), deadline), **more)
