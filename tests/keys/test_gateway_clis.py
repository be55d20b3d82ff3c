"""Real agent CLIs at the cap, and with a token that has died: each gives up by itself, soon, and spends no more.

They run on this host in an empty home with a cleared environment; the model on loopback always wants one more ``echo``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.core.spending import Dialect, Exchange, Price
from referee.protocols import Access, Issued, ModelNeed
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.bakeoff.real.conftest import agents as agents  # noqa: PLC0414 — a fixture

pytestmark = [pytest.mark.slow, pytest.mark.registry]

REAL_KEY = "sk-the-real-key-0123456789abcdefghij"
#: A call costs a dollar, whatever it says: the third might exceed three.
PRICE = Price(input=1.0, output=1.0, cache_write=1.0, per_request=1.0, source="this test")
#: What a client may try again although it was told not to: Codex opens a refused stream five times more.
MOST_TRIES = 8
PATIENCE = 90.0

CODEX = """
model_provider = "run"
web_search = "disabled"
[model_providers.run]
name = "run"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "AGENT_KEY"
"""
GEMINI = """{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}"""
OPENCODE = """{"autoupdate": false, "permission": "allow", "snapshot": false, "enabled_providers": ["run"],
  "small_model": "run/{model}", "provider": {"run": {"npm": "@ai-sdk/openai-compatible",
  "options": {"baseURL": "{url}/v1", "apiKey": "{env:AGENT_KEY}"}, "models": {"{model}": {}}}}}"""


@dataclass(frozen=True)
class Program:
    """How one CLI is started; ``{url}``, ``{key}`` and ``{model}`` are filled in."""

    dialect: Dialect
    model: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


PROGRAMS = {
    "codex": Program(
        "openai-responses",
        "scripted-1",
        (
            "exec",
            "--json",
            "--dangerously-bypass-approvals-and-sandbox",
            "--skip-git-repo-check",
            "--model={model}",
            "-",
        ),
        {"AGENT_KEY": "{key}"},
        {".codex/config.toml": CODEX},
    ),
    "claude": Program(
        "anthropic-messages",
        "claude-sonnet-4-5",
        (
            "--print",
            "--verbose",
            "--output-format=stream-json",
            "--permission-mode=bypassPermissions",
            "--model={model}",
        ),
        {
            "ANTHROPIC_AUTH_TOKEN": "{key}",
            "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST": "1",
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
    ),
    "gemini": Program(
        "gemini",
        "gemini-2.5-pro",
        ("--yolo", "--model={model}", "--output-format=stream-json"),
        {"GEMINI_API_KEY": "{key}", "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": GEMINI},
    ),
    "opencode": Program(
        "openai-chat",
        "scripted-1",
        ("run", "--pure", "--format=json", "--dangerously-skip-permissions", "--model=run/{model}"),
        {
            "AGENT_KEY": "{key}",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_FAKE_VCS": "git",
            "NPM_CONFIG_OFFLINE": "true",
        },
        {".config/opencode/opencode.json": OPENCODE},
    ),
}


def run(executable: Path, program: Program, access: Access, room: Path) -> str:
    """Start the CLI and wait until it ends by itself; what it said."""

    def filled(text: str) -> str:
        named = {"{url}": access.base_url, "{key}": access.secret, "{model}": access.model}
        for name, value in named.items():
            text = text.replace(name, value)
        return text

    home = room / "home"
    for path, text in program.files.items():
        (home / path).parent.mkdir(parents=True)
        (home / path).write_text(filled(text))
    (room / "project").mkdir()
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    child = subprocess.Popen(
        [str(executable), *(filled(word) for word in program.arguments)],
        env=environment | {name: filled(value) for name, value in program.environment.items()},
        cwd=room / "project",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return child.communicate("Run echo hi again and again.", timeout=PATIENCE)[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextmanager
def issued(program: Program, room: Path) -> Iterator[tuple[GatewayKeys, Issued, ScriptedModel]]:
    """A key of three dollars to a model that never stops, while the block runs."""
    with scripted_model(Play(forever="echo hi"), model=program.model, key=REAL_KEY) as model:
        url = model.url + ("/v1beta" if program.dialect == "gemini" else "/v1")
        prices = {program.model: PRICE}
        upstream = Upstream("here", url, REAL_KEY, (program.dialect,), prices=prices, max_output_tokens=900)
        keys = GatewayKeys(room / "keys", {"here": upstream})
        try:
            keys.reach("127.0.0.1")
            need = ModelNeed(program.model, program.dialect, "here")
            yield keys, keys.issue("run-1", need, cap_usd=3.0, ends_at=time.time() + 600), model
        finally:
            keys.stop()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_cli_whose_model_never_stops_gives_up_at_the_cap(
    name: str, agents: Mapping[str, Path], tmp_path: Path
) -> None:
    with issued(PROGRAMS[name], tmp_path) as (keys, key, model):
        said = run(agents[name], PROGRAMS[name], key.access, tmp_path)
        facts = keys.close("run-1")
        exchanges = [Exchange.model_validate_json(line) for line in (keys.exchanges("run-1") or b"").splitlines()]
        heard = [asked for asked in model.asked if asked.turn is not None]
    assert facts is not None
    assert facts.capped, said
    assert facts.spent_usd is not None
    assert 1.0 <= facts.spent_usd <= 3.0
    assert 1 <= (facts.refused or 0) <= MOST_TRIES
    assert {one.status for one in exchanges if one.refused} == {402}
    assert len(heard) == facts.calls
    assert {asked.credential for asked in heard} == {REAL_KEY}
    assert REAL_KEY not in said


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_cli_gives_a_dead_token_up_by_itself(name: str, agents: Mapping[str, Path], tmp_path: Path) -> None:
    with issued(PROGRAMS[name], tmp_path) as (keys, key, model):
        keys.close("run-1")
        said = run(agents[name], PROGRAMS[name], key.access, tmp_path)
        assert model.asked == []
    assert "not valid any more" in said
