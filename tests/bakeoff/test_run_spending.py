"""What a cap on spending must hold against: shared accounts, counts that lie, halts, and runs side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.lanes.lane import HttpLane
from referee.adapters.store.spending import SpendLog, bounds
from referee.core.answers import Reading
from referee.errors import CouldNotVerify, UsageError
from referee.protocols import Ask, Said
from referee.runner.bakeoff.budget import HALTED, Account, Blocked, Purse
from referee.runner.bakeoff.guards import Halt
from referee.runner.bakeoff.ledger import account_of
from referee.runner.bakeoff.run import Interrupts, RunReport, Tightened, run_bakeoff
from tests.bakeoff.lane_targets import question, target
from tests.bakeoff.metered_runs import ACCOUNT, LEDGER, spent, written
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import ScriptedServer, serving

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute


# --- one account, several targets ------------------------------------------------------------------------------------


def test_targets_with_one_credential_share_its_credit(tmp_path: Path) -> None:
    each = {**LEDGER, "credit_usd": 4.0, "price": {"input": 0.0, "output": 10_000.0}}  # 0.15 USD, 40.96 at most
    with serving(calls=right, delay=0.002) as server:
        space = RunWorkspace(tmp_path, server.url, cases=30, repeats=1, one=each, two=each, three=each)
        report = space.run()
        assert server.most_under_way == 1, "what one call may cost leaves no room for another beside it"
    assert {one.ended for one in report.targets} == {"budget"}
    assert 4.0 - spent(space) + 0.15 >= 3.0 > 4.0 - spent(space)
    assert written(space) == pytest.approx(spent(space))


def test_targets_of_one_account_that_state_different_credits_are_refused(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        one, two = {**LEDGER, "credit_usd": 10.0}, {**LEDGER, "credit_usd": 20.0}
        space = RunWorkspace(tmp_path, server.url, one=one, two=two)
        with pytest.raises(UsageError, match="the targets one, two spend from one account and state different credits"):
            space.run()
        assert [got for got in server.got if "City" in got.question] == []


def test_accounts_with_other_credentials_do_not_share(tmp_path: Path) -> None:
    poor, rich = {**LEDGER, "credit_usd": 3.1}, {**LEDGER, "credit_usd": 100.0, "key_env": "OTHER_API_KEY"}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, poor=poor, rich=rich)
        space.environ["OTHER_API_KEY"] = "sk-another-0123456789abcdef"
        ended = {one.target: one.ended for one in space.run().targets}
    assert ended == {"poor": "budget", "rich": "complete"}


# --- counts of tokens that no call can have --------------------------------------------------------------------------


def _told(monkeypatch: pytest.MonkeyPatch, usage: dict[str, Any]) -> None:
    """Let the server count tokens as it likes."""
    honest = HttpLane.ask

    async def ask(self: HttpLane, question: Ask, deadline_seconds: float) -> Said:
        said = await honest(self, question, deadline_seconds)
        return replace(said, body=json.dumps(json.loads(said.body) | {"usage": usage}).encode())

    monkeypatch.setattr(HttpLane, "ask", ask)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 50_000_000}},
        {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 11}},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -5, "completion_tokens": -5},
    ],
)
@pytest.mark.parametrize(
    "price", [{"price": {"input": 1.0, "output": 1000.0, "cached_input": 0.1}}, {"price_model": "gpt-4o-mini"}]
)
def test_a_count_that_no_call_can_have_costs_what_the_call_could(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usage: dict[str, Any], price: dict[str, Any]
) -> None:
    metered = {key: value for key, value in LEDGER.items() if key != "price"} | price | {"credit_usd": 3.001}
    _told(monkeypatch, usage)
    with serving(calls=right, delay=0.05) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, plan="[guards]\nconcurrency = 4\n", one=metered)
        report = space.run()
    least = 4096 * (1000.0 if "price" in price else 0.6) / 1e6
    assert spent(space) >= least
    assert (report.targets[0].rows, report.targets[0].ended) == (1, "budget")


class _Provider:
    """A lane of which only the credit is read."""

    def __init__(self, *credit: float) -> None:
        self._credit = list(credit)

    async def credit_usd(self) -> float | None:
        return self._credit.pop(0) if len(self._credit) > 1 else self._credit[0]


def _purse(root: Path, *, credit: float = 100.0, **more: Any) -> tuple[Purse, Account]:
    aim = target("http://127.0.0.1:9", **{**LEDGER, "credit_usd": credit, **more})
    lane: Any = _Provider(credit)
    log = SpendLog(root, run="b-1", account=account_of(aim))
    account = Account(lane, stated=credit, floor=3.0, spent_before=0.0, log=log)
    return Purse(aim, account), account


@pytest.mark.parametrize(
    ("inputs", "cached", "outputs", "cost"),
    [
        (120, None, 15, 0.135),
        (120, 0, 0, 0.12),
        (120, 120, 15, 0.135),
        (120, 121, 15, 7.0),
        (120, -1, 15, 7.0),
        (0, None, 15, 7.0),
        (120, None, -1, 7.0),
        (None, None, 15, 7.0),
        (10**400, None, 15, 7.0),
    ],
)
def test_what_a_call_is_held_to_cost(
    tmp_path: Path, inputs: int | None, cached: int | None, outputs: int | None, cost: float
) -> None:
    async def one() -> float:
        purse, account = _purse(tmp_path)
        assert await purse.hold(7.0, Halt()) is None
        reading = Reading(input_tokens=inputs, cached_tokens=cached, output_tokens=outputs)
        said = purse.settle(7.0, reading, answered=True)
        assert account.spent == said
        account.close()
        return said

    assert asyncio.run(one()) == pytest.approx(cost)
    assert bounds(tmp_path, ACCOUNT) == {"b-1": pytest.approx(cost)}


def test_a_call_that_cost_more_than_it_could_raises_the_bound_at_once(tmp_path: Path) -> None:
    async def one() -> None:
        purse, account = _purse(tmp_path)
        assert await purse.hold(7.0, Halt()) is None
        assert purse.settle(7.0, Reading(input_tokens=20_000, output_tokens=0), answered=True) == 20.0
        assert account.spent == 20.0

    asyncio.run(one())  # and it is never closed, as after a kill
    assert bounds(tmp_path, ACCOUNT) == {"b-1": 20.0}


def test_cached_input_that_is_dearer_is_held_back_too(tmp_path: Path) -> None:
    dear, _ = _purse(tmp_path, price={"input": 1.0, "cached_input": 2.0, "output": 0.0})
    assert dear.estimate(question(), 1_000_000) == 2.0


# --- halts -----------------------------------------------------------------------------------------------------------


async def _asked(server: ScriptedServer) -> None:
    """Until a call is under way at the server, which runs on a loop of its own."""
    async with asyncio.timeout(30):
        while not server.under_way:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _settled_soon(waiting: Awaitable[Blocked | None]) -> Blocked | None:
    async with asyncio.timeout(5):
        return await waiting


def test_who_waits_for_money_ends_with_the_halt_and_begins_no_call(tmp_path: Path) -> None:
    async def waits() -> None:
        purse, account = _purse(tmp_path, credit=10.0)
        halt = Halt()
        assert await purse.hold(8.0, halt) is None
        waiting = asyncio.create_task(purse.hold(8.0, halt))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        halt.ask("interrupted")
        assert await _settled_soon(waiting) is HALTED
        assert await _settled_soon(purse.hold(0.1, halt)) is HALTED
        purse.settle(8.0, None, answered=False)
        account.close()
        assert account.spent == 8.0

    asyncio.run(waits())


def test_a_halt_that_comes_while_the_credit_is_read_begins_no_call(tmp_path: Path) -> None:
    async def reads() -> None:
        purse, account = _purse(tmp_path)
        halt = Halt()
        halt.ask("interrupted")
        assert await purse.hold(8.0, halt) is HALTED
        account.close()

    asyncio.run(reads())
    assert bounds(tmp_path, ACCOUNT) == {"b-1": 0.0}, "what was not begun is not held"


def test_a_target_that_stops_wakes_nobody_for_good_and_leaves_nobody_asleep(tmp_path: Path) -> None:
    """Two targets of one account: when the last call under way is settled, who waits is told that nothing is left."""

    async def waits() -> list[Blocked | None]:
        purse, _ = _purse(tmp_path, credit=10.0)
        assert await purse.hold(8.0, Halt()) is None
        waiting = [asyncio.create_task(purse.hold(8.0, Halt())) for _ in range(3)]
        await asyncio.sleep(0.05)
        purse.settle(8.0, None, answered=False)
        return [await _settled_soon(one) for one in waiting]

    assert all(isinstance(one, Blocked) and "below the floor" in one.sentence for one in asyncio.run(waits()))


def test_no_metered_call_begins_after_an_interrupt(tmp_path: Path) -> None:
    # 4.1 USD at most a call: beside one call under way there is no room for another.
    metered = {**LEDGER, "credit_usd": 7.0, "price": {"input": 0.0, "output": 1000.0}}
    with serving(calls=right, delay=0.4) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one=metered)
        space.freeze()

        async def interrupted() -> tuple[RunReport, int]:
            interrupts = Interrupts()
            run = asyncio.create_task(run_bakeoff(space.loaded, space.desk(), interrupts=interrupts))
            await _asked(server)
            interrupts.interrupt()
            began = len([got for got in server.got if "City" in got.question])
            return await run, began

        report, began = asyncio.run(interrupted())
        asked = len([got for got in server.got if "City" in got.question])
    assert asked == began
    assert report.targets[0].ended == "interrupted"
    assert report.targets[0].rows == asked


def test_what_an_attempt_without_a_row_may_have_cost_is_not_forgotten(tmp_path: Path) -> None:
    metered = {**LEDGER, "credit_usd": 1000.0}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=1, repeats=1, one=metered)
        space.freeze()
        server.script = lambda got: "slow" if "City" in got.question else None

        async def given_up() -> RunReport:
            interrupts = Interrupts()
            run = asyncio.create_task(run_bakeoff(space.loaded, space.desk(), interrupts=interrupts))
            await _asked(server)
            interrupts.interrupt()
            interrupts.interrupt()
            return await run

        report = asyncio.run(given_up())
    assert (report.targets[0].rows, space.rows()) == (0, [])
    assert written(space) > 4.0, "the longest answer alone would have cost 4.096"


def test_what_a_try_may_have_cost_is_told_though_its_attempt_left_no_row(tmp_path: Path) -> None:
    metered = {**LEDGER, "credit_usd": 1000.0, "model": "slow", "deadline_seconds": 0.2}
    plan = "[retry]\ntries = 2\nfirst_seconds = 60.0\n"
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=1, repeats=1, plan=plan, one=metered)
        space.freeze()

        async def given_up() -> RunReport:
            interrupts = Interrupts()
            run = asyncio.create_task(run_bakeoff(space.loaded, space.desk(), interrupts=interrupts))
            await _asked(server)
            await asyncio.sleep(0.5)
            interrupts.interrupt()
            return await run

        report = asyncio.run(given_up())
    assert (report.targets[0].rows, space.rows()) == (0, [])
    assert report.targets[0].spent_usd == pytest.approx(written(space))
    assert written(space) > 4.0


# --- runs side by side -----------------------------------------------------------------------------------------------


def _both(space: RunWorkspace, *names: tuple[str, ...]) -> list[RunReport | BaseException]:
    async def both() -> list[RunReport | BaseException]:
        runs = (run_bakeoff(space.loaded, space.desk(), names=one, tightened=Tightened()) for one in names)
        return await asyncio.gather(*runs, return_exceptions=True)

    return asyncio.run(both())


def test_two_runs_of_a_target_at_once_run_nothing_twice(tmp_path: Path) -> None:
    with serving(calls=right, delay=0.05) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=1)
        space.freeze()
        refused, done = sorted(_both(space, (), ()), key=lambda one: isinstance(one, RunReport))
        assert len([got for got in server.got if "City" in got.question]) == 6
    assert isinstance(refused, CouldNotVerify)
    assert refused.message == "another run of one under this protocol is under way"
    assert isinstance(done, RunReport)
    assert set(space.slots().values()) == {1}


def test_targets_of_one_account_run_in_one_run_or_one_after_the_other(tmp_path: Path) -> None:
    each = {**LEDGER, "credit_usd": 100.0}
    with serving(calls=right, delay=0.05) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one=each, two=each)
        space.freeze()
        found = _both(space, ("one",), ("two",))
        [refused] = [one for one in found if isinstance(one, CouldNotVerify)]
        assert refused.message == f"another run spends from the account of {ACCOUNT}"
        assert space.run().targets[-1].ended == "complete"
    assert len(space.slots()) == 8


def test_unmetered_targets_write_no_bounds_and_share_no_lock(tmp_path: Path) -> None:
    with serving(calls=right, delay=0.02) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one={}, two={})
        space.freeze()
        assert all(isinstance(one, RunReport) for one in _both(space, ("one",), ("two",)))
    assert list(space.records.glob("spend-*")) == []
