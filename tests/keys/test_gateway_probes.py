"""Who is to blame for a failed call: the gateway asks the model itself; a call that was made to fail voids nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from referee.adapters.keys.gateway import call, probe
from referee.core.spending import Dialect, SpendingFacts
from referee.core.spending_sums import summed
from tests.keys.gateway_calls import EVERY, Gate, gate, question
from tests.keys.scripted_upstream import MODEL, Heard, Reply, chat, said_json, said_stream
from tests.keys.test_gateway_cap import until
from tests.keys.test_gateway_faults import NEED

PATHS: dict[Dialect, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": f"/v1beta/models/{MODEL}:generateContent",
}


def is_probe(heard: Heard) -> bool:
    return b'"ping"' in heard.body


def but_well_to_the_gateway(reply: Reply) -> Reply:
    """An upstream that does this to the agent, and answers when the gateway asks."""

    async def answer(request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        if is_probe(heard):
            return web.json_response(chat(3, 1))
        return await reply(request, heard)

    return answer


async def silent(_request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def closed(open_gate: Gate) -> SpendingFacts:
    """What the record says, which must follow from the log."""
    facts = open_gate.close()
    sums = summed(open_gate.log())
    assert {name: getattr(facts, name) for name in vars(sums)} == vars(sums)
    return facts


@pytest.mark.parametrize("status", [401, 402, 403, 429, 500, 503, 529])
def test_a_failure_that_only_the_agent_gets_is_not_the_upstreams(status: int, tmp_path: Path) -> None:
    with gate(tmp_path, but_well_to_the_gateway(said_json({"error": {}}, status=status))) as open_gate:
        open_gate.chat()
        facts = closed(open_gate)
        asked = [one for one in open_gate.log() if one.probe]
    assert (facts.failed_upstream, facts.ended_by_upstream) == (1, False)
    assert [(one.upstream_status, one.broke) for one in asked] == [(200, None)]
    assert (facts.calls, facts.spent_usd) == (1, 0.0), "a probe is no call of the agent and none of its money"


@pytest.mark.parametrize("status", [401, 402, 403, 429, 500, 503, 529])
def test_a_failure_that_the_gateway_gets_as_well_is_the_upstreams(status: int, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({"error": {}}, status=status)) as open_gate:
        open_gate.chat()
        assert closed(open_gate).ended_by_upstream


@pytest.mark.parametrize("dialect", EVERY)
def test_every_surface_is_asked_in_its_own_words(dialect: Dialect, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({}, status=503), dialect=dialect) as open_gate:
        open_gate.call(PATHS[dialect], {"model": MODEL, "messages": [], "max_tokens": 5})
        facts = closed(open_gate)
        agent, gateways = open_gate.upstream.heard
    assert facts.ended_by_upstream
    assert gateways.path == agent.path
    assert is_probe(gateways)
    assert "16" in gateways.body.decode()


def test_a_failed_call_after_which_another_one_works_is_weather(tmp_path: Path) -> None:
    answers = iter([503, 503, 200])

    async def reply(_request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        return web.json_response(chat(1, 1), status=next(answers, 503))

    with gate(tmp_path, reply) as open_gate:
        assert open_gate.chat().status == 503
        until_probed(open_gate)
        assert open_gate.chat().status == 200
        facts = closed(open_gate)
    assert (facts.failed_upstream, facts.ended_by_upstream) == (1, False)


def until_probed(open_gate: Gate) -> None:
    done = threading.Event()
    for _ in range(200):
        if len(open_gate.upstream.heard) > 1 and open_gate.upstream.under_way == 0:
            return
        done.wait(0.05)
    raise AssertionError("the gateway did not ask")


def test_tokens_that_can_still_be_counted_do_not_clear_an_outage(tmp_path: Path) -> None:
    async def reply(_request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        counts = heard.path.endswith("count_tokens")
        return web.json_response({"input_tokens": 3} if counts else {}, status=200 if counts else 529)

    with gate(tmp_path, reply, dialect="anthropic-messages") as open_gate:
        said = {"model": MODEL, "max_tokens": 5, "messages": []}
        assert open_gate.call("/v1/messages", said).status == 529
        assert open_gate.call("/v1/messages/count_tokens", said).status == 200
        assert closed(open_gate).ended_by_upstream


@pytest.mark.parametrize("hangs_for_all", [True, False])
def test_a_client_that_gives_up_on_a_silent_upstream(
    hangs_for_all: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(probe, "PATIENCE_SECONDS", 0.5)
    with gate(tmp_path, silent if hangs_for_all else but_well_to_the_gateway(silent)) as open_gate:
        with contextlib.closing(open_gate.connect(timeout=1)) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(question()), open_gate.bearer())
            with pytest.raises(TimeoutError):
                connection.getresponse()
        facts = closed(open_gate)
        (exchange,) = open_gate.exchanges()
    assert (exchange.status, exchange.upstream_status, exchange.broke) == (499, None, "timeout")
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)
    assert facts.ended_by_upstream is hangs_for_all


def test_a_call_that_is_let_go_at_once_says_nothing_of_the_upstream(tmp_path: Path) -> None:
    with gate(tmp_path, silent) as open_gate:
        with contextlib.closing(open_gate.connect(timeout=0.3)) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(question()), open_gate.bearer())
            with pytest.raises(TimeoutError):
                connection.getresponse()
        facts = closed(open_gate)
    assert (facts.calls, facts.failed_upstream, facts.ended_by_upstream) == (1, 0, False)
    assert len(open_gate.upstream.heard) == 1


FAILED_INSIDE: list[tuple[Dialect, dict[str, Any]]] = [
    ("anthropic-messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ("openai-responses", {"type": "response.failed", "response": {"error": {"code": "server_error"}}}),
    ("openai-responses", {"type": "error", "code": "server_error", "message": "no"}),
    ("openai-chat", {"error": {"code": 502, "message": "Provider returned error"}, "choices": []}),
    ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE"}}),
]


@pytest.mark.parametrize(("dialect", "event"), FAILED_INSIDE)
def test_a_failure_said_inside_a_stream_is_one(dialect: Dialect, event: dict[str, Any], tmp_path: Path) -> None:
    said = said_stream([b"data: " + json.dumps(event).encode() + b"\n\n"])

    async def reply(request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        return web.json_response({}, status=529) if is_probe(heard) else await said(request, heard)

    path = PATHS[dialect].replace(":generateContent", ":streamGenerateContent")
    with gate(tmp_path, reply, dialect=dialect) as open_gate:
        answer = open_gate.call(path, {"model": MODEL, "stream": True, "messages": []})
        facts = closed(open_gate)
        (exchange,) = open_gate.exchanges()
    assert answer.status == 200
    assert (exchange.upstream_status, exchange.broke) == (200, "error")
    assert facts.ended_by_upstream


def test_what_the_client_itself_did_wrong_is_no_failure_of_the_upstream(tmp_path: Path) -> None:
    event = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    reply = said_stream([b"data: " + json.dumps(event).encode() + b"\n\n"])
    with gate(tmp_path, reply, dialect="anthropic-messages") as open_gate:
        open_gate.call("/v1/messages", {"model": MODEL, "stream": True, "messages": []})
        assert closed(open_gate).failed_upstream == 0


def test_many_failures_are_asked_about_once_in_a_while(tmp_path: Path) -> None:
    with gate(tmp_path, said_json({}, status=503)) as open_gate:
        for _ in range(10):
            open_gate.chat()
        assert closed(open_gate).ended_by_upstream
        assert sum(is_probe(heard) for heard in open_gate.upstream.heard) == 2, "at the first, and at the end"


def test_another_run_gets_its_key_while_an_upstream_is_asked_a_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PATIENCE_SECONDS", 2.0)

    async def reply(request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        return await silent(request, heard) if is_probe(heard) else web.json_response({}, status=503)

    with gate(tmp_path, reply) as open_gate:
        open_gate.chat()
        ended = threading.Thread(target=open_gate.close)
        ended.start()
        until(lambda: len(open_gate.upstream.heard) == 2)
        other = open_gate.keys.issue("other", NEED, cap_usd=1.0, ends_at=time.time() + 60)
        head = {"x-api-key": other.access.secret}
        assert open_gate.call("/v1/chat/completions", question(), headers=head).status == 503
        assert ended.is_alive(), "the end of the first run still waits"
        ended.join()
        assert closed(open_gate).ended_by_upstream


def test_a_key_whose_time_ran_out_under_a_silent_upstream_is_asked_about_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(probe, "PATIENCE_SECONDS", 0.8)
    with gate(tmp_path, silent, seconds=0.6) as open_gate:
        with pytest.raises(OSError, match="closed connection"):
            open_gate.chat()
        facts = closed(open_gate)
        assert [one.probe for one in open_gate.log()] == [False, True]
    assert (facts.failed_upstream, facts.ended_by_upstream, facts.broken) == (1, True, None)
