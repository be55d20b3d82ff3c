"""Chunks of a streamed chat completion joined: calls keyed by their id, then by their index.

Servers exist that send index 0 for every call, repeat the name with each chunk, leave the id out or empty, or change
it from chunk to chunk. A new call begins where a new id brings a name of its own, or, without ids, where a name comes
after arguments that are whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.scoring.answers.arguments import read_arguments
from referee.scoring.answers.documents import as_dict, as_list

_MOST_PIECES = 2000  # beyond, it is not asked again and again whether arguments are whole
_MOST_READ = 1_000_000  # characters that are read for that question, all times together


class _Call:
    """One call as it grows."""

    def __init__(self) -> None:
        self.name = ""
        self.pieces: list[str] = []
        self.given: Any = None
        self.functionless = True
        self._read = 0

    def take(self, function: Mapping[str, Any]) -> None:
        name = function.get("name")
        if isinstance(name, str) and name and name != self.name:
            self.name += name
        given = function.get("arguments")
        if isinstance(given, str):
            self.pieces.append(given)
        elif given is not None:
            self.given = given

    @property
    def begun(self) -> bool:
        return bool(self.given is not None or any(self.pieces))

    def whole(self) -> bool:
        """Whether its arguments are an object already."""
        if self.given is not None:
            return True
        if len(self.pieces) > _MOST_PIECES or not "".join(self.pieces[-8:]).rstrip().endswith("}"):
            return False
        text = "".join(self.pieces)
        self._read += len(text)
        return self._read <= _MOST_READ and read_arguments(text)[2] is None

    def document(self) -> dict[str, Any]:
        if self.functionless:
            return {"type": "function", "function": None}
        arguments = self.given if self.given is not None and not self.pieces else "".join(self.pieces)
        return {"type": "function", "function": {"name": self.name, "arguments": arguments}}


class _Choice:
    """One choice as it grows."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.chunks: list[Any] = []
        self.refused: list[str] = []
        self.reasoned = False
        self.calls: list[_Call] = []
        self.by_id: dict[str, _Call] = {}
        self.by_index: dict[int, _Call] = {}
        self.legacy: _Call | None = None
        self.ends: dict[str, Any] = {}

    def take(self, choice: Mapping[str, Any]) -> None:
        for key in ("finish_reason", "native_finish_reason", "error"):
            if choice.get(key) is not None:
                self.ends[key] = choice[key]
        delta = as_dict(choice.get("delta") or choice.get("message"))
        content = delta.get("content")
        if isinstance(content, str):
            self.said.append(content)
        elif isinstance(content, list):
            self.chunks.extend(content)
        if isinstance(delta.get("refusal"), str):
            self.refused.append(delta["refusal"])
        self.reasoned = self.reasoned or any(
            delta.get(key) for key in ("reasoning_content", "reasoning", "reasoning_details", "thinking")
        )
        for entry in as_list(delta.get("tool_calls")):
            self._take_call(as_dict(entry))
        if isinstance(delta.get("function_call"), dict):
            self.legacy = self.legacy or _Call()
            self.legacy.functionless = False
            self.legacy.take(delta["function_call"])

    def _take_call(self, entry: Mapping[str, Any]) -> None:
        function = as_dict(entry.get("function"))
        call = self._call_of(entry, function)
        if isinstance(entry.get("function"), dict):
            call.functionless = False
        call.take(function)

    def _call_of(self, entry: Mapping[str, Any], function: Mapping[str, Any]) -> _Call:
        raw_id, raw_index = entry.get("id"), entry.get("index")
        ident = raw_id if isinstance(raw_id, str) and raw_id else None
        index = raw_index if isinstance(raw_index, int) else None
        if ident is not None and ident in self.by_id:
            return self.by_id[ident]
        call = self.by_index.get(index) if index is not None else (self.calls[-1] if self.calls else None)
        if call is None or _begins_another(call, ident, function):
            call = _Call()
            self.calls.append(call)
        if ident is not None:
            self.by_id[ident] = call
        if index is not None:
            self.by_index[index] = call
        return call

    def document(self, index: int) -> dict[str, Any]:
        content: Any = "".join(self.said)
        if self.chunks:
            content = [*([{"type": "text", "text": content}] if content else []), *self.chunks]
        message: dict[str, Any] = {"content": content, "tool_calls": [call.document() for call in self.calls]}
        if self.reasoned:
            message["reasoning"] = True
        if self.refused:
            message["refusal"] = "".join(self.refused)
        if self.legacy is not None:
            message["function_call"] = self.legacy.document()["function"]
        return {"index": index, "message": message, **self.ends}


def _begins_another(call: _Call, ident: str | None, function: Mapping[str, Any]) -> bool:
    """Whether what comes with the same index (or none) is another call than the one before."""
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return ident is not None and call.whole() and not function.get("arguments")
    if ident is not None:
        return bool(call.name)
    if not call.name:
        return False
    if name != call.name and not call.begun:
        return "arguments" in function
    return call.whole()


class ChatStream:
    """The chunks of one streamed chat completion."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._rest: dict[str, Any] = {}

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk."""
        for key in ("model", "system_fingerprint", "provider", "usage"):
            if chunk.get(key):
                self._rest[key] = chunk[key]
        for raw in as_list(chunk.get("choices")):
            choice = as_dict(raw)
            index = choice.get("index")
            place = index if isinstance(index, int) else 0
            self._choices.setdefault(place, _Choice()).take(choice)

    def document(self) -> dict[str, Any]:
        """The completion as it would be without streaming."""
        choices = [self._choices[place].document(place) for place in sorted(self._choices)]
        return {**self._rest, "choices": choices}
