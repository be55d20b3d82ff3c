"""Tokens read from what upstreams say of them, and streams that pass through while they are read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.keys.gateway import metering
from referee.adapters.keys.gateway.metering import Events, read_answer
from referee.core.spending import Dialect, Usage
from tests.keys.scripted_upstream import chat, chat_events


def usage_of(dialect: Dialect, document: Any) -> Usage | None:
    metered = read_answer(dialect, json.dumps(document).encode())
    return None if metered is None else metered.usage


@pytest.mark.parametrize(
    ("dialect", "told", "usage"),
    [
        ("openai-chat", {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, Usage(input=9, output=3)),
        # Thoughts that stand in the total only.
        ("openai-chat", {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 52}, Usage(input=9, output=43)),
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4},
            Usage(input=9, output=3, cached_input=4),
        ),
        (
            "openai-chat",
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            },
            Usage(input=9, output=3, cached_input=4, cache_write=2),
        ),
        # More from the cache than there is input in all: it is told beside the rest.
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 40}},
            Usage(input=49, output=3, cached_input=40),
        ),
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 52, "cache_read_input_tokens": 40},
            Usage(input=49, output=3, cached_input=40),
        ),
        (
            "openai-responses",
            {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 40}},
            Usage(input=49, output=3, cached_input=40),
        ),
        # What is written to a cache is dearer, whatever its name.
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "cache_creation_input_tokens": 4},
            Usage(input=9, output=3, cache_write=4),
        ),
        (
            "anthropic-messages",
            {"input_tokens": 9, "output_tokens": 3, "cache_creation": {"ephemeral_5m_input_tokens": 4}},
            Usage(input=13, output=3, cache_write=4),
        ),
        # Thoughts beside the output, which no total tells.
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 40}},
            Usage(input=9, output=43),
        ),
        ("openai-responses", {"input_tokens": 9, "output_tokens": 3, "total_tokens": 52}, Usage(input=9, output=43)),
        (
            "openai-responses",
            {"input_tokens": 9, "output_tokens": 43, "output_tokens_details": {"reasoning_tokens": 40}},
            Usage(input=9, output=43),
        ),
        (
            "openai-chat",
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": None},
            Usage(input=9, output=3),
        ),
        ("openai-responses", {"input_tokens": 9, "output_tokens": 3}, Usage(input=9, output=3)),
        (
            "anthropic-messages",
            {"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": None},
            Usage(input=9, output=3),
        ),
    ],
)
def test_usage_is_read(dialect: Dialect, told: dict[str, Any], usage: Usage) -> None:
    assert usage_of(dialect, {"usage": told}) == usage


@pytest.mark.parametrize(
    ("dialect", "document"),
    [
        ("openai-chat", {"usage": None}),
        ("openai-chat", {}),
        ("openai-chat", []),
        ("openai-chat", "usage"),
        ("openai-chat", {"usage": {"completion_tokens": 3}}),
        ("openai-chat", {"usage": {"prompt_tokens": -9, "completion_tokens": 3}}),
        ("openai-chat", {"usage": {"prompt_tokens": "9", "completion_tokens": 3}}),
        ("openai-chat", {"usage": {"prompt_tokens": 9.5, "completion_tokens": 3}}),
        ("openai-chat", {"usage": {"prompt_tokens": True, "completion_tokens": 3}}),
        ("openai-chat", {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
        ("openai-chat", {"usage": {"prompt_tokens": 9}}),
        ("openai-chat", {"usage": {"prompt_tokens": 9, "completion_tokens": None, "total_tokens": None}}),
        ("openai-chat", {"usage": {"prompt_tokens": 0, "completion_tokens": 3}}),
        ("openai-responses", {"usage": {"input_tokens": 9}}),
        ("anthropic-messages", {"usage": {"input_tokens": 9}}),
        ("gemini", {"usageMetadata": {"candidatesTokenCount": 9}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 9}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 3}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": float("inf")}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": float("nan")}}),
        ("openai-chat", {"usage": {"prompt_tokens": 10**400, "completion_tokens": 3}}),
    ],
)
def test_what_is_no_count_is_no_usage(dialect: Dialect, document: Any) -> None:
    assert usage_of(dialect, document) is None


def test_what_is_no_json_is_no_usage() -> None:
    assert read_answer("openai-chat", b"<html>") is None
    assert read_answer("openai-chat", b"[" * 100_000) is None


def test_what_is_written_to_a_cache_for_an_hour_is_told_apart() -> None:
    told = {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    }
    metered = read_answer("anthropic-messages", json.dumps({"usage": told}).encode())
    assert metered is not None
    assert metered.usage == Usage(input=31, output=1, cache_write=30, cache_write_long=20)


def test_a_later_event_with_zeros_does_not_undo_an_earlier_one() -> None:
    events = Events("anthropic-messages", strip_usage=False)
    for told in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 90, "output_tokens": 1}}},
        {"type": "message_delta", "usage": {"input_tokens": 0, "output_tokens": 7}},
    ):
        events.through(b"data: " + json.dumps(told).encode() + b"\n\n")
    metered = events.metered(ended=True)
    assert metered is not None
    assert metered.usage == Usage(input=90, output=7)


ENDS = st.sampled_from([b"\n\n", b"\r\n\r\n"])


@given(st.lists(st.integers(1, 40), max_size=60), ENDS, st.booleans())
def test_however_a_stream_is_cut_it_comes_out_whole_and_counted(cuts: list[int], end: bytes, strip: bool) -> None:
    sent = [event.replace(b"\n\n", end) for event in chat_events(200, 20)]
    whole = b"".join(sent)
    events = Events("openai-chat", strip_usage=strip)
    out, at = b"", 0
    for cut in [*cuts, len(whole)]:
        out += events.through(whole[at : at + cut])
        at += cut
    out += events.end()
    metered = events.metered(ended=True)
    assert metered is not None
    assert metered.usage == Usage(input=200, output=20)
    assert out == (b"".join([*sent[:2], sent[3]]) if strip else whole)


def test_usage_in_an_event_that_says_more_is_read_and_left_in() -> None:
    event = b"data: " + json.dumps(chat(9, 3)).encode() + b"\n\n"
    events = Events("openai-chat", strip_usage=True)
    assert events.through(event) == event
    assert events.metered(ended=True) is not None


def test_a_last_event_without_its_end_is_read_too() -> None:
    events = Events("openai-chat", strip_usage=True)
    first, _, usage, _ = chat_events(9, 3)
    assert events.through(first + usage.rstrip()) == first
    assert events.end() == b""
    assert events.metered(ended=True) is not None


def test_a_stream_whose_one_event_is_too_long_to_be_read_passes_and_tells_no_usage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metering, "MOST_READ", 1000)
    events = Events("openai-chat", strip_usage=True)
    long = b"data: " + b"a" * 3000
    assert events.through(long) + events.through(b"b\n\n" + chat_events(9, 3)[2]) + events.end() == long + b"b\n\n"
    assert events.metered(ended=True) is None


def told(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


CHUNK = {"prompt_tokens": 9, "completion_tokens": 3}
FIRST_AND_LAST: list[tuple[Dialect, dict[str, Any], dict[str, Any]]] = [
    (
        "openai-chat",
        {"choices": [{"finish_reason": None}], "usage": {**CHUNK, "completion_tokens": 1}},
        {"choices": [{"finish_reason": "stop"}], "usage": CHUNK},
    ),
    (
        "openai-responses",
        {"type": "response.in_progress", "response": {"usage": {"input_tokens": 9, "output_tokens": 0}}},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": 3}}},
    ),
    (
        "anthropic-messages",
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "message_delta", "usage": {"output_tokens": 3}},
    ),
    (
        "gemini",
        {"candidates": [{}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}},
        {
            "candidates": [{"finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
        },
    ),
]


@pytest.mark.parametrize(("dialect", "first", "last"), FIRST_AND_LAST)
def test_counts_on_the_way_are_not_those_of_the_whole_answer(
    dialect: Dialect, first: dict[str, Any], last: dict[str, Any]
) -> None:
    events = Events(dialect, strip_usage=False)
    events.through(told(first))
    assert events.metered(ended=False) is None
    events.through(told(last))
    metered = events.metered(ended=False)
    assert metered is not None
    assert metered.usage == Usage(input=9, output=3)


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-responses"])
def test_a_stream_that_ends_with_an_error_after_first_counts_tells_no_usage(dialect: Dialect) -> None:
    (first,) = (first for one, first, _ in FIRST_AND_LAST if one == dialect)
    events = Events(dialect, strip_usage=False)
    events.through(told(first) + told({"type": "error", "error": {"type": "overloaded_error"}}))
    events.end()
    assert events.metered(ended=True) is None
