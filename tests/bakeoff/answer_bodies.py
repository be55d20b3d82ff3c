"""Answers of Anthropic's messages, OpenAI's Responses and Ollama, as their servers send them."""

from __future__ import annotations

from typing import Any

ONE = [("f", {"a": 1})]
ARGS = '{"a": 1}'


def messages(content: list[dict[str, Any]], stop: str = "end_turn", **usage: int) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
    }


def response(output: list[dict[str, Any]], status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5, "total_tokens": 15}
    body = {"id": "resp_1", "object": "response", "status": status, "model": "served", "output": output}
    return {**body, "error": None, "incomplete_details": None, "usage": usage, **more}


def ollama(message: dict[str, Any], reason: str = "stop", *, done: bool = True) -> dict[str, Any]:
    body = {"model": "served", "created_at": "x", "message": {"role": "assistant", **message}, "done": done}
    return {**body, "done_reason": reason, "prompt_eval_count": 10, "eval_count": 5}


FUNCTION_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": ARGS}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
OLLAMA_CALL = {"function": {"name": "f", "arguments": {"a": 1}}}
