"""The conversation of a request, written anew: of each turn what is text, calls of the client's own tools, and results.

Pictures, documents, recordings, files and whatever else a turn may hold have no bound of tokens that can be told from
their bytes, least of all where only an address or a number names them; agents are told to send none. Each is replaced
by a sentence that says so: a refusal would be repeated with every later request, since all of them carry the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.adapters.keys.gateway.unfit import Unfit, list_of, object_of, picked, text_of

#: What stands where something was that is no text.
LEFT_OUT = "[left out: only text goes to the model here, no images, documents, recordings or files]"
#: The one mark of Anthropic's that stands beside texts and counts no tokens; a longer life of it costs more.
CACHE = {"type": "ephemeral"}

_CHAT_TURN = (
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "refusal",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
)
#: Parts by their type, with the members that are kept beside ``type``.
_CHAT_PARTS = {"text": ("text",), "refusal": ("refusal",)}
_RESPONSES_PARTS = {
    "input_text": ("text",),
    "output_text": ("text", "annotations"),
    "refusal": ("refusal",),
    "summary_text": ("text",),
    "reasoning_text": ("text",),
    "text": ("text",),
}
_MESSAGES_PARTS = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}
_THINKING = {kind: _MESSAGES_PARTS[kind] for kind in ("thinking", "redacted_thinking")}
_CALL = ("id", "type", "call_id", "status", "name", "namespace")
_RESULT = ("id", "type", "call_id", "status", "output")
_RESPONSES_ITEMS = {
    "message": ("id", "type", "status", "role", "content", "phase"),
    "reasoning": ("id", "type", "status", "summary", "content", "encrypted_content"),
    "function_call": (*_CALL, "arguments"),
    "function_call_output": _RESULT,
    "custom_tool_call": (*_CALL, "input"),
    "custom_tool_call_output": _RESULT,
    "local_shell_call": (*_CALL, "action"),
    "local_shell_call_output": _RESULT,
}
_GEMINI_PART = ("text", "thought", "thoughtSignature", "functionCall", "functionResponse")
_GEMINI_RESPONSE = ("id", "name", "response", "willContinue", "scheduling")
#: Members of parts that are text.
_TEXTS = frozenset({"text", "refusal", "thinking", "signature", "data"})


def chat_turn(turn: Any) -> dict[str, Any]:
    """One message of chat completions.

    Raises:
        Unfit: it is none.
    """
    kept = picked(object_of(turn, "a message"), _CHAT_TURN)
    if "content" in kept:
        kept["content"] = content(kept["content"], _CHAT_PARTS, "text")
    elif "content" in turn:
        kept["content"] = None
    if "thinking_blocks" in kept:  # parts of Anthropic's surface, which middlemen put into a message as they are
        kept["thinking_blocks"] = content(kept["thinking_blocks"], _THINKING, "text")
    return kept


def responses_turn(item: Any) -> dict[str, Any] | None:
    """One item of responses; None for thoughts of which only the number is there.

    Raises:
        Unfit: it is none, or refers to what lies with the provider.
    """
    item = object_of(item, "an item of input")
    kind = item.get("type", "message")
    names = _RESPONSES_ITEMS.get(kind) if isinstance(kind, str) else None
    if names is None:
        said = kind[:60] if isinstance(kind, str) else "without a type"
        raise Unfit(f"items {said} are not served here: all context must stand in the request itself")
    kept = picked(item, names)
    for name in ("content", "summary", "output"):
        if name in kept:
            kept[name] = content(kept[name], _RESPONSES_PARTS, "input_text")
    if kind == "message" and not kept.get("content"):
        raise Unfit("a message without content is not served here: all context must stand in the request itself")
    if kind == "reasoning" and not kept.get("encrypted_content"):
        kept.pop("id", None)
        return kept if kept.get("summary") or kept.get("content") else None
    return kept


def messages_turn(turn: Any) -> dict[str, Any]:
    """One of Anthropic's messages.

    Raises:
        Unfit: it is none.
    """
    kept = picked(object_of(turn, "a message"), ("role", "content"))
    if "content" in kept:
        kept["content"] = content(kept["content"], _MESSAGES_PARTS, "text")
    return kept


def gemini_turn(turn: Any) -> dict[str, Any]:
    """One of Gemini's contents.

    Raises:
        Unfit: it is none.
    """
    kept = picked(object_of(turn, "a content"), ("role", "parts"))
    if "parts" in kept:
        parts = kept["parts"] if isinstance(kept["parts"], list) else [kept["parts"]]
        kept["parts"] = [_gemini_part(part) for part in parts]
    return kept


def content(value: Any, parts: Mapping[str, tuple[str, ...]], text: str) -> Any:
    """A text, or a list of parts of these types; others are replaced.

    Args:
        value: what stands there.
        parts: the types that are kept, with their members.
        text: the type of a part with text.

    Raises:
        Unfit: it is neither.
    """
    if isinstance(value, str):
        return value
    return [_part(object_of(one, "a part of content"), parts, text) for one in list_of(value, "content")]


def _part(part: dict[str, Any], parts: Mapping[str, tuple[str, ...]], text: str) -> dict[str, Any]:
    kind = part.get("type")
    names = parts.get(kind) if isinstance(kind, str) else None
    if names is None:
        return with_cache({"type": text, "text": LEFT_OUT}, part)
    kept = {"type": kind, **picked(part, names)}
    for name in _TEXTS & set(kept):
        text_of(kept[name], name)
    if kind == "tool_result" and "content" in kept:
        kept["content"] = content(kept["content"], {"text": ("text",)}, "text")
    if "annotations" in kept:
        kept["annotations"] = []
    return with_cache(kept, part)


def with_cache(kept: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``kept`` with Anthropic's mark of a cached text as its last member, where ``given`` had one."""
    mark = given.get("cache_control")
    if isinstance(mark, dict) and mark.get("type") == CACHE["type"]:
        kept["cache_control"] = CACHE
    return kept


def camel(name: str) -> str:
    """A name as Gemini's JSON writes it; it also takes the other spelling."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def in_camel(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members under the names that Gemini's JSON writes.

    Raises:
        Unfit: one is given in both spellings.
    """
    found: dict[str, Any] = {}
    for name, one in value.items():
        if camel(name) in found:
            raise Unfit("a member is given in two spellings")
        found[camel(name)] = one
    return found


def _gemini_part(part: Any) -> dict[str, Any]:
    kept = picked(in_camel(object_of(part, "a part")), _GEMINI_PART)
    if "text" in kept:
        text_of(kept["text"], "text")
    if "functionCall" in kept:
        object_of(kept["functionCall"], "functionCall")
    if "functionResponse" in kept:
        kept["functionResponse"] = picked(
            in_camel(object_of(kept["functionResponse"], "functionResponse")), _GEMINI_RESPONSE
        )
    return kept or {"text": LEFT_OUT}
