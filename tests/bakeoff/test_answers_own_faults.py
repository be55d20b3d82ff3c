"""What an answer owes to its model: refusals, filters, calls that came out malformed, thinking and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.bakeoff import Blame
from tests.bakeoff.answer_bodies import (
    ARGS,
    ONE,
    messages,
    ollama,
    response,
)
from tests.bakeoff.reading import call, calls_of, chat, read_said

OWN_FAULTS: list[tuple[str, Any, Any, str, bool]] = [
    ("refusal", "openai-chat", chat({"content": None, "refusal": "I can't."}), "refusal", True),
    ("content filter", "openai-chat", chat({"content": None}, "content_filter"), "content_filter", False),
    ("content filter, half a text", "openai-chat", chat({"content": "So"}, "content_filter"), "content_filter", False),
    (
        "Gemini",
        "openai-chat",
        chat({"content": None}, "function_call_filter: MALFORMED_FUNCTION_CALL"),
        "malformed_function_call",
        False,
    ),
    (
        "reasoning only",
        "openai-chat",
        chat({"content": None, "reasoning_content": "hm"}, "length"),
        "reasoning_only",
        False,
    ),
    (
        "reasoning only, in the text",
        "openai-chat",
        chat({"content": "<think>hm hm"}, "length"),
        "reasoning_only",
        False,
    ),
    (
        "responses: refusal",
        "openai-responses",
        response([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}]),
        "refusal",
        True,
    ),
    (
        "responses: filter",
        "openai-responses",
        response([], "incomplete", incomplete_details={"reason": "content_filter"}),
        "content_filter",
        False,
    ),
    (
        "responses: reasoning only",
        "openai-responses",
        response([{"type": "reasoning"}], "incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "reasoning_only",
        False,
    ),
    ("messages: refusal", "anthropic-messages", messages([], "refusal"), "refusal", True),
    (
        "messages: thinking only",
        "anthropic-messages",
        messages([{"type": "thinking", "thinking": "hm"}], "max_tokens"),
        "reasoning_only",
        False,
    ),
    ("ollama: thinking only", "ollama", ollama({"content": "", "thinking": "hm"}, "length"), "reasoning_only", False),
]


@pytest.mark.parametrize(
    ("shape", "body", "name", "well_formed"), [row[1:] for row in OWN_FAULTS], ids=[row[0] for row in OWN_FAULTS]
)
def test_what_is_the_models_own_fault(shape: Any, body: Any, name: str, well_formed: bool) -> None:
    reading = read_said(body, shape)
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name, reading.well_formed) == (Blame.MODEL, name, well_formed)
    assert (reading.broken is None) == (name in {"refusal", "content_filter"})


@pytest.mark.parametrize("message", [None, ...], ids=["null", "absent"])
@pytest.mark.parametrize(
    ("finish", "native", "name"),
    [
        ("malformed_function_call", None, "malformed_function_call"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", None, "malformed_function_call"),
        ("stop", "MALFORMED_FUNCTION_CALL", "malformed_function_call"),
        ("error", "MALFORMED_FUNCTION_CALL", "malformed_function_call"),
        ("content_filter", None, "content_filter"),
        ("stop", "SAFETY", "content_filter"),
    ],
)
def test_the_models_own_fault_needs_no_message(message: Any, finish: str, native: str | None, name: str) -> None:
    body = chat({}, finish)
    body["choices"][0] |= {"message": message, "native_finish_reason": native}
    if message is ...:
        del body["choices"][0]["message"]
    fault = read_said(body).fault
    assert fault is not None
    assert (fault.blame, fault.name) == (Blame.MODEL, name)


def test_no_message_is_the_models_doing_only_where_its_finish_reason_says_so() -> None:
    for finish, native, broken in (("length", None, "truncated"), ("stop", None, None), ("error", "length", None)):
        body = chat({}, finish)
        body["choices"][0] |= {"message": None, "native_finish_reason": native}
        reading = read_said(body)
        assert (reading.broken, reading.fault is None) == (broken, broken is not None)
        assert reading.fault is None or reading.fault.name == "error_in_200"


def test_a_routers_native_reason_counts_too() -> None:
    body = chat({"content": ""}, "stop")
    body["choices"][0]["native_finish_reason"] = "MALFORMED_FUNCTION_CALL"
    fault = read_said(body).fault
    assert fault is not None
    assert (fault.blame, fault.name) == (Blame.MODEL, "malformed_function_call")


def test_calls_beside_a_refusal_are_calls() -> None:
    reading = read_said(chat({"refusal": "no", "tool_calls": [call("f", ARGS)]}, "stop"))
    assert (calls_of(reading), reading.fault) == (ONE, None)
    assert reading.flags == ("stop-with-calls", "refusal-with-calls")
