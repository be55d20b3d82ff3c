"""A run against a real server: every slot once, gaps only, guards that stop what they must."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from referee.adapters.store.aggregate import tally
from referee.adapters.store.shard_files import scan_shard, select_shards
from referee.core.bakeoff import Row
from referee.core.records import MarketSnapshot
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_plays import Got
from tests.bakeoff.scripted_server import ScriptedServer, serving

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

ONE_TRY = "[retry]\ntries = 1\n"
QUICK = "[retry]\ntries = 3\nfirst_seconds = 0.01\nmost_seconds = 0.05\n"


def asked(server: ScriptedServer) -> list[float]:
    """When each question of a case was asked; what a start-up check asks is none."""
    return [got.at for got in server.got if "City" in got.question]


def test_a_run_makes_each_slot_once_and_judges_it(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=3, one={}, two={"model": "text"})
        report = space.run()
    assert [one.ended for one in report.targets] == ["complete", "complete"]
    assert set(space.slots().values()) == {1}
    assert len(space.rows()) == 2 * 6 * 3
    by_target = {name: {row["passed"] for row in space.rows() if row["target"] == name} for name in ("one", "two")}
    assert by_target == {"one": {True}, "two": {False}}
    for row in space.rows():
        assert Row.model_validate(row).model_dump(mode="json") == row
    targets, cases, facts = tally(space.shards())
    assert [(one.target.name, one.expected, one.usable, one.missing) for one in targets] == [
        ("one", 18, 18, ()),
        ("two", 18, 18, ()),
    ]
    assert {case.outcomes for case in cases if case.target == "one"} == {(1, 1, 1)}
    assert all(case.reasons for case in cases if case.target == "two")
    assert sum(fact.rows for fact in facts) == 36


def test_a_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url)
        space.run()
        asked = server.count
        report = space.run()
        assert server.count == asked
    assert report.targets[0].missing == 0
    assert len(space.shards()) == 1


def test_infrastructure_errors_are_tried_again_and_the_answer_counts(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def script(got: Got) -> str | None:
        seen[got.question] = seen.get(got.question, 0) + 1
        return ["503", "reset", None][min(seen[got.question], 3) - 1]

    with serving(calls=right, script=script) as server:
        space = RunWorkspace(tmp_path, server.url, cases=4, repeats=1, plan=QUICK)
        space.run()
    rows = space.rows()
    assert [(row["passed"], row["tries"], row["infra_class"]) for row in rows] == [(True, 3, None)] * 4


def test_retry_after_is_waited_for_by_every_call_of_the_target(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        server.script = lambda got: "429-retry-after" if len(asked(server)) == 1 else None
        space = RunWorkspace(tmp_path, server.url, cases=3, repeats=1, plan=QUICK + "[guards]\nconcurrency = 1\n")
        space.run()
        begun = asked(server)
    assert begun[1] - begun[0] >= 1.0
    assert {row["passed"] for row in space.rows()} == {True}


def test_the_breaker_stops_a_target_after_eight_errors_in_a_row_and_not_the_other(tmp_path: Path) -> None:
    plan = ONE_TRY + "[guards]\nconcurrency = 1\n"
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=12, repeats=1, plan=plan, good={}, bad={"model": "503"})
        report = space.run()
    good, bad = report.targets
    assert (good.ended, good.rows) == ("complete", 12)
    assert (bad.ended, bad.rows, bad.infra) == ("breaker", 8, 8)
    assert "8 infrastructure errors in a row" in bad.detail
    targets, _, _ = tally(space.shards())
    assert targets[0].stopped == "breaker"
    assert len(targets[0].missing) == 4


def test_errors_that_are_not_in_a_row_do_not_trip_the_breaker(tmp_path: Path) -> None:
    plan = ONE_TRY + "[guards]\nconcurrency = 1\n"
    with serving(calls=right) as server:
        server.script = lambda got: "503" if len(asked(server)) % 8 else None
        space = RunWorkspace(tmp_path, server.url, cases=30, repeats=1, plan=plan)
        report = space.run()
    assert report.targets[0].ended == "complete"
    assert report.targets[0].infra > 20


@pytest.mark.parametrize(
    ("play", "ended", "name"),
    [
        ("402", "account", "payment_required"),
        ("429-quota", "account", "insufficient_quota"),
        ("401", "config", "unauthorized"),
        ("not-found-for-account", "config", "endpoint_unavailable"),
    ],
)
def test_account_and_configuration_stop_a_target_at_once(tmp_path: Path, play: str, ended: str, name: str) -> None:
    with serving(calls=right) as server:
        server.script = lambda got: play if len(asked(server)) > 3 else None
        space = RunWorkspace(tmp_path, server.url, cases=20, plan=QUICK + "[guards]\nconcurrency = 1\n")
        report = space.run()
    assert (report.targets[0].ended, report.targets[0].rows) == (ended, 4)
    assert space.rows()[-1]["infra_class"] == name
    assert space.rows()[-1]["passed"] is None


def test_gaps_are_filled_and_nothing_is_run_again_because_of_its_result(tmp_path: Path) -> None:
    plan = ONE_TRY + "[guards]\nconcurrency = 1\n"
    with serving(calls=right) as server:
        server.script = lambda got: "503" if len(asked(server)) > 6 else None
        space = RunWorkspace(tmp_path, server.url, cases=20, repeats=1, plan=plan)
        assert space.run().targets[0].ended == "breaker"
        first = space.rows()
        server.script = lambda got: None
        report = space.run()
    assert report.targets[0].missing == 20 - len(first)
    assert set(space.slots().values()) == {1}
    assert len(space.slots()) == 20
    failed = [row for row in space.rows() if row["passed"] is None]
    assert len(failed) == 8, "rows of the first run are never replaced"
    targets, _, _ = tally(space.shards())
    assert (targets[0].stopped, targets[0].missing, len(targets[0].runs)) == (None, (), 2)
    assert targets[0].infra == {"server_error": 8}


def test_500_on_one_case_only_is_flagged_as_suspect(tmp_path: Path) -> None:
    plan = QUICK + "[guards]\nconcurrency = 1\n"
    with serving(calls=right, script=lambda got: "500" if "City000003" in got.question else None) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=2, plan=plan)
        space.run()
    flagged = [row for row in space.rows() if "suspect_model_output" in row["flags"]]
    assert [row["case_id"] for row in flagged] == ["case-000003"] * 2
    assert {row["blame"] for row in flagged} == {"infra"}


def test_500_on_one_case_only_is_repeated_where_nothing_is_tried_again(tmp_path: Path) -> None:
    plan = ONE_TRY + "[guards]\nconcurrency = 1\n"
    with serving(calls=right, script=lambda got: "500" if "City000003" in got.question else None) as server:
        space = RunWorkspace(tmp_path, server.url, cases=6, repeats=3, plan=plan)
        space.run()
    flagged = [(row["case_id"], row["k_idx"]) for row in space.rows() if "suspect_model_output" in row["flags"]]
    assert flagged == [("case-000003", 1), ("case-000003", 2)]


def test_500_on_every_case_is_no_model_output(tmp_path: Path) -> None:
    plan = QUICK + "[guards]\nconcurrency = 1\n"
    with serving(calls=right) as server:
        server.script = lambda got: "500" if len(asked(server)) > 4 else None
        space = RunWorkspace(tmp_path, server.url, cases=20, plan=plan)
        space.run()
    assert sum("suspect_model_output" in row["flags"] for row in space.rows()) <= 1
    assert sum(row["infra_class"] == "server_error" for row in space.rows()) == 8


def test_calls_of_one_target_are_bounded_and_spaced(tmp_path: Path) -> None:
    with serving(calls=right, delay=0.03) as server:
        space = RunWorkspace(tmp_path, server.url, cases=20, repeats=1, one={"concurrency": 3})
        space.run()
        assert server.most_under_way == 3
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path / "paced", server.url, cases=5, repeats=1, one={"per_minute": 600})
        space.run()
        begun = sorted(asked(server))
    assert begun[-1] - begun[0] >= 0.38


def test_a_caller_tightens_and_never_loosens(tmp_path: Path) -> None:
    with serving(calls=right, delay=0.02) as server:
        space = RunWorkspace(tmp_path, server.url, cases=10, repeats=1, plan="[guards]\nconcurrency = 4\n")
        space.run(concurrency=100)
        assert server.most_under_way == 4
        assert scan_shard(space.shards()[0]).opened.environment["concurrency"] == 4


def test_an_answer_slower_than_the_deadline_is_infrastructure(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(
            tmp_path, server.url, cases=2, repeats=1, plan=ONE_TRY, one={"model": "slow", "deadline_seconds": 0.2}
        )
        space.run()
    assert {(row["infra_class"], row["passed"]) for row in space.rows()} == {("timeout", None)}


def test_the_market_is_archived_with_every_block_of_runs(tmp_path: Path) -> None:
    more = {"channel": "router", "market": "openrouter", "metered": True, "credit": "openrouter"}
    more["price"] = {"input": 0.01, "output": 0.01}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, one=more, two={})
        report = space.run()
    found = {one.target: one for one in space.log.read_bakeoff() if isinstance(one, MarketSnapshot)}
    assert set(found) == {"one", "two"}
    assert found["one"].said is not None
    assert json.loads(space.evidence.read(found["one"].said.digest))["data"]["endpoints"]
    assert found["one"].run == report.run
    assert (found["two"].said, found["two"].detail) == (None, "nothing is published for this lane")


def test_identities_are_named_in_the_shard_and_counted_on_each_row(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=3, repeats=2)
        space.run()
    opened = scan_shard(select_shards(space.records, [space.shards()[0].name])[0]).opened
    assert opened.identities == tuple((f"case-{case:06d}", k) for case in range(3) for k in range(2))
    assert {(row["expected"], row["identities_digest"]) for row in space.rows()} == {(6, opened.identities_digest)}
    assert [row["k_idx"] for row in sorted(space.rows(), key=lambda row: row["started_at"])] == [0, 0, 0, 1, 1, 1]
