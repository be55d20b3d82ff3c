"""The surfaces that agents speak: which path is which call, and how a refusal is said on each.

Refusals carry statuses at which clients give up instead of trying again: 401 a dead token, 402 the cap, 403 and 404
what this key is not for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from referee.core.spending import Dialect

#: ``answer``: the model speaks and it costs; ``count``: tokens are counted, free of charge; ``models``: the list.
Kind = Literal["answer", "count", "models"]


@dataclass(frozen=True)
class Route:
    """What a path asks for.

    Args:
        dialect: of the surface; None where several share the path.
        kind: of call.
        model: where the path names it.
        streams: where the path says so.
        below: the path below the upstream's base URL, with ``{model}`` where the model stands.
    """

    dialect: Dialect | None
    kind: Kind
    model: str | None = None
    streams: bool = False
    below: str = ""


_FIXED: dict[tuple[str, str], Route] = {
    ("POST", "/v1/chat/completions"): Route("openai-chat", "answer", below="/chat/completions"),
    ("POST", "/v1/responses"): Route("openai-responses", "answer", below="/responses"),
    ("POST", "/v1/messages"): Route("anthropic-messages", "answer", below="/messages"),
    ("POST", "/v1/messages/count_tokens"): Route("anthropic-messages", "count", below="/messages/count_tokens"),
    ("GET", "/v1/models"): Route(None, "models"),
    ("GET", "/v1beta/models"): Route("gemini", "models"),
}
_GEMINI = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")
_ONE_MODEL = re.compile(r"/(v1|v1beta)/models/(.+)")


def route_of(method: str, path: str) -> Route | None:
    """What ``method`` on ``path`` (still percent-coded, without query) asks for; None for nothing that is served."""
    found = _FIXED.get((method, path))
    if found is not None:
        return found
    named = _GEMINI.fullmatch(path)
    if method == "POST" and named:
        verb = named[2]
        kind: Kind = "count" if verb == "countTokens" else "answer"
        streams = verb == "streamGenerateContent"
        return Route("gemini", kind, unquote(named[1]), streams, f"/models/{{model}}:{verb}")
    one = _ONE_MODEL.fullmatch(path)
    if method == "GET" and one:
        return Route("gemini" if one[1] == "v1beta" else None, "models", unquote(one[2]))
    return None


def dialect_near(path: str, headers: Mapping[str, str]) -> Dialect:
    """In which shape to refuse what has no route: by what the path or the client's headers look like."""
    if path.startswith(("/v1beta", "/v1alpha")) or ":" in path or "x-goog-api-key" in headers:
        return "gemini"
    if path.startswith("/v1/messages") or "anthropic-version" in headers:
        return "anthropic-messages"
    return "openai-responses" if path.startswith("/v1/responses") else "openai-chat"


_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}
_OPENAI_KINDS = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit"}
_GEMINI_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_SERVER_FAULT = 500


def error_body(dialect: Dialect, status: int, code: str, message: str) -> bytes:
    """A refusal or failure as a client of ``dialect`` reads it.

    Args:
        dialect: whose shape.
        status: of HTTP.
        code: our word for the reason, in shapes that have a place for it.
        message: one sentence.
    """
    said: dict[str, Any]
    if dialect == "anthropic-messages":
        said = {"type": "error", "error": {"type": _ANTHROPIC_KINDS.get(status, "api_error"), "message": message}}
    elif dialect == "gemini":
        said = {"error": {"code": status, "message": message, "status": _GEMINI_KINDS.get(status, "UNAVAILABLE")}}
    else:
        usual = "server_error" if status >= _SERVER_FAULT else "invalid_request_error"
        kind = _OPENAI_KINDS.get(status, usual)
        said = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(said).encode()


def models_body(dialect: Dialect | None, model: str, max_output_tokens: int, *, one: bool) -> bytes:
    """The list of models: the run's own, and no other. OpenAI's and Anthropic's members stand beside each other."""
    if dialect == "gemini":
        entry: dict[str, Any] = {
            "name": f"models/{model}",
            "displayName": model,
            "outputTokenLimit": max_output_tokens,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }
        return json.dumps(entry if one else {"models": [entry]}).encode()
    entry = {
        "id": model,
        "object": "model",
        "created": 0,
        "owned_by": "upstream",
        "type": "model",
        "display_name": model,
        "created_at": "1970-01-01T00:00:00Z",
    }
    listed = {"object": "list", "data": [entry], "has_more": False, "first_id": model, "last_id": model}
    return json.dumps(entry if one else listed).encode()
