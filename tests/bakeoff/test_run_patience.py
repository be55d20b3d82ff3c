"""A server that asks for time gets it: from calls whose turn or money is still to come, and for longer than we wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.runner.bakeoff.guards import Pace
from tests.bakeoff.metered_runs import LEDGER, spent, written
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import ScriptedServer, serving

pytestmark = pytest.mark.slow  # whole runs that wait a second

QUICK = "[retry]\ntries = 3\nfirst_seconds = 0.01\nmost_seconds = 0.05\n"


def _asked(server: ScriptedServer) -> list[float]:
    return sorted(got.at for got in server.got if "City" in got.question)


def _first(server: ScriptedServer, play: str) -> None:
    """Let the server play this to the first question of a case, and answer all others."""
    server.script = lambda got: play if "City" in got.question and len(_asked(server)) == 1 else None


def test_who_waits_for_a_turn_waits_for_the_server_too(tmp_path: Path) -> None:
    with serving(calls=right, delay=0.1) as server:
        _first(server, "429-retry-after")
        spaced = {"per_minute": 150, "concurrency": 4}  # the next turns come 0.4, 0.8 and 1.2 s after the first
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, plan=QUICK, one=spaced)
        space.run()
        begun = _asked(server)
    assert begun[1] - begun[0] >= 1.0
    assert begun[-1] - begun[1] >= 0.8, "what was held back goes on as it is spaced"
    assert {row["passed"] for row in space.rows()} == {True}


def test_who_waits_for_money_waits_for_the_server_too(tmp_path: Path) -> None:
    alone = {**LEDGER, "credit_usd": 4.0, "price": {"input": 0.0, "output": 10_000.0}}  # 0.15 USD, 40.96 at most
    with serving(calls=right, delay=0.1) as server:
        _first(server, "429-retry-after")
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, plan=QUICK, one=alone)
        report = space.run()
        assert server.most_under_way == 1, "what one call may cost leaves no room for another beside it"
        begun = _asked(server)
    assert begun[1] - begun[0] >= 1.0
    assert report.targets[0].ended == "complete"
    assert written(space) == pytest.approx(spent(space)) == pytest.approx(0.6)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_server_that_wants_longer_than_is_waited_for_is_left_alone_until_a_later_run(
    tmp_path: Path, concurrency: int
) -> None:
    with serving(calls=right, delay=0.05) as server:
        _first(server, "429-for-an-hour")
        plan = f"{QUICK}[guards]\nconcurrency = {concurrency}\n"
        space = RunWorkspace(tmp_path, server.url, cases=5, repeats=1, plan=plan)
        (one,) = space.run(per_minute=30.0).targets
        asked = len(_asked(server))
        (later,) = space.run().targets
    assert one.ended == "interrupted"
    assert "the server wants to be left alone for 3600 s, which is not waited for; run again after that" in one.detail
    assert (asked, one.rows, one.infra) == (1, 1, 1)
    assert (later.ended, later.rows) == ("complete", 4)
    assert set(space.slots().values()) == {1}


def test_who_waits_to_try_again_when_the_server_wants_to_be_left_alone_is_made_by_the_later_run(tmp_path: Path) -> None:
    plays = ["429-retry-after", "429-for-an-hour", *[None] * 5]
    with serving(calls=right, delay=0.1) as server:
        server.script = lambda got: plays[_asked(server).index(got.at)] if "City" in got.question else None
        space = RunWorkspace(tmp_path, server.url, cases=5, repeats=1, plan=f"{QUICK}[guards]\nconcurrency = 2\n")
        (one,) = space.run().targets
        (later,) = space.run().targets
    assert (one.ended, one.rows, one.infra) == ("interrupted", 1, 1), "only who was told keeps its row"
    assert (later.ended, later.rows, later.passed) == ("complete", 4, 4)


def test_a_turn_that_was_given_is_no_leave_to_begin_while_the_server_asks_for_time() -> None:
    now = [100.0]
    pace = Pace(60.0, clock=lambda: now[0])
    assert [pace.due(), pace.due()] == [0.0, 1.0]
    pace.hold(30.0)
    now[0] += 1.0
    assert pace.held()
    assert pace.due() == 29.0
    now[0] += 29.0
    assert not pace.held()
    pace.hold(-5.0)
    assert not pace.held()
