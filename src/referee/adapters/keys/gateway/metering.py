"""What an answer cost in tokens, read from what the upstream says of it: JSON or a stream of events, per surface.

All input is counted once: where a surface tells cached input beside the rest it is added, where it is part of it it
stays. Thoughts count as output on every surface. What is not told, or is no count, is None: the gateway then takes its
upper estimate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from referee.core.spending import Dialect, Usage

#: Of a whole answer, and of one event of a stream, so much is read at most.
MOST_READ = 32 * 2**20
#: More is no count of tokens.
_MOST_TOKENS = 10**10


@dataclass(frozen=True)
class Metered:
    """Tokens of one answer."""

    usage: Usage


NOTHING = Metered(Usage(input=0, output=0))


def read_answer(dialect: Dialect, body: bytes) -> Metered | None:
    """The tokens of a whole answer; None where it tells none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    meter = Meter(dialect)
    for part in document if isinstance(document, list) else [document]:  # Gemini streams an array where none asks sse
        meter.take(part)
    return meter.metered()


def read_failure(body: bytes) -> bool:
    """Whether a whole answer that came with status 200 says that the upstream failed."""
    if b'"error"' not in body and b'"failed"' not in body:
        return False
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return says_failure(document)


class Meter:
    """Collects what the parts of one answer tell of its tokens."""

    def __init__(self, dialect: Dialect) -> None:
        self._read = _READERS[dialect]
        self._told: dict[str, Any] = {}

    def take(self, part: Any) -> None:
        """Look at one JSON document: a whole answer or the data of one event."""
        if not isinstance(part, dict):
            return
        inner = part.get("response") if "response" in part else part.get("message")
        for holder in (inner, part):
            if isinstance(holder, dict):
                for name in ("usage", "usageMetadata"):
                    told = holder.get(name)
                    if isinstance(told, dict):
                        self._add(told)

    def _add(self, told: dict[str, Any]) -> None:
        """Later events repeat some counts and not others, and some servers say 0 where they do not know any more."""
        for name, value in told.items():
            before = self._told.get(name)
            if isinstance(value, int | float) and isinstance(before, int | float):
                self._told[name] = max(before, value)
            elif value is not None:
                self._told[name] = value

    def metered(self) -> Metered | None:
        """The tokens, as far as they were told; None where input or output was not."""
        try:
            found = self._read(self._told)
        except (KeyError, TypeError, ValueError):
            return None
        # No request is without input: a server that says so does not know.
        return found if found.usage.input > 0 else None


def _count(told: dict[str, Any], *names: str) -> int:
    """The first of the members that is there; 0 where none is."""
    for name in names:
        value = told.get(name)
        if value is not None:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value <= _MOST_TOKENS or value != int(value):
                raise ValueError(name)
            return int(value)
    return 0


def _details(told: dict[str, Any], name: str) -> dict[str, Any]:
    value = told.get(name)
    return value if isinstance(value, dict) else {}


def _must(told: dict[str, Any], name: str) -> int:
    _told(told, name)
    return _count(told, name)


def _told(told: dict[str, Any], *names: str) -> None:
    """One of the members must be there: what is not told is not nothing."""
    if all(told.get(name) is None for name in names):
        raise KeyError(*names)


def _chat(told: dict[str, Any]) -> Metered:
    inputs, outputs = _must(told, "prompt_tokens"), _count(told, "completion_tokens")
    details = _details(told, "prompt_tokens_details")
    cached = _count(details, "cached_tokens") or _count(told, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    written = _count(details, "cache_write_tokens", "cache_creation_tokens")
    written = written or _count(told, "cache_creation_input_tokens")
    inputs = _with_cached(inputs, cached + written)
    _told(told, "completion_tokens", "total_tokens")
    thoughts = _count(_details(told, "completion_tokens_details"), "reasoning_tokens")
    outputs = _with_thoughts(outputs, thoughts, _count(told, "total_tokens") - inputs)
    return Metered(_usage(inputs, outputs, cached, written))


def _responses(told: dict[str, Any]) -> Metered:
    inputs, outputs = _must(told, "input_tokens"), _must(told, "output_tokens")
    details = _details(told, "input_tokens_details")
    cached, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    inputs = _with_cached(inputs, cached + written)
    thoughts = _count(_details(told, "output_tokens_details"), "reasoning_tokens")
    outputs = _with_thoughts(outputs, thoughts, _count(told, "total_tokens") - inputs)
    return Metered(_usage(inputs, outputs, cached, written))


def _messages(told: dict[str, Any]) -> Metered:
    lives = _details(told, "cache_creation")
    long_written = _count(lives, "ephemeral_1h_input_tokens")
    cached = _count(told, "cache_read_input_tokens")
    # The sum may be missing beside its parts, or come too early in a stream.
    written = max(
        _count(told, "cache_creation_input_tokens"), long_written + _count(lives, "ephemeral_5m_input_tokens")
    )
    inputs = _must(told, "input_tokens") + cached + written
    usage = _usage(inputs, _must(told, "output_tokens"), cached, written)
    return Metered(usage.model_copy(update={"cache_write_long": min(long_written, usage.cache_write)}))


def _gemini(told: dict[str, Any]) -> Metered:
    cached, for_tools = _count(told, "cachedContentTokenCount"), _count(told, "toolUsePromptTokenCount")
    prompt = _with_cached(_must(told, "promptTokenCount"), cached)
    _told(told, "candidatesTokenCount", "totalTokenCount")
    outputs = _count(told, "candidatesTokenCount") + _count(told, "thoughtsTokenCount")
    outputs = max(outputs, _count(told, "totalTokenCount") - prompt - for_tools)
    return Metered(_usage(prompt + for_tools, outputs, cached, 0))


_READERS: dict[Dialect, Callable[[dict[str, Any]], Metered]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
}


def _with_cached(inputs: int, cached: int) -> int:
    """All input: where more comes from caches and goes there than is told as input, that is told beside it."""
    return inputs + cached if cached > inputs else inputs


def _with_thoughts(outputs: int, thoughts: int, rest: int) -> int:
    """All output: some count thoughts only in the total, or tell them beside the output instead of within it."""
    return max(outputs + thoughts if thoughts > outputs else outputs, rest)


def _usage(inputs: int, outputs: int, cached: int, written: int) -> Usage:
    return Usage(input=inputs, output=outputs, cached_input=cached, cache_write=written)


#: Surfaces whose last counts are the whole answer's, also where no event says that it is the last.
_TELL_AT_THE_END: tuple[Dialect, ...] = ("openai-chat", "gemini")
_LAST_RESPONSES = ("response.completed", "response.incomplete", "response.failed")


def _final(dialect: Dialect, document: dict[str, Any]) -> bool:
    """Whether an event that tells tokens tells those of the whole answer."""
    if dialect == "openai-responses":
        return document.get("type") in _LAST_RESPONSES
    if dialect == "anthropic-messages":
        return document.get("type") == "message_delta"
    name, reason = ("candidates", "finishReason") if dialect == "gemini" else ("choices", "finish_reason")
    choices = document.get(name)
    if not isinstance(choices, list):
        return False
    if dialect == "openai-chat" and not choices:
        return isinstance(document.get("usage"), dict)
    return bool(choices) and all(isinstance(one, dict) and one.get(reason) for one in choices)


#: What the client itself did wrong, in the words of every surface: not the upstream's failure.
_OF_THE_CLIENT = ("invalid_request", "invalid_argument", "invalid_prompt", "content_filter", "content_policy", "safety")


def says_failure(document: Any) -> bool:
    """Whether a JSON document that came with status 200 says that the upstream failed."""
    if not isinstance(document, dict):
        return False
    told = document.get("error")
    if document.get("type") == "response.failed" and isinstance(document.get("response"), dict):
        told = document["response"].get("error") or {"type": "server_error"}
    if document.get("type") == "error" and not told:
        told = {"type": document.get("code")}
    if not told:
        return False
    words = [told.get(name) for name in ("type", "code", "status")] if isinstance(told, dict) else [told]
    return not any(mark in str(word).lower() for word in words for mark in _OF_THE_CLIENT)


class Events:
    """Meters a stream while it passes through, and takes the event out that the client did not ask for.

    A stream that nothing is taken from goes through as it comes, to the byte. Where the usage must be taken out, whole
    events go through; none waits for another.
    """

    def __init__(self, dialect: Dialect, *, strip_usage: bool) -> None:
        self._dialect = dialect
        self._meter = Meter(dialect)
        self._strip = strip_usage
        self._final = False
        self._rest = bytearray()
        self._too_long = False
        #: The stream said that the upstream failed: statuses are gone by then.
        self.failed = False

    def through(self, chunk: bytes) -> bytes:
        """What of the stream the client gets now."""
        passed: list[bytes] = []
        for event in self._whole(chunk):
            if self._look(event) and self._strip:
                continue
            passed.append(event)
        return b"".join(passed) if self._strip else chunk

    def end(self) -> bytes:
        """The stream has ended: what was not a whole event yet."""
        rest, self._rest = bytes(self._rest), bytearray()
        if self._look(rest) and self._strip:
            return b""
        return rest if self._strip else b""

    def metered(self, *, ended: bool) -> Metered | None:
        """What the stream told of the whole answer; None where it did not, or an event was too long to be read.

        Args:
            ended: the stream came to its end. Before that, and on surfaces whose streams begin with counts that are not
                the last ones, only an event counts that says so of itself.
        """
        sure = self._final or (ended and self._dialect in _TELL_AT_THE_END)
        return self._meter.metered() if sure and not self._too_long else None

    def _whole(self, chunk: bytes) -> Iterator[bytes]:
        """Cut off whole events: up to and with the empty line that ends each."""
        begin = max(0, len(self._rest) - 3)
        self._rest += chunk
        while True:
            ends = [(at, len(mark)) for mark in _ENDS if (at := self._rest.find(mark, begin)) >= 0]
            if not ends:
                break
            at, length = min(ends)
            event = bytes(self._rest[: at + length])
            del self._rest[: at + length]
            begin = 0
            yield event
        if len(self._rest) > MOST_READ:
            self._too_long = True
            rest, self._rest = bytes(self._rest), bytearray()
            yield rest

    def _look(self, event: bytes) -> bool:
        """Meter one event; whether it tells the usage and nothing else."""
        told = b'"usage' in event
        if not told and b'"error"' not in event and b'"response.failed"' not in event:
            return False
        data = b"\n".join(line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:"))
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(document, dict):
            return False
        self.failed = self.failed or says_failure(document)
        if not told:
            return False
        self._meter.take(document)
        self._final = self._final or _final(self._dialect, document)
        return document.get("choices") == [] and isinstance(document.get("usage"), dict)


_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
