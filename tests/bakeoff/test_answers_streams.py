"""Streams put together: server-sent events of three surfaces, and Ollama's lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.answers import Reading
from referee.core.bakeoff import Blame, Shape
from referee.scoring.answers import joining
from referee.scoring.answers.arguments import read_arguments
from tests.bakeoff.reading import calls_of, read_said

DONE = "data: [DONE]\n\n"


def sse(*events: Any, name: bool = False) -> str:
    return "".join((f"event: {event['type']}\n" if name else "") + f"data: {json.dumps(event)}\n\n" for event in events)


def delta(finish: str | None = None, index: int = 0, **said: Any) -> dict[str, Any]:
    return {"model": "served", "choices": [{"index": index, "delta": said, "finish_reason": finish}]}


def piece(
    index: int | None = 0, ident: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {"index": index, "id": ident, "function": function}
    return {key: value for key, value in entry.items() if value is not None}


def of(text: str | bytes, shape: Shape = "openai-chat", **more: Any) -> Reading:
    return read_said(text, shape, streamed=True, **more)


def of_pieces(*pieces: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    reading = of(sse(*(delta(tool_calls=[one]) for one in pieces), delta("tool_calls")) + DONE)
    assert (reading.fault, reading.broken) == (None, None)
    return calls_of(reading)


TWO = [("f", {"a": 1}), ("g", {"b": 2})]

PIECES: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "as documented",
        [
            piece(0, "c0", "f", ""),
            piece(0, None, None, '{"a"'),
            piece(0, None, None, ": 1}"),
            piece(1, "c1", "g", ""),
            piece(1, None, None, '{"b": 2}'),
        ],
    ),
    (
        "interleaved",
        [
            piece(0, "c0", "f", ""),
            piece(1, "c1", "g", ""),
            piece(0, None, None, '{"a"'),
            piece(1, None, None, '{"b": 2}'),
            piece(0, None, None, ": 1}"),
        ],
    ),
    (
        "index 0 for all",
        [
            piece(0, "c0", "f", ""),
            piece(0, None, None, '{"a": 1}'),
            piece(0, "c1", "g", ""),
            piece(0, None, None, '{"b": 2}'),
        ],
    ),
    ("index 0 for all, whole at once", [piece(0, "c0", "f", '{"a": 1}'), piece(0, "c1", "g", '{"b": 2}')]),
    (
        "index 0 for all, id on each chunk, interleaved",
        [
            piece(0, "c0", "f", ""),
            piece(0, "c1", "g", ""),
            piece(0, "c0", None, '{"a": 1}'),
            piece(0, "c1", None, '{"b": 2}'),
        ],
    ),
    ("index 0 for all, ids empty", [piece(0, "", "f", '{"a": 1}'), piece(0, "", "g", '{"b": 2}')]),
    ("no ids, no index", [piece(None, None, "f", '{"a": 1}'), piece(None, None, "g", '{"b": 2}')]),
    (
        "name on each chunk",
        [
            piece(0, "c0", "f", '{"a"'),
            piece(0, "c0", "f", ": 1}"),
            piece(1, "c1", "g", '{"b"'),
            piece(1, "c1", "g", ": 2}"),
        ],
    ),
    (
        "another id on each chunk of one call",
        [
            piece(0, "x1", "f", ""),
            piece(0, "x2", None, '{"a"'),
            piece(0, "x3", None, ": 1}"),
            piece(1, "x4", "g", ""),
            piece(1, "x5", None, '{"b": 2}'),
        ],
    ),
    (
        "name after the id",
        [
            piece(0, "c0"),
            piece(0, None, "f", '{"a": 1}'),
            piece(1, "c1"),
            piece(1, None, "g", '{"b": 2}'),
        ],
    ),
    (
        "name on each chunk, no ids, index 0 for all",
        [
            piece(0, None, "f", '{"a"'),
            piece(0, None, "f", ": 1}"),
            piece(0, None, "g", '{"b"'),
            piece(0, None, "g", ": 2}"),
        ],
    ),
    ("objects", [piece(0, "c0", "f", {"a": 1}), piece(1, "c1", "g", {"b": 2})]),
    ("index only, no ids", [piece(0, None, "f", '{"a": 1}'), piece(1, None, "g", '{"b": 2}')]),
]


@pytest.mark.parametrize("pieces", [row[1] for row in PIECES], ids=[row[0] for row in PIECES])
def test_pieces_of_calls_are_joined_by_id_then_index(pieces: list[dict[str, Any]]) -> None:
    assert of_pieces(*pieces) == TWO


def test_a_name_in_pieces_is_one_name() -> None:
    assert of_pieces(piece(0, "c0", "get_"), piece(0, None, "weather"), piece(0, None, None, "{}")) == [
        ("get_weather", {})
    ]


def test_two_calls_alike_without_ids_stay_two() -> None:
    assert of_pieces(piece(0, None, "f", "{}"), piece(0, None, "f", "{}")) == [("f", {}), ("f", {})]


def test_a_call_without_function_in_a_stream_is_a_format_failure() -> None:
    assert of(sse(delta(tool_calls=[{"index": 0, "id": "x"}]), delta("tool_calls")) + DONE).broken == "no-function"


def test_text_reasoning_usage_and_legacy_calls_of_a_stream() -> None:
    chunks = [
        {"model": "served", "system_fingerprint": "fp", "choices": []},
        delta(role="assistant", content=""),
        delta(reasoning_content="hm"),
        delta(content="One "),
        delta(content="moment."),
        delta(function_call={"name": "f", "arguments": '{"a"'}),
        delta(function_call={"arguments": ": 1}"}),
        delta("function_call"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ]
    reading = of(": comment\n\n" + sse(*chunks) + DONE)
    assert calls_of(reading) == [("f", {"a": 1})]
    assert (reading.text, reading.model, reading.finish) == ("One moment.", "served", "function_call")
    assert (reading.input_tokens, reading.output_tokens) == (3, 4)
    assert reading.provenance == ("system_fingerprint=fp",)


def test_line_ends_of_every_kind_and_a_last_event_without_its_empty_line() -> None:
    text = (sse(delta(content="Which?"), delta("stop")) + DONE).rstrip("\n")
    for end in ("\n", "\r\n", "\r"):
        assert of(text.replace("\n", end)).text == "Which?"
        assert of(text.replace("data: ", "data:").replace("\n", end)).text == "Which?"


def test_the_first_choice_of_a_stream_is_read() -> None:
    reading = of(sse(delta(index=1, content="no"), delta(index=0, content="yes"), delta("stop")) + DONE)
    assert (reading.text, reading.flags) == ("yes", ("several-choices",))


def test_own_faults_in_a_stream() -> None:
    for chunks, name in (
        ([delta(reasoning="hm"), delta("length")], "reasoning_only"),
        ([delta(refusal="I "), delta(refusal="can't"), delta("stop")], "refusal"),
        ([delta(content="So"), delta("content_filter")], "content_filter"),
    ):
        fault = of(sse(*chunks) + DONE).fault
        assert fault is not None
        assert (fault.blame, fault.name) == (Blame.MODEL, name)


def test_a_server_that_does_not_stream_though_asked_and_the_reverse() -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Which?"}, "finish_reason": "stop"}]}
    assert of(json.dumps(whole)).text == "Which?"
    stream = sse(delta(content="Which?"), delta("stop")) + DONE
    assert read_said(stream, headers={"content-type": "text/event-stream; charset=utf-8"}).text == "Which?"


# --- responses -------------------------------------------------------------------------------------------------------

ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": ""}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": ITEM}
GROWING = [
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": '{"a"'},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": ": 1}"},
]
ITEM_DONE = {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "arguments": '{"a": 1}'}}


def completed(output: list[Any], kind: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"object": "response", "status": kind, "model": "served", "output": output, **more}
    return {"type": f"response.{kind}", "response": response}


def test_responses_are_taken_from_their_last_event_or_item_by_item() -> None:
    created = {"type": "response.created", "response": {"status": "in_progress"}}
    whole = completed([ITEM_DONE["item"]], usage={"input_tokens": 3, "output_tokens": 4})
    for events in (
        [created, ADDED, *GROWING, ITEM_DONE, whole],
        [created, ADDED, *GROWING, ITEM_DONE, completed([])],
        [created, ADDED, *GROWING, completed([])],
    ):
        reading = of(sse(*events, name=True), "openai-responses")
        assert calls_of(reading) == [("f", {"a": 1})]
        assert (reading.fault, reading.model) == (None, "served")


def test_responses_with_text_only() -> None:
    item = {"type": "message", "content": []}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Which "},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "city?"},
    ]
    reading = of(sse(*events, completed([])), "openai-responses")
    assert (reading.text, reading.calls, reading.broken) == ("Which city?", (), None)


def test_responses_cut_by_the_token_limit() -> None:
    last = completed(
        [{**ITEM, "arguments": '{"a": '}], "incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    assert of(sse(ADDED, last), "openai-responses").broken == "truncated"


# --- messages --------------------------------------------------------------------------------------------------------


def message_events(*blocks: list[dict[str, Any]], stop: str = "tool_use") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "served", "content": [], "usage": {"input_tokens": 9}}},
        {"type": "ping"},
    ]
    for index, (start, *deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": one} for one in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    return [*events, {"type": "message_stop"}]


def json_pieces(*pieces: str) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    return [start, *({"type": "input_json_delta", "partial_json": one} for one in pieces)]


TEXT = [{"type": "text", "text": ""}, {"type": "text_delta", "text": "One "}, {"type": "text_delta", "text": "moment."}]


def test_messages_are_put_together() -> None:
    events = message_events(TEXT, json_pieces("", '{"a"', ": 1}"), json_pieces())
    reading = of(sse(*events, name=True), "anthropic-messages")
    assert calls_of(reading) == [("f", {"a": 1}), ("f", {})]
    assert (reading.text, reading.model, reading.finish) == ("One moment.", "served", "tool_use")
    assert (reading.input_tokens, reading.output_tokens) == (9, 5)


def test_a_streamed_call_shows_whether_it_was_cut() -> None:
    cut = of(sse(*message_events(json_pieces('{"a"', ': "x'), stop="max_tokens")), "anthropic-messages")
    assert cut.broken == "truncated"
    nothing = of(sse(*message_events(json_pieces(), stop="max_tokens")), "anthropic-messages")
    assert nothing.broken == "truncated"
    whole = of(sse(*message_events(json_pieces('{"a": 1}'), stop="max_tokens")), "anthropic-messages")
    assert calls_of(whole) == [("f", {"a": 1})]


# --- ollama ----------------------------------------------------------------------------------------------------------


def lines(*events: Any) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def said(done: bool = False, **message: Any) -> dict[str, Any]:
    more = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4} if done else {}
    return {"model": "served", "message": {"role": "assistant", "content": "", **message}, "done": done, **more}


def test_ollamas_lines_are_put_together() -> None:
    first = {"function": {"name": "f", "arguments": {"a": 1}}}
    second = {"function": {"name": "g", "arguments": {"b": 2}}}
    events = [said(thinking="hm"), said(content="One "), said(content="moment.")]
    reading = of(lines(*events, said(tool_calls=[first]), said(tool_calls=[second]), said(done=True)), "ollama")
    assert calls_of(reading) == TWO
    assert (reading.text, reading.model, reading.input_tokens) == ("One moment.", "served", 3)
    assert of(lines(said(content="x", done=True)), "ollama").text == "x"


# --- what breaks -----------------------------------------------------------------------------------------------------

CALLING = delta(tool_calls=[piece(0, "c0", "f", '{"a": 1}')])
ERROR = {"error": {"message": "Upstream", "code": 502}}

FAULTS: list[tuple[str, Shape, str, Blame, str]] = [
    ("chat: no end mark", "openai-chat", sse(CALLING, delta("tool_calls")), Blame.INFRA, "stream_broken"),
    ("chat: cut in an event", "openai-chat", sse(CALLING) + 'data: {"choices": [{"de', Blame.INFRA, "stream_broken"),
    ("chat: nothing", "openai-chat", ": ping\n\n", Blame.INFRA, "stream_broken"),
    ("chat: no JSON", "openai-chat", sse(CALLING) + "data: <html>\n\n" + DONE, Blame.INFRA, "stream_broken"),
    ("chat: only the end mark", "openai-chat", DONE, Blame.INFRA, "error_in_200"),
    ("chat: error", "openai-chat", sse(CALLING, ERROR) + DONE, Blame.INFRA, "server_error"),
    (
        "chat: error of money",
        "openai-chat",
        sse(CALLING, {"error": {"message": "Insufficient credits", "code": 402}}),
        Blame.ACCOUNT,
        "payment_required",
    ),
    (
        "chat: error as event",
        "openai-chat",
        sse(CALLING) + 'event: error\ndata: {"message": "odd"}\n\n',
        Blame.INFRA,
        "stream_error",
    ),
    (
        "chat: error of a choice",
        "openai-chat",
        sse(CALLING, {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 429}}]}) + DONE,
        Blame.INFRA,
        "rate_limited",
    ),
    ("chat: finish error", "openai-chat", sse(CALLING, delta("error")) + DONE, Blame.INFRA, "error_in_200"),
    ("responses: no end mark", "openai-responses", sse(ADDED, ITEM_DONE), Blame.INFRA, "stream_broken"),
    (
        "responses: failed",
        "openai-responses",
        sse(ADDED, completed([], "failed", error={"code": "server_error", "message": "x"})),
        Blame.INFRA,
        "server_error",
    ),
    ("responses: failed, no error", "openai-responses", sse(completed([], "failed")), Blame.INFRA, "error_in_200"),
    (
        "responses: error event",
        "openai-responses",
        sse({"type": "error", "code": "rate_limit_exceeded", "message": "x"}),
        Blame.INFRA,
        "rate_limited",
    ),
    (
        "messages: no end mark",
        "anthropic-messages",
        sse(*message_events(json_pieces('{"a": 1}'))[:-1]),
        Blame.INFRA,
        "stream_broken",
    ),
    (
        "messages: error event",
        "anthropic-messages",
        sse(
            *message_events(json_pieces('{"a": 1}'))[:-2],
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            name=True,
        ),
        Blame.INFRA,
        "overloaded",
    ),
    ("ollama: no end mark", "ollama", lines(said(content="x")), Blame.INFRA, "stream_broken"),
    ("ollama: cut in a line", "ollama", lines(said(content="x")) + '{"model"', Blame.INFRA, "stream_broken"),
    ("ollama: error", "ollama", lines(said(content="x"), {"error": "unexpected EOF"}), Blame.INFRA, "stream_error"),
    ("ollama: nothing", "ollama", "\n \n", Blame.INFRA, "empty_body"),
]


@pytest.mark.parametrize(
    ("shape", "text", "blame", "name"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS]
)
def test_what_breaks_a_stream(shape: Shape, text: str, blame: Blame, name: str) -> None:
    reading = of(text, shape)
    assert reading.calls == ()
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name) == (blame, name)


def test_chunks_that_repeat_the_name_are_not_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(raw: Any) -> Any:
        asked.append(len(raw))
        return read_arguments(raw)

    monkeypatch.setattr(joining, "read_arguments", counted)
    piece_of_many = sse(delta(tool_calls=[piece(name="f", arguments='{"a":"}')]))
    reading = of(piece_of_many * 5000 + DONE)
    assert reading.broken is not None
    assert 0 < sum(asked) <= 1_100_000


@pytest.mark.parametrize("shape", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_a_stream_cut_anywhere_never_gives_a_call(shape: Shape) -> None:
    streams = {
        "openai-chat": sse(*(delta(tool_calls=[one]) for one in PIECES[0][1]), delta("tool_calls")) + DONE,
        "openai-responses": sse(ADDED, *GROWING, ITEM_DONE, completed([ITEM_DONE["item"]]), name=True),
        "anthropic-messages": sse(*message_events(TEXT, json_pieces('{"a"', ": 1}")), name=True),
    }
    text = streams[shape]
    assert of(text, shape).calls
    for at in range(1, len(text.rstrip("\n"))):
        reading = of(text[:at], shape)
        assert reading.calls == (), text[:at]
        assert reading.fault is not None
        assert reading.fault.blame is Blame.INFRA
