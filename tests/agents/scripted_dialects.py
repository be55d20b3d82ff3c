"""How four surfaces ask a model and are answered: requests read into one shape, answers said as JSON or streamed.

Written from the published descriptions of the surfaces and from what the clients of the tests were seen to send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.agents.scripted_anthropic import messages_json, messages_stream, read_messages
from tests.agents.scripted_gemini import gemini_json, gemini_stream, read_gemini
from tests.agents.scripted_openai import (
    chat_json,
    chat_stream,
    read_chat,
    read_responses,
    responses_json,
    responses_stream,
)
from tests.agents.scripted_turns import Answer, Dialect, Json, Turn

READ: dict[Dialect, Callable[[Json], Turn]] = {
    "openai-chat": read_chat,
    "openai-responses": read_responses,
    "anthropic-messages": read_messages,
    "gemini": read_gemini,
}
SAY_JSON: dict[Dialect, Callable[[Turn, Answer], Json]] = {
    "openai-chat": chat_json,
    "openai-responses": responses_json,
    "anthropic-messages": messages_json,
    "gemini": gemini_json,
}
SAY_STREAM: dict[Dialect, Callable[[Turn, Answer], Iterator[str]]] = {
    "openai-chat": chat_stream,
    "openai-responses": responses_stream,
    "anthropic-messages": messages_stream,
    "gemini": gemini_stream,
}


def error(dialect: Dialect | None, status: int, message: str) -> Json:
    """An error as the surface words it."""
    if dialect == "anthropic-messages":
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}
    if dialect == "gemini":
        kinds = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}}
    kinds = {401: "invalid_request_error", 429: "rate_limit_exceeded"}
    code = "invalid_api_key" if status == 401 else None
    return {"error": {"message": message, "type": kinds.get(status, "server_error"), "param": None, "code": code}}
