"""How four surfaces ask a model and are answered: requests read into one shape, answers said as JSON or streamed.

Written from the published descriptions of the surfaces and from what the clients of the tests were seen to send.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
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


# --- chat completions


def read_chat(body: Json) -> Turn:
    messages: list[Json] = body.get("messages") or []
    names = {c["id"]: c["function"]["name"] for m in messages for c in m.get("tool_calls") or []}
    form = body.get("response_format") or {}
    return Turn(
        dialect="openai-chat",
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        text="\n".join(text_of(m.get("content")) for m in messages if m.get("role") not in {"assistant", "tool"}),
        tools=tuple(
            Tool(t["function"]["name"], t["function"].get("parameters") or {})
            for t in body.get("tools") or []
            if t.get("type") == "function"
        ),
        done=tuple(
            Done(names.get(m.get("tool_call_id", ""), "?"), text_of(m.get("content")))
            for m in messages
            if m.get("role") == "tool"
        ),
        said=tuple(text_of(m.get("content")) for m in messages if m.get("role") == "assistant"),
        schema=(form.get("json_schema") or {}).get("schema") or ({} if form.get("type") == "json_object" else None),
        wants_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _chat_usage(usage: Counted) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _chat_call(call: Call) -> Json:
    spoken = {"name": call.tool.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": spoken}


def _chat_base(turn: Turn, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex[:24]}",
        "object": kind,
        "created": int(time.time()),
        "model": turn.model,
        "system_fingerprint": "fp_scripted",
    }


def chat_json(turn: Turn, answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.call:
        message["tool_calls"] = [_chat_call(answer.call)]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if answer.call else "stop",
    }
    return _chat_base(turn, "chat.completion") | {"choices": [choice], "usage": _chat_usage(answer.usage)}


def chat_stream(turn: Turn, answer: Answer) -> Iterator[str]:
    base = _chat_base(turn, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> str:
        return event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.text):
        yield chunk({"content": piece})
    if answer.call:
        whole = _chat_call(answer.call)
        said = whole["function"]["arguments"]
        first = whole | {"function": {"name": answer.call.tool.name, "arguments": ""}}
        yield chunk({"tool_calls": [{"index": 0} | first]})
        for piece in pieces(said):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if answer.call else "stop")
    if turn.wants_usage:
        yield event(base | {"choices": [], "usage": _chat_usage(answer.usage)})
    yield "data: [DONE]\n\n"


# --- responses


def read_responses(body: Json) -> Turn:
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    names = {i["call_id"]: i.get("name", "local_shell") for i in items if "call_id" in i and "output" not in i}
    said = [i for i in items if i.get("type", "message") == "message"]
    form = (body.get("text") or {}).get("format") or {}
    return Turn(
        dialect="openai-responses",
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        text="\n".join(
            [
                str(body.get("instructions") or ""),
                *(text_of(i.get("content")) for i in said if i.get("role") != "assistant"),
            ]
        ),
        tools=tuple(
            Tool(t.get("name") or t["type"], t.get("parameters") or {}, t.get("type", "function"))
            for t in body.get("tools") or []
        ),
        done=tuple(
            Done(names.get(i["call_id"], "?"), i["output"] if isinstance(i["output"], str) else text_of(i["output"]))
            for i in items
            if "output" in i and "call_id" in i
        ),
        said=tuple(text_of(i.get("content")) for i in said if i.get("role") == "assistant"),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
    )


def _responses_usage(usage: Counted) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _responses_items(answer: Answer) -> list[Json]:
    message = {
        "type": "message",
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
    }
    if answer.call is None:
        return [message]
    call: Json = {"id": f"fc_{uuid.uuid4().hex[:24]}", "call_id": answer.call.id, "status": "completed"}
    if answer.call.tool.kind == "local_shell":
        action = {"type": "exec", "env": {}} | answer.call.arguments
        return [message, call | {"type": "local_shell_call", "action": action}]
    spoken = {"name": answer.call.tool.name, "arguments": json.dumps(answer.call.arguments)}
    return [message, call | {"type": "function_call"} | spoken]


def responses_json(turn: Turn, answer: Answer) -> Json:
    return {
        "id": f"resp_{uuid.uuid4().hex[:24]}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": turn.model,
        "output": _responses_items(answer),
        "parallel_tool_calls": False,
        "usage": _responses_usage(answer.usage),
    }


def responses_stream(turn: Turn, answer: Answer) -> Iterator[str]:
    whole = responses_json(turn, answer)
    draft = whole | {"status": "in_progress", "output": [], "usage": None}
    number = 0

    def said(name: str, **data: object) -> str:
        nonlocal number
        number += 1
        return event({"type": name, "sequence_number": number - 1} | data, name)

    yield said("response.created", response=draft)
    yield said("response.in_progress", response=draft)
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        begun = item | {"status": "in_progress"}
        if item["type"] == "message":
            part = item["content"][0]
            yield said("response.output_item.added", output_index=index, item=begun | {"content": []})
            yield said("response.content_part.added", **place, content_index=0, part=part | {"text": ""})
            for piece in pieces(answer.text):
                yield said("response.output_text.delta", **place, content_index=0, delta=piece)
            yield said("response.output_text.done", **place, content_index=0, text=answer.text)
            yield said("response.content_part.done", **place, content_index=0, part=part)
        elif item["type"] == "function_call":
            yield said("response.output_item.added", output_index=index, item=begun | {"arguments": ""})
            for piece in pieces(item["arguments"]):
                yield said("response.function_call_arguments.delta", **place, delta=piece)
            yield said("response.function_call_arguments.done", **place, arguments=item["arguments"])
        else:
            yield said("response.output_item.added", output_index=index, item=begun)
        yield said("response.output_item.done", output_index=index, item=item)
    yield said("response.completed", response=whole)


# --- messages


def read_messages(body: Json) -> Turn:
    messages: list[Json] = body.get("messages") or []
    blocks = [b for m in messages if isinstance(m.get("content"), list) for b in m["content"]]
    names = {b["id"]: b["name"] for b in blocks if b.get("type") == "tool_use"}
    users = [m for m in messages if m.get("role") != "assistant"]
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return Turn(
        dialect="anthropic-messages",
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        text="\n".join([text_of(body.get("system")), *(text_of(m.get("content")) for m in users)]),
        tools=tuple(
            Tool(t["name"], t.get("input_schema") or {}, t.get("type", "custom")) for t in body.get("tools") or []
        ),
        done=tuple(
            Done(names.get(b.get("tool_use_id", ""), "?"), text_of(b.get("content")))
            for b in blocks
            if b.get("type") == "tool_result"
        ),
        said=tuple(text_of(m.get("content")) for m in messages if m.get("role") == "assistant"),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
    )


def _messages_usage(usage: Counted) -> Json:
    return {
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def messages_json(turn: Turn, answer: Answer) -> Json:
    content: list[Json] = [{"type": "text", "text": answer.text}]
    if answer.call:
        content.append(
            {
                "type": "tool_use",
                "id": answer.call.id.replace("call_", "toolu_"),
                "name": answer.call.tool.name,
                "input": answer.call.arguments,
            }
        )
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": "tool_use" if answer.call else "end_turn",
        "stop_sequence": None,
        "usage": _messages_usage(answer.usage),
    }


def messages_stream(turn: Turn, answer: Answer) -> Iterator[str]:
    whole = messages_json(turn, answer)
    usage = whole["usage"]

    def said(name: str, **data: object) -> str:
        return event({"type": name} | data, name)

    begun = whole | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield said("message_start", message=begun)
    yield said("ping")
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield said("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for piece in pieces(block["text"]):
                yield said("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        else:
            yield said("content_block_start", index=index, content_block=block | {"input": {}})
            for piece in pieces(json.dumps(block["input"])):
                yield said(
                    "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece}
                )
        yield said("content_block_stop", index=index)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield said("message_delta", delta=ended, usage={"output_tokens": usage["output_tokens"]})
    yield said("message_stop")


# --- generateContent


def read_gemini(body: Json) -> Turn:
    contents: list[Json] = body.get("contents") or []
    parts = [p for c in contents for p in c.get("parts") or []]
    settings = body.get("generationConfig") or {}
    declared = [d for t in body.get("tools") or [] for d in t.get("functionDeclarations") or []]
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    users = [p for c in contents if c.get("role") != "model" for p in c.get("parts") or []]
    wants_json = settings.get("responseMimeType") == "application/json"
    answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
    return Turn(
        dialect="gemini",
        model="",
        stream=False,
        text="\n".join(str(p.get("text", "")) for p in [*(system.get("parts") or []), *users]),
        tools=tuple(Tool(d["name"], d.get("parametersJsonSchema") or d.get("parameters") or {}) for d in declared),
        done=tuple(Done(a["name"], json.dumps(a.get("response"))) for a in answers),
        said=tuple(text_of(c.get("parts")) for c in contents if c.get("role") == "model"),
        schema=settings.get("responseJsonSchema") or settings.get("responseSchema") or ({} if wants_json else None),
    )


def _gemini_frame(turn: Turn, parts: list[Json], finish: str | None, usage: Counted | None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    frame: Json = {"candidates": [candidate], "modelVersion": turn.model, "responseId": uuid.uuid4().hex[:22]}
    if finish:
        candidate["finishReason"] = finish
    if usage:
        frame["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
            "cachedContentTokenCount": usage.cached,
        }
    return frame


def _gemini_call(answer: Answer) -> list[Json]:
    if answer.call is None:
        return []
    return [{"functionCall": {"name": answer.call.tool.name, "args": answer.call.arguments}}]


def gemini_json(turn: Turn, answer: Answer) -> Json:
    return _gemini_frame(turn, [{"text": answer.text}, *_gemini_call(answer)], "STOP", answer.usage)


def gemini_stream(turn: Turn, answer: Answer) -> Iterator[str]:
    for piece in pieces(answer.text):
        yield event(_gemini_frame(turn, [{"text": piece}], None, None))
    yield event(_gemini_frame(turn, _gemini_call(answer) or [{"text": ""}], "STOP", answer.usage))


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
