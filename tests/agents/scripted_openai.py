"""OpenAI's two surfaces, chat completions and Responses: a request read, an answer said as JSON or streamed."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

from tests.agents.scripted_turns import Answer, Call, Counted, Done, Json, Tool, Turn, event, pieces, text_of

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
