"""Hostile projects under real agent CLIs: the right end, the key nowhere, what the project spent counted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from referee.core.redaction import Redactor
from referee.core.sieve import shown_free
from tests.agents.scripted_model import scripted_model
from tests.agents.scripted_play import Play
from tests.agents.site import CACHE
from tests.hostile.conftest import UPSTREAM_KEY, Attempts, prepare
from tests.runs.conftest import containers
from tests.runs.keyed import MODEL

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.registry]

REPORT = {
    "installed": True,
    "started": True,
    "errors": [],
    "test_depth": "tier1_real",
    "verified_how": {"command": "cd /work/project && python3 -m squares 12", "returned": "12 squared is 144"},
    "final_state": "It printed 144 for 12.",
}
COMMANDS = (
    "cat README.md",
    "cd /work/project && sh install.sh",
    "cd /work/project && python3 -m squares 12",
    f"cat > /work/report.json <<'END'\n{json.dumps(REPORT)}\nEND",
)
CASES = [("mini-swe-agent", "calls"), ("mini-swe-agent", "kills"), ("codex", "prints")]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Attempts]:
    """A workspace with the agents, which are installed once for all tests."""
    root = tmp_path_factory.mktemp("hostile-real")
    with pytest.MonkeyPatch.context() as patch, scripted_model(Play(COMMANDS), key=UPSTREAM_KEY) as model:
        patch.setenv("SCRIPTED_KEY", UPSTREAM_KEY)
        made = prepare(root, model, sorted({kind for _, kind in CASES}), cap_usd=1.0)
        (root / "ws" / "cache").mkdir(exist_ok=True)
        (CACHE / "agents").mkdir(parents=True, exist_ok=True)
        (root / "ws" / "cache" / "agents").symlink_to(CACHE / "agents")
        for name in sorted({agent for agent, _ in CASES}):
            text = f'schema = "referee.agent/1"\nname = "{name}"\nharness = "{name}"\n'
            text += f'model = "{MODEL}"\nupstream = "local"\n'
            (root / "ws" / "agents" / f"{name}.toml").write_text(text)
        for item in request.session.items:
            call = getattr(item, "callspec", None)
            if item.path == request.path and call is not None:
                made.begin(call.params["kind"], call.params["agent"])
        yield made
        made.end()


@pytest.mark.parametrize(("agent", "kind"), CASES)
def test_a_real_agent_at_a_hostile_project(real: Attempts, agent: str, kind: str) -> None:
    tried = real.of(kind, agent)
    attempt = tried.attempt
    assert (attempt["valid"], attempt["cause"]) == (True, None), attempt["reason"]
    whole = ("fail", 0) if kind == "kills" else ("pass_full", 100)
    assert (attempt["outcome"], attempt["total"]) == whole, attempt["reason"]
    assert attempt["quiet"]["confirmed"] is True
    spending = attempt["spending"]
    sent = [call for call in tried.exchanges if call["refused"] is None]
    assert spending["deleted"] is True
    assert spending["calls"] == len(sent) >= 2
    assert spending["spent_usd"] == pytest.approx(sum(call["cost_usd"] for call in sent))
    assert 0 < spending["spent_usd"] < spending["cap_usd"]

    redactor = Redactor(tried.secrets)
    left = {name: tried.evidence(name) for name in attempt["files"]}
    assert [name for name, data in left.items() if not shown_free([data], redactor)] == []
    assert shown_free([json.dumps(attempt).encode(), *real.onlooker.seen], redactor)
    if kind == "calls":
        assert b"own: [200, 200, 200]" in left["session.raw"], "the project found the key and used it"
        assert left["rerun.txt"].startswith(b"after the end: 401\n")
        assert sum(call["refused"] is not None for call in tried.exchanges) >= 4


def test_no_file_of_these_runs_holds_a_key(real: Attempts) -> None:
    real.all_done()
    tried = real.of("calls", "mini-swe-agent")
    redactor = Redactor(tried.secrets)
    files = [path for path in real.workspace.rglob("*") if path.is_file() and path.name != "secret"]
    assert len(files) > 20
    assert [path.name for path in files if not shown_free([path.read_bytes()], redactor)] == []
    assert not containers(real.workspace)
