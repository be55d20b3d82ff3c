"""Streams put together into the document that the same answer would be without streaming.

A stream that ends without its end mark, or holds an error, is a fault, and what it held of calls is thrown away. End
marks: ``[DONE]`` for chat completions, ``response.completed`` or ``response.incomplete``, ``message_stop``, and a line
with ``"done": true`` for Ollama.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from referee.core.bakeoff import Fault, Shape
from referee.scoring.answers import faults
from referee.scoring.answers.documents import UnusableError, as_dict, as_list, as_text, load_body
from referee.scoring.answers.events import DONE, lines_of_json, server_sent
from referee.scoring.answers.joining import ChatStream

_Whole = dict[str, Any] | Fault
_BROKEN = "The stream ended without its end mark"


def assemble(text: str, shape: Shape, headers: Mapping[str, str]) -> _Whole:
    """The whole document of a stream, or why there is none."""
    try:
        return _ASSEMBLERS[shape](text, headers)
    except UnusableError as exc:
        return faults.infra("stream_broken", "An event of the stream cannot be read", exc.detail)
    except ValueError:
        return faults.infra("stream_broken", "An event of the stream is not JSON")


def _chat(text: str, headers: Mapping[str, str]) -> _Whole:
    stream = ChatStream()
    for name, data in server_sent(text):
        if data.strip() == DONE:
            return stream.document()
        chunk = load_body(data)
        if fault := _error_in(name, chunk, headers):
            return fault
        stream.take(as_dict(chunk))
    return faults.infra("stream_broken", _BROKEN)


def _responses(text: str, headers: Mapping[str, str]) -> _Whole:
    items: dict[int, _Item] = {}
    for name, data in server_sent(text):
        if data.strip() == DONE:
            continue
        event = as_dict(load_body(data))
        kind = as_text(event.get("type")) or name
        if kind == "error":
            return _error_of_event(event, headers)
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            return _final_response(as_dict(event.get("response")), items, headers)
        _take_item_event(kind, event, items)
    return faults.infra("stream_broken", _BROKEN)


class _Item:
    """One output item, or one block of content, as it grows."""

    __slots__ = ("body", "json", "said")

    def __init__(self, body: Any) -> None:
        self.body = dict(as_dict(body))
        self.said: list[str] = []
        self.json: list[str] = []

    def as_item(self) -> dict[str, Any]:
        """As an output item of a response."""
        if self.json and not self.body.get("arguments"):
            self.body["arguments"] = "".join(self.json)
        if self.said and not self.body.get("content"):
            self.body["content"] = [{"type": "output_text", "text": "".join(self.said)}]
        return self.body

    def as_block(self) -> dict[str, Any]:
        """As a block of a message; the input of a call is the text of its pieces, which shows whether it was cut."""
        if any(self.json):
            self.body["input"] = "".join(self.json)
        if self.said:
            self.body["text"] = f"{self.body.get('text') or ''}{''.join(self.said)}"
        return self.body


def _take_item_event(kind: str, event: Mapping[str, Any], items: dict[int, _Item]) -> None:
    place, delta = event.get("output_index"), event.get("delta")
    if not isinstance(place, int):
        return
    if kind in {"response.output_item.added", "response.output_item.done"}:
        items[place] = _Item(event.get("item"))
    elif place in items and isinstance(delta, str):
        if kind == "response.function_call_arguments.delta":
            items[place].json.append(delta)
        elif kind == "response.output_text.delta":
            items[place].said.append(delta)


def _final_response(response: dict[str, Any], items: dict[int, _Item], headers: Mapping[str, str]) -> _Whole:
    """The last event holds the whole response; a server that leaves its output empty there gave it item by item."""
    if response.get("error"):
        return faults.of_inner_error(response["error"], headers, where="error in a stream", name="stream_error")
    if not response.get("output") and items:
        response = {**response, "output": [items[place].as_item() for place in sorted(items)]}
    return response


def _messages(text: str, headers: Mapping[str, str]) -> _Whole:
    message: dict[str, Any] = {}
    blocks: dict[int, _Item] = {}
    for name, data in server_sent(text):
        event = as_dict(load_body(data))
        kind = as_text(event.get("type")) or name
        if kind == "error" or event.get("error"):
            return _error_of_event(event, headers)
        if kind == "message_start":
            message = dict(as_dict(event.get("message")))
        elif kind == "message_delta":
            message.update(as_dict(event.get("delta")))
            message["usage"] = {**as_dict(message.get("usage")), **_counts(event.get("usage"))}
        elif kind == "message_stop":
            content = [blocks[place].as_block() for place in sorted(blocks)]
            return {**message, "content": content}
        else:
            _take_block_event(kind, event, blocks)
    return faults.infra("stream_broken", _BROKEN)


def _take_block_event(kind: str, event: Mapping[str, Any], blocks: dict[int, _Item]) -> None:
    place = event.get("index")
    if not isinstance(place, int):
        return
    if kind == "content_block_start":
        blocks[place] = _Item(event.get("content_block"))
    elif kind == "content_block_delta" and place in blocks:
        delta = as_dict(event.get("delta"))
        if isinstance(delta.get("text"), str):
            blocks[place].said.append(delta["text"])
        elif isinstance(delta.get("partial_json"), str):
            blocks[place].json.append(delta["partial_json"])


def _counts(usage: Any) -> dict[str, Any]:
    return {key: value for key, value in as_dict(usage).items() if value is not None}


def _ollama(text: str, headers: Mapping[str, str]) -> _Whole:
    said: list[str] = []
    calls: list[Any] = []
    thought = False
    for line in lines_of_json(text):
        if fault := _error_in("", line, headers):
            return fault
        event = as_dict(line)
        message = as_dict(event.get("message"))
        if isinstance(message.get("content"), str):
            said.append(message["content"])
        thought = thought or bool(message.get("thinking"))
        calls.extend(as_list(message.get("tool_calls")))
        if event.get("done") is True:
            whole = {"role": "assistant", "content": "".join(said), "thinking": thought, "tool_calls": calls}
            return {**event, "message": whole}
    return faults.infra("stream_broken", _BROKEN)


def _error_in(name: str, chunk: Any, headers: Mapping[str, str]) -> Fault | None:
    """The fault of an event that is an error, of whatever form."""
    body = as_dict(as_list(chunk)[0]) if as_list(chunk) else as_dict(chunk)
    if body.get("error"):
        return faults.of_inner_error(body["error"], headers, where="error in a stream", name="stream_error")
    return _error_of_event(body, headers) if name == "error" or body.get("object") == "error" else None


def _error_of_event(event: Mapping[str, Any], headers: Mapping[str, str]) -> Fault:
    """The fault of an event named ``error``: nested under that name, or flat."""
    error = event.get("error") or {key: value for key, value in event.items() if (key, value) != ("type", "error")}
    return faults.of_inner_error(error, headers, where="error in a stream", name="stream_error")


_ASSEMBLERS: dict[Shape, Callable[[str, Mapping[str, str]], _Whole]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "ollama": _ollama,
}
