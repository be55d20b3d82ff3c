"""``referee agent``: the dry run says what works, what it cost, and what failed, with the right exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from referee.adapters.docker.sandbox import DockerSandbox
from referee.adapters.keys.brokered import Settle
from referee.adapters.keys.litellm import LiteLLM
from referee.adapters.overlay.sandbox import OverlaySandbox
from referee.cli.app import make_app
from referee.errors import CouldNotVerify, Finding, RefereeError
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.agents.site import CACHE
from tests.keys.scripted_brokers import CALL_USD, ScriptedLiteLLM, ScriptedOpenRouter

UPSTREAM_KEY = "sk-upstream-of-the-check-0123456789"

#: An agent as small as it can be: one question to its model, then the command, then a report.
ASK = """
import json, subprocess, urllib.request
told = json.load(open("/run/agent/model.json"))
command = {"type": "object", "properties": {"command": {"type": "string"}}}
tools = [{"type": "function", "function": {"name": "bash", "parameters": command}}]
messages = [{"role": "user", "content": "what next?"}]
body = {"model": told["model"], "max_tokens": 100, "messages": messages, "tools": tools}
head = {"Authorization": "Bearer " + told["key"], "Content-Type": "application/json"}
url = told["base_url"] + "/v1/chat/completions"
urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)).read()
"""
REPORT = """
line = subprocess.run(["sh", "print-line.sh"], capture_output=True, text=True).stdout.strip()
verified = {"command": "sh print-line.sh", "returned": line}
report = {"installed": True, "started": True, "errors": [], "test_depth": "tier1_real", "verified_how": verified}
json.dump(report | {"final_state": "It printed " + line + "."}, open("/work/report.json", "w"))
"""


def as_command(code: str) -> str:
    """A command line that runs ``code`` with the machine's Python."""
    return f"python3 - <<'PY'\n{code}\nPY"


@dataclass(frozen=True)
class Lab:
    """A workspace whose one upstream is the scripted model."""

    root: Path
    model: ScriptedModel

    def agent(self, name: str, code: str) -> None:
        """Write an agent that runs ``code`` with the machine's Python."""
        (self.root / "agents").mkdir(exist_ok=True)
        (self.root / "agents" / f"{name}.toml").write_text(
            f'schema = "referee.agent/1"\nname = "{name}"\nversion = "1"\nmodel = "scripted-1"\nupstream = "scripted"\n'
            f'dialect = "openai-chat"\ncommand = {json.dumps(as_command(code))}\n'
        )

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(make_app("agent"), [*words, "--workspace", str(self.root)])

    def check(self, name: str, *words: str) -> Result:
        return self.run("agent", "check", name, "--sandbox", "overlay", "--quiet", *words)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("UPSTREAM_KEY", UPSTREAM_KEY)
    with scripted_model(key=UPSTREAM_KEY) as model:
        root = tmp_path / "workspace"
        root.mkdir()
        settings = f"""
        [upstreams.scripted]
        base_url = "{model.url}/v1"
        key_env = "UPSTREAM_KEY"
        dialects = ["openai-chat", "openai-responses"]
        max_output_tokens = 1000
        [upstreams.scripted.prices.scripted-1]
        input = 1.0
        output = 5.0
        """
        (root / "referee.toml").write_text(textwrap.dedent(settings))
        yield Lab(root, model)


def trouble(result: Result) -> RefereeError:
    """The error that the command ended with: ``cli.app`` makes its exit code of it."""
    assert isinstance(result.exception, RefereeError), result.output
    return result.exception


@pytest.mark.slow
def test_a_check_prints_install_step_report_cost_and_what_became_of_the_key(lab: Lab) -> None:
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert result.exit_code == 0, result.output
    rows = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert rows["agent"] == "bare 1"
    assert rows["model"] == "scripted-1"
    assert rows["install"].startswith("ready in")
    assert rows["step"].endswith("exit status 0")
    assert "quotes the line" in rows["report"]
    assert rows["tokens"].startswith("1 calls, ")
    assert re.match(r"0\.0\d+ USD of at most 3 USD$", rows["cost"])
    assert ": deleted: " in rows["key"]
    assert [asked.credential for asked in lab.model.played] == [UPSTREAM_KEY]


@pytest.mark.slow
def test_a_check_as_json_is_one_document_without_any_secret(lab: Lab) -> None:
    lab.agent("bare", ASK + "print(told)" + REPORT)
    result = lab.check("bare", "--json")
    document = json.loads(result.stdout)
    assert document["ok"] is True
    assert document["line"]["quoted"] is True
    assert document["line"]["expected"] in document["report"]["final_state"]
    assert document["spending"]["deleted"] is True
    assert document["spending"]["calls"] == 1
    assert document["spending"]["spent_usd"] > 0
    assert "[redacted:run-key]" in "".join(document["step"]["printed"])
    assert "sk-run-" not in result.stdout
    assert UPSTREAM_KEY not in result.stdout


@pytest.mark.slow
def test_an_agent_that_never_ran_the_step_is_a_finding(lab: Lab) -> None:
    lab.agent(
        "guesses",
        ASK
        + REPORT.replace('line = subprocess.run(["sh", "print-line.sh"]', 'line = subprocess.run(["echo", "line-1"]'),
    )
    result = lab.check("guesses")
    assert isinstance(trouble(result), Finding)
    assert "does not quote" in trouble(result).message


@pytest.mark.slow
def test_an_agent_without_a_report_is_a_finding_that_shows_what_it_printed(lab: Lab) -> None:
    lab.agent("silent", ASK + "print('I give up'); raise SystemExit(7)")
    result = lab.check("silent")
    assert isinstance(trouble(result), Finding)
    assert "left no report" in trouble(result).message
    assert "exit status 7" in trouble(result).message
    assert "I give up" in result.stdout


@pytest.mark.slow
def test_an_agent_that_asks_its_model_nothing_is_a_finding(lab: Lab) -> None:
    lab.agent("idle", "print('nothing to ask')")
    result = lab.check("idle")
    assert isinstance(trouble(result), Finding)
    assert "asked its model nothing" in trouble(result).message


@pytest.mark.slow
def test_a_model_that_does_not_answer_is_not_the_agents_finding(lab: Lab) -> None:
    lab.model.play = Play(always="503")
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert isinstance(trouble(result), CouldNotVerify)
    assert "did not answer" in trouble(result).message
    assert trouble(result).exit_code == 4
    assert ": deleted: " in result.stdout


@pytest.mark.slow
def test_a_cap_that_is_too_small_is_said(lab: Lab) -> None:
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare", "--cap-usd", "0.01")
    assert result.exit_code == 0
    lab.agent("hungry", ASK.replace('"what next?"', '"what next? " * 2000') + REPORT)
    result = lab.check("hungry", "--cap-usd", "0.01")
    assert "reached the cap of 0.01 USD" in trouble(result).message
    assert lab.model.count == 1


def test_a_missing_credential_is_said_before_a_machine_is_made(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPSTREAM_KEY")
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert "UPSTREAM_KEY" in trouble(result).message
    assert trouble(result).exit_code == 2
    assert lab.model.asked == []
    assert not (lab.root / "keys").exists()


def test_a_refused_credential_is_said_before_a_machine_is_made(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-another-key-0123456789")
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert trouble(result).message == "the upstream scripted refused UPSTREAM_KEY (401)"
    assert trouble(result).exit_code == 2
    assert lab.model.played == []
    assert not (lab.root / "keys" / "closed").exists()


@pytest.mark.slow
def test_a_credential_that_is_refused_only_in_calls_is_said(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where everybody may read the list of models."""
    monkeypatch.setattr("referee.adapters.keys.gateway.knock.knock", lambda *_: None)
    monkeypatch.setenv("UPSTREAM_KEY", "sk-another-key-0123456789")
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert trouble(result).message == "the upstream scripted refused UPSTREAM_KEY (401)"
    assert ": deleted: " in result.stdout


def test_a_model_without_a_price_is_never_free(lab: Lab) -> None:
    settings = (lab.root / "referee.toml").read_text()
    (lab.root / "referee.toml").write_text(settings.partition("[upstreams.scripted.prices")[0])
    lab.agent("bare", ASK + REPORT)
    result = lab.check("bare")
    assert "price" in trouble(result).message
    assert trouble(result).exit_code == 2
    assert lab.model.asked == []


@pytest.mark.slow
def test_a_check_with_a_key_of_another_broker(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedOpenRouter() as server:
        monkeypatch.setenv("MANAGEMENT_KEY", server.master)
        text = f'[keys]\nbroker = "openrouter"\nbase_url = "{server.base}"\nkey_env = "MANAGEMENT_KEY"\n'
        (lab.root / "referee.toml").write_text(text)
        lab.agent("bare", ASK + "print(told)" + REPORT)
        result = lab.check("bare", "--json")
        document = json.loads(result.stdout)
        assert document["ok"] is True, document
        assert document["spending"]["broker"] == "openrouter"
        assert document["spending"]["spent_usd"] == CALL_USD
        assert document["spending"]["deleted"] is True
        assert [(key.spent, key.deleted) for key in server.keys.values()] == [(CALL_USD, True)]
        assert not [key for key in server.keys.values() if key.secret in result.stdout]
        assert server.master not in result.stdout
    assert lab.model.asked == []


@pytest.mark.slow
def test_a_check_that_is_killed_leaves_its_key_to_the_next_sweep(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedOpenRouter() as server:
        monkeypatch.setenv("MANAGEMENT_KEY", server.master)
        text = f'[keys]\nbroker = "openrouter"\nbase_url = "{server.base}"\nkey_env = "MANAGEMENT_KEY"\n'
        (lab.root / "referee.toml").write_text(text)
        lab.agent("sleeper", ASK + "import time; time.sleep(300)")
        words = ["agent", "check", "sleeper", "--sandbox", "overlay", "--quiet", "--workspace", str(lab.root)]
        with subprocess.Popen([sys.executable, "-m", "referee.cli.app", *words]) as check:
            until = time.monotonic() + 60
            while not any(key.spent for key in server.keys.values()):
                assert time.monotonic() < until, "the agent never called its model"
                time.sleep(0.05)
            check.kill()
        assert len(server.alive) == 1
        swept = CliRunner().invoke(make_app("keys"), ["keys", "sweep", "--workspace", str(lab.root)])
        assert swept.exit_code == 0, swept.output
        assert "which is not running" in swept.stdout
        assert server.alive == set()
        # The machine of the killed check: no test leaves one.
        OverlaySandbox(lab.root / "machines").reap()
        assert not list((lab.root / "machines").glob("*.json"))


@pytest.mark.slow
@pytest.mark.engine
def test_a_proxy_on_this_host_is_reached_where_machines_reach_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedLiteLLM(DockerSandbox(workspace="tests").gateway_address()) as server:
        monkeypatch.setenv("MASTER_KEY", server.master)
        text = f'[keys]\nbroker = "litellm"\nbase_url = "{server.base}"\nkey_env = "MASTER_KEY"\n'
        (lab.root / "referee.toml").write_text(text)
        monkeypatch.setattr(LiteLLM, "settle", Settle(0.0, 0.0, 0.0))
        lab.agent("bare", ASK + REPORT)
        document = json.loads(lab.run("agent", "check", "bare", "--sandbox", "docker", "--quiet", "--json").stdout)
        assert document["ok"] is True, document
        assert document["spending"]["spent_usd"] == CALL_USD
        assert server.alive == set()


@pytest.mark.slow
def test_an_agent_without_a_model_is_checked_without_a_key(lab: Lab) -> None:
    (lab.root / "agents").mkdir()
    (lab.root / "agents" / "plain.toml").write_text(
        'schema = "referee.agent/1"\nname = "plain"\nversion = "1"\n'
        f"command = {json.dumps(as_command('import json, subprocess' + REPORT))}\n"
    )
    result = lab.check("plain", "--json")
    document = json.loads(result.stdout)
    assert document["ok"] is True
    assert document["spending"] is None
    assert document["agent"]["model"] is None


def test_the_agents_are_listed_and_shown(lab: Lab) -> None:
    lab.agent("bare", ASK + REPORT)
    document = json.loads(lab.run("agent", "list", "--json").stdout)
    names = [agent["name"] for agent in document["agents"]]
    assert names == ["baseline", "command", "null", "liar", "stub", "bare"]
    shown = json.loads(lab.run("agent", "show", "bare", "--json").stdout)
    assert shown["model"] == "scripted-1"
    assert shown["surface"] == "openai-chat"
    assert shown["digest"].startswith("agent:sha256:")
    lab.agent("bare", ASK)
    assert json.loads(lab.run("agent", "show", "bare", "--json").stdout)["digest"] != shown["digest"]
    assert trouble(lab.run("agent", "show", "nobody")).exit_code == 5


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.registry
@pytest.mark.parametrize("harness", ["mini-swe-agent", "codex"])
def test_a_real_program_is_checked_through_the_gateway(lab: Lab, harness: str) -> None:
    report = (
        '{"installed": true, "started": true, "errors": [], "test_depth": "tier1_real", '
        '"verified_how": {"command": "sh /work/project/print-line.sh", "returned": "%s"}, '
        '"final_state": "It printed %s."}'
    )
    step = f"""line="$(sh print-line.sh)" && printf '{report}' "$line" "$line" > /work/report.json"""
    lab.model.play = Play(commands=[f"cd /work/project && {step}"])
    (lab.root / "cache").mkdir()
    (CACHE / "agents").mkdir(parents=True, exist_ok=True)
    (lab.root / "cache" / "agents").symlink_to(CACHE / "agents")  # installed once for all tests
    (lab.root / "agents").mkdir()
    (lab.root / "agents" / "real.toml").write_text(
        f'schema = "referee.agent/1"\nname = "real"\nharness = "{harness}"\nmodel = "scripted-1"\n'
        'upstream = "scripted"\n'
    )
    result = lab.run("agent", "check", "real", "--sandbox", "docker", "--quiet", "--json")
    document = json.loads(result.stdout)
    assert document["ok"] is True, document
    assert document["agent"]["harness"] == harness
    assert document["install"]["tree_digest"].startswith("tree:sha256:")
    assert document["spending"]["calls"] >= 2
    assert document["spending"]["deleted"] is True
    assert UPSTREAM_KEY not in result.stdout
    assert "sk-run-" not in result.stdout
