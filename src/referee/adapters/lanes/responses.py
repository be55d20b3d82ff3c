"""OpenAI's Responses API. It takes no seed; the lane's surface says so."""

from __future__ import annotations

from typing import Any

from referee.adapters.lanes.catalogue import check_listed
from referee.adapters.lanes.lane import Dialect
from referee.core.bakeoff import Target
from referee.protocols import Ask


def responses_body(target: Target, question: Ask) -> dict[str, Any]:
    """One question as a Responses request: nothing is stored there, and no schema is rewritten into strict mode."""
    body: dict[str, Any] = {
        "model": target.model,
        "input": [{"role": role, "content": content} for role, content in question.messages],
        "max_output_tokens": question.sampling.max_tokens,
        "store": False,
    }
    if question.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in question.tools
        ]
        body["tool_choice"] = "required" if question.require_call else "auto"
    if target.takes_sampling:
        body["temperature"] = question.sampling.temperature
    if target.stream:
        body["stream"] = True
    return body | {key: value for key, value in target.extra_body.items() if key not in body}


RESPONSES = Dialect("/responses", responses_body, check_listed)
