"""Every row of the table "where a call is found", without streaming."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bakeoff.answer_bodies import (
    ARGS,
    FUNCTION_CALL,
    OLLAMA_CALL,
    ONE,
    SAID,
    TOOL_USE,
    messages,
    ollama,
    response,
)
from tests.bakeoff.reading import call, calls_of, chat, read_said

FOUND: list[tuple[str, Any, Any, list[tuple[str, Any]], str, tuple[str, ...]]] = [
    ("chat", "openai-chat", chat({"content": None, "tool_calls": [call("f", ARGS)]}, "tool_calls"), ONE, "", ()),
    (
        "chat: several calls and text",
        "openai-chat",
        chat({"content": "One moment.", "tool_calls": [call("f", ARGS), call("g", "{}", "b")]}, "tool_calls"),
        [*ONE, ("g", {})],
        "One moment.",
        (),
    ),
    (
        "chat: legacy function_call",
        "openai-chat",
        chat({"content": None, "function_call": {"name": "f", "arguments": ARGS}}, "function_call"),
        ONE,
        "",
        (),
    ),
    (
        "chat: legacy function_call beside an empty list",
        "openai-chat",
        chat({"function_call": {"name": "f", "arguments": ARGS}, "tool_calls": []}, None),
        ONE,
        "",
        (),
    ),
    ("chat: stop", "openai-chat", chat({"tool_calls": [call("f", ARGS)]}, "stop"), ONE, "", ("stop-with-calls",)),
    ("chat: no finish reason", "openai-chat", chat({"tool_calls": [call("f", ARGS)]}, None), ONE, "", ()),
    ("chat: length", "openai-chat", chat({"tool_calls": [call("f", ARGS)]}, "length"), ONE, "", ("length-with-calls",)),
    ("chat: filter", "openai-chat", chat({"tool_calls": [call("f", ARGS)]}, "content_filter"), ONE, "", ()),
    (
        "chat: empty list, finish reason of calls",
        "openai-chat",
        chat({"content": "No.", "tool_calls": []}, "tool_calls"),
        [],
        "No.",
        ("finish-without-calls",),
    ),
    ("chat: null list", "openai-chat", chat({"content": "Which city?", "tool_calls": None}), [], "Which city?", ()),
    ("Gemini: empty id", "openai-chat", chat({"tool_calls": [call("f", ARGS, "")]}, "tool_calls"), ONE, "", ()),
    (
        "Gemini: no id, no type",
        "openai-chat",
        chat({"tool_calls": [{"function": {"name": "f", "arguments": ARGS}}]}, "tool_calls"),
        ONE,
        "",
        (),
    ),
    (
        "Mistral: object, content in chunks",
        "openai-chat",
        chat(
            {
                "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "So: "}, "well"],
                "tool_calls": [call("f", {"a": 1})],
            },
            "tool_calls",
        ),
        ONE,
        "So: well",
        (),
    ),
    (
        "vLLM: a call only in the reasoning is none",
        "openai-chat",
        chat({"content": "Which city?", "reasoning_content": '<tool_call>{"name": "f", "arguments": {}}</tool_call>'}),
        [],
        "Which city?",
        (),
    ),
    (
        "OpenRouter",
        "openai-chat",
        chat(
            {"content": "", "reasoning_details": [{"type": "x"}], "tool_calls": [call("f", ARGS)]},
            "tool_calls",
            provider="DeepInfra",
        ),
        ONE,
        "",
        (),
    ),
    (
        "reasoning left in the text",
        "openai-chat",
        chat({"content": '<think>I call {"name": "f", "arguments": {}}</think>\nWhich city?'}),
        [],
        "Which city?",
        ("inline-reasoning",),
    ),
    (
        "Mistral's reasoning left in the text",
        "openai-chat",
        chat({"content": '[THINK]I call {"name": "f", "arguments": {}}[/THINK]Which city?'}),
        [],
        "Which city?",
        ("inline-reasoning",),
    ),
    (
        "a stray end of a thought is text",
        "openai-chat",
        chat({"content": "A thought ends by </thought> there. Which city?"}),
        [],
        "A thought ends by </thought> there. Which city?",
        (),
    ),
    (
        "reasoning whose opening stood in the prompt",
        "openai-chat",
        chat({"content": "hm, hm </think> Which city?"}),
        [],
        "Which city?",
        ("inline-reasoning",),
    ),
    ("Responses", "openai-responses", response([{"type": "reasoning"}, FUNCTION_CALL]), ONE, "", ()),
    (
        "Responses: siblings and text",
        "openai-responses",
        response([SAID, FUNCTION_CALL, {**FUNCTION_CALL, "name": "g", "arguments": ""}]),
        [*ONE, ("g", {})],
        "Hello.",
        (),
    ),
    ("Responses: text", "openai-responses", response([SAID]), [], "Hello.", ()),
    (
        "messages",
        "anthropic-messages",
        messages([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "So."}, TOOL_USE], "tool_use"),
        ONE,
        "So.",
        (),
    ),
    ("messages: end_turn", "anthropic-messages", messages([TOOL_USE]), ONE, "", ("stop-with-calls",)),
    (
        "messages: two",
        "anthropic-messages",
        messages([TOOL_USE, {**TOOL_USE, "name": "g", "input": {}}], "tool_use"),
        [*ONE, ("g", {})],
        "",
        (),
    ),
    (
        "messages: cut in the text behind a call",
        "anthropic-messages",
        messages([TOOL_USE, {"type": "text", "text": "and"}], "max_tokens"),
        ONE,
        "and",
        ("length-with-calls",),
    ),
    ("Ollama", "ollama", ollama({"content": "", "tool_calls": [OLLAMA_CALL]}), ONE, "", ()),
    (
        "Ollama: thinking and text",
        "ollama",
        ollama({"content": "Which?", "thinking": "hm"}),
        [],
        "Which?",
        (),
    ),
    ("Ollama: null arguments", "ollama", ollama({"tool_calls": [{"function": {"name": "f"}}]}), [("f", {})], "", ()),
]


@pytest.mark.parametrize(
    ("shape", "body", "calls", "text", "flags"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND]
)
def test_where_calls_are_found(shape: Any, body: Any, calls: Any, text: str, flags: Any) -> None:
    reading = read_said(body, shape)
    assert (calls_of(reading), reading.text, reading.flags) == (calls, text, flags)
    assert (reading.fault, reading.broken, reading.well_formed) == (None, None, True)
    assert reading.model == "served"


BROKEN: list[tuple[str, Any, Any, str]] = [
    ("no function", "openai-chat", chat({"tool_calls": [{"id": "x", "type": "function"}]}), "no-function"),
    ("null function", "openai-chat", chat({"tool_calls": [{"type": "function", "function": None}]}), "no-function"),
    ("null entry", "openai-chat", chat({"tool_calls": [None]}), "no-function"),
    ("an object for a list", "openai-chat", chat({"tool_calls": {"function": {"name": "f"}}}), "no-function"),
    ("no name", "openai-chat", chat({"tool_calls": [call("", "{}")]}), "no-function"),
    ("one of two broken", "openai-chat", chat({"tool_calls": [call("f", ARGS), call("g", '{"a')]}), "truncated"),
    ("cut arguments", "openai-chat", chat({"tool_calls": [call("f", '{"a": "x')]}, "length"), "truncated"),
    ("two objects", "openai-chat", chat({"tool_calls": [call("f", '{"a":1}{"a":2}')]}), "several-objects"),
    ("empty", "openai-chat", chat({"content": ""}), "empty"),
    ("blank", "openai-chat", chat({"content": " \n"}), "empty"),
    ("null", "openai-chat", chat({"content": None}), "empty"),
    ("nothing at all", "openai-chat", chat({}), "empty"),
    ("only reasoning, finished", "openai-chat", chat({"content": None, "reasoning": "hm"}), "empty"),
    ("text cut off", "openai-chat", chat({"content": "I would like to know wh"}, "length"), "truncated"),
    ("cut before anything", "openai-chat", chat({"content": ""}, "length"), "truncated"),
    (
        "attempted call",
        "openai-chat",
        chat({"content": '<tool_call>{"name":"f","arguments":{"i":}</tool_call>'}),
        "attempted-call",
    ),
    ("responses: empty", "openai-responses", response([]), "empty"),
    ("responses: free-form call", "openai-responses", response([{"type": "custom_tool_call"}]), "no-function"),
    (
        "responses: cut",
        "openai-responses",
        response([SAID], "incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "truncated",
    ),
    ("responses: cut, no reason", "openai-responses", response([SAID], "incomplete"), "truncated"),
    ("messages: empty", "anthropic-messages", messages([]), "empty"),
    ("messages: cut", "anthropic-messages", messages([{"type": "text", "text": "I wo"}], "max_tokens"), "truncated"),
    ("messages: cut in the last call", "anthropic-messages", messages([TOOL_USE], "max_tokens"), "truncated"),
    (
        "messages: context window",
        "anthropic-messages",
        messages([{"type": "text", "text": "I"}], "model_context_window_exceeded"),
        "truncated",
    ),
    ("messages: paused", "anthropic-messages", messages([{"type": "text", "text": "I"}], "pause_turn"), "truncated"),
    (
        "messages: input is a list",
        "anthropic-messages",
        messages([{**TOOL_USE, "input": [1]}], "tool_use"),
        "arguments",
    ),
    ("ollama: empty", "ollama", ollama({"content": ""}), "empty"),
    ("ollama: cut", "ollama", ollama({"content": "I wou"}, "length"), "truncated"),
    ("ollama: no function", "ollama", ollama({"tool_calls": [{"name": "f"}]}), "no-function"),
]


@pytest.mark.parametrize(("shape", "body", "name"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_format_failures(shape: Any, body: Any, name: str) -> None:
    reading = read_said(body, shape)
    assert (reading.broken, reading.well_formed, reading.fault) == (name, False, None)
    assert reading.broken_detail


def test_an_answer_nested_beyond_reason_is_a_format_failure() -> None:
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    body = '{"message": {"tool_calls": [{"function": {"name": "f", "arguments": ' + deep + "}}]}}"
    assert read_said(body, "ollama").broken == "too-deep"
    less = '{"a":' * 100 + "1" + "}" * 100
    body = body.replace(deep, less).replace("}}]}}", '}}]}, "done": true}')
    assert read_said(body, "ollama").broken == "too-deep"


def test_objects_given_are_looked_at_as_closely_as_text() -> None:
    for number in ("NaN", "-Infinity", "1e999", "9" * 5000):
        body = f'{{"message": {{"tool_calls": [{{"function": {{"name": "f", "arguments": {{"a": {number}}}}}}}]}}}}'
        assert read_said(body, "ollama").broken == "number"
    body = '{"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "a": 2}}}]}, "done": true}'
    reading = read_said(body, "ollama")
    assert calls_of(reading) == [("f", {"a": 2})]
    assert (reading.flags, reading.well_formed) == (("duplicate-keys",), True)
    assert type(reading.calls[0].arguments) is dict


def test_a_call_that_cannot_be_read_was_there_all_the_same() -> None:
    assert read_said(chat({"tool_calls": [call("f", '{"a')]}, "tool_calls")).flags == ()


def test_repaired_answers_are_flagged_and_not_well_formed() -> None:
    reading = read_said(chat({"tool_calls": [call("f", '{"a": 1,}'), call("g", '"{}"')]}, "tool_calls"))
    assert [one.flags for one in reading.calls] == [("repaired",), ("unwrapped",)]
    assert (reading.flags, reading.well_formed, reading.broken) == (("repaired", "unwrapped"), False, None)


def test_choices_are_sorted_by_index_and_the_first_is_read() -> None:
    body = chat({"content": "second"})
    body["choices"][0]["index"] = 1
    body["choices"].append({"index": 0, "message": {"tool_calls": [call("f", ARGS)]}, "finish_reason": "tool_calls"})
    reading = read_said(body)
    assert (calls_of(reading), reading.text, reading.flags) == (ONE, "", ("several-choices",))


@pytest.mark.parametrize("name", ["f<|channel|>commentary", "f<|message|>", "f</tool_call>", "<\uff5cf"])
def test_template_leakage_in_a_name_is_kept_and_tagged(name: str) -> None:
    reading = read_said(chat({"tool_calls": [call(name, "{}")]}, "tool_calls"))
    assert [(one.name, one.flags) for one in reading.calls] == [(name, ("template-leak",))]
    assert reading.flags == ("template-leak",)


@pytest.mark.parametrize("name", ["math.factorial", "a-b", "x:y", "größe", "f g", "functions.f"])
def test_other_names_are_not_tagged(name: str) -> None:
    assert read_said(chat({"tool_calls": [call(name, "{}")]}, "tool_calls")).flags == ()


def test_what_the_serving_side_says_of_itself() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    more: dict[str, Any] = {"system_fingerprint": "fp_1", "provider": "DeepInfra", "usage": usage}
    reading = read_said(chat({"content": "x"}, **more))
    assert reading.provenance == ("system_fingerprint=fp_1", "provider=DeepInfra")
    assert (reading.input_tokens, reading.cached_tokens, reading.output_tokens) == (100, 64, 7)
    assert (reading.model, reading.finish) == ("served", "stop")
    other = read_said(chat({"content": "x"}, usage={"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}))
    assert (other.input_tokens, other.cached_tokens, other.output_tokens) == (9, 4, None)


def test_tokens_of_the_other_surfaces() -> None:
    said = messages([{"type": "text", "text": "x"}], cache_read_input_tokens=40, cache_creation_input_tokens=3)
    of_messages = read_said(said, "anthropic-messages")
    assert (of_messages.input_tokens, of_messages.cached_tokens, of_messages.output_tokens) == (53, 40, 5)
    of_responses = read_said(response([SAID]), "openai-responses")
    assert (of_responses.input_tokens, of_responses.cached_tokens, of_responses.output_tokens) == (10, 4, 5)
    of_ollama = read_said(ollama({"content": "x"}), "ollama")
    assert (of_ollama.input_tokens, of_ollama.cached_tokens, of_ollama.output_tokens) == (10, None, 5)


@pytest.mark.parametrize("count", [-1, 1.5, "7", True, None, 10**30, [], {}])
def test_numbers_of_tokens_that_are_none(count: Any) -> None:
    assert read_said(chat({"content": "x"}, usage={"prompt_tokens": count})).input_tokens is None


def test_bytes_that_are_no_utf8_are_replaced_and_flagged() -> None:
    body = json.dumps(chat({"content": "Which?"})).encode().replace(b"Which?", b"Wh\xff\xfe?")
    reading = read_said(body)
    assert (reading.text, reading.flags) == ("Wh\ufffd\ufffd?", ("not-utf-8",))


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_said(b"\xef\xbb\xbf" + json.dumps(chat({"content": "x"})).encode()).text == "x"


def test_lone_surrogates_never_leave_the_reader() -> None:
    body = '{"model": "m\\ud800", "choices": [{"message": {"content": "\\udfff", "tool_calls": [{"function": '
    body += '{"name": "f\\ud800", "arguments": "{\\"a\\": \\"\\\\ud800\\ud801\\"}"}}]}, "finish_reason": "\\ud800"}]}'
    reading = read_said(body)
    repr_of = f"{reading.model}{reading.text}{reading.finish}{reading.calls[0].name}{reading.calls[0].arguments}"
    assert repr_of.encode("utf-8").count("\ufffd".encode()) == 6
