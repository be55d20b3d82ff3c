"""The hard budget gate: read before every metered call, held back for calls under way, never free by ignorance."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from referee.errors import UsageError
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving
from tests.bakeoff.test_run_start import command

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

#: 1 USD a thousand tokens, in and out: an answer of the scripted server costs something that can be seen.
PRICE = {"input": 1000.0, "output": 1000.0}
LEDGER: dict[str, Any] = {"channel": "metered-api", "metered": True, "credit": "ledger", "price": PRICE}
ROUTER: dict[str, Any] = {"channel": "router", "metered": True, "credit": "openrouter", "price": PRICE}
CHEAP = {"input": 0.01, "output": 0.01}
ONE = "[guards]\nconcurrency = 1\n"


def test_a_ledger_blocks_before_the_floor_is_run_through(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=200, repeats=1, plan=ONE, one={**LEDGER, "credit_usd": 3.5})
        report = space.run()
    stopped = report.targets[0]
    assert stopped.ended == "budget"
    assert "is below the floor of 3.00 USD" in stopped.detail
    assert 0 < stopped.rows < 200
    each = [row["spent_usd"] for row in space.rows()]
    assert all(cost > 0 for cost in each)
    assert 3.5 - sum(each[:-1]) >= 3.0 > 3.5 - sum(each), "the call after which credit is below the floor is the last"


@pytest.mark.parametrize("target", [LEDGER, ROUTER], ids=["ledger", "router"])
def test_a_call_at_the_floor_is_let_through_whatever_floats_leave(tmp_path: Path, target: dict[str, Any]) -> None:
    # 120 tokens in and 15 out. In floats, ten times 0.0135 from 3.135 ends below 3, and 4.1 - 1.1 does as well.
    price = {"input": 100.0, "output": 100.0}
    with serving(calls=right, credit=(4.1, 1.1)) as server:
        space = RunWorkspace(
            tmp_path, server.url, cases=20, repeats=1, plan=ONE, one={**target, "credit_usd": 3.135, "price": price}
        )
        report = space.run()
    assert {row["spent_usd"] for row in space.rows()} == {0.0135}
    stopped = report.targets[0]
    assert (stopped.rows, stopped.ended) == (11 if target is LEDGER else 1, "budget")
    assert stopped.detail == "the remaining credit, 2.99 USD, is below the floor of 3.00 USD"


@pytest.mark.parametrize(
    ("credit", "floor", "said"),
    [
        (2.999999, 3.0, "2.999999 USD, is below the floor of 3.00 USD"),
        (2.9999999991, 0.0, "2.999999999 USD, is below the floor of 3.00 USD"),
        (3.0049, 3.005, "3.0049 USD, is below the floor of 3.005 USD"),
        (0.5, 3.25, "0.50 USD, is below the floor of 3.25 USD"),
    ],
)
def test_what_blocks_a_call_is_said_with_as_many_digits_as_it_takes(
    tmp_path: Path, credit: float, floor: float, said: str
) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=1, one={**LEDGER, "credit_usd": credit, "price": CHEAP})
        assert space.run(credit_floor_usd=floor).targets[0].detail == f"the remaining credit, {said}"


def test_a_resumed_run_knows_what_was_spent_before(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=200, repeats=1, plan=ONE, one={**LEDGER, "credit_usd": 3.5})
        first = space.run().targets[0]
        second = space.run().targets[0]
    assert first.rows > 0
    assert (second.rows, second.ended) == (0, "budget")


def test_the_providers_credit_is_read_before_every_call(tmp_path: Path) -> None:
    with serving(calls=right, credit=(100.0, 10.0)) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, plan=ONE, one={**ROUTER, "price": CHEAP})
        space.run()
        order = [got.path.rpartition("/")[2] for got in server.got]
    last = [at for at, path in enumerate(order) if path == "completions"]
    between = [order[first:then] for first, then in pairwise(last)]
    assert all("credits" in part or "key" in part for part in between)
    assert len(last) >= 4


def test_credit_below_the_floor_blocks_every_call(tmp_path: Path) -> None:
    with serving(calls=right, credit=(100.0, 97.01)) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one={**ROUTER, "price": CHEAP})
        report = space.run()
        asked = [got for got in server.got if "City" in got.question]
    assert (report.targets[0].ended, report.targets[0].rows, asked) == ("budget", 0, [])


def test_credit_that_goes_while_the_run_is_under_way_stops_it(tmp_path: Path) -> None:
    with serving(calls=right, credit=(100.0, 50.0)) as server:

        def spend(got: Any) -> str | None:
            server.credit = (100.0, server.credit[1] + (10.0 if "City" in got.question else 0.0))
            return None

        server.script = spend
        space = RunWorkspace(tmp_path, server.url, cases=20, repeats=1, plan=ONE, one={**ROUTER, "price": CHEAP})
        report = space.run()
    assert (report.targets[0].ended, report.targets[0].rows) == ("budget", 5)


def test_calls_in_parallel_cannot_run_through_the_floor_together(tmp_path: Path) -> None:
    # Each call may cost up to about 6 USD by its estimate; credit is 0.5 USD above the floor.
    plan = "[guards]\nconcurrency = 16\n"
    with serving(calls=right, delay=0.03) as server:
        space = RunWorkspace(tmp_path, server.url, cases=64, repeats=1, plan=plan, one={**LEDGER, "credit_usd": 3.5})
        report = space.run()
        assert server.most_under_way == 1, "what one call may cost leaves no room for another beside it"
    each = [row["spent_usd"] for row in sorted(space.rows(), key=lambda row: row["started_at"])]
    assert report.targets[0].ended == "budget"
    assert 3.5 - sum(each) + max(each) >= 3.0


def test_where_there_is_room_metered_calls_run_in_parallel(tmp_path: Path) -> None:
    plan = "[guards]\nconcurrency = 8\n"
    target = {**LEDGER, "credit_usd": 1000.0, "price": CHEAP}
    with serving(calls=right, delay=0.03) as server:
        space = RunWorkspace(tmp_path, server.url, cases=32, repeats=1, plan=plan, one=target)
        assert space.run().targets[0].ended == "complete"
        assert server.most_under_way == 8


def test_a_floor_can_be_raised_and_not_lowered(tmp_path: Path) -> None:
    target = {**LEDGER, "credit_usd": 9.0, "price": CHEAP}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, one=target)
        assert space.run(credit_floor_usd=10.0).targets[0].ended == "budget"
        assert space.run(credit_floor_usd=0.0).targets[0].ended == "complete"
    with serving(calls=right) as server:
        poor = RunWorkspace(tmp_path / "poor", server.url, cases=4, repeats=1, one={**target, "credit_usd": 2.99})
        assert poor.run(credit_floor_usd=0.0).targets[0].ended == "budget"


def test_an_unknown_price_is_an_error_and_never_free(tmp_path: Path) -> None:
    target = {key: value for key, value in LEDGER.items() if key != "price"}
    target |= {"credit_usd": 100.0, "price_model": "a-model-of-no-provider"}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, one=target)
        with pytest.raises(UsageError, match="the price of the metered target one is not known"):
            space.run()
        assert [got for got in server.got if "City" in got.question] == []


def test_a_published_price_is_found_by_the_models_name(tmp_path: Path) -> None:
    target = {key: value for key, value in LEDGER.items() if key != "price"}
    target |= {"credit_usd": 100.0, "price_model": "gpt-4o-mini"}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, one=target)
        space.run()
    assert all(0 < row["spent_usd"] < 0.01 for row in space.rows())


def test_what_is_not_metered_has_no_spend(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1)
        space.run()
    assert {row["spent_usd"] for row in space.rows()} == {None}


def test_of_the_credits_that_a_workspace_states_for_an_account_the_least_counts(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, one={**LEDGER, "credit_usd": 100.0})
        space.freeze()
        space.write_target("of-another-account", server.url, **LEDGER, credit_usd=1.0, key_env="OTHER_API_KEY")
        (space.root / "targets" / "broken.toml").write_text("credit_usd = ")
        assert space.run().targets[0].ended == "complete"
        other = RunWorkspace(tmp_path / "other", server.url, cases=2, repeats=1, one={**LEDGER, "credit_usd": 100.0})
        other.freeze()
        other.write_target("of-another-protocol", server.url, **LEDGER, credit_usd=2.5)
        done = command(other, "--json", SCRIPTED_API_KEY=KEY)
    (stopped,) = json.loads(done.stdout)["targets"]
    assert (stopped["rows"], stopped["ended"]) == (0, "budget")
    assert stopped["detail"] == "the remaining credit, 2.50 USD, is below the floor of 3.00 USD"
