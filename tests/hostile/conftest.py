"""Attempts at hostile projects by a careless agent with a model, by the command line; what the host shows meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.store.evidence import LocalEvidence
from referee.cli.wiring import make_keys, open_stores
from referee.core.canonical import digest_of
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.hostile.projects import HOSTILE, write_project
from tests.runs.conftest import referee
from tests.runs.keyed import MODEL, config

UPSTREAM_KEY = "sk-upstream-of-hostility-8sKq2LmZt5Vx9RwB4nHd"
MACHINE = ("[machine]", "memory_bytes = 500000000", "pids = 200", "disk_bytes = 400000000")
RECORDING = ("[recording]", "max_bytes = 8000000")
AGENT = f"""schema = "referee.agent/1"
name = "reader"
version = "1"
command = ["python3", "/opt/agent/follow.py"]
files = "reader"
model = "{MODEL}"
upstream = "local"
dialect = "openai-chat"
"""
#: What the deadline is, where an attempt is to reach it.
SECONDS = {"forks": "25"}
_ABREAST = 3


@dataclass
class Onlooker:
    """What the host's process list and the engine show of machines: everything once."""

    seen: set[bytes] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look until it is stopped."""
        while not self._over.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    self.seen.add(path.read_bytes())
            ids = subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=False).stdout.split()
            if ids:
                shown = subprocess.run(["docker", "inspect", *ids], capture_output=True, check=False).stdout
                self.seen.add(shown)

    def stop(self) -> None:
        """Look no more."""
        self._over.set()


@dataclass(frozen=True)
class Tried:
    """One attempt at a project: the document's attempt, and what stands in the evidence."""

    attempt: dict[str, Any]
    workspace: Path
    code: int

    def evidence(self, name: str) -> bytes:
        """A file of evidence; empty where there is none."""
        digest = self.attempt["files"].get(name)
        return b"" if digest is None else LocalEvidence(self.workspace / "evidence").read(digest)

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """What the gateway saw of the run."""
        return [json.loads(line) for line in self.evidence("exchanges.jsonl").splitlines()]

    @property
    def secrets(self) -> dict[str, str]:
        """What must be found nowhere: the run's key and the upstream's."""
        keys = make_keys(open_stores(self.workspace).workspace, {**os.environ, "SCRIPTED_KEY": UPSTREAM_KEY})
        try:
            return dict(keys.secrets(self.attempt["run"]) or {})
        finally:
            keys.stop()


class Attempts:
    """Attempts by kind of project: made when first asked for, in the background when announced."""

    def __init__(self, root: Path, model: ScriptedModel) -> None:
        self.root = root
        self.workspace = root / "ws"
        self.model = model
        self.onlooker = Onlooker()
        self._pool = ThreadPoolExecutor(_ABREAST)
        self._made: dict[tuple[str, str], Future[Tried]] = {}
        self._thread = threading.Thread(target=self.onlooker.watch, daemon=True)
        self._thread.start()

    def begin(self, kind: str, agent: str = "reader") -> Future[Tried]:
        """Start it, once."""
        if (kind, agent) not in self._made:
            self._made[kind, agent] = self._pool.submit(self.make, kind, agent)
        return self._made[kind, agent]

    def of(self, kind: str, agent: str = "reader") -> Tried:
        """The attempt at the project of that kind."""
        return self.begin(kind, agent).result()

    def all_done(self) -> int:
        """Wait for those begun; how many they are."""
        return len([made.result() for made in self._made.values()])

    def make(self, kind: str, agent: str = "reader") -> Tried:
        """One attempt more."""
        done = referee(
            "bringup", "run", f"squares-{kind}", "--agent", agent, "--sandbox", "docker", "--json", "-q",
            *(("--budget-seconds", SECONDS[kind]) if kind in SECONDS else ()), "--workspace", str(self.workspace),
        )  # fmt: skip
        assert done.stdout.strip(), done.stderr
        (attempt,) = json.loads(done.stdout)["attempts"]
        return Tried(attempt, self.workspace, done.returncode)

    def host_files(self) -> dict[str, str]:
        """Digests of files of the host that a machine could see or might reach for."""
        watched = [self.workspace / "agents", *(self.root / f"squares-{kind}" for kind in (*HOSTILE, "honest"))]
        found = {
            str(path): digest_of("file", {"data": path.read_bytes().hex(), "mode": path.stat().st_mode})
            for place in watched
            for path in sorted(place.rglob("*"))
            if path.is_file()
        }
        return found | {name: Path(name).read_text() for name in ("/proc/sys/kernel/core_pattern", "/etc/hostname")}

    def end(self) -> None:
        """Stop looking and waiting."""
        self._pool.shutdown(cancel_futures=True)
        self.onlooker.stop()
        self._thread.join(20)


def prepare(
    root: Path, model: ScriptedModel, kinds: Sequence[str], *, cap_usd: float, more: Sequence[str] = ()
) -> Attempts:
    """A workspace with projects and a way to the scripted model; agents are the caller's to add."""
    for kind in kinds:
        project = write_project(kind, root)
        done = referee("subject", "add", str(project), "--name", project.name, "--workspace", str(root / "ws"))
        assert done.returncode == 0, done.stderr
    (root / "ws" / "agents").mkdir()
    dialects = 'dialects = ["openai-chat", "openai-responses"]'
    settings = config(model.url, cap_usd=cap_usd, more=more).replace(
        "[upstreams.local]", f"[upstreams.local]\n{dialects}"
    )
    (root / "ws" / "referee.toml").write_text(settings)
    return Attempts(root, model)


@pytest.fixture(scope="package")
def attempts(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Attempts]:
    """A workspace with the agent and all projects; what the chosen tests need is begun at once."""
    root = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch, scripted_model(Play(final="Go on."), key=UPSTREAM_KEY) as model:
        patch.setenv("SCRIPTED_KEY", UPSTREAM_KEY)
        made = prepare(root, model, (*HOSTILE, "honest"), cap_usd=0.05, more=(*MACHINE, *RECORDING))
        (root / "ws" / "agents" / "reader.toml").write_text(AGENT)
        (root / "ws" / "agents" / "reader").mkdir()
        shutil.copy(Path(__file__).parent / "follow.py", root / "ws" / "agents" / "reader" / "follow.py")
        for item in request.session.items:
            call = getattr(item, "callspec", None)
            if item.path.name == "test_hostile_projects.py" and call is not None and "kind" in call.params:
                made.begin(call.params["kind"])
        yield made
        made.end()
