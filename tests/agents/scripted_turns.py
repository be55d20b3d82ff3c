"""What is asked of a model and what it says, whatever the surface: turns, tools, calls, answers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Dialect = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini"]
Json = dict[str, Any]

#: Text is streamed in pieces of this many characters, so that a client has to put them together.
PIECE = 12


@dataclass(frozen=True)
class Tool:
    """A tool as the client offers it. ``kind`` is ``function``, or the name of a tool that the surface itself knows."""

    name: str
    parameters: Json
    kind: str = "function"


@dataclass(frozen=True)
class Done:
    """A tool call of the history that has its result."""

    tool: str
    result: str


@dataclass(frozen=True)
class Turn:
    """One request, whatever its surface.

    Args:
        text: all text of system, developer and user.
        said: the model's own answers that stand in the history.
        schema: the JSON schema that the answer must have, or None.
        wants_usage: whether a stream is to end with usage (chat completions tell it only when asked).
    """

    dialect: Dialect
    model: str
    stream: bool
    text: str
    tools: tuple[Tool, ...] = ()
    done: tuple[Done, ...] = ()
    said: tuple[str, ...] = ()
    schema: Json | None = None
    wants_usage: bool = True


@dataclass(frozen=True)
class Counted:
    """Tokens. ``input`` is all input: what was read from a cache and written to it included."""

    input: int
    output: int
    cached: int = 0
    written: int = 0


@dataclass(frozen=True)
class Call:
    """A tool that the model calls."""

    tool: Tool
    arguments: Json
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:20]}")


@dataclass(frozen=True)
class Answer:
    """What the model says: text, and possibly a call."""

    text: str
    call: Call | None
    usage: Counted


def text_of(content: object) -> str:
    """The text in a message's content, whether it is a string or parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part for part in content if isinstance(part, Mapping)]
        return "\n".join(text_of(part.get("text") or part.get("content") or "") for part in parts)
    return ""


def pieces(text: str) -> Iterator[str]:
    """The text in small pieces."""
    for at in range(0, len(text), PIECE):
        yield text[at : at + PIECE]


def event(data: Json, name: str | None = None) -> str:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"
