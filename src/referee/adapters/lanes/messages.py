"""Anthropic's messages API. It takes a temperature and no seed; the lane's surface says so."""

from __future__ import annotations

from typing import Any

from referee.adapters.lanes.catalogue import check_listed
from referee.adapters.lanes.http import Auth
from referee.adapters.lanes.lane import Dialect
from referee.core.bakeoff import Target
from referee.protocols import Ask

#: The version of the API whose shapes the reader knows.
API_VERSION = "2023-06-01"


def messages_body(target: Target, question: Ask) -> dict[str, Any]:
    """One question as a messages request: the system prompt stands outside the conversation."""
    system = [content for role, content in question.messages if role == "system"]
    body: dict[str, Any] = {
        "model": target.model,
        "max_tokens": question.sampling.max_tokens,
        "messages": [{"role": role, "content": content} for role, content in question.messages if role != "system"],
    }
    if system:
        body["system"] = "\n\n".join(system)
    if question.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in question.tools
        ]
        body["tool_choice"] = {"type": "any" if question.require_call else "auto"}
    if target.takes_sampling:
        body["temperature"] = question.sampling.temperature
    if target.stream:
        body["stream"] = True
    return body | {key: value for key, value in target.extra_body.items() if key not in body}


MESSAGES = Dialect("/messages", messages_body, check_listed, Auth("x-api-key", ""), {"anthropic-version": API_VERSION})
