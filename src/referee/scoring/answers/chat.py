"""OpenAI chat completions and their kin: vLLM, llama.cpp, Mistral, Gemini's compatible surface, OpenRouter.

Calls: ``choices[].message.tool_calls[].function``, or the legacy ``function_call``. Arguments are a JSON string; an
object from Mistral. Mistral's content may be chunks; reasoning may stand beside it under several names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.core.bakeoff import Fault
from referee.scoring.answers import faults
from referee.scoring.answers.documents import Doubled, as_count, as_dict, as_text, hides
from referee.scoring.answers.parts import CUT, Parts, is_models_own

_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
#: Content parts that are calls on other surfaces: none here, and counted as calls in the text are.
_CALLS_ELSEWHERE = {"tool_use", "tool_call", "toolcall", "function_call", "functioncall", "function", "tool_calls"}
_FAILED = {"error", "network_error", "insufficient_system_resource", "abort", "aborted"}


def parts_of(document: Mapping[str, Any], headers: Mapping[str, str]) -> Parts | Fault:
    """Take a chat completion apart."""
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        return faults.of_no_answer(document, headers, "The answer of HTTP 200 holds no choices")
    several = len(choices) > 1
    choice = as_dict(min(choices, key=_place) if several else choices[0])
    finish, native = as_text(choice.get("finish_reason")) or None, as_text(choice.get("native_finish_reason")) or None
    if choice.get("error"):
        return faults.of_inner_error(choice["error"], headers, where="error of a choice", name="error_in_200")
    own = is_models_own(finish) or is_models_own(native)
    if finish is not None and finish.casefold() in _FAILED and not own:
        return faults.infra("error_in_200", f"The answer of HTTP 200 ended by {finish.casefold()!r}")
    message = choice.get("message")
    if not isinstance(message, dict):
        if not own and (finish is None or finish.casefold() not in CUT):
            return faults.infra("error_in_200", "The answer of HTTP 200 holds no message")
        message = {}  # its finish reason says why the model said nothing
    parts = of_message(message)
    if several:
        parts.flags.append("several-choices")
    if hides(document, "choices") or hides(choice, "message"):
        parts.flags.append("duplicate-keys")
    parts.finish, parts.native_finish = finish, native
    _take_usage(parts, document.get("usage"))
    parts.model = as_text(document.get("model")) or None
    parts.provenance = tuple(
        f"{key}={as_text(document[key])}"
        for key in ("system_fingerprint", "provider")
        if isinstance(document.get(key), str) and document[key]
    )
    return parts


def of_message(message: Mapping[str, Any]) -> Parts:
    """Take one message apart: its calls, its text, whether there is reasoning beside it, its refusal."""
    parts = Parts()
    content = message.get("content")
    if isinstance(content, str):
        parts.text = as_text(content)
    elif isinstance(content, list):
        _take_chunks(parts, content)
    elif content is not None:
        parts.flags.append("unknown-content")
    parts.reasoned = parts.reasoned or any(message.get(key) for key in _REASONING)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        parts.refusal = as_text(refusal)
    if isinstance(message, Doubled):
        parts.flags.append("duplicate-keys")
    calls = message.get("tool_calls")
    if calls:
        _take_calls(parts, calls)
    elif message.get("function_call"):
        function = as_dict(message["function_call"])
        parts.add_call(function.get("name"), function.get("arguments"))
    return parts


def _take_calls(parts: Parts, calls: Any) -> None:
    if not isinstance(calls, list):
        parts.break_("no-function", "tool_calls is no list")
        return
    for entry in calls:
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict):
            parts.add_call(function.get("name"), function.get("arguments"))
        else:
            parts.break_("no-function", "an entry of tool_calls has no function")


def _take_chunks(parts: Parts, chunks: list[Any]) -> None:
    said: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, str):
            said.append(chunk)
            continue
        if isinstance(chunk, Doubled):
            parts.flags.append("duplicate-keys")
        kind = as_text(as_dict(chunk).get("type"))
        if kind in {"text", "output_text"}:
            said.append(as_text(as_dict(chunk).get("text")))
        elif kind in {"thinking", "reasoning"}:
            parts.reasoned = True
        elif kind == "refusal":
            parts.refusal = as_text(as_dict(chunk).get("refusal"))
        elif kind.casefold() in _CALLS_ELSEWHERE:
            parts.flags.append("content_fallback")
        elif kind != "reference":
            parts.flags.append("unknown-content")
    parts.text = as_text("".join(said))


def _take_usage(parts: Parts, usage: Any) -> None:
    """Input tokens include those read from a cache."""
    if not isinstance(usage, dict):
        return
    parts.count(usage, "prompt_tokens", "completion_tokens")
    # Some servers do not show the reasoning, only what it cost.
    spent = as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens")
    parts.reasoned = parts.reasoned or bool(as_count(spent))
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    parts.cached_tokens = as_count(cached)


def _place(choice: Any) -> float:
    index = as_dict(choice).get("index")
    return index if isinstance(index, int | float) and index == index else float("inf")  # noqa: PLR0124 - NaN
