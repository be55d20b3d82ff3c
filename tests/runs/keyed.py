"""An agent of any shell script that speaks to its model through the run's key; and a whole run of it in a process.

``python -m tests.runs.keyed WORKSPACE SUBJECT SANDBOX SECONDS < SCRIPT`` measures and prints the document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from referee.adapters.agents.command_agent import shell_command
from referee.cli.bringup import measure
from referee.cli.progress import Progress
from referee.cli.wiring import SandboxChoice, make_rules, open_stores
from referee.core.canonical import digest_of
from referee.core.spending import Broker, SpendingFacts
from referee.protocols import Access, AgentStart, Issued, Keys, ModelNeed, PlacedFile
from referee.runner.series import Series

PLACE = "/run/agent"
MODEL = "scripted-1"

#: Asks the model once and prints what it said; exits 1 where it said nothing.
ASK = """\
import json, sys, urllib.error, urllib.request
url, key = (open("/run/agent/" + name).read() for name in ("url", "key"))
words = " ".join(sys.argv[1:]) or "hello"
tool = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
body = {"model": "MODEL", "max_tokens": 200, "messages": [{"role": "user", "content": words}]}
body["tools"] = [{"type": "function", "function": tool}]
head = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), head)
try:
    with urllib.request.urlopen(request, timeout=30) as answer:
        print("model:", json.load(answer)["choices"][0]["message"]["content"])
except urllib.error.HTTPError as error:
    sys.exit(f"model: {error.code} {error.read()[:200]!r}")
except OSError as error:
    sys.exit(f"model: {error}")
""".replace("MODEL", MODEL)

#: ``ask WORDS`` in an agent's script.
PRELUDE = f'ask() {{ python3 {PLACE}/ask.py "$@"; }}\nkey() {{ cat {PLACE}/key; }}\n'


@dataclass(frozen=True)
class KeyedAgent:
    """A shell script with a model. The key is a file; ``ask`` and ``key`` are at hand."""

    script: str
    upstream: str = "local"
    name: str = "keyed"
    version: str = "1"
    tier: Literal["standard", "stronger"] = "standard"

    @property
    def harness(self) -> str | None:
        """It has none that ships."""
        return "script"

    @property
    def need(self) -> ModelNeed | None:
        """The scripted model."""
        return ModelNeed(model=MODEL, dialect="openai-chat", upstream=self.upstream)

    def digest(self) -> str:
        """Over the script."""
        return digest_of("agent", {"script": self.script})

    def prepare(self) -> AgentStart:
        """Nothing is installed."""
        return AgentStart(argv=shell_command(PRELUDE + self.script), environment={}, inputs={})

    def placed(self, access: Access, mission: Mapping[str, object]) -> Mapping[str, PlacedFile]:
        """Key, address, and the one call."""
        return {
            f"{PLACE}/key": PlacedFile(access.secret.encode(), 0o600),
            f"{PLACE}/url": PlacedFile(access.base_url.encode()),
            f"{PLACE}/ask.py": PlacedFile(ASK.encode(), 0o755),
            f"{PLACE}/deadline": PlacedFile(str(mission["deadline"]).encode()),
        }


@dataclass
class WatchedKeys:
    """Keys of a real broker, which remember what they issued, and stay when a series has ended."""

    keys: Keys
    issued: list[Issued] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    @property
    def broker(self) -> Broker:
        """The real one's."""
        return self.keys.broker

    def check(self, need: ModelNeed, *, cap_usd: float | None = None) -> object:
        """The real one's."""
        return self.keys.check(need, cap_usd=cap_usd)

    def ask(self, need: ModelNeed, *, after: str | None = None) -> None:
        """The real one's."""
        self.keys.ask(need, after=after)

    def reach(self, address: str) -> tuple[str, int] | None:
        """The real one's."""
        return self.keys.reach(address)

    def issue(self, run: str, need: ModelNeed, *, cap_usd: float, ends_at: float) -> Issued:
        """Remembered."""
        issued = self.keys.issue(run, need, cap_usd=cap_usd, ends_at=ends_at)
        self.issued.append(issued)
        return issued

    def close(self, run: str) -> SpendingFacts | None:
        """Remembered."""
        self.closed.append(run)
        return self.keys.close(run)

    def exchanges(self, run: str) -> bytes | None:
        """The real one's."""
        return self.keys.exchanges(run)

    def secrets(self, run: str) -> Mapping[str, str] | None:
        """The real one's."""
        return self.keys.secrets(run)

    def sweep(self, running: Collection[str]) -> list[str]:
        """The real one's."""
        return self.keys.sweep(running)

    def stop(self) -> None:
        """Not yet: a test asks first whether a key is dead."""


def config(
    url: str,
    *,
    cap_usd: float = 3.0,
    retry_seconds: float = 0.01,
    retries: int = 2,
    more: Sequence[str] = (),
    most_output: int = 16_000,
) -> str:
    """A workspace whose upstream ``local`` is the scripted model at ``url``."""
    return "\n".join(
        (
            *more,
            "[keys]",
            f"cap_usd = {cap_usd}",
            f"retry_seconds = {retry_seconds}",
            f"retries = {retries}",
            "[upstreams.local]",
            f'base_url = "{url}/v1"',
            'key_env = "SCRIPTED_KEY"',
            f"max_output_tokens = {most_output}",
            "[upstreams.local.prices]",
            f"{MODEL} = {{ input = 1.0, output = 2.0 }}",
            "",
        )
    )


def measure_script(
    workspace: Path, subject: str, script: str, *, sandbox: SandboxChoice = "docker", seconds: int | None = None
) -> dict[str, Any]:
    """One run of a script, as ``referee bringup run`` makes it; the document."""
    stores = open_stores(workspace)
    with Progress(Console(stderr=True)) as progress:
        return measure(
            subject,
            stores=stores,
            series=Series("runs", 1),
            agents=[KeyedAgent(script)],
            rules=make_rules(stores.workspace, None, seconds),
            sandbox_choice=sandbox,
            progress=progress,
        )


def main() -> None:
    """One run; the script comes on standard input."""
    workspace, subject, sandbox, seconds = sys.argv[1:]
    chosen: SandboxChoice = "overlay" if sandbox == "overlay" else "docker"
    document = measure_script(
        Path(workspace), subject, sys.stdin.read(), sandbox=chosen, seconds=int(seconds) if seconds != "-" else None
    )
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    main()
