"""What one machine can ask of the gateway: no run holds up another one, and no log grows without end."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from referee.adapters.keys.gateway import account, arriving, call
from referee.adapters.keys.gateway.asked import MOST_OUTSIDE, read_object
from referee.adapters.keys.gateway.unfit import Unfit
from referee.core.spending_sums import summed
from tests.keys.gateway_calls import gate, question
from tests.keys.scripted_upstream import MODEL, chat, said_json
from tests.keys.test_gateway_faults import NEED


@pytest.mark.parametrize("part", [b"[],", b"0,", b'"",', b"{},"])
def test_json_that_takes_long_to_read_is_not_read(part: bytes) -> None:
    with pytest.raises(Unfit) as refused:
        read_object(b'{"messages":[' + part * (MOST_OUTSIDE + 10) + b"0]}")
    assert refused.value.status == 413


def test_a_long_conversation_is_read() -> None:
    text = '"x": [1, {}],\\n' * 100
    body = b'{"messages":["' + b'","'.join([text.encode().replace(b'"', b'\\"')] * 4_000) + b'"]}'
    assert 5 * 2**20 < len(body) < arriving.MOST_REQUEST
    assert len(read_object(body)["messages"]) == 4_000


def test_many_large_bodies_of_one_run_hold_up_neither_another_nor_the_end(tmp_path: Path) -> None:
    body = b'{"model":"scripted-1","messages":[' + b"[]," * 2_500_000 + b"[]]}"
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        other = open_gate.keys.issue("other", NEED, cap_usd=1.0, ends_at=time.time() + 60)
        statuses: list[int] = []

        def flood() -> None:
            statuses.append(open_gate.send("POST", "/v1/chat/completions", body).status)

        threads = [threading.Thread(target=flood) for _ in range(14)]
        for thread in threads:
            thread.start()
        answer = open_gate.call("/v1/chat/completions", question(), headers={"x-api-key": other.access.secret})
        for thread in threads:
            thread.join()
        facts = open_gate.close()
    assert answer.status == 200
    assert statuses == [413] * 14
    assert (facts.deleted, facts.broken, facts.refused) == (True, None, 14)


def test_a_flood_of_refused_calls_is_counted_and_not_told_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "REFUSED_ONE_BY_ONE", 5)
    monkeypatch.setattr(account, "REFUSED_TOGETHER", 10)
    monkeypatch.setattr(call, "PESTERED_SECONDS", 0.0)
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        for _ in range(37):
            assert open_gate.chat(model="another").status == 404
        assert open_gate.chat().status == 200
        facts = open_gate.close()
        log = open_gate.log()
    assert (facts.refused, facts.calls) == (37, 1)
    assert [one.times for one in log if one.refused] == [1] * 5 + [10, 10, 10, 2]
    assert vars(summed(log))["refused"] == 37


def test_what_costs_nothing_is_not_asked_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "FREE_AT_ONCE", 5)
    monkeypatch.setattr(account, "FREE_PER_SECOND", 0.0)
    with gate(tmp_path, said_json({"input_tokens": 1}), dialect="anthropic-messages") as open_gate:
        said = {"model": MODEL, "messages": []}
        statuses = [open_gate.call("/v1/messages/count_tokens", said).status for _ in range(8)]
        assert len(open_gate.upstream.heard) == 5
    assert statuses == [200] * 5 + [429] * 3


def test_a_run_makes_no_more_calls_than_its_log_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "MOST_CALLS", 3)
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        statuses = [open_gate.chat().status for _ in range(5)]
        facts = open_gate.close()
    assert statuses == [200] * 3 + [429] * 2
    assert (facts.calls, facts.refused) == (3, 2)


def test_a_token_is_dead_although_the_loop_is_stalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gate(tmp_path, said_json(chat(1, 1))) as open_gate:
        serving = open_gate.keys._server
        assert serving is not None
        stalled = threading.Event()
        serving._loop.call_soon_threadsafe(stalled.wait, 20)
        ended = threading.Thread(target=open_gate.close)
        ended.start()
        for _ in range(100):
            if open_gate.token not in serving._accounts:
                break
            time.sleep(0.05)
        assert open_gate.token not in serving._accounts
        stalled.set()
        ended.join()
        assert open_gate.chat().status == 401
