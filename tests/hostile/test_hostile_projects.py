"""A hostile project ends in a correct record with the right cause, whatever it does to its agent, machine and model.

Nothing leaks, what is spent is counted on the run's own key under its cap, no file of the host is touched, and the
attempts after it are unharmed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from referee.core.redaction import Redactor
from referee.core.sieve import shown_free
from tests.hostile.conftest import UPSTREAM_KEY, Attempts, Tried
from tests.hostile.projects import HOSTILE
from tests.runs.conftest import containers, referee

pytestmark = [pytest.mark.engine, pytest.mark.slow]

WHOLE = {"cause": None, "outcome": "pass_full", "total": 100}
NOTHING = {"outcome": "fail", "total": 0}

#: How the attempt at each project must end; every one is valid: what a project does is no fault of ours.
ENDS: dict[str, dict[str, Any]] = {
    "honest": WHOLE,
    "prints": WHOLE,
    "tampers": WHOLE,
    "calls": WHOLE,
    "crowds": WHOLE,
    "kills": {"cause": None, **NOTHING},
    "hides": {"cause": None, **NOTHING},
    "fills": {"cause": "disk_limit", **NOTHING},
    "floods": {"cause": "recording_limit", **NOTHING},
    "forks": {"total": 0},  # and one of ENDS_OF_FORKS
    "reports": {"cause": None, "outcome": "fail", "corroboration": "not_observed"},
    "reaches": {"cause": "report_broken", **NOTHING},
}
assert set(ENDS) == {*HOSTILE, "honest"}
#: The bomb holds the agent until its time is up, or the agent cannot fork any more and ends: both are its own failures.
ENDS_OF_FORKS = {("deadline", "timeout"), (None, "fail")}


@pytest.fixture(scope="module", autouse=True)
def untouched(attempts: Attempts) -> Iterator[None]:
    """No file of the host that a machine sees, or might reach for, changes while these tests run."""
    before = attempts.host_files()
    assert len(before) > len(ENDS) * 4
    yield
    assert attempts.host_files() == before


@pytest.mark.parametrize("kind", list(ENDS))
def test_it_ends_in_a_correct_record(attempts: Attempts, kind: str) -> None:
    attempt = attempts.of(kind).attempt
    assert attempt["valid"] is True, attempt["reason"]
    assert {name: attempt[name] for name in ENDS[kind]} == ENDS[kind], attempt["reason"]
    assert kind != "forks" or (attempt["cause"], attempt["outcome"]) in ENDS_OF_FORKS, attempt["reason"]
    assert attempt["quiet"]["confirmed"] is True
    assert "was found on this host" in attempt["quiet"]["how"]
    assert attempt["retry"] is False


@pytest.mark.parametrize("kind", list(ENDS))
def test_its_spending_is_counted_on_its_own_key_under_the_cap(attempts: Attempts, kind: str) -> None:
    tried = attempts.of(kind)
    spending = tried.attempt["spending"]
    assert spending["deleted"] is True
    sent = [call for call in tried.exchanges if call["refused"] is None]
    assert (spending["calls"], spending["refused"]) == (len(sent), len(tried.exchanges) - len(sent))
    assert spending["calls"] >= 1
    assert spending["spent_usd"] == pytest.approx(sum(call["cost_usd"] for call in sent))
    assert 0 < spending["spent_usd"] < spending["cap_usd"] == 0.05
    assert tried.attempt["spent"] == spending["spent_usd"]


@pytest.mark.parametrize("kind", list(ENDS))
def test_neither_key_is_in_what_it_left_or_was_to_be_seen(attempts: Attempts, kind: str) -> None:
    tried = attempts.of(kind)
    redactor = Redactor(tried.secrets)
    assert not redactor.empty
    assert UPSTREAM_KEY in tried.secrets.values()
    assert len(tried.attempt["files"]) > 5
    left = {name: tried.evidence(name) for name in tried.attempt["files"]}
    assert [name for name, data in left.items() if not shown_free([data], redactor)] == []
    assert shown_free([json.dumps(tried.attempt).encode(), *attempts.onlooker.seen], redactor)
    assert any(b"referee" in shown for shown in attempts.onlooker.seen), "nothing was seen at all"


def test_a_project_that_prints_everything_saw_the_key_and_only_the_key_is_gone(attempts: Attempts) -> None:
    raw = attempts.of("prints").evidence("session.raw")
    assert raw.count(b"[redacted:run-key]") >= 3, "in its environment, its parent's, and the file"
    assert b"OPENAI_API_KEY=[redacted:run-key]" in raw
    assert b'"key": "[redacted:run-key]"' in raw
    assert b"OPENAI_BASE_URL=http://" in raw
    assert b"follow.py" in raw


def test_a_project_that_calls_the_gateway_spends_what_is_counted_and_nothing_after_the_end(attempts: Attempts) -> None:
    tried = attempts.of("calls")
    raw = tried.evidence("session.raw")
    assert b"own: [200, 200, 200]" in raw
    assert b"another model: 404 another path: 404 404 404" in raw
    assert b"beyond the cap: 402 another key: 401" in raw
    refused = Counter(call["refused"] for call in tried.exchanges)
    assert (refused["model"], refused["path"], refused["cap"]) == (1, 3, 1)
    assert tried.attempt["spending"]["capped"] is True
    assert tried.evidence("rerun.txt").startswith(b"after the end: 401\n"), (
        "its key is dead when its command runs again"
    )
    asked = [got.raw for got in attempts.model.asked]
    assert not [raw for raw in asked if b'"after"' in raw]
    daemon = sum(b'"daemon"' in raw for raw in asked)
    assert daemon >= 1, "what it left running did call"
    own = sum(b'"hostile"' in raw for raw in asked)
    # A call under way at the end is cut: it is counted, and may not have come to the model.
    assert 0 <= tried.attempt["spending"]["calls"] - (own + daemon + 2) <= 1


def test_a_project_that_tampers_changes_neither_agent_nor_harness(attempts: Attempts) -> None:
    tried = attempts.of("tampers")
    raw = tried.evidence("session.raw")
    assert raw.count(b"Read-only file system") >= 6
    assert tried.evidence("rerun.txt") == b"12 squared is 144\n", "the harness reads no profile of the machine"


def test_a_faked_report_is_known_by_what_it_proves(attempts: Attempts) -> None:
    tried = attempts.of("reports")
    assert b"All works." in tried.evidence("report.json")
    assert "says_only" in [flag["flag"] for flag in tried.attempt["audit"]]
    assert tried.attempt["quiet"]["survivors_ended"] >= 1


def test_a_crowd_left_the_harness_no_room_and_was_ended(attempts: Attempts) -> None:
    assert attempts.of("crowds").attempt["quiet"]["survivors_ended"] > 30


def test_attempts_after_them_are_unharmed(attempts: Attempts) -> None:
    assert attempts.of("honest").attempt["valid"]
    attempts.of("fills")
    attempts.all_done()
    again = attempts.make("honest")
    assert {name: again.attempt[name] for name in WHOLE} == WHOLE, again.attempt["reason"]
    assert again.attempt["agent"] == "reader"
    nothing = attempts.make("calls", agent="null")
    assert (nothing.attempt["valid"], nothing.attempt["outcome"], nothing.attempt["total"]) == (True, "fail", 0)
    assert not containers(attempts.workspace)
    assert not list((attempts.workspace / "spool").glob("r-*"))
    checked = referee("verify", "--workspace", str(attempts.workspace))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    swept = referee("keys", "sweep", "--workspace", str(attempts.workspace))
    assert swept.returncode == 0, swept.stderr
    redactor = Redactor(again.secrets)
    files = [path for path in attempts.workspace.rglob("*") if path.is_file() and path.name != "secret"]
    assert [path.name for path in files if not shown_free([path.read_bytes()], redactor)] == []


def test_the_search_can_fail(attempts: Attempts) -> None:
    tried: Tried = attempts.of("honest")
    redactor = Redactor(tried.secrets)
    for secret in tried.secrets.values():
        assert not shown_free([f"x{secret}y".encode()], redactor)
