"""A request read, bounded and written anew: what was looked at is what is sent, to the byte.

Bounded means that its cost can be told beforehand: output gets a limit, tools that the provider runs itself (searching,
fetching, running code: paid by the call, with input that nobody sees here) and dearer tiers are taken out, and what
refers to context that lies with the provider is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from referee.core.spending import Dialect

#: OpenAI itself takes only this name for newer models; other servers of the surface know only the older one.
_NEWER_LIMIT_HOSTS = ("api.openai.com", "openai.azure.com")

#: Members that choose another tier, another model or a paid addition.
_TAKEN_OUT = {
    "openai-chat": ("service_tier", "web_search_options", "plugins", "models", "route", "fallbacks", "best_of"),
    "openai-responses": ("service_tier", "plugins", "models", "route", "fallbacks"),
    "anthropic-messages": ("service_tier", "speed", "inference_geo", "mcp_servers", "container"),
    "gemini": ("serviceTier", "service_tier"),
}
#: Members that refer to context which lies with the provider, or hide the answer's cost.
_REFUSED = {
    "openai-chat": (),
    "openai-responses": ("previous_response_id", "conversation", "prompt", "background"),
    "anthropic-messages": (),
    "gemini": ("cachedContent", "cached_content"),
}
#: Types of OpenAI's tools that the client itself runs.
_CLIENT_TOOLS = frozenset({"function", "custom", "local_shell", "shell", "apply_patch", "namespace", "tool_search"})
#: How types of Anthropic's tools begin that the provider runs.
_ANTHROPIC_HOSTED = ("web_search", "web_fetch", "code_execution", "mcp_toolset", "advisor")
#: Gemini's one member of a tool that the client itself runs.
_GEMINI_OWN = ("functionDeclarations", "function_declarations")


class Unfit(Exception):
    """A request that is not sent: one sentence, our word for the reason (``Exchange.refused``), the status."""

    def __init__(self, sentence: str, refused: str = "body", status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.refused = refused
        self.status = status


@dataclass(frozen=True)
class Asked:
    """A request that may be sent.

    Args:
        model: as the agent named it.
        streamed: whether events were asked for.
        body: what is sent.
        max_output_tokens: the most that it can be answered with, over all its choices.
        strip_usage: the stream's last event with its usage was not asked for by the client.
    """

    model: str
    streamed: bool
    body: bytes
    max_output_tokens: int
    strip_usage: bool = False


def read_object(body: bytes) -> dict[str, Any]:
    """The request's JSON object.

    Raises:
        Unfit: it is none.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise Unfit("the request's body is no JSON") from exc
    if not isinstance(document, dict):
        raise Unfit("the request's body is no JSON object")
    return document


def named_model(document: dict[str, Any], in_path: str | None) -> str:
    """The model that is asked for.

    Raises:
        Unfit: none is named.
    """
    model = in_path if in_path is not None else document.get("model")
    if not isinstance(model, str) or not model:
        raise Unfit("the request names no model", "model")
    return model


def counting(document: dict[str, Any], model: str) -> Asked:
    """A request that only counts tokens."""
    return Asked(model=model, streamed=False, body=_bytes(document), max_output_tokens=0)


def bounded(
    document: dict[str, Any], dialect: Dialect, model: str, *, streamed: bool, most: int, host: str = ""
) -> Asked:
    """The request with everything limited.

    Args:
        document: the request; it is changed.
        dialect: its surface.
        model: what it asks.
        streamed: whether its path asks for a stream (elsewhere its body says so).
        most: the upstream's limit of output tokens.
        host: of the upstream.

    Raises:
        Unfit: its cost cannot be bounded.
    """
    for name in _REFUSED[dialect]:
        if document.get(name):
            raise Unfit(f"{name} is not served here: all context must stand in the request itself")
    for name in _TAKEN_OUT[dialect]:
        document.pop(name, None)
    _own_tools(document, dialect)
    strip = False
    if dialect == "openai-chat":
        output, strip = _chat(document, most, host)
    else:
        output = _LIMITS[dialect](document, most)
    wants = streamed if dialect == "gemini" else document.get("stream") is True
    return Asked(model=model, streamed=wants, body=_bytes(document), max_output_tokens=output, strip_usage=strip)


def _bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _limit(document: dict[str, Any], name: str, most: int) -> int:
    """Set or lower the member ``name``; what is no number is left to the upstream's own words: it is replaced."""
    asked = document.get(name)
    limit = most
    if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0:
        limit = min(asked, most)
    document[name] = limit
    return limit


def _times(value: Any, name: str) -> int:
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Unfit(f"{name} must be a whole number from 1 on")
    return value


def _chat(document: dict[str, Any], most: int, host: str) -> tuple[int, bool]:
    names = [name for name in ("max_completion_tokens", "max_tokens") if document.get(name) is not None]
    if not names:
        names = ["max_completion_tokens" if host.endswith(_NEWER_LIMIT_HOSTS) else "max_tokens"]
    output = max(_limit(document, name, most) for name in names)
    strip = False
    if document.get("stream") is True:
        options = document.get("stream_options")
        options = dict(options) if isinstance(options, dict) else {}
        strip = options.get("include_usage") is not True
        document["stream_options"] = {**options, "include_usage": True}
    return output * _times(document.get("n"), "n"), strip


def _responses(document: dict[str, Any], most: int) -> int:
    return _limit(document, "max_output_tokens", most)


def _messages(document: dict[str, Any], most: int) -> int:
    output = _limit(document, "max_tokens", most)
    thinking = document.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(thinking, dict) and isinstance(budget, int) and budget >= output > 1:
        document["thinking"] = {**thinking, "budget_tokens": output - 1}
    return output


def _gemini(document: dict[str, Any], most: int) -> int:
    config = document.pop("generation_config", None)
    config = document.get("generationConfig", config)
    config = dict(config) if isinstance(config, dict) else {}
    for snake, camel in (("max_output_tokens", "maxOutputTokens"), ("candidate_count", "candidateCount")):
        if snake in config:
            config.setdefault(camel, config.pop(snake))
            config.pop(snake, None)
    output = _limit(config, "maxOutputTokens", most)
    document["generationConfig"] = config
    return output * _times(config.get("candidateCount"), "candidateCount")


_LIMITS: dict[Dialect, Callable[[dict[str, Any], int], int]] = {
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
}


def _own_tools(document: dict[str, Any], dialect: Dialect) -> None:
    """Leave only tools that the client runs."""
    tools = document.get("tools")
    if not isinstance(tools, list):
        return
    if dialect == "gemini":
        kept: list[Any] = [_declared(tool) for tool in tools if isinstance(tool, dict)]
        kept = [tool for tool in kept if tool]
    elif dialect == "anthropic-messages":
        kept = [tool for tool in tools if not _begins(tool, _ANTHROPIC_HOSTED)]
    else:
        kept = [tool for tool in tools if not isinstance(tool, dict) or tool.get("type") in _CLIENT_TOOLS]
    if kept == tools:
        return
    if kept:
        document["tools"] = kept
        return
    del document["tools"]
    for name in ("tool_choice", "toolConfig", "tool_config", "parallel_tool_calls"):
        document.pop(name, None)


def _begins(tool: Any, prefixes: tuple[str, ...]) -> bool:
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith(prefixes)


def _declared(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name in _GEMINI_OWN}
