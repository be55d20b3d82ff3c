"""The cap holds: before anything is sent, in parallel, against clients that never stop and upstreams that break."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from aiohttp import web

from referee.core.spending import Dialect, Price, Usage
from tests.keys.gateway_calls import EVERY, Gate, gate, question
from tests.keys.scripted_upstream import Heard, Reply, chat, chat_events, said_json, said_stream

#: An answer of at most so many tokens at this price is the better part of what a call is held for.
DEAR = Price(input=1.0, output=100.0, source="this test")
OUTPUT = 1_000
COST = (50 + OUTPUT * 100) / 1e6


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that is about to be so."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.01)


def held_back(release: asyncio.Event, document: object) -> Reply:
    """Answers only once the test says so."""

    async def reply(_request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        await release.wait()
        return web.json_response(document)

    return reply


def test_a_client_that_never_stops_is_cut_at_the_cap_to_within_one_call(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(50, OUTPUT)), price=DEAR) as open_gate:
        statuses = []
        while (answer := open_gate.chat(max_tokens=OUTPUT)).status == 200:
            statuses.append(answer.status)
        again = [open_gate.chat(max_tokens=OUTPUT).status for _ in range(3)]
        heard = len(open_gate.upstream.heard)
        exchanges = open_gate.exchanges()
        facts = open_gate.close()
    assert answer.status == 402
    assert answer.document()["error"]["type"] == "insufficient_quota"
    assert again == [402] * 3
    assert heard == len(statuses) == facts.calls
    upper = exchanges[-1].upper_usd
    assert facts.spent_usd is not None
    assert 3.0 - upper <= facts.spent_usd <= 3.0
    assert upper < COST + 0.01
    assert (facts.refused, facts.capped) == (4, True)
    assert {one.cost_usd for one in exchanges if one.refused} == {0.0}


def test_twenty_calls_at_once_cannot_overshoot(tmp_path: Path) -> None:
    release = asyncio.Event()
    with gate(tmp_path, held_back(release, chat(50, OUTPUT)), price=DEAR, cap_usd=1.0) as open_gate:
        with ThreadPoolExecutor(20) as pool:
            answers = [pool.submit(open_gate.chat, f"call {n}", max_tokens=OUTPUT) for n in range(20)]
            until(lambda: open_gate.upstream.under_way == 9)
            # Nine are held at 0.1 and a little more each; the tenth might exceed 1 and waits.
            time.sleep(0.3)
            assert open_gate.upstream.most_under_way == 9
            open_gate.upstream.loop.call_soon_threadsafe(release.set)
            statuses = sorted(answer.result().status for answer in answers)
        facts = open_gate.close()
    assert facts.spent_usd is not None
    assert facts.spent_usd <= 1.0
    assert statuses == [200] * 9 + [402] * 11
    assert (facts.calls, facts.refused) == (9, 11)


def test_a_call_that_only_waits_for_others_is_sent_once_they_are_settled(tmp_path: Path) -> None:
    release = asyncio.Event()
    with gate(tmp_path, held_back(release, chat(50, 1)), price=DEAR, cap_usd=0.15) as open_gate:
        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(open_gate.chat, f"call {n}", max_tokens=OUTPUT) for n in range(3)]
            until(lambda: open_gate.upstream.under_way == 1)
            open_gate.upstream.loop.call_soon_threadsafe(release.set)
            assert [answer.result().status for answer in answers] == [200] * 3
        assert open_gate.upstream.most_under_way == 1
        assert open_gate.close().refused == 0


def test_a_flood_of_calls_is_turned_away_without_being_sent(tmp_path: Path) -> None:
    release = asyncio.Event()
    with gate(tmp_path, held_back(release, chat(50, 1))) as open_gate, ThreadPoolExecutor(64) as pool:
        answers = [pool.submit(open_gate.chat, f"call {n}") for n in range(64)]
        until(lambda: open_gate.upstream.under_way == 64)
        turned_away = open_gate.chat()
        open_gate.upstream.loop.call_soon_threadsafe(release.set)
        assert {answer.result().status for answer in answers} == {200}
        facts = open_gate.close()
    assert (turned_away.status, turned_away.headers["retry-after"]) == (429, "1")
    assert (facts.calls, facts.refused, facts.capped) == (64, 1, False)


def test_a_call_that_says_no_limit_of_output_gets_the_upstreams(tmp_path: Path) -> None:
    with gate(tmp_path, said_json(chat(50, 10)), most_output=700) as open_gate:
        document = question()
        del document["max_tokens"]
        open_gate.call("/v1/chat/completions", document)
        open_gate.chat(max_tokens=100_000)
        sent = [heard.document()["max_tokens"] for heard in open_gate.upstream.heard]
    assert sent == [700, 700]


@pytest.mark.parametrize("dialect", EVERY)
def test_a_refusal_is_said_in_the_words_of_its_surface(dialect: Dialect, tmp_path: Path) -> None:
    paths = {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic-messages": "/v1/messages",
        "gemini": "/v1beta/models/scripted-1:generateContent",
    }
    with gate(tmp_path, said_json({}), dialect=dialect, cap_usd=0.000001) as open_gate:
        answer = open_gate.call(paths[dialect], question())
        assert open_gate.upstream.heard == []
    assert answer.status == 402
    said = answer.document()
    if dialect == "anthropic-messages":
        assert (said["type"], said["error"]["type"]) == ("error", "billing_error")
    elif dialect == "gemini":
        assert (said["error"]["code"], said["error"]["status"]) == (402, "FAILED_PRECONDITION")
    else:
        assert said["error"]["code"] == "cap"
    assert "was not sent" in said["error"]["message"]


def test_what_the_upstream_does_not_count_is_settled_at_the_upper_estimate(tmp_path: Path) -> None:
    answer = chat(1, 1)
    del answer["usage"]
    with gate(tmp_path, said_json(answer), price=DEAR) as open_gate:
        assert open_gate.chat(max_tokens=OUTPUT).status == 200
        (exchange,) = open_gate.exchanges()
    assert exchange.usage is None
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)
    assert exchange.cost_usd > OUTPUT * 100 / 1e6


def test_a_stream_that_breaks_off_breaks_off_for_the_client_too_and_counts_in_full(tmp_path: Path) -> None:
    async def reply(request: web.BaseRequest, _heard: Heard) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(chat_events(1, 1)[0])
        await asyncio.sleep(0.05)
        assert request.transport is not None
        request.transport.abort()
        return response

    with gate(tmp_path, reply, price=DEAR) as open_gate:
        with pytest.raises(http.client.IncompleteRead):
            open_gate.chat(max_tokens=OUTPUT, stream=True)
        (exchange,) = open_gate.exchanges()
        facts = open_gate.close()
    assert (exchange.status, exchange.upstream_status, exchange.broke) == (200, 200, "reset")
    assert exchange.usage is None
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)
    assert (facts.failed_upstream, facts.ended_by_upstream) == (1, True)


def test_a_client_that_lets_go_in_the_middle_ends_the_upstreams_work_and_counts_in_full(tmp_path: Path) -> None:
    async def between(number: int) -> None:
        if number > 1:
            await asyncio.Event().wait()

    with gate(tmp_path, said_stream(chat_events(1, 1), between=between), price=DEAR) as open_gate:
        connection = open_gate.connect()
        document = json.dumps(question(max_tokens=OUTPUT, stream=True))
        connection.request("POST", "/v1/chat/completions", document, open_gate.bearer())
        assert connection.getresponse().read(5) == b"data:"
        connection.close()
        until(lambda: open_gate.upstream.dropped == 1)
        (exchange,) = open_gate.exchanges()
        facts = open_gate.close()
    assert (exchange.status, exchange.broke) == (499, None)
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)
    assert (facts.calls, facts.failed_upstream) == (1, 0)


def test_a_client_that_hangs_up_after_the_last_event_is_counted_exactly(tmp_path: Path) -> None:
    async def between(number: int) -> None:
        if number == len(events):
            await asyncio.Event().wait()

    events = chat_events(200, 20)
    whole = b"".join(events)
    with gate(tmp_path, said_stream([*events, b": more"], between=between)) as open_gate:
        connection = open_gate.connect()
        document = json.dumps(question(stream=True, stream_options={"include_usage": True}))
        connection.request("POST", "/v1/chat/completions", document, open_gate.bearer())
        assert connection.getresponse().read(len(whole)) == whole
        connection.close()
        until(lambda: open_gate.upstream.dropped == 1)
        (exchange,) = open_gate.exchanges()
    assert exchange.usage == Usage(input=200, output=20)
    assert exchange.cost_usd == pytest.approx(220e-6)


def test_where_nothing_was_sent_nothing_is_counted(tmp_path: Path) -> None:
    with gate(tmp_path, said_json({}), base_url="http://127.0.0.1:9/v1") as open_gate:
        answer = open_gate.chat()
        (exchange,) = open_gate.exchanges()
        facts = open_gate.close()
    assert answer.status == 502
    assert (exchange.broke, exchange.upstream_status, exchange.cost_usd) == ("connect", None, 0.0)
    assert exchange.usage == Usage(input=0, output=0)
    assert (facts.calls, facts.failed_upstream, facts.spent_usd) == (1, 1, 0.0)


def test_a_call_that_is_cut_while_it_still_connects_costs_nothing(tmp_path: Path) -> None:
    with contextlib.ExitStack() as held:
        full = held.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # nobody takes these, so that the next one waits to be connected
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with (
            gate(tmp_path, said_json({}), base_url=f"http://127.0.0.1:{full.getsockname()[1]}/v1") as open_gate,
            ThreadPoolExecutor(1) as pool,
        ):
            answer = pool.submit(_status, open_gate)
            (account,) = [account for _, account, _ in open_gate.keys._accounts.values()]
            until(lambda: account._held > 0)
            facts = open_gate.close()
            assert answer.result() is None
            (exchange,) = open_gate.exchanges()
    assert (exchange.upstream_status, exchange.broke, exchange.status) == (None, None, 499)
    assert exchange.upper_usd > 0
    assert exchange.usage == Usage(input=0, output=0)
    assert (exchange.cost_usd, facts.spent_usd) == (0.0, 0.0)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 429, 500, 529])
def test_an_error_that_says_that_nothing_was_done_costs_nothing(status: int, tmp_path: Path) -> None:
    said = {"error": {"message": "no", "type": "error"}}
    with gate(tmp_path, said_json(said, status=status)) as open_gate:
        answer = open_gate.chat()
        (exchange,) = open_gate.exchanges()
        facts = open_gate.close()
    assert answer.status == status
    assert (answer.document() == said) is (status in {400, 500, 529})
    assert exchange.cost_usd == 0.0
    assert facts.failed_upstream == (0 if status == 400 else 1)


@pytest.mark.parametrize("status", [408, 502, 504, 524])
def test_an_error_behind_which_a_model_may_have_worked_counts_in_full(status: int, tmp_path: Path) -> None:
    with gate(tmp_path, said_json({"error": {}}, status=status)) as open_gate:
        assert open_gate.chat().status == status
        (exchange,) = open_gate.exchanges()
    assert exchange.usage is None
    assert exchange.cost_usd == pytest.approx(exchange.upper_usd, abs=1e-9)


def test_a_run_that_is_closed_while_calls_are_under_way_cuts_and_settles_them(tmp_path: Path) -> None:
    release = asyncio.Event()
    with gate(tmp_path, held_back(release, chat(50, 1)), price=DEAR) as open_gate, ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(_status, open_gate) for _ in range(3)]
        until(lambda: open_gate.upstream.under_way == 3)
        facts = open_gate.close()
        assert [answer.result() for answer in answers] == [None] * 3
        until(lambda: open_gate.upstream.dropped == 3)
        assert _status(open_gate) == 401
        again = open_gate.close()
    assert facts.calls == 3
    assert facts.spent_usd == pytest.approx(3 * (OUTPUT * 100 + 2163) / 1e6, rel=0.01)
    assert facts.deleted
    assert again == facts


def _status(open_gate: Gate) -> int | None:
    """The status; None where the connection was cut."""
    try:
        return open_gate.chat(max_tokens=OUTPUT).status
    except OSError:
        return None


def test_a_long_conversation_is_held_by_what_is_new_in_it(tmp_path: Path) -> None:
    """By length alone, the second call of 400 kB would be held at 0.4 USD more than it can cost."""
    history = "All work and no play. " * 20_000

    async def reply(_request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        return web.json_response(chat(len(heard.body) // 4, 1))

    with gate(tmp_path, reply) as open_gate:
        turns = [{"role": "user", "content": history}]
        for number in range(3):
            open_gate.call("/v1/chat/completions", {**question(), "messages": turns})
            turns.append({"role": "user", "content": f"and then {number}"})
        first, *later = open_gate.exchanges()
    assert first.usage is not None
    assert first.upper_usd > 4 * first.cost_usd - 0.01
    for exchange in later:
        assert exchange.cost_usd <= exchange.upper_usd < 1.3 * exchange.cost_usd  # writing a cache is a quarter dearer


def test_text_that_the_upstream_did_not_count_once_does_not_pass_uncounted_later(tmp_path: Path) -> None:
    """Its bytes once stood in a member that nobody counts; then forty calls at once carry them as a conversation."""
    large = "lorem ipsum " * 30_000

    async def reply(_request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        said = heard.document()
        if said["messages"][0]["content"] != "hi":
            await asyncio.sleep(0.3)
        return web.json_response(chat(sum(len(json.dumps(turn)) for turn in said["messages"]) // 4, 1))

    price = Price(input=3.0, output=15.0, source="this test")
    with gate(tmp_path, reply, price=price) as open_gate:
        assert open_gate.chat("hi", x=[{"role": "user", "content": large}]).status == 200
        with ThreadPoolExecutor(40) as pool:
            answers = [pool.submit(open_gate.chat, large, max_tokens=1, x=0) for _ in range(40)]
            statuses = {answer.result().status for answer in answers}
        facts = open_gate.close()
        assert "x" not in open_gate.upstream.heard[0].document()
    assert statuses == {200, 402}
    assert facts.spent_usd is not None
    assert 0.2 < facts.spent_usd <= 3.0


@pytest.mark.parametrize(
    "other",
    [
        {"reasoning_effort": "high"},
        {"messages": [{"role": "user", "content": "b"}, {"role": "user", "content": "a" * 200_000}]},
    ],
    ids=["another frame", "another beginning"],
)
def test_only_a_conversation_that_went_on_is_held_by_what_is_new_in_it(
    other: dict[str, object], tmp_path: Path
) -> None:
    """Providers count some members and turns only beside certain others."""
    with gate(tmp_path, said_json(chat(10, 1))) as open_gate:
        for members in ({}, {}, other):
            open_gate.chat("a" * 200_000, **members)
        first, again, third = open_gate.exchanges()
    assert first.upper_usd == pytest.approx(third.upper_usd, rel=0.01)
    assert again.upper_usd < first.upper_usd / 10
