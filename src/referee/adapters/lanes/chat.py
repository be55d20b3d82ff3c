"""OpenAI's chat completions, at any base URL: hosted, routed, own and local servers speak it."""

from __future__ import annotations

from typing import Any

from referee.adapters.lanes.catalogue import check_listed
from referee.adapters.lanes.lane import Dialect
from referee.core.bakeoff import Target
from referee.protocols import Ask


def chat_body(target: Target, question: Ask) -> dict[str, Any]:
    """One question as a chat completion's request."""
    sampling = question.sampling
    body: dict[str, Any] = {
        "model": target.model,
        "messages": [{"role": role, "content": content} for role, content in question.messages],
        target.max_tokens_field: sampling.max_tokens,
    }
    if question.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in question.tools
        ]
        body["tool_choice"] = "required" if question.require_call else "auto"
    if target.takes_sampling:
        body["temperature"] = sampling.temperature
        if sampling.seed is not None:
            body["seed"] = sampling.seed
    if target.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body | {key: value for key, value in target.extra_body.items() if key not in body}


CHAT = Dialect("/chat/completions", chat_body, check_listed)
