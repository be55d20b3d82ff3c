"""What the scripted server says, surface by surface: answers, refusals, errors and streams in each provider's shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

SurfaceName = Literal["openai-chat", "openai-responses", "anthropic-messages", "ollama"]

#: One call: the name and its arguments, an object or (to play broken ones) the raw text of them.
Spoken = tuple[str, Any]


def arguments_text(arguments: Any) -> str:
    """Arguments as the JSON string in which OpenAI's surfaces carry them."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def chat_call(index: int, call: Spoken) -> dict[str, Any]:
    function = {"name": call[0], "arguments": arguments_text(call[1])}
    return {"id": f"call_{index}", "type": "function", "function": function}


def chat_message(message: dict[str, Any], model: str, finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "system_fingerprint": "fp_scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 15, "total_tokens": 135},
    }


def answer(surface: SurfaceName, model: str, calls: Sequence[Spoken], text: str | None = None) -> dict[str, Any]:
    """A sound answer: these calls, this text."""
    if surface == "openai-chat":
        message: dict[str, Any] = {"content": text}
        if calls:
            message["tool_calls"] = [chat_call(index, call) for index, call in enumerate(calls)]
        return chat_message(message, model, "tool_calls" if calls else "stop")
    if surface == "openai-responses":
        output: list[dict[str, Any]] = []
        if text is not None:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            output.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
        output += [
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": f"call_{i}",
                "name": n,
                "arguments": arguments_text(a),
            }
            for i, (n, a) in enumerate(calls)
        ]
        return responses_body(output, model)
    if surface == "anthropic-messages":
        content = [{"type": "text", "text": text}] if text is not None else []
        content += [{"type": "tool_use", "id": f"toolu_{i}", "name": n, "input": a} for i, (n, a) in enumerate(calls)]
        return messages_body(content, model, "tool_use" if calls else "end_turn")
    message = {"role": "assistant", "content": text or ""}
    if calls:
        message["tool_calls"] = [{"function": {"name": n, "arguments": a}} for n, a in calls]
    return ollama_body(message, model)


def responses_body(output: list[dict[str, Any]], model: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 120, "output_tokens": 15, "total_tokens": 135}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": model, "output": output}
    return body | {"error": None, "incomplete_details": None, "usage": usage} | more


def messages_body(content: list[dict[str, Any]], model: str, stop: str) -> dict[str, Any]:
    usage = {"input_tokens": 120, "output_tokens": 15}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    return body | {"stop_reason": stop, "stop_sequence": None, "usage": usage}


def ollama_body(message: dict[str, Any], model: str, done_reason: str = "stop") -> dict[str, Any]:
    body = {"model": model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}
    return body | {"done_reason": done_reason, "prompt_eval_count": 120, "eval_count": 15, "total_duration": 1}


def refusal(surface: SurfaceName, model: str) -> dict[str, Any]:
    """A refusal in the surface's own way."""
    words = "I cannot help with that."
    if surface == "openai-chat":
        return chat_message({"content": None, "refusal": words}, model)
    if surface == "openai-responses":
        content = [{"type": "refusal", "refusal": words}]
        return responses_body([{"type": "message", "role": "assistant", "content": content}], model)
    if surface == "anthropic-messages":
        return messages_body([], model, "refusal")
    return ollama_body({"role": "assistant", "content": words}, model)


def reasoning_only(surface: SurfaceName, model: str) -> dict[str, Any]:
    """The budget went into reasoning: nothing else was said."""
    if surface == "openai-chat":
        return chat_message({"content": None, "reasoning_content": "Hmm. Let me think"}, model, "length")
    if surface == "openai-responses":
        reasoning = [{"type": "reasoning", "summary": []}]
        return responses_body(reasoning, model, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    if surface == "anthropic-messages":
        return messages_body([{"type": "thinking", "thinking": "Hmm.", "signature": ""}], model, "max_tokens")
    return ollama_body({"role": "assistant", "content": "", "thinking": "Hmm."}, model, "length")


def error(surface: SurfaceName, status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """An error body in the surface's shape."""
    if surface == "anthropic-messages":
        return {"type": "error", "error": {"type": code or "api_error", "message": message}, "request_id": "req_1"}
    if surface == "ollama":
        return {"error": message}
    return {"error": {"message": message, "type": "error", "param": None, "code": code or status}}


def nothing_in_it(surface: SurfaceName, model: str) -> dict[str, Any]:
    """HTTP 200 with null where the answer should be."""
    body = answer(surface, model, [], "x")
    key = {"openai-chat": "choices", "openai-responses": "output", "anthropic-messages": "content"}.get(
        surface, "message"
    )
    return body | {key: None}


# --- streams ---------------------------------------------------------------------------------------------------------


def _sse(data: Any, event: str | None = None) -> bytes:
    head = "" if event is None else f"event: {event}\n"
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n".encode()


def stream(
    surface: SurfaceName, model: str, calls: Sequence[Spoken], *, index0: bool = False, text: str | None = None
) -> list[bytes]:
    """The same answer as a stream of events, the arguments in two halves; the last element is the end mark."""
    if surface == "openai-chat":
        return _chat_stream(model, calls, index0=index0, text=text)
    if surface == "anthropic-messages":
        return _messages_stream(model, calls, text)
    if surface == "openai-responses":
        return _responses_stream(model, calls, text)
    whole = answer("ollama", model, calls, text)
    first = whole | {"done": False}
    for key in ("done_reason", "prompt_eval_count", "eval_count"):
        first.pop(key)
    last = ollama_body({"role": "assistant", "content": ""}, model)
    return [json.dumps(part, ensure_ascii=False).encode() + b"\n" for part in (first, last)]


def _chat_chunk(model: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _sse({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]})


def _chat_stream(model: str, calls: Sequence[Spoken], *, index0: bool, text: str | None) -> list[bytes]:
    out = [_chat_chunk(model, {"role": "assistant", "content": text})]
    for number, (name, arguments) in enumerate(calls):
        raw = arguments_text(arguments)
        half = len(raw) // 2
        index = 0 if index0 else number
        opened = {"index": index, "id": f"call_{number}", "type": "function"}
        out.append(_chat_chunk(model, {"tool_calls": [opened | {"function": {"name": name, "arguments": raw[:half]}}]}))
        rest: dict[str, Any] = {"index": index, "function": {"arguments": raw[half:]}}
        if index0:
            rest["id"] = f"call_{number}"
        out.append(_chat_chunk(model, {"tool_calls": [rest]}))
    out.append(_chat_chunk(model, {}, "tool_calls" if calls else "stop"))
    return [*out, _sse("[DONE]")]


def _messages_stream(model: str, calls: Sequence[Spoken], text: str | None) -> list[bytes]:
    opening = messages_body([], model, "") | {"stop_reason": None}
    out = [_sse({"type": "message_start", "message": opening}, "message_start")]

    def event(kind: str, **more: Any) -> None:
        out.append(_sse({"type": kind, **more}, kind))

    index = 0
    if text is not None:
        event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
        event("content_block_stop", index=index)
        index += 1
    for name, arguments in calls:
        raw = arguments_text(arguments)
        half = len(raw) // 2
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        event("content_block_start", index=index, content_block=block)
        for part in (raw[:half], raw[half:]):
            event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": part})
        event("content_block_stop", index=index)
        index += 1
    stop = "tool_use" if calls else "end_turn"
    event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 15})
    event("message_stop")
    return out


def _responses_stream(model: str, calls: Sequence[Spoken], text: str | None) -> list[bytes]:
    whole = answer("openai-responses", model, calls, text)
    out = [
        _sse(
            {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
            "response.created",
        )
    ]

    def event(kind: str, **more: Any) -> None:
        out.append(_sse({"type": kind, **more}, kind))

    for index, item in enumerate(whole["output"]):
        if item["type"] == "function_call":
            event("response.output_item.added", output_index=index, item=item | {"arguments": ""})
            raw = item["arguments"]
            for part in (raw[: len(raw) // 2], raw[len(raw) // 2 :]):
                kind = "response.function_call_arguments.delta"
                event(kind, item_id=item["id"], output_index=index, delta=part)
        event("response.output_item.done", output_index=index, item=item)
    event("response.completed", response=whole)
    return out


def stream_error(surface: SurfaceName, message: str) -> bytes:
    """An error event inside a stream that began well."""
    if surface == "anthropic-messages":
        return _sse({"type": "error", "error": {"type": "overloaded_error", "message": message}}, "error")
    if surface == "openai-responses":
        return _sse({"type": "error", "code": "server_error", "message": message}, "error")
    if surface == "ollama":
        return json.dumps({"error": message}).encode() + b"\n"
    return _sse({"error": {"message": message, "type": "server_error", "code": 502}})
