"""Real agent CLIs bring up a small real project through the gateway, on a real machine, with a scripted model.

mini-swe-agent, Codex CLI and opencode, installed from their registries at their pinned versions. What is left of each
run is looked through for its key and the upstream's; the key is dead afterwards; the spend is what the model told.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console

from referee.cli import bringup
from referee.cli.progress import Progress
from referee.cli.wiring import Stores, gateway_keys, make_agent, make_rules, open_stores
from referee.core.spending import Price, Usage, cost_usd
from referee.runner.series import Series
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.agents.scripted_turns import Counted
from tests.agents.site import CACHE
from tests.cheats.projects import write_project
from tests.runs.conftest import referee
from tests.runs.keyed import WatchedKeys

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.registry]

MODEL = "scripted-1"
UPSTREAM_KEY = "sk-up-5f1c09d7e2b84a6f93d0e7c1a2b3c4d5"
MOST_OUTPUT = 2000
PRICE = Price(input=3.0, output=15.0, cached_input=0.3, cache_write=3.75, source="the test")

#: The agents, and words that name them, their makers or the model.
AGENTS = {
    "mini-swe-agent": ("mini-swe-agent", "minisweagent", "litellm"),
    "codex": ("codex", "openai"),
    "opencode": ("opencode",),
}

REPORT = {
    "installed": True,
    "started": True,
    "errors": [{"what": "No module named 'tables.numbers'", "fixed": True, "how": "make writes it"}],
    "test_depth": "tier1_real",
    "verified_how": {"command": "cd /work/project && python3 -m tables 12", "returned": "12 squared is 144"},
    "final_state": "After make, the program printed 144 for 12.",
}
#: What the model does: it looks, meets the error, works through it, verifies, sees whose programs it uses, and reports.
COMMANDS = (
    "cat README.md",
    "python3 -m tables 12",
    "make",
    "cd /work/project && python3 -m tables 12",
    "command -v python3 node; node --version",
    f"cat > /work/report.json <<'END'\n{json.dumps(REPORT)}\nEND",
)


@dataclass
class Bench:
    """A workspace whose gateway leads to the scripted model, and the keys that runs got."""

    stores: Stores
    model: ScriptedModel
    issued: list[WatchedKeys] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.stores.workspace.root

    def measure(self, agent: str, subject: str = "tables") -> dict[str, Any]:
        """One run by an agent of the workspace; the document that the command line prints."""
        with Progress(Console(stderr=True), quiet=True) as progress:
            return bringup.measure(
                subject,
                stores=self.stores,
                series=Series("runs", 1),
                agents=[make_agent(agent, None, self.stores.workspace)],
                rules=make_rules(self.stores.workspace, None, None),
                sandbox_choice="docker",
                progress=progress,
            )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the project and the agents; what they install is shared by all tests."""
    root = tmp_path_factory.mktemp("agents")
    done = referee("subject", "add", str(write_project("tables", root)), "--workspace", str(root / "ws"))
    assert done.returncode == 0, done.stderr
    (root / "ws" / "agents").mkdir()
    (CACHE / "agents").mkdir(parents=True, exist_ok=True)
    (root / "ws" / "cache" / "agents").symlink_to(CACHE / "agents")
    for name in AGENTS:
        (root / "ws" / "agents" / f"{name}.toml").write_text(
            f'schema = "referee.agent/1"\nname = "{name}"\nharness = "{name}"\nmodel = "{MODEL}"\nupstream = "local"\n'
        )
    return root / "ws"


def settings(model: ScriptedModel, price: Price = PRICE) -> str:
    told = price.model_dump(include={"input", "output", "cached_input", "cache_write"})
    return f"""\
[upstreams.local]
base_url = "{model.url}/v1"
key_env = "SCRIPTED_KEY"
dialects = ["openai-chat", "openai-responses"]
max_output_tokens = {MOST_OUTPUT}
[upstreams.local.prices]
{MODEL} = {{ {", ".join(f"{name} = {value}" for name, value in told.items())} }}
"""


@contextlib.contextmanager
def bench(workspace: Path, play: Play, monkeypatch: pytest.MonkeyPatch, price: Price = PRICE) -> Iterator[Bench]:
    """The workspace with a model that plays ``play``; keys live on after a run until the block ends."""
    with scripted_model(play, key=UPSTREAM_KEY) as model:
        (workspace / "referee.toml").write_text(settings(model, price))
        stores = open_stores(workspace)
        made = Bench(stores, model)

        def keys_at_start(*_: object) -> WatchedKeys:
            made.issued.append(WatchedKeys(gateway_keys(stores.workspace, {"SCRIPTED_KEY": UPSTREAM_KEY})))
            return made.issued[-1]

        monkeypatch.setattr(bringup, "keys_at_start", keys_at_start)
        try:
            yield made
        finally:
            for watched in made.issued:
                watched.keys.stop()


def ask(url: str, key: str) -> int:
    """The status that a call with this key is answered."""
    body = json.dumps({"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/v1/chat/completions", body, head), timeout=20
        ) as got:
            return int(got.status)
    except urllib.error.HTTPError as error:
        return error.code


class Onlooker:
    """Keeps what the host's process list and the engine show of machines while a run is under way."""

    def __init__(self) -> None:
        self.seen = b""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(30)

    def _look(self) -> None:
        while not self._done.wait(0.3):
            listed = subprocess.run(["ps", "-eo", "args", "--no-headers"], capture_output=True, check=False).stdout
            running = subprocess.run(["docker", "ps", "-q"], capture_output=True, text=True, check=False).stdout.split()
            shown = subprocess.run(["docker", "inspect", *running], capture_output=True, check=False).stdout
            self.seen += listed + (shown if running else b"")


def published(workspace: Path) -> Path:
    """The pages of the workspace, as the command line builds them."""
    done = referee("site", "build", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr
    return workspace / "site"


def evidence(workspace: Path, run: str, name: str) -> bytes:
    """A file of a run's evidence, by its record."""
    done = referee("show", run, "--json", "--workspace", str(workspace))
    document = json.loads(done.stdout)
    (digest,) = [ref["digest"] for ref in document["files"] if ref["name"] == name]
    blob = digest.removeprefix("sha256:")
    (path,) = [found for found in (workspace / "evidence").rglob(f"*{blob[2:]}*") if found.is_file()]
    return path.read_bytes()


def files_with(root: Path, secret: bytes) -> list[str]:
    """Files below a directory that hold a secret."""
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and secret in path.read_bytes()
    ]


def cost(told: list[Counted]) -> float:
    """What the told tokens cost."""
    return sum(
        cost_usd(Usage(input=t.input, output=t.output, cached_input=t.cached, cache_write=0), PRICE) for t in told
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_real_agent_brings_a_project_up_through_the_gateway(
    agent: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench(workspace, Play(COMMANDS), monkeypatch) as made, Onlooker() as onlooker:
        document = made.measure(agent)
        one = document["attempts"][0]
        assert (document["verdict"], one["outcome"], one["corroboration"]) == ("runs", "pass_full", "corroborated"), one

        # The upstream was asked with its own key, by the gateway alone; the play was followed to its end.
        asked = made.model.asked
        assert {got.credential for got in asked} == {UPSTREAM_KEY}
        assert [got.step for got in made.model.played if got.status == 200][: len(COMMANDS)] == list(
            range(len(COMMANDS))
        )

        # One key, and it is dead: a second call with it is refused, and nothing reaches the upstream.
        (issued,) = made.issued[0].issued
        before = len(made.model.asked)
        assert ask(issued.access.base_url, issued.access.secret) == 401
        assert len(made.model.asked) == before

        # Spend: what the model told, at the workspace's price.
        spending = one["spending"]
        assert spending["deleted"] is True
        assert spending["spent_usd"] == pytest.approx(cost([got.told for got in asked if got.told]), rel=1e-6)
        assert 0 < spending["spent_usd"] < 3.0

        # The key is nowhere: not in what the run left, not in what was to be seen while it ran.
        for secret in (UPSTREAM_KEY, issued.access.secret, *issued.secrets.values()):
            assert files_with(workspace, secret.encode()) == []
            assert secret.encode() not in onlooker.seen
        assert b"referee" in onlooker.seen

        # The recording is there and shows the work; its served copy names neither the program, its maker nor the model.
        recorded = evidence(workspace, one["run"], "transcript.txt").decode()
        assert "12 squared is 144" in recorded
        assert "/usr/bin/python3" in recorded  # the machine's own, not the agent's
        site = published(workspace)
        served = [path for path in site.rglob("*") if path.is_file() and "assets" not in path.parts]
        page = (site / "runs" / f"{one['run']}.html").read_text()
        assert "USD of its key" in page
        assert "12 squared is 144" in page
        for word in (*AGENTS[agent], MODEL):
            assert [path.name for path in served if word.encode() in path.read_bytes().lower()] == [], word


def test_a_model_that_never_stops_is_cut_at_the_cap(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    price = PRICE.model_copy(update={"output": 50.0})
    play = Play(forever="date", usage=lambda turn, step: Counted(len(turn.text) // 4, MOST_OUTPUT))
    with bench(workspace, play, monkeypatch, price) as made:
        one = made.measure("codex")["attempts"][0]
        spending = one["spending"]
        calls = [json.loads(line) for line in evidence(workspace, one["run"], "exchanges.jsonl").splitlines()]
        refused = next(call for call in calls if call["refused"])
        assert {call["refused"] for call in calls} == {None, "cap"}
        # Cut at 3 USD, less what the one request might have cost: no less, and never more.
        assert spending["spent_usd"] <= 3.0 < spending["spent_usd"] + refused["upper_usd"]
        assert refused["upper_usd"] < 0.25
        assert spending["spent_usd"] == pytest.approx(sum(call["cost_usd"] for call in calls))
        assert made.model.count == spending["calls"] == len([call for call in calls if not call["refused"]])
        assert (spending["capped"], spending["deleted"]) == (True, True)
        assert (one["valid"], one["outcome"]) == (True, "fail")
        page = (published(workspace) / "runs" / f"{one['run']}.html").read_text()
        assert f"{spending['spent_usd']:.2f} USD of its key&#39;s cap of 3.00 USD" in page
