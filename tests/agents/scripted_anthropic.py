"""Anthropic's messages: a request read, an answer said as JSON or streamed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from tests.agents.scripted_turns import Answer, Counted, Done, Json, Tool, Turn, event, pieces, text_of


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
