"""The HTTP lanes against a real server that plays every shape and error: what is sent, what comes back, what breaks."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from referee.adapters.lanes.http import KEPT_OF_TOO_LONG, kept_headers
from referee.adapters.lanes.lane import HttpLane
from referee.adapters.lanes.make import make_http_lane
from referee.adapters.lanes.surfaces import SHAPES
from referee.core.bakeoff import LaneKind, Sampling
from referee.protocols import Ask, Said
from referee.scoring.answers import read
from tests.bakeoff.lane_targets import ENVIRON, KEY, SURFACES, WEATHER, ask, question, target, with_lane
from tests.bakeoff.scripted_plays import PLAYS
from tests.bakeoff.scripted_server import ScriptedServer, serving

pytestmark = pytest.mark.slow  # together more than a few seconds

_SLOW = {"slow", "trickle", "endless"}


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedServer]:
    with serving(calls=lambda got: [("get_weather", {"city": "Köln"})]) as server:
        yield server


@pytest.fixture
def server(running: ScriptedServer) -> ScriptedServer:
    running.got.clear()
    return running


def _reading(said: Said, lane: LaneKind) -> Any:
    return read(
        said.status,
        said.headers,
        said.body,
        broke=said.broke,
        detail=said.detail,
        streamed=said.streamed,
        shape=SHAPES[lane],
        inlined=False,
    )


# --- what is sent ----------------------------------------------------------------------------------------------------

_FUNCTION = {"name": "get_weather", "description": "Weather of a city.", "parameters": WEATHER.parameters}
_TURNS = [
    {"role": "system", "content": "You call tools."},
    {"role": "user", "content": "Wie ist das Wetter in Köln?"},
]


def _sent(server: ScriptedServer) -> dict[str, Any]:
    return server.got[-1].body


def test_chat_request(server: ScriptedServer) -> None:
    ask(target(server.url), question(required=True))
    assert _sent(server) == {
        "model": "ok",
        "messages": _TURNS,
        "tools": [{"type": "function", "function": _FUNCTION}],
        "tool_choice": "required",
        "temperature": 0.0,
        "seed": 42,
        "max_tokens": 512,
    }
    assert server.got[-1].path == "/v1/chat/completions"
    assert server.got[-1].headers["authorization"] == f"Bearer {KEY}"
    ask(target(server.url, max_tokens_field="max_completion_tokens", stream=True), question(seed=None))
    assert _sent(server)["tool_choice"] == "auto"
    assert _sent(server)["stream_options"] == {"include_usage": True}
    assert _sent(server)["max_completion_tokens"] == 512
    assert not {"seed", "max_tokens"} & set(_sent(server))


def test_responses_request(server: ScriptedServer) -> None:
    ask(target(server.url, lane="openai-responses"), question(required=True))
    assert _sent(server) == {
        "model": "ok",
        "input": _TURNS,
        "tools": [{"type": "function", **_FUNCTION, "strict": False}],
        "tool_choice": "required",
        "temperature": 0.0,
        "max_output_tokens": 512,
        "store": False,
    }
    assert server.got[-1].path == "/v1/responses"


@pytest.mark.parametrize(("required", "choice"), [(True, "any"), (False, "auto")])
def test_messages_request(server: ScriptedServer, required: bool, choice: str) -> None:
    ask(target(server.url, lane="anthropic-messages"), question(required=required))
    schema = {"name": "get_weather", "description": "Weather of a city.", "input_schema": WEATHER.parameters}
    assert _sent(server) == {
        "model": "ok",
        "system": "You call tools.",
        "messages": _TURNS[1:],
        "tools": [schema],
        "tool_choice": {"type": choice},
        "temperature": 0.0,
        "max_tokens": 512,
    }
    got = server.got[-1]
    assert (got.path, got.headers["x-api-key"], got.headers["anthropic-version"]) == ("/v1/messages", KEY, "2023-06-01")
    assert "authorization" not in got.headers


def test_ollama_request(server: ScriptedServer) -> None:
    more: dict[str, Any] = {"context": 16384, "extra_body": {"options": {"num_gpu": 0}, "think": False}}
    ask(target(server.url, lane="ollama", **more), question(required=True))
    assert _sent(server) == {
        "model": "ok",
        "messages": _TURNS,
        "tools": [{"type": "function", "function": _FUNCTION}],
        "stream": False,
        "think": False,
        "options": {"temperature": 0.0, "seed": 42, "num_predict": 512, "num_ctx": 16384, "num_gpu": 0},
    }
    assert server.got[-1].path == "/api/chat"


@pytest.mark.parametrize("lane", SURFACES)
def test_no_tools_no_choice_and_no_sampling_where_the_model_takes_none(server: ScriptedServer, lane: LaneKind) -> None:
    ask(target(server.url, lane=lane, takes_sampling=False), question(tools=()))
    sent = _sent(server)
    flat = set(sent) | set(sent.get("options", {}))
    assert not flat & {"tools", "tool_choice", "temperature", "seed"}


@pytest.mark.parametrize("lane", SURFACES)
def test_extra_body_adds_and_never_overrides(server: ScriptedServer, lane: LaneKind) -> None:
    forged = {"model": "402", "messages": [], "input": [], "tools": [], "tool_choice": "none", "top_k": 1}
    plain = target(server.url, lane=lane)
    ask(plain)
    expected = {**_sent(server), "top_k": 1}
    ask(plain.model_copy(update={"extra_body": {k: v for k, v in forged.items() if k in expected or k == "top_k"}}))
    assert _sent(server) == expected


def test_a_lone_surrogate_can_be_sent(server: ScriptedServer) -> None:
    broken = question()
    broken = type(broken)((("user", "x\ud800y"),), broken.tools, require_call=False, sampling=broken.sampling)
    assert ask(target(server.url), broken).status == 200
    assert _sent(server)["messages"] == [{"role": "user", "content": "x\ud800y"}]


def test_a_question_is_written_once_and_many_are_forgotten(server: ScriptedServer) -> None:
    lane = make_http_lane(target(server.url), ENVIRON)
    first = question()
    written = lane._bytes(first)
    assert lane._bytes(first) is written
    others = [question(seed=index) for index in range(300)]
    assert len({lane._bytes(other) for other in others}) == 300
    assert lane._bytes(first) is not written
    assert lane._bytes(first) == written
    assert len(lane._asked) <= 256


# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lane", SURFACES)
def test_a_sound_answer_reaches_the_reader_on_every_surface(
    server: ScriptedServer, lane: LaneKind, stream: bool
) -> None:
    said = ask(target(server.url, lane=lane, stream=stream))
    assert (said.status, said.broke, said.streamed) == (200, None, stream)
    assert said.first_byte_ms is not None
    assert 0 < said.first_byte_ms <= said.latency_ms
    reading = _reading(said, lane)
    assert [(call.name, call.arguments) for call in reading.calls] == [("get_weather", {"city": "Köln"})]
    assert (reading.fault, reading.broken, reading.model) == (None, None, "ok")


@pytest.mark.parametrize("lane", SURFACES)
def test_nothing_that_a_server_plays_raises(server: ScriptedServer, lane: LaneKind) -> None:
    plays = sorted(set(PLAYS) - _SLOW)

    async def all_of_them(asked: HttpLane) -> list[Said]:
        server.script = lambda got: got.question
        turns = (Ask((("user", play),), (WEATHER,), require_call=False, sampling=Sampling()) for play in plays)
        return await asyncio.gather(*(asked.ask(turn, 20.0) for turn in turns))

    try:
        answers = with_lane(target(server.url, lane=lane), all_of_them)
    finally:
        server.script = lambda got: None
    for play, said in zip(plays, answers, strict=True):
        assert said.status is not None or said.broke is not None, play
        assert KEY not in said.detail, play
        _reading(said, lane)


def test_bytes_come_back_as_they_are(server: ScriptedServer) -> None:
    assert ask(target(server.url, "no-utf8")).body == b'{"a": "\xff\xfe\xfd"}'
    assert ask(target(server.url, "no-json")).body == b"<html></html>"
    streamed = ask(target(server.url, "stream-broken", stream=True))
    assert streamed.body.startswith(b"data: {")
    assert b"[DONE]" not in streamed.body
    assert (streamed.broke, streamed.headers["content-type"]) == (None, "text/event-stream")


def test_only_listed_headers_are_kept() -> None:
    said = {
        "Retry-After": "3",
        "Set-Cookie": "a=b",
        "X-RateLimit-Limit-Requests": "40",
        "Server": "x",
        "cf-ray": "r" * 999,
    }
    kept = kept_headers(said)
    assert kept == {"retry-after": "3", "x-ratelimit-limit-requests": "40", "cf-ray": "r" * 200}


def test_sixty_four_at_once(server: ScriptedServer) -> None:
    server.delay, server.most_under_way = 0.3, 0

    async def many(lane: HttpLane) -> list[Said]:
        return await asyncio.gather(*(lane.ask(question(), 10.0) for _ in range(64)))

    try:
        answers = with_lane(target(server.url), many)
    finally:
        server.delay = 0.0
    assert [said.status for said in answers] == [200] * 64
    assert server.most_under_way == 64


# --- what breaks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("play", "broke", "status"),
    [
        ("reset", "reset", None),
        ("reset-in-body", "reset", 200),
        ("garbage", "protocol", None),
        ("cut-chunk", "protocol", None),
        ("echo-credential-wire", "protocol", None),
    ],
)
def test_transport_failures_are_said(server: ScriptedServer, play: str, broke: str, status: int | None) -> None:
    said = ask(target(server.url, play))
    assert (said.broke, said.status) == (broke, status)
    assert said.detail.count("127.0.0.1") == 1
    assert KEY not in said.detail
    assert _reading(said, "openai-chat").fault.blame == "infra"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("play", ["slow", "trickle"])
def test_the_deadline_covers_the_whole_call(server: ScriptedServer, play: str, stream: bool) -> None:
    said = ask(target(server.url, play, stream=stream), deadline=0.4)
    assert (said.broke, said.detail) == ("timeout", "no whole answer within 0.4 s")
    assert 400 <= said.latency_ms < 5000
    assert (said.status, said.first_byte_ms is None) == ((None, True) if play == "slow" else (200, False))


def test_an_endless_answer_is_cut(server: ScriptedServer) -> None:
    said = ask(target(server.url, "endless"), deadline=30.0)
    assert said.broke == "too-long"
    assert len(said.body) == KEPT_OF_TOO_LONG


def test_a_packed_bomb_is_cut() -> None:
    """A small body that unpacks into a large one: the cap counts what is unpacked."""
    packed = gzip.compress(b" " * 64 * 2**20)

    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"content-encoding": "gzip", "content-type": "application/json"})

    async def run() -> Said:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", bomb)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        lane = make_http_lane(target(f"http://127.0.0.1:{runner.addresses[0][1]}"), ENVIRON)
        try:
            return await lane.ask(question(), 20.0)
        finally:
            await lane.close()
            await runner.cleanup()

    said = asyncio.run(run())
    assert said.broke == "too-long"
    assert len(said.body) == KEPT_OF_TOO_LONG


def test_a_body_that_cannot_be_unpacked() -> None:
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        await writer.drain()
        writer.close()

    async def run() -> Said:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            lane = make_http_lane(target(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"), ENVIRON)
            try:
                return await lane.ask(question(), 10.0)
            finally:
                await lane.close()

    said = asyncio.run(run())
    assert (said.broke, said.status) == ("protocol", 200)
    assert said.detail.endswith("cannot be unpacked")


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        said = ask(target(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert (said.broke, said.status, said.body, said.first_byte_ms) == ("connect", None, b"", None)


def test_a_name_that_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    said = ask(target("http://models.example.invalid"))
    assert (said.broke, said.detail) == ("dns", "the name models.example.invalid cannot be looked up")


def test_the_lane_lives_on_after_a_failure(server: ScriptedServer) -> None:
    async def several(lane: HttpLane) -> list[int | None]:
        async def one(play: str) -> int | None:
            server.script = lambda got: play
            return (await lane.ask(question(), 0.5)).status

        return [await one(play) for play in ("ok", "reset", "ok", "slow", "ok", "garbage", "ok", "trickle", "ok")]

    try:
        assert with_lane(target(server.url), several)[::2] == [200] * 5
    finally:
        server.script = lambda got: None
