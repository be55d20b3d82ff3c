"""What each kind of way leaves uncontrolled: the table of lanes (bake-off §4), phrase for phrase."""

from __future__ import annotations

from dataclasses import dataclass

from referee.core.bakeoff import Channel, LaneKind, Shape, Surface, Target

SHAPES: dict[LaneKind, Shape] = {
    "openai-chat": "openai-chat",
    "keyword-baseline": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic-messages",
    "ollama": "ollama",
}


@dataclass(frozen=True)
class _Way:
    uncontrolled: tuple[str, ...]
    readable_as: str
    latency: bool = False


_BACKEND = "serving backend: precision, quantisation, revision"

_WAYS: dict[Channel, _Way] = {
    "hosted-free-tier": _Way((_BACKEND, "throttled (~40 requests/min)"), "capability, never latency"),
    "router": _Way(("provider may change per request", "budget gate"), "capability on a subset"),
    "hub-inference": _Way(
        ("a hub commit does not pin the served one",), "nothing rankable when funding fails (HTTP 402)"
    ),
    "own-infrastructure": _Way(("the gateway hop is named, not measured",), "capability and latency", latency=True),
    "local": _Way(("hardware",), "capability on a controlled deployment"),
    "metered-api": _Way((_BACKEND,), "capability, never latency"),
    "embedded": _Way((), "the floor of a board: no model"),
}

#: What own infrastructure and a local server could control, and does not where the target leaves it out.
_PINS = ("precision", "quantisation", "context", "revision")


def surface_of(target: Target) -> Surface:
    """The surface of an HTTP lane; what a target leaves unpinned is said as well."""
    way = _WAYS[target.channel]
    said = list(way.uncontrolled)
    if target.channel in {"own-infrastructure", "local"}:
        missing = [pin for pin in _PINS if getattr(target, pin) is None]
        # A quantised model's precision is its quantisation; the rest is what nobody wrote down.
        if target.quantisation is not None and "precision" in missing:
            missing.remove("precision")
        elif target.precision is not None and "quantisation" in missing:
            missing.remove("quantisation")
        if missing:
            said.append(f"not pinned by the target: {', '.join(missing)}")
    if target.lane in {"openai-responses", "anthropic-messages"}:
        said.append("the API takes no seed")
    if target.lane == "ollama":
        said.append("the API cannot require a call")
    if not target.takes_sampling:
        said.append("the model takes no temperature and no seed")
    return Surface(
        channel=target.channel,
        shape=SHAPES[target.lane],
        tool_channel="native",
        uncontrolled=tuple(said),
        readable_as=way.readable_as,
        latency_admissible=way.latency,
        pins_sampling=target.takes_sampling and target.lane not in {"openai-responses", "anthropic-messages"},
    )
