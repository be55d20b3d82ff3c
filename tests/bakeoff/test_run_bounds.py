"""What a run may have spent is written down before its call begins: it holds after a kill and on a full disk."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.lanes.lane import HttpLane
from referee.adapters.store.spending import SpendLog, bounds
from referee.errors import Finding
from referee.protocols import Ask, Said
from tests.bakeoff.metered_runs import LEDGER, spent, written
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving
from tests.bakeoff.test_crash import running

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute


def test_a_killed_run_leaves_what_it_may_have_spent_and_the_next_is_held_to_it(tmp_path: Path) -> None:
    metered = {**LEDGER, "credit_usd": 8.0}  # one call, 6 USD at most, and no second one beside it
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=8, repeats=1, one=metered)
        space.freeze()
        server.script = lambda got: "slow" if "City" in got.question else None
        with running(space) as process:
            end = time.monotonic() + 30
            while not server.under_way and time.monotonic() < end:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
        asked = len([got for got in server.got if "City" in got.question])
        assert asked == 1
        assert space.rows() == []
        assert written(space) > 5.0
        server.script = lambda got: None
        report = space.run()
        assert (report.targets[0].rows, report.targets[0].ended) == (0, "budget")
        assert len([got for got in server.got if "City" in got.question]) == asked


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_bound_is_durable_before_its_call_begins(tmp_path: Path, concurrency: int) -> None:
    # 4.096 USD at most a call, 0.015 by its count of tokens.
    metered = {**LEDGER, "credit_usd": 1000.0, "price": {"input": 0.0, "output": 1000.0}}
    plan = f"[guards]\nconcurrency = {concurrency}\n"
    seen: list[float] = []
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=12, repeats=1, plan=plan, one=metered)
        space.freeze()

        def look(got: Any) -> None:
            if "City" in got.question:
                answered = len(seen) - server.under_way + 1
                seen.append(written(space) - 4.096 * server.under_way - 0.015 * answered)

        server.script = look
        space.run()
    assert len(seen) == 12
    assert min(seen) > -1e-9, "a call was under way that no bound had room for"
    assert written(space) == pytest.approx(spent(space))


def test_the_last_whole_line_counts_and_a_bound_that_stands_there_is_not_written_again(tmp_path: Path) -> None:
    log = SpendLog(tmp_path, run="b-1", account="A_KEY")
    for usd in (3.0, 5.0, 4.0):
        log.at_most(usd)
    [path] = tmp_path.glob("spend-*.jsonl")
    assert len(path.read_bytes().splitlines()) == 2, "what stands there is not written again"
    assert bounds(tmp_path, "A_KEY") == {"b-1": 5.0}
    assert bounds(tmp_path, "B_KEY") == {}
    with path.open("ab") as torn:
        torn.write(b'{"body":{"account"')
    assert bounds(tmp_path, "A_KEY") == {"b-1": 5.0}
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"usd":3', b'"usd":1'))
    with pytest.raises(Finding, match=r"spend-.*line 2: does not continue the line before it"):
        bounds(tmp_path, "A_KEY")
    path.write_bytes(whole[: whole.rindex(b"\n") + 1])
    log.close(1.25)
    assert bounds(tmp_path, "A_KEY") == {"b-1": 1.25}


def test_verify_misses_money_that_is_not_written_down(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one={**LEDGER, "credit_usd": 100.0})
        space.run()
    [path] = space.records.glob("spend-*.jsonl")
    whole = path.read_bytes()
    *lines, last = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + last.replace(b'"usd":0.54', b'"usd":0.45'))
    with pytest.raises(Finding, match=r"the rows of run b-\w+ cost 0.5400 USD .* no more than 0.4500 USD"):
        space.verify()
    path.unlink()
    with pytest.raises(Finding, match=r"no more than 0.0000 USD is written down"):
        space.verify()
    assert written(space) == pytest.approx(0.54), "without it, the rows count"
    path.write_bytes(whole)
    space.verify()


def test_a_run_without_bounds_counts_by_its_rows_beside_one_with_bounds(tmp_path: Path) -> None:
    each = {**LEDGER, "credit_usd": 100.0}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one=each, two=each)
        space.run("one")
        space.run("two")
    first, _ = sorted(space.records.glob("spend-*.jsonl"))
    assert written(space) == pytest.approx(1.08)
    first.unlink()
    assert written(space) == pytest.approx(1.08)


def test_a_disk_that_takes_no_bound_lets_no_call_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("referee.adapters.store.spending.write_whole", full)
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one={**LEDGER, "credit_usd": 100.0})
        report = space.run()
        assert [got for got in server.got if "City" in got.question] == []
    assert report.targets[0].ended == "budget"
    assert "what is spent could not be written down: No space left" in report.targets[0].detail


def test_what_never_came_to_the_server_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(_self: HttpLane, _ask: Ask, _deadline: float) -> Said:
        return Said(None, {}, b"", "connect", "no connection comes about", False, None, 1.0)

    monkeypatch.setattr(HttpLane, "ask", refused)
    plan = "[retry]\ntries = 1\n[guards]\nconcurrency = 1\n"
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, plan=plan, one={**LEDGER, "credit_usd": 100.0})
        space.run()
    assert [row["spent_usd"] for row in space.rows()] == [0.0, 0.0]
    assert written(space) == 0.0
