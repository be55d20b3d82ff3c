"""The gateway on each surface: what goes up, what comes down, what is counted."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from referee.core.spending import Dialect, Usage
from tests.keys.gateway_calls import EVERY, Gate, gate, question
from tests.keys.scripted_upstream import KEY, MODEL, Heard, chat, chat_events, said_json, said_stream

RESPONSES_USAGE = {
    "input_tokens": 200,
    "input_tokens_details": {"cached_tokens": 50},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 15},
    "total_tokens": 220,
}
MESSAGES_USAGE = {
    "input_tokens": 100,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 40,
    "output_tokens": 20,
}
GEMINI_USAGE = {
    "promptTokenCount": 200,
    "cachedContentTokenCount": 50,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 15,
    "totalTokenCount": 220,
}
ASKED: dict[Dialect, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", question()),
    "openai-responses": ("/v1/responses", {"model": MODEL, "input": "hello"}),
    "anthropic-messages": ("/v1/messages", question()),
    "gemini": (f"/v1beta/models/{MODEL}:generateContent", {"contents": [{"parts": [{"text": "hello"}]}]}),
}
WHOLE: dict[Dialect, dict[str, Any]] = {
    "openai-chat": chat(200, 20, prompt_tokens_details={"cached_tokens": 50}),
    "openai-responses": {"id": "r", "object": "response", "output": [], "usage": RESPONSES_USAGE},
    "anthropic-messages": {"id": "m", "type": "message", "content": [], "usage": MESSAGES_USAGE},
    "gemini": {"candidates": [], "usageMetadata": GEMINI_USAGE},
}
USED: dict[Dialect, Usage] = {
    "openai-chat": Usage(input=200, output=20, cached_input=50),
    "openai-responses": Usage(input=200, output=20, cached_input=50),
    "anthropic-messages": Usage(input=200, output=20, cached_input=60, cache_write=40),
    "gemini": Usage(input=200, output=20, cached_input=50),
}
#: A token costs a microdollar, from the cache a tenth, into the cache 1.25.
COST: dict[Dialect, float] = {
    "openai-chat": 175e-6,
    "openai-responses": 175e-6,
    "anthropic-messages": (100 + 6 + 50 + 20) * 1e-6,
    "gemini": 175e-6,
}


def event(name: str, **members: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


STREAMS: dict[Dialect, list[bytes]] = {
    "openai-chat": chat_events(200, 20, prompt_tokens_details={"cached_tokens": 50}),
    "openai-responses": [
        event("response.created", response={"id": "r", "usage": None}),
        event("response.output_text.delta", delta="he"),
        event("response.completed", response={"id": "r", "usage": RESPONSES_USAGE}),
    ],
    "anthropic-messages": [
        event("message_start", message={"id": "m", "usage": {**MESSAGES_USAGE, "output_tokens": 1}}),
        event("content_block_delta", delta={"type": "text_delta", "text": "he"}),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 20}),
        event("message_stop"),
    ],
    "gemini": [
        b'data: {"candidates": [{"content": {}}], "usageMetadata": {"promptTokenCount": 200}}\r\n\r\n',
        b"data: " + json.dumps({"candidates": [], "usageMetadata": GEMINI_USAGE}).encode() + b"\r\n\r\n",
    ],
}


def asked(dialect: Dialect, *, stream: bool) -> tuple[str, dict[str, Any]]:
    path, document = ASKED[dialect]
    if not stream:
        return path, document
    if dialect == "gemini":
        return path.replace("generateContent", "streamGenerateContent?alt=sse"), document
    options = {"stream_options": {"include_usage": True}} if dialect == "openai-chat" else {}
    return path, {**document, "stream": True, **options}


@pytest.mark.parametrize("dialect", EVERY)
def test_a_whole_answer_goes_up_with_the_real_key_and_is_counted(dialect: Dialect, tmp_path: Path) -> None:
    with gate(tmp_path, said_json(WHOLE[dialect]), dialect=dialect) as open_gate:
        path, document = asked(dialect, stream=False)
        answer = open_gate.call(path, document)
        (heard,) = open_gate.upstream.heard
        (exchange,) = open_gate.exchanges()
        facts = open_gate.close()
    assert (answer.status, answer.document()) == (200, WHOLE[dialect])
    assert heard.path == path
    assert KEY in " ".join(heard.headers.values())
    assert open_gate.token not in repr(heard)
    assert (exchange.dialect, exchange.status, exchange.upstream_status) == (dialect, 200, 200)
    assert exchange.usage == USED[dialect]
    assert exchange.cost_usd == pytest.approx(COST[dialect], abs=1e-9)
    assert facts.spent_usd == pytest.approx(COST[dialect], abs=1e-9)
    assert (facts.calls, facts.refused, facts.input_tokens, facts.output_tokens) == (1, 0, 200, 20)
    assert exchange.cost_usd <= exchange.upper_usd


@pytest.mark.parametrize("dialect", EVERY)
def test_a_stream_comes_through_to_the_byte_and_is_counted(dialect: Dialect, tmp_path: Path) -> None:
    with gate(tmp_path, said_stream(STREAMS[dialect]), dialect=dialect) as open_gate:
        answer = open_gate.call(*asked(dialect, stream=True))
        (exchange,) = open_gate.exchanges()
    assert answer.body == b"".join(STREAMS[dialect])
    assert answer.headers["content-type"] == "text/event-stream"
    assert exchange.streamed
    assert exchange.usage == USED[dialect]
    assert exchange.cost_usd == pytest.approx(COST[dialect], abs=1e-9)


@pytest.mark.parametrize("dialect", EVERY)
def test_each_piece_of_a_stream_is_passed_on_before_the_next_one_comes(dialect: Dialect, tmp_path: Path) -> None:
    passed = [threading.Event() for _ in STREAMS[dialect]]

    async def between(number: int) -> None:
        if number:  # the upstream says the next piece only once the client has the one before
            await asyncio.to_thread(passed[number - 1].wait, 20)
            assert passed[number - 1].is_set()

    with gate(tmp_path, said_stream(STREAMS[dialect], between=between), dialect=dialect) as open_gate:
        connection = open_gate.connect()
        path, document = asked(dialect, stream=True)
        connection.request("POST", path, json.dumps(document), open_gate.bearer())
        answer = connection.getresponse()
        for number, piece in enumerate(STREAMS[dialect]):
            assert answer.read(len(piece)) == piece
            passed[number].set()
        assert answer.read() == b""
        connection.close()


def test_a_client_that_did_not_ask_for_usage_does_not_get_it_and_is_metered_all_the_same(tmp_path: Path) -> None:
    with gate(tmp_path, said_stream(chat_events(200, 20))) as open_gate:
        answer = open_gate.chat(stream=True)
        (heard,) = open_gate.upstream.heard
        (exchange,) = open_gate.exchanges()
    assert heard.document()["stream_options"] == {"include_usage": True}
    first, second, _usage, done = chat_events(200, 20)
    assert answer.body == first + second + done
    assert exchange.usage == Usage(input=200, output=20)


def test_events_that_come_in_splinters_are_stripped_and_metered(tmp_path: Path) -> None:
    whole = b"".join(chat_events(200, 20))
    splinters = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    with gate(tmp_path, said_stream(splinters)) as open_gate:
        answer = open_gate.chat(stream=True)
        (exchange,) = open_gate.exchanges()
    first, second, _usage, done = chat_events(200, 20)
    assert answer.body == first + second + done
    assert exchange.usage == Usage(input=200, output=20)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer {token}"}, ""),
        ({"x-api-key": "{token}"}, ""),
        ({"x-goog-api-key": "{token}"}, ""),
        ({}, "?key={token}"),
        ({"authorization": "Bearer something else"}, "?key={token}&alt=json"),
    ],
)
def test_the_token_is_taken_wherever_a_surface_puts_it_and_never_sent_on(
    headers: dict[str, str], query: str, tmp_path: Path
) -> None:
    with gate(tmp_path, said_json(WHOLE["gemini"]), dialect="gemini") as open_gate:
        path, document = ASKED["gemini"]
        given = {name: value.format(token=open_gate.token) for name, value in headers.items()}
        answer = open_gate.call(path + query.format(token=open_gate.token), document, headers=given)
        (heard,) = open_gate.upstream.heard
        (exchange,) = open_gate.exchanges()
    assert answer.status == 200
    assert open_gate.token not in repr(heard)
    assert heard.query in {"", "alt=json"}
    assert exchange.path == path


def test_gemini_without_sse_is_metered_from_its_array(tmp_path: Path) -> None:
    pieces = [
        b'[{"candidates": [], "usageMetadata": {"promptTokenCount": 200}},\n',
        json.dumps(WHOLE["gemini"]).encode(),
        b"]",
    ]

    async def reply(request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    with gate(tmp_path, reply, dialect="gemini") as open_gate:
        answer = open_gate.call(f"/v1beta/models/{MODEL}:streamGenerateContent", ASKED["gemini"][1])
        (exchange,) = open_gate.exchanges()
    assert answer.body == b"".join(pieces)
    assert exchange.usage == USED["gemini"]


@pytest.mark.parametrize(
    ("path", "dialect", "answer"),
    [
        ("/v1/messages/count_tokens", "anthropic-messages", {"input_tokens": 12}),
        (f"/v1beta/models/{MODEL}:countTokens", "gemini", {"totalTokens": 12}),
    ],
)
def test_counting_tokens_is_forwarded_and_free(
    path: str, dialect: Dialect, answer: dict[str, int], tmp_path: Path
) -> None:
    with gate(tmp_path, said_json(answer), dialect=dialect) as open_gate:
        said = open_gate.call(path, question())
        facts = open_gate.close()
        assert [heard.path for heard in open_gate.upstream.heard] == [path]
    assert said.document() == answer
    assert (facts.calls, facts.spent_usd) == (1, 0.0)


def test_the_list_of_models_is_the_runs_own_and_asks_nobody(tmp_path: Path) -> None:
    with gate(tmp_path, said_json({})) as open_gate:
        listed = open_gate.call("/v1/models", method="GET")
        one = open_gate.call(f"/v1/models/{MODEL}", method="GET")
        other = open_gate.call("/v1/models/another", method="GET")
        gemini = open_gate.call("/v1beta/models", method="GET")
        facts = open_gate.close()
        assert open_gate.upstream.heard == []
    assert [model["id"] for model in listed.document()["data"]] == [MODEL]
    assert one.document()["id"] == MODEL
    assert other.status == 404
    assert [model["name"] for model in gemini.document()["models"]] == [f"models/{MODEL}"]
    assert (facts.calls, facts.refused) == (0, 1)


def test_of_either_head_only_what_the_other_side_needs_comes_through(tmp_path: Path) -> None:
    told = {
        "x-request-id": "req_1",
        "retry-after": "7",
        "set-cookie": "session=1",
        "openai-organization": "org-of-ours",
        "x-ratelimit-remaining-requests": "12",
    }
    sent = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "claude-code-20250219, compact-2026-01-12,interleaved-thinking-2025-05-14,context-1m-2025",
        "openai-beta": "assistants=v2",
        "cookie": "a=b",
        "x-stainless-os": "Linux",
        "user-agent": "agent/1",
    }
    with gate(
        tmp_path, said_json(WHOLE["anthropic-messages"], headers=told), dialect="anthropic-messages"
    ) as open_gate:
        answer = open_gate.call(*ASKED["anthropic-messages"], headers={**open_gate.bearer(), **sent})
        (heard,) = open_gate.upstream.heard
    kept = {name: value for name, value in answer.headers.items() if name in told}
    assert kept == {"x-request-id": "req_1", "retry-after": "7"}
    assert heard.headers["anthropic-version"] == "2023-06-01"
    assert heard.headers["anthropic-beta"] == "claude-code-20250219,interleaved-thinking-2025-05-14"
    assert not {"cookie", "x-stainless-os", "openai-beta"} & set(heard.headers)
    assert "agent/1" not in repr(heard)


def test_a_head_that_no_upstream_would_take_is_not_passed_on(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(WHOLE["anthropic-messages"]), dialect="anthropic-messages") as open_gate:
        strange = {"anthropic-version": "2023\u00ff", "anthropic-beta": "claude-code-\u00ff,effort-2025-11-24"}
        answer = open_gate.call(*ASKED["anthropic-messages"], headers={**open_gate.bearer(), **strange})
        (heard,) = open_gate.upstream.heard
    assert answer.status == 200
    assert heard.headers["anthropic-beta"] == "effort-2025-11-24"
    assert "anthropic-version" not in heard.headers


def test_many_calls_on_one_connection_are_answered_in_turn(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(10, 1))) as open_gate:
        connection = open_gate.connect()
        for number in range(30):
            connection.request("POST", "/v1/chat/completions", json.dumps(question(str(number))), open_gate.bearer())
            assert connection.getresponse().read() == json.dumps(chat(10, 1)).encode()
        connection.close()
        assert open_gate.close().calls == 30


def test_a_body_in_chunks_and_after_a_continue_is_taken(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(10, 1))) as open_gate:
        document = json.dumps(question()).encode()
        connection = open_gate.connect()
        connection.request("POST", "/v1/chat/completions", iter([document[:20], document[20:]]), open_gate.bearer())
        assert connection.getresponse().status == 200
        connection.close()
        _continued(open_gate, document)


def _continued(open_gate: Gate, document: bytes) -> None:
    """As curl sends a larger body: it waits to be told to go on."""
    host, port = open_gate.host.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as talk:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {open_gate.token}\r\n"
        talk.sendall(f"{head}content-length: {len(document)}\r\nexpect: 100-continue\r\n\r\n".encode())
        assert talk.recv(1000).startswith(b"HTTP/1.1 100 ")
        talk.sendall(document)
        assert talk.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("query", "passed"),
    [
        ("alt=sse", "alt=sse"),
        ("beta=true&x=1", "beta=true"),
        ("alt=../../admin&beta=%0D%0AX:1", ""),
        ("alt=sse%26key%3Dx", ""),
        ("%61lt=json&beta=false", "alt=json"),
    ],
)
def test_of_the_query_only_known_words_come_through(query: str, passed: str, tmp_path: Path) -> None:
    with gate(tmp_path, said_json(WHOLE["gemini"]), dialect="gemini") as open_gate:
        path, document = ASKED["gemini"]
        assert open_gate.call(f"{path}?{query}", document).status == 200
        assert [heard.query for heard in open_gate.upstream.heard] == [passed]


@pytest.mark.parametrize("dialect", EVERY)
def test_a_key_opens_the_one_surface_that_it_was_made_for(dialect: Dialect, tmp_path: Path) -> None:
    with gate(tmp_path, said_json(WHOLE[dialect]), dialect=dialect) as open_gate:
        answers = {other: open_gate.call(*ASKED[other]) for other in EVERY}
        counted = open_gate.call("/v1/messages/count_tokens", question()).status
        assert len(open_gate.upstream.heard) == (2 if dialect == "anthropic-messages" else 1)
    assert {other: answer.status for other, answer in answers.items()} == {
        other: 200 if other == dialect else 404 for other in EVERY
    }
    assert counted == (200 if dialect == "anthropic-messages" else 404)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai-chat", b'{"model":"scripted-1","messages":[],"n":1' + b"0" * 400 + b"}"),
        ("openai-chat", b'{"model":"scripted-1","messages":[],"max_tokens":NaN}'),
        ("openai-chat", b'{"model":"scripted-1","messages":[],"tools":[{"type":["web_search"]}],"temperature":1e999}'),
        ("openai-chat", b'{"model":["scripted-1"],"messages":[]}'),
        ("openai-responses", b'{"model":"scripted-1","input":[{"type":{}}]}'),
        ("anthropic-messages", b'{"model":"scripted-1","messages":[[]],"thinking":7}'),
        ("gemini", b'{"contents":[],"generationConfig":{"candidateCount":1' + b"0" * 305 + b"}}"),
        ("gemini", b'{"contents":{"parts":7}}'),
        *(("openai-chat", b'{"model":"scripted-1","stop":' + b"[" * n + b"]" * n + b"}") for n in range(960, 1001, 4)),
    ],
)
def test_a_request_that_is_out_of_shape_is_refused_and_no_fault_of_the_gateway(
    dialect: Dialect, body: bytes, tmp_path: Path
) -> None:
    with gate(tmp_path, said_json(WHOLE[dialect]), dialect=dialect) as open_gate:
        answer = open_gate.send("POST", ASKED[dialect][0], body, open_gate.bearer())
        assert open_gate.call(*ASKED[dialect]).status == 200
        facts = open_gate.close()
    assert answer.status in ({200, 400} if b"stop" in body else {400})
    assert facts.broken is None
