"""One key a run, in real runs through the real gateway: made, spent from, capped, deleted on every way out."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.keys.gateway import keys as gateway
from referee.adapters.keys.gateway.journal import Journal
from referee.adapters.keys.ledger import Ledger
from referee.adapters.overlay.sandbox import overlay_available
from referee.adapters.store.evidence import LocalEvidence
from referee.cli import bringup
from referee.cli.keys_at_start import keys_at_start
from referee.cli.wiring import open_stores
from referee.core.records import AttemptEnded
from referee.errors import ConfigError
from referee.runner import series
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.keys.model_calls import NOBODY, call_model
from tests.runs.conftest import GOOD_REPORT, containers, leaves_report, referee
from tests.runs.keyed import WatchedKeys, config, measure_script

pytestmark = [pytest.mark.engine, pytest.mark.slow]

UPSTREAM_KEY = "sk-upstream-of-runs-Wq83hZx61LmTnB52vKd7"
RUNS = leaves_report(GOOD_REPORT, before="ask please")
NO_REPORT = "ask please; exit 1"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """The scripted model, whose key the harness's environment holds."""
    monkeypatch.setenv("SCRIPTED_KEY", UPSTREAM_KEY)
    with scripted_model(Play(final="It runs."), key=UPSTREAM_KEY) as server:
        yield server


@pytest.fixture
def workspace(subject: Path, model: ScriptedModel) -> Path:
    """A workspace with one subject, whose upstream is the scripted model."""
    found = subject.parent.parent
    (found / "referee.toml").write_text(config(model.url))
    return found


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WatchedKeys]]:
    """The keys of each series, which outlive it: only then can a test ask whether a key is dead."""
    made: list[WatchedKeys] = []

    def start(*given: Any) -> WatchedKeys:
        keys = keys_at_start(*given)
        assert keys is not None
        made.append(WatchedKeys(keys))
        return made[-1]

    monkeypatch.setattr(bringup, "keys_at_start", start)
    yield made
    for keys in made:
        keys.keys.stop()


def bodies(workspace: Path, kind: str) -> list[dict[str, Any]]:
    lines = [
        line for file in sorted((workspace / "records").glob("*.jsonl")) for line in file.read_bytes().splitlines()
    ]
    return [body for line in lines if (body := json.loads(line)["body"])["kind"] == kind]


def all_dead(workspace: Path) -> bool:
    """Whether every key that was issued is known to be deleted."""
    ledger = Ledger(workspace / "keys")
    every = ledger.every()
    return bool(every) and not ledger.live() and all(one.spending is not None and one.spending.deleted for one in every)


def test_a_run_has_a_key_spends_from_it_and_leaves_it_dead(
    workspace: Path, model: ScriptedModel, watched: list[WatchedKeys]
) -> None:
    document = measure_script(workspace, "square", RUNS)
    (attempt,) = document["attempts"]
    assert attempt["outcome"] == "pass_full"
    spending = attempt["spending"]
    told = model.total
    cost = (told.input * 1.0 + told.output * 2.0) / 1e6
    assert spending["calls"] == model.count == 1
    assert (spending["input_tokens"], spending["output_tokens"]) == (told.input, told.output)
    assert spending["spent_usd"] == pytest.approx(cost) == pytest.approx(attempt["spent"])
    assert spending["deleted"]
    assert not spending["capped"]
    (keys,) = watched
    (issued,) = keys.issued
    assert call_model(issued.access) == 401, "the gateway still listens, and refuses the key of a run that has ended"
    assert model.count == 1
    phases = list(attempt["phases"])
    assert {"key", "revoke"} <= set(phases)
    log = LocalEvidence(workspace / "evidence").read(attempt["files"]["harness.jsonl"]).decode().splitlines()
    order = [json.loads(line)["phase"] for line in log]
    assert order.index("key") < order.index("machine") < order.index("quiet") < order.index("revoke")
    assert order.index("revoke") < order.index("report"), "the key is dead before anything is looked at"
    (exchange,) = LocalEvidence(workspace / "evidence").read(attempt["files"]["exchanges.jsonl"]).splitlines()
    assert json.loads(exchange)["cost_usd"] == pytest.approx(cost)
    (planned,) = bodies(workspace, "attempt-planned")
    assert planned["lock"]["agent"]["cap_usd"] == 3.0
    assert planned["lock"]["agent"]["model"] == "scripted-1"
    checked = referee("verify", "--workspace", str(workspace))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page, shown = built_page(workspace, attempt["run"])
    assert "of its key&#39;s cap of 3.00 USD, in 1 call" in page
    assert shown["spending"]["calls"] == 1
    assert shown["spending"]["cap_usd"] == 3.0
    board = referee("board", "--json", "--workspace", str(workspace))
    (standing,) = json.loads(board.stdout)["standings"]
    assert standing["spent"]["total_usd"] == pytest.approx(cost)
    assert "Spent on its model: less than 0.0001 USD in 1 attempt" in (workspace / "site" / "board.html").read_text()
    shown_run = referee("show", attempt["run"], "--workspace", str(workspace))
    assert "less than 0.0001 USD of its key's cap of 3.00 USD, in 1 call" in shown_run.stdout
    keys.keys.stop()
    assert call_model(issued.access) == NOBODY


def built_page(workspace: Path, run: str) -> tuple[str, dict[str, Any]]:
    done = referee("site", "build", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr
    runs = workspace / "site" / "runs"
    return (runs / f"{run}.html").read_text(), json.loads((runs / run / "run.json").read_text())


def test_without_a_key_nothing_is_started_and_it_is_tried_again(workspace: Path, model: ScriptedModel) -> None:
    (workspace / "keys").mkdir()
    (workspace / "keys" / "live").write_text("no directory: no key can be written down, so none is made")
    document = measure_script(workspace, "square", RUNS)
    assert document["verdict"] == "not_yet_verified"
    assert [attempt["cause"] for attempt in document["attempts"]] == ["key_unavailable"] * 3, "and twice more, as set"
    assert all("machine" not in attempt["phases"] for attempt in document["attempts"])
    assert model.count == 0
    assert not containers(workspace)
    assert all(attempt["retry"] and not attempt["valid"] for attempt in document["attempts"])


def test_a_model_that_fails_everybody_at_the_end_is_no_failure_of_the_agent(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MAX_INVALID", 0)
    model.play = Play(always="503")
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["cause"], attempt["valid"], attempt["retry"]) == ("model_unavailable", False, True)
    assert attempt["spending"]["ended_by_upstream"]
    assert "model" in attempt["reason"]


def test_a_key_that_the_upstream_refuses_in_a_run_ends_the_series_at_once(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where everybody may read the list of models."""
    monkeypatch.setattr("referee.adapters.keys.gateway.knock.knock", lambda *_: None)
    monkeypatch.setenv("SCRIPTED_KEY", "sk-another-key-0123456789")
    with pytest.raises(ConfigError, match=r"^the upstream local refused SCRIPTED_KEY \(401\)$"):
        measure_script(workspace, "square", NO_REPORT)
    (ended,) = [one for one in open_stores(workspace).records.read() if isinstance(one, AttemptEnded)]
    assert ended.spending is not None
    assert ended.spending.ended_by_upstream
    assert "refused our credential (401)" in ended.detail


def test_a_failure_that_the_gateway_does_not_get_itself_voids_nothing(workspace: Path, model: ScriptedModel) -> None:
    model.play = Play(final="It runs.", failures={1: "503"})
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["cause"], attempt["valid"], attempt["outcome"]) == (None, True, "fail")
    assert (attempt["spending"]["failed_upstream"], attempt["spending"]["ended_by_upstream"]) == (1, False)


def test_a_gateway_of_ours_that_breaks_is_no_failure_of_the_agent(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(series, "MAX_INVALID", 0)
    monkeypatch.setattr(Journal, "write", full)
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["cause"], attempt["valid"], attempt["retry"]) == ("gateway_failed", False, True)
    assert "could not be noted" in attempt["reason"]


def test_what_a_key_spent_is_on_record_although_its_calls_could_not_be_kept(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == "exchanges.jsonl":
            write(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(series, "MAX_INVALID", 0)
    monkeypatch.setattr(Path, "write_bytes", full)
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["cause"], attempt["valid"]) == ("host_disk", False)
    assert (attempt["spending"]["calls"], attempt["spending"]["deleted"]) == (1, True)
    assert attempt["spent"] == attempt["spending"]["spent_usd"] > 0
    done = referee("verify", "--workspace", str(workspace))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_gateway_out_of_reach_is_no_failure_of_the_agent(
    workspace: Path, model: ScriptedModel, watched: list[WatchedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WatchedKeys, "reach", lambda self, address: (self.keys.reach(address)[0], 9))
    monkeypatch.setattr(series, "MAX_INVALID", 0)
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["cause"], attempt["valid"], attempt["retry"]) == ("gateway_failed", False, True)
    assert "a fresh machine could not reach it either" in attempt["reason"]
    assert attempt["spending"]["calls"] == 0


def test_an_agent_that_could_have_asked_and_did_not_has_failed(workspace: Path, model: ScriptedModel) -> None:
    (attempt,) = measure_script(workspace, "square", "exit 1")["attempts"]
    assert (attempt["valid"], attempt["outcome"], attempt["spending"]["calls"]) == (True, "fail", 0)


def test_the_same_holds_on_an_overlay_machine(workspace: Path, watched: list[WatchedKeys]) -> None:
    why_not = overlay_available(workspace / "machines")
    if why_not is not None:
        pytest.skip(why_not)
    (attempt,) = measure_script(workspace, "square", f"key; env; {RUNS}", sandbox="overlay")["attempts"]
    assert attempt["outcome"] == "pass_full"
    assert attempt["spending"]["calls"] == 1
    assert attempt["spending"]["deleted"]
    (keys,) = watched
    access = keys.issued[0].access
    assert call_model(access) == 401
    assert not [path for path in workspace.rglob("*") if path.is_file() and access.secret.encode() in path.read_bytes()]


def test_a_pass_counts_although_the_last_call_failed(workspace: Path, model: ScriptedModel) -> None:
    model.play = Play(always="503")
    (attempt,) = measure_script(workspace, "square", RUNS)["attempts"]
    assert attempt["outcome"] == "pass_full"
    assert attempt["spending"]["ended_by_upstream"]


def test_a_capped_run_counts_and_its_page_says_so(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "LEAST_REQUEST", 0)  # else so small a cap is refused at the start
    (workspace / "referee.toml").write_text(config(model.url, cap_usd=0.0001, most_output=10))
    (attempt,) = measure_script(workspace, "square", NO_REPORT)["attempts"]
    assert (attempt["valid"], attempt["outcome"], attempt["cause"]) == (True, "fail", None)
    assert attempt["spending"]["capped"]
    assert attempt["spending"]["refused"] == 1
    assert model.count == 0, "the call that might have exceeded the cap was not sent"
    page, shown = built_page(workspace, attempt["run"])
    assert "the cap is one of the conditions" in page
    assert shown["spending"]["capped"]
    assert any("cap is 0.0001 USD" in one for one in attempt["not_publishable"])


def test_the_key_dies_with_the_time_limit(workspace: Path, watched: list[WatchedKeys]) -> None:
    (attempt,) = measure_script(workspace, "square", "ask; while ask >/dev/null; do sleep 0.2; done", seconds=3)[
        "attempts"
    ]
    assert attempt["outcome"] == "timeout"
    assert attempt["spending"]["deleted"]
    assert attempt["spending"]["calls"] > 1
    assert call_model(watched[0].issued[0].access) == 401


def start(workspace: Path, script: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own, whose session has begun."""
    harness = subprocess.Popen(
        ["env", "--default-signal=HUP,INT", sys.executable, "-m", "tests.runs.keyed", str(workspace), "square",
         "docker", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert harness.stdin is not None
    harness.stdin.write(script.encode())
    harness.stdin.close()
    deadline = time.monotonic() + 60
    while not any(b"working" in path.read_bytes() for path in workspace.glob("spool/*/session.raw")):
        assert time.monotonic() < deadline, "the session never began"
        assert harness.poll() is None
        time.sleep(0.05)
    return harness


@pytest.mark.parametrize("polite", [signal.SIGINT, signal.SIGTERM])
def test_the_key_dies_when_the_run_is_cancelled(workspace: Path, model: ScriptedModel, polite: signal.Signals) -> None:
    harness = start(workspace, "ask; echo working; sleep 60")
    harness.send_signal(polite)
    assert harness.wait(timeout=60) != 0
    (ended,) = bodies(workspace, "attempt-ended")
    assert ended["cause"] == "interrupted"
    assert ended["spending"]["calls"] == 1
    assert ended["spending"]["deleted"]
    assert all_dead(workspace)
    assert not containers(workspace)


def test_the_key_dies_with_its_process_and_the_next_start_says_so(workspace: Path, model: ScriptedModel) -> None:
    harness = start(workspace, "ask; key; echo; env; echo working; sleep 60")
    os.killpg(harness.pid, signal.SIGKILL)
    harness.wait()
    assert Ledger(workspace / "keys").live(), "nobody was left to write down that it is gone"
    stores = open_stores(workspace)
    keys = keys_at_start(stores, (), lambda _: None)
    assert keys is not None
    (planned,) = bodies(workspace, "attempt-planned")
    secrets = keys.secrets(planned["run"])
    keys.stop()
    assert secrets is not None
    token = secrets["run-key"]
    for path in workspace.rglob("*"):
        assert path.is_dir() or token.encode() not in path.read_bytes(), path
    done = referee("bringup", "run", "square", "--agent", "command", "--command", "true", "--workspace", str(workspace))
    assert "died during the attempt" in done.stderr
    assert "died with its process" in done.stderr
    assert all_dead(workspace)
    (found,) = bodies(workspace, "attempt-found")
    assert found["cause"] == "harness_died"
    kept = {ref["name"]: ref["digest"] for ref in found["evidence"]}
    raw = LocalEvidence(workspace / "evidence").read(kept["session.raw"])
    assert b"[redacted:run-key]" in raw
    assert token.encode() not in raw
