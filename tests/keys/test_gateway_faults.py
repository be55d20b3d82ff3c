"""The gateway against wrong tokens, wrong models, hostile requests and upstreams that do not do their part."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from referee.adapters.keys.gateway import GatewayKeys, Upstream, call, server
from referee.adapters.keys.gateway.account import MOST_AT_ONCE
from referee.errors import ConfigError, KeyUnavailable
from referee.protocols import ModelNeed
from tests.keys.gateway_calls import PRICE, RUN, gate, question
from tests.keys.scripted_upstream import KEY, MODEL, Heard, chat, said_json
from tests.keys.test_gateway_cap import until

NEED = ModelNeed(MODEL, "openai-chat", "here")


async def never(_request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer sk-run-0"}, {"authorization": "Basic abc"}, {"x-api-key": ""}, {"x-api-key": KEY}],
)
def test_without_a_live_token_nothing_is_served(headers: dict[str, str], tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        answers = [
            open_gate.call("/v1/chat/completions", question(), headers=headers),
            open_gate.call("/v1/models", method="GET", headers=headers),
            open_gate.call("/nothing", method="GET", headers=headers),
        ]
        facts = open_gate.close()
        assert open_gate.upstream.heard == []
    assert [answer.status for answer in answers] == [401] * 3
    assert (facts.calls, facts.refused) == (0, 0)


def test_a_token_of_another_run_opens_its_own_account_only(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(10, 10))) as open_gate:
        other = open_gate.keys.issue("other", NEED, cap_usd=1.0, ends_at=time.time() + 60)
        open_gate.call("/v1/chat/completions", question(), headers={"x-api-key": other.access.secret})
        spent = open_gate.keys.close("other")
        assert open_gate.chat().status == 200
        dead = open_gate.call("/v1/chat/completions", question(), headers={"x-api-key": other.access.secret})
        facts = open_gate.close()
    assert spent is not None
    assert (spent.calls, facts.calls) == (1, 1)
    assert dead.status == 401
    assert other.access.secret != open_gate.token


def test_a_token_is_dead_after_its_time_and_calls_under_way_are_cut(tmp_path: Path) -> None:
    with gate(tmp_path, never, seconds=0.7) as open_gate:
        with pytest.raises(OSError, match="closed connection"):
            open_gate.chat()
        assert open_gate.chat().status == 401
        facts = open_gate.close()
    assert (facts.calls, facts.deleted) == (1, True)


@pytest.mark.parametrize(
    "model", ["another", "scripted-1:online", "SCRIPTED-1", " scripted-1", "", None, 7, ["scripted-1"]]
)
def test_only_the_model_of_the_run_is_served(model: Any, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({})) as open_gate:
        answer = open_gate.call("/v1/chat/completions", question() | {"model": model})
        (exchange,) = open_gate.exchanges()
        assert open_gate.upstream.heard == []
    assert answer.status in {400, 404}
    assert exchange.refused == "model"


def test_a_model_named_with_half_a_character_is_noted_and_takes_no_place(tmp_path: Path) -> None:
    body = b'{"model": "\\ud800", "messages": []}'
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        answers = {open_gate.send("POST", "/v1/chat/completions", body).status for _ in range(MOST_AT_ONCE + 1)}
        assert open_gate.chat().status == 200
        facts = open_gate.close()
        noted = open_gate.exchanges()
    assert answers == {404}
    assert (facts.refused, facts.broken) == (MOST_AT_ONCE + 1, None)
    assert sum(one.refused == "model" for one in noted) == facts.refused


def test_a_model_that_is_named_twice_is_asked_once_and_as_it_was_checked(tmp_path: Path) -> None:
    body = b'{"model": "dear-1", "max_tokens": 5, "messages": [], "mod\\u0065l": "scripted-1"}'
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        assert open_gate.send("POST", "/v1/chat/completions", body, open_gate.bearer()).status == 200
        (heard,) = open_gate.upstream.heard
    assert b"dear-1" not in heard.body
    assert heard.document()["model"] == MODEL


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/completions"),
        ("GET", "/v1/chat/completions"),
        ("DELETE", "/v1/models/scripted-1"),
        ("POST", "/v1/files"),
        ("GET", "/"),
        ("POST", "/v1/../v1/chat/completions"),
        ("POST", "//v1/chat/completions"),
        ("POST", "/v1beta/models/scripted-1:batchGenerateContent"),
        ("POST", "/v1beta/models/scripted-1/../dear:generateContent"),
    ],
)
def test_no_other_path_leads_anywhere(method: str, path: str, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({})) as open_gate:
        answer = open_gate.call(path, question() if method == "POST" else None, method=method)
        (exchange,) = open_gate.exchanges()
        assert open_gate.upstream.heard == []
    assert (answer.status, exchange.refused) == (404, "path")
    assert answer.document()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_object_is_not_sent(body: bytes, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({})) as open_gate:
        answer = open_gate.send("POST", "/v1/chat/completions", body)
        (exchange,) = open_gate.exchanges()
        assert open_gate.upstream.heard == []
    assert (answer.status, exchange.refused) == (400, "body")


@pytest.mark.parametrize("said", [True, False])
def test_a_body_that_is_too_large_is_not_sent_whether_its_length_is_said_or_not(said: bool, tmp_path: Path) -> None:
    large = b'{"model": "scripted-1", "x": "' + b"a" * 2**20 * 33
    with gate(tmp_path, said_json({})) as open_gate:
        host, port = open_gate.host.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as talk:
            length = f"content-length: {len(large)}" if said else "transfer-encoding: chunked"
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: {open_gate.token}\r\n{length}\r\n\r\n"
            with contextlib.suppress(ConnectionError):  # the gateway answers while we still talk
                talk.sendall(head.encode() + (b"" if said else f"{len(large):x}\r\n".encode()) + large)
            answer = b""
            with contextlib.suppress(ConnectionError):
                answer = talk.recv(1000)
        (exchange,) = open_gate.exchanges()
        assert open_gate.upstream.heard == []
    assert answer.startswith(b"HTTP/1.1 413") or not answer
    assert (exchange.status, exchange.refused) == (413, "body")


def test_a_packed_body_is_unpacked_within_the_bound(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        packed = {**open_gate.bearer(), "content-encoding": "gzip"}
        small = open_gate.send("POST", "/v1/chat/completions", gzip.compress(json.dumps(question()).encode()), packed)
        bomb = gzip.compress(b'{"model": "scripted-1", "x": "' + b"a" * 2**20 * 40)
        large = open_gate.send("POST", "/v1/chat/completions", bomb, packed)
        broken = open_gate.send("POST", "/v1/chat/completions", b"no gzip at all", packed)
        assert len(open_gate.upstream.heard) == 1
    assert (small.status, large.status, broken.status) == (200, 413, 400)


def test_an_upstream_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    with gate(tmp_path, never, patience=0.3) as open_gate:
        answer = open_gate.chat()
        (exchange,) = open_gate.exchanges()
    assert answer.status == 504
    assert (exchange.broke, exchange.upstream_status) == ("timeout", None)
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)


def test_an_upstream_that_hangs_up_is_said_and_counts_in_full(tmp_path: Path) -> None:
    async def reply(request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    with gate(tmp_path, reply) as open_gate:
        answer = open_gate.chat()
        (exchange,) = open_gate.exchanges()
    assert (answer.status, exchange.broke) == (502, "reset")
    assert exchange.usage is None
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)


def test_an_upstream_that_speaks_no_http_is_said(tmp_path: Path) -> None:
    async def nonsense(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()
        writer.close()

    with gate(tmp_path, said_json({})) as open_gate:
        loop = open_gate.upstream.loop
        made = asyncio.run_coroutine_threadsafe(asyncio.start_server(nonsense, "127.0.0.1", 0), loop).result(10)
        port = made.sockets[0].getsockname()[1]
        with gate(tmp_path / "two", said_json({}), base_url=f"http://127.0.0.1:{port}/v1") as other:
            answer = other.chat()
            (exchange,) = other.exchanges()
        loop.call_soon_threadsafe(made.close)
    assert (answer.status, exchange.broke) == (502, "protocol")


def test_a_redirect_is_not_followed_and_takes_no_key_with_it(tmp_path: Path) -> None:
    with gate(tmp_path / "elsewhere", said_json(chat(1, 1))) as other:
        there = {"location": other.upstream.url + "/v1/chat/completions"}
        with gate(tmp_path / "here", said_json({}, status=307, headers=there)) as open_gate:
            answer = open_gate.chat()
            (exchange,) = open_gate.exchanges()
        assert other.upstream.heard == []
    assert answer.status == 502
    assert "location" not in answer.headers
    assert (exchange.upstream_status, exchange.broke, exchange.cost_usd) == (307, "protocol", 0.0)


def test_a_peer_cannot_hold_more_connections_than_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_OF_ONE_PEER", 5)
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate, contextlib.ExitStack() as held:
        host, port = open_gate.host.split(":")
        talks = [held.enter_context(socket.create_connection((host, int(port)), timeout=20)) for _ in range(5)]
        assert held.enter_context(socket.create_connection((host, int(port)), timeout=20)).recv(10) == b""
        talks[0].close()
        until(lambda: _served(open_gate))


def _served(open_gate: Any) -> bool:
    try:
        return bool(open_gate.chat().status == 200)
    except OSError:
        return False


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (ModelNeed(MODEL, "openai-chat", "nowhere"), "nowhere is not configured"),
        (ModelNeed(MODEL, "gemini", "here"), "not said to speak gemini"),
        (ModelNeed("no-such-model", "openai-chat", "here"), "price of the model no-such-model"),
    ],
)
def test_a_key_that_could_not_be_metered_is_not_made(need: ModelNeed, words: str, tmp_path: Path) -> None:
    upstream = Upstream("here", "http://127.0.0.1:9/v1", KEY, prices={MODEL: PRICE})
    keys = GatewayKeys(tmp_path, {"here": upstream})
    try:
        keys.reach("127.0.0.1")
        with pytest.raises(ConfigError, match=words):
            keys.check(need)
        with pytest.raises(KeyUnavailable, match=words):
            keys.issue(RUN, need, cap_usd=1.0, ends_at=time.time() + 60)
        assert keys.close(RUN) is None
    finally:
        keys.stop()


def test_the_gateway_cannot_listen_where_there_is_no_such_address(tmp_path: Path) -> None:
    keys = GatewayKeys(tmp_path, {})
    try:
        with pytest.raises(KeyUnavailable, match="cannot listen"):
            keys.reach("192.0.2.1")
    finally:
        keys.stop()


def test_a_key_without_a_place_to_listen_is_not_made(tmp_path: Path) -> None:
    upstream = Upstream("here", "http://127.0.0.1:9/v1", KEY, prices={MODEL: PRICE})
    with pytest.raises(KeyUnavailable, match="does not listen"):
        GatewayKeys(tmp_path, {"here": upstream}).issue(RUN, NEED, cap_usd=1.0, ends_at=time.time() + 60)


def test_stopping_ends_the_thread_and_the_port(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        open_gate.chat()
        open_gate.keys.stop()
        open_gate.keys.stop()
        with pytest.raises(ConnectionError):
            open_gate.chat()
        facts = open_gate.close()
        assert open_gate.keys._journal._open == {}
    assert (facts.calls, facts.deleted) == (1, True)


def test_a_fault_of_the_gateway_itself_is_told_in_the_record_and_it_serves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        with monkeypatch.context() as broken:
            broken.setattr(call, "read_answer", lambda *_: 1 / 0)
            assert open_gate.chat().status == 500
        assert open_gate.chat().status == 200
        facts = open_gate.close()
    assert facts.broken == "a call could not be forwarded: ZeroDivisionError"


def test_a_call_that_cannot_be_noted_is_told_in_the_record(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        open_gate.keys._journal.end(open_gate.run)
        assert open_gate.chat().status == 200
        facts = open_gate.close()
    assert facts.broken is not None
    assert (facts.calls, facts.spent_usd) == (1, 2e-6)


def test_a_dead_thread_is_told_in_the_record_and_its_key_is_dead(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        open_gate.chat()
        serving = open_gate.keys._server
        assert serving is not None
        serving._loop.call_soon_threadsafe(serving._loop.stop)
        until(lambda: not serving.alive)
        facts = open_gate.close()
    assert facts.broken is not None
    assert (facts.deleted, facts.calls) == (True, 1)
