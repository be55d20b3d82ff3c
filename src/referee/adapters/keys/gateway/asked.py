"""A request read, bounded and written anew: what was looked at is what is sent, to the byte.

Bounded means that its cost can be told beforehand: only what ``allowed`` lists goes up, there is one answer, and it has
a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Never

from referee.adapters.keys.gateway.allowed import TURNS, written, written_to_count
from referee.adapters.keys.gateway.unfit import Unfit
from referee.core.spending import Dialect

#: OpenAI itself takes only this name for newer models; other servers of the surface know only the older one.
_NEWER_LIMIT_HOSTS = ("api.openai.com", "openai.azure.com")
#: Members that limit output, at the top of a request.
_LIMITS_AT_TOP = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
#: Marks of what is to be cached count no tokens and move from turn to turn. In a body that was written here they stand
#: as this; inside a text the marks are escaped.
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'


#: What makes JSON slow to read is what stands outside its strings, bytes; of real requests that is a small part.
MOST_OUTSIDE = 2**18
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A request that may be sent.

    Args:
        model: as the agent named it.
        streamed: whether events were asked for.
        body: what is sent.
        max_output_tokens: the most that it can be answered with.
        strip_usage: the stream's last event with its usage was not asked for by the client.
        frame: what it says beside its turns and its limit, without marks of caching.
        turns: the conversation, its turns one after the other, without such marks.
    """

    model: str
    streamed: bool
    body: bytes
    max_output_tokens: int
    strip_usage: bool = False
    frame: bytes = b""
    turns: bytes = b""


def read_object(body: bytes) -> dict[str, Any]:
    """The request's JSON object.

    Raises:
        Unfit: it is none, or has so many members that reading it would hold up the calls of other runs.
    """
    if _outside_texts(body) > MOST_OUTSIDE:
        raise Unfit("the request has too many members", "body", 413)
    try:
        document = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise Unfit("the request's body is no JSON") from exc
    if not isinstance(document, dict):
        raise Unfit("the request's body is no JSON object")
    return document


def _outside_texts(body: bytes) -> int:
    """How many bytes of a JSON text stand outside its strings, as far as it matters."""
    if len(body) <= MOST_OUTSIDE:
        return 0
    size, end = 0, 0
    for text in _TEXT.finditer(body):
        size += text.start() - end
        end = text.end()
        if size > MOST_OUTSIDE:
            return size
    return size + len(body) - end


def named_model(document: dict[str, Any], in_path: str | None) -> str:
    """The model that is asked for.

    Raises:
        Unfit: none is named.
    """
    model = in_path if in_path is not None else document.get("model")
    if not isinstance(model, str) or not model:
        raise Unfit("the request names no model", "model")
    return model


def counting(document: dict[str, Any], dialect: Dialect, model: str) -> Asked:
    """A request that only counts tokens.

    Raises:
        Unfit: it is not of its surface's shape.
    """
    try:
        body = _bytes(written_to_count(document, dialect, model))
    except (ValueError, TypeError, OverflowError, RecursionError) as exc:
        raise Unfit("the request's body is not of its surface's shape") from exc
    return Asked(model=model, streamed=False, body=body, max_output_tokens=0)


def bounded(
    document: dict[str, Any], dialect: Dialect, model: str, *, streamed: bool, most: int, host: str = ""
) -> Asked:
    """The request with everything limited.

    Args:
        document: the request.
        dialect: its surface.
        model: what it asks.
        streamed: whether its path asks for a stream (elsewhere its body says so).
        most: the upstream's limit of output tokens.
        host: of the upstream.

    Raises:
        Unfit: it is not of its surface's shape, or its cost cannot be bounded.
    """
    try:
        found = written(document, dialect)
        strip = False
        if dialect == "openai-chat":
            output, strip = _chat(found, most, host)
        else:
            output = _LIMITS[dialect](found, most)
        wants = streamed if dialect == "gemini" else found.get("stream") is True
        body, frame, turns = _parts(found, TURNS[dialect])
    except (ValueError, TypeError, OverflowError, RecursionError) as exc:
        # The reading is ours, but what it stumbles over is the client's: no request is a fault of the gateway.
        raise Unfit("the request's body is not of its surface's shape") from exc
    return Asked(model, wants, body, output, strip, frame, turns)


def _no_constant(name: str) -> Never:
    raise ValueError(name)


def _bytes(value: Any) -> bytes:
    """As JSON; half characters, which no UTF-8 has, become question marks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _parts(document: dict[str, Any], name: str) -> tuple[bytes, bytes, bytes]:
    """The body with the conversation at its end, what frames it, and the conversation."""
    turns = document.pop(name, None)
    rest = _bytes(document)
    frame = _bytes({member: value for member, value in document.items() if member not in _LIMITS_AT_TOP})
    if turns is None:
        return rest, _unmarked(frame), b""
    said = _bytes(turns)
    body = rest[:-1] + (b',"' if document else b'"') + name.encode() + b'":' + said + b"}"
    inside = said[1:-1] if isinstance(turns, list) else said
    return body, _unmarked(frame), _unmarked(inside)


def _unmarked(part: bytes) -> bytes:
    return part.replace(_CACHE_MARK, b"")


def _lower(asked: Any, most: int) -> int:
    """The limit that is asked for, at most ``most``; what is no number is left to nobody's interpretation."""
    if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0:
        return min(asked, most)
    return most


def _limit(document: dict[str, Any], name: str, most: int) -> int:
    """Set or lower the member ``name``."""
    document[name] = limit = _lower(document.get(name), most)
    return limit


def _one(value: Any, name: str) -> None:
    """Several answers at once are not served: what a stream tells of their tokens is not told apart."""
    if isinstance(value, bool) or value not in (None, 1):
        raise Unfit(f"{name} must be 1: one call has one answer here")


def _chat(document: dict[str, Any], most: int, host: str) -> tuple[int, bool]:
    """Under the one name that the host knows: a limit under another is none."""
    _one(document.pop("n", None), "n")
    output = min(_lower(document.pop(name, None), most) for name in ("max_tokens", "max_completion_tokens"))
    document["max_completion_tokens" if host.endswith(_NEWER_LIMIT_HOSTS) else "max_tokens"] = output
    _think_within(document, output)
    strip = False
    if document.get("stream") is True:
        strip = document.get("stream_options", {}).get("include_usage") is not True
        document["stream_options"] = {"include_usage": True}
    return output, strip


def _responses(document: dict[str, Any], most: int) -> int:
    return _limit(document, "max_output_tokens", most)


def _messages(document: dict[str, Any], most: int) -> int:
    output = _limit(document, "max_tokens", most)
    _think_within(document, output)
    return output


def _think_within(document: dict[str, Any], output: int) -> None:
    """Thoughts are output: they get no more than all of it."""
    thinking = document.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(thinking, dict) and isinstance(budget, int | float) and budget >= output > 1:
        document["thinking"] = {**thinking, "budget_tokens": output - 1}


def _gemini(document: dict[str, Any], most: int) -> int:
    config: dict[str, Any] = document.setdefault("generationConfig", {})
    _one(config.pop("candidateCount", None), "candidateCount")
    return _limit(config, "maxOutputTokens", most)


_LIMITS: dict[Dialect, Callable[[dict[str, Any], int], int]] = {
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
}
