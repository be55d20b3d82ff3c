"""A fault of ours that shows only when an attempt without a pass is looked into: never a zero."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.recorder import Recorded
from referee.cli import bringup
from referee.cli.wiring import choose_sandbox
from referee.core.failure import Cause
from referee.core.records import RerunFacts
from referee.core.report import parse_report
from referee.errors import EngineUnavailable
from referee.protocols import Machine, MachineSpec, Sandbox
from referee.runner.seen import Seen
from tests.agents.scripted_model import scripted_model
from tests.agents.scripted_play import Play
from tests.runs.conftest import GOOD_REPORT
from tests.runs.keyed import config, measure_script

ENDED = Recorded(Path("r"), Path("t"), "ended", "", 1, 1, 1.0, 0, (), None)
CLAIMS = parse_report(json.dumps(GOOD_REPORT).encode())


@pytest.mark.parametrize("cause", [None, Cause.DEADLINE, Cause.MEMORY_LIMIT, Cause.MACHINE_FAULT])
def test_a_timeout_claims_nothing_whatever_its_report_says(cause: Cause | None) -> None:
    """A timeout scores 0 in every row (methodology §6), so a model or a network that was down explains it too."""
    seen = Seen(recorded=ENDED, cause=cause, report=CLAIMS)
    assert seen.would_count_as_no_pass is (cause in {Cause.DEADLINE, Cause.MEMORY_LIMIT})


@pytest.mark.parametrize(
    ("status", "timed_out", "could_not_run", "asked"),
    [(0, False, None, False), (1, False, None, True), (None, True, None, True), (None, False, "a limit", False)],
)
def test_a_claim_that_fails_when_it_is_run_again_may_lack_a_network(
    status: int | None, timed_out: bool, could_not_run: str | None, asked: bool
) -> None:
    again = RerunFacts(
        command="c", exit_status=status, timed_out=timed_out, seconds=1.0, output=None, could_not_run=could_not_run
    )
    assert Seen(recorded=ENDED, report=CLAIMS, rerun=again).may_lack_a_network is asked


class OneMachine:
    """An engine that dies after its first machine."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def create(self, spec: MachineSpec) -> Machine:
        """The first one alone."""
        self._made += 1
        if self._made > 1:
            raise EngineUnavailable("no container engine answers")
        return self._sandbox.create(spec)


@pytest.fixture
def workspace(subject: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace whose engine dies, and whose upstream answers."""
    found = subject.parent.parent
    key = "sk-upstream-of-network-Wq83hZx61LmTnB52vKd7"
    monkeypatch.setenv("SCRIPTED_KEY", key)
    monkeypatch.setattr(bringup, "choose_sandbox", lambda *given, **named: OneMachine(choose_sandbox(*given, **named)))
    with scripted_model(Play(final="It runs."), key=key) as server:
        (found / "referee.toml").write_text(config(server.url))
        yield found


@pytest.mark.engine
@pytest.mark.slow
def test_a_timeout_counts_only_where_a_fresh_machine_could_be_asked(workspace: Path) -> None:
    first = measure_script(workspace, "square", "ask please; sleep 100", seconds=3)["attempts"][0]
    assert (first["valid"], first["cause"], first["total"]) == (False, "engine_unavailable", None), first["reason"]
