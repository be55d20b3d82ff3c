"""What of a request goes up: it is written anew from lists of what each surface's clients need, and nothing else.

So nothing goes up whose cost or meaning nobody here knows: dearer tiers and other models, tools that the provider runs
itself (searching, fetching, running code: paid by the call, with input that nobody sees), context that lies with the
provider, and whatever providers think of next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from referee.adapters.keys.gateway.turns import (
    CACHE,
    chat_turn,
    content,
    gemini_turn,
    in_camel,
    messages_turn,
    responses_turn,
    with_cache,
)
from referee.adapters.keys.gateway.unfit import Unfit, list_of, object_of, picked, text_of
from referee.core.spending import Dialect

#: The member that holds the conversation.
TURNS: dict[Dialect, str] = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic-messages": "messages",
    "gemini": "contents",
}
_CHAT = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "n"}
    | {"stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "response_format"}
    | {"frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs"}
    | {"reasoning_effort", "reasoning", "thinking", "verbosity", "prompt_cache_key"}
)
_RESPONSES = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "stream"}
    | {"stream_options", "temperature", "top_p", "top_logprobs", "reasoning", "text", "include", "prompt_cache_key"}
)
_MESSAGES = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "stream", "temperature", "top_p", "top_k"}
    | {"stop_sequences", "thinking", "output_config", "output_format", "cache_control"}
)
_GEMINI = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"})
_GEMINI_CONFIG = frozenset(
    {"temperature", "topP", "topK", "maxOutputTokens", "candidateCount", "stopSequences", "seed", "thinkingConfig"}
    | {"responseMimeType", "responseSchema", "responseJsonSchema", "presencePenalty", "frequencyPenalty"}
    | {"responseLogprobs", "logprobs"}
)
#: Members that are objects, with what of each is kept.
_INNER: dict[str, dict[Dialect, tuple[str, ...]]] = {
    "reasoning": {
        "openai-chat": ("effort", "enabled", "exclude"),
        "openai-responses": ("effort", "summary", "generate_summary"),
    },
    "stream_options": {"openai-chat": ("include_usage",), "openai-responses": ("include_obfuscation",)},
    "thinking": {
        "openai-chat": ("type", "budget_tokens"),
        "anthropic-messages": ("type", "budget_tokens", "display"),
    },
    "text": {"openai-responses": ("format", "verbosity")},
    "output_config": {"anthropic-messages": ("effort", "format")},
}
_THINKING_CONFIG = ("thinkingBudget", "thinkingLevel", "includeThoughts")
#: What counting tokens has no place for.
_NOT_COUNTED = ("max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences")
#: Members that refer to context which lies with the provider, or hide the answer's cost: the client cannot do without
#: what it asks for, so it is told.
_REFUSED: dict[Dialect, tuple[str, ...]] = {
    "openai-chat": (),
    "openai-responses": ("previous_response_id", "conversation", "prompt", "background"),
    "anthropic-messages": ("container",),
    "gemini": ("cachedContent",),
}
#: Types of OpenAI's tools that the client itself runs.
_CLIENT_TOOLS = frozenset({"function", "custom", "local_shell"})
_MESSAGES_TOOL = ("type", "name", "description", "input_schema", "strict", "eager_input_streaming", "input_examples")


def written(document: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The request anew.

    Raises:
        Unfit: it is not of the surface's shape, or refers to context that lies with the provider.
    """
    given = in_camel(document) if dialect == "gemini" else document
    for name in _REFUSED[dialect]:
        if given.get(name):
            raise Unfit(f"{name} is not served here: all context must stand in the request itself")
    return _WRITERS[dialect](given)


def written_to_count(document: dict[str, Any], dialect: Dialect, model: str) -> dict[str, Any]:
    """A request that only counts tokens, anew.

    Raises:
        Unfit: as above.
    """
    inner = document.get("generateContentRequest") if dialect == "gemini" else None
    if inner is not None:
        asked = written(object_of(inner, "generateContentRequest"), dialect)
        return {"generateContentRequest": {"model": f"models/{model}", **asked}}
    found = written(document, dialect)
    return {name: value for name, value in found.items() if name not in _NOT_COUNTED}


def _keep_inner(kept: dict[str, Any], dialect: Dialect) -> None:
    for name, by_dialect in _INNER.items():
        if name in kept and dialect in by_dialect:
            kept[name] = picked(object_of(kept[name], name), by_dialect[dialect])


def _turns(kept: dict[str, Any], name: str, write: Callable[[Any], dict[str, Any] | None]) -> None:
    if name in kept:
        turns = [write(turn) for turn in list_of(kept[name], name)]
        kept[name] = [turn for turn in turns if turn is not None]


def _chat(document: dict[str, Any]) -> dict[str, Any]:
    kept = picked(document, _CHAT)
    _turns(kept, "messages", chat_turn)
    _keep_tools(kept, _openai_tool)
    _keep_inner(kept, "openai-chat")
    return kept


def _responses(document: dict[str, Any]) -> dict[str, Any]:
    kept = picked(document, _RESPONSES)
    if not isinstance(kept.get("input"), str):
        _turns(kept, "input", responses_turn)
    if "instructions" in kept:
        text_of(kept["instructions"], "instructions")
    if "include" in kept:
        kept["include"] = [one for one in list_of(kept["include"], "include") if one == "reasoning.encrypted_content"]
    _keep_tools(kept, _openai_tool)
    _keep_inner(kept, "openai-responses")
    kept["store"] = False  # what the provider keeps could be referred to
    return kept


def _messages(document: dict[str, Any]) -> dict[str, Any]:
    kept = picked(document, _MESSAGES)
    _turns(kept, "messages", messages_turn)
    if "system" in kept:
        kept["system"] = content(kept["system"], {"text": ("text",)}, "text")
    _keep_inner(kept, "anthropic-messages")
    if "cache_control" in kept:
        kept["cache_control"] = CACHE
    _keep_tools(kept, _messages_tool)
    return kept


def _gemini(document: dict[str, Any]) -> dict[str, Any]:
    kept = picked(document, _GEMINI)
    if isinstance(kept.get("contents"), dict):
        kept["contents"] = [kept["contents"]]
    _turns(kept, "contents", gemini_turn)
    if "systemInstruction" in kept:
        kept["systemInstruction"] = gemini_turn(kept["systemInstruction"])
    if "toolConfig" in kept:
        config = in_camel(object_of(kept["toolConfig"], "toolConfig"))
        kept["toolConfig"] = picked(config, ("functionCallingConfig",))
    if "generationConfig" in kept:
        config = in_camel(object_of(kept["generationConfig"], "generationConfig"))
        kept["generationConfig"] = config = picked(config, _GEMINI_CONFIG)
        if "thinkingConfig" in config:
            thinking = in_camel(object_of(config["thinkingConfig"], "thinkingConfig"))
            config["thinkingConfig"] = picked(thinking, _THINKING_CONFIG)
    _keep_tools(kept, _gemini_tool)
    return kept


_WRITERS: dict[Dialect, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
}


def _keep_tools(kept: dict[str, Any], write: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Leave only tools that the client runs. Others are no reason to refuse: clients offer them unasked."""
    if "tools" not in kept:
        return
    tools = [write(object_of(tool, "a tool")) for tool in list_of(kept["tools"], "tools")]
    kept["tools"] = [tool for tool in tools if tool]
    if not kept["tools"]:
        for name in ("tools", "tool_choice", "toolConfig", "parallel_tool_calls"):
            kept.pop(name, None)


def _openai_tool(tool: dict[str, Any]) -> dict[str, Any] | None:
    kind = tool.get("type")
    if kind == "namespace":
        inner = [_openai_tool(object_of(one, "a tool")) for one in list_of(tool.get("tools"), "tools")]
        found = [one for one in inner if one]
        return {**picked(tool, ("type", "name", "description")), "tools": found} if found else None
    if not isinstance(kind, str) or kind not in _CLIENT_TOOLS:
        return None
    names = ("type", "name", "description", "parameters", "strict", "format", "function", "custom")
    return with_cache(picked(tool, names), tool)


def _messages_tool(tool: dict[str, Any]) -> dict[str, Any] | None:
    if tool.get("type") not in (None, "custom"):
        return None
    return with_cache(picked(tool, _MESSAGES_TOOL), tool)


def _gemini_tool(tool: dict[str, Any]) -> dict[str, Any] | None:
    return picked(in_camel(tool), ("functionDeclarations",)) or None
