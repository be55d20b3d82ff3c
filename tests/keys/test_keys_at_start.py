"""What is said of keys, caps, prices and upstreams before a machine starts, and when a key is refused in a run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.cli.keys_at_start import keys_at_start, stop_where_refused
from referee.cli.wiring import open_stores
from referee.errors import ConfigError, CouldNotVerify, KeyUnavailable, UsageError
from referee.protocols import Agent, Keys, ModelNeed
from tests.keys.gateway_calls import RUN, gate
from tests.keys.scripted_upstream import KEY, Heard, said_json, scripted_upstream

LAB = """
[keys]
cap_usd = {cap}
[upstreams.lab]
base_url = "{url}"
key_env = "LAB_KEY"
max_output_tokens = 32000
[upstreams.lab.prices.scripted-1]
input = 1.0
output = 15.0
"""
LAB_NEED = ModelNeed("scripted-1", "openai-chat", "lab")


@dataclass(frozen=True)
class Asks:
    """Of an agent, what keys are made for."""

    need: ModelNeed


def at_start(root: Path, text: str) -> Keys | None:
    (root / "referee.toml").write_text(text)
    stores = open_stores(root)
    return keys_at_start(stores, [cast("Agent", Asks(LAB_NEED))], pytest.fail)


def test_a_cap_that_can_hold_no_call_is_refused_with_the_least_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    with scripted_upstream(said_json({"data": []})) as server:
        with pytest.raises(ConfigError, match=r"cap of 0\.48 USD can hold no call .* may cost 0\.481 USD"):
            at_start(tmp_path, LAB.format(cap=0.48, url=f"{server.url}/v1"))
        assert server.heard == []
        assert at_start(tmp_path, LAB.format(cap=0.481, url=f"{server.url}/v1")) is not None
        assert [(one.method, one.path) for one in server.heard] == [("GET", "/v1/models")]
        assert server.heard[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_secret_that_cannot_be_used_is_said_at_the_start_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "secret").write_text("0123456789abcdef")
    with pytest.raises(CouldNotVerify, match="secret for keys cannot be used") as caught:
        at_start(tmp_path, LAB.format(cap=3.0, url="http://127.0.0.1:9/v1"))
    assert "0123456789abcdef" not in caught.value.message


def test_an_upstream_that_refuses_its_key_or_its_connection_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    with (
        scripted_upstream(said_json({"error": {"message": f"Incorrect API key {KEY}"}}, 401)) as server,
        pytest.raises(ConfigError, match=r"^the upstream lab refused LAB_KEY \(401\)$"),
    ):
        at_start(tmp_path, LAB.format(cap=3.0, url=f"{server.url}/v1"))
    with pytest.raises(KeyUnavailable, match="lab is out of reach: its address refuses the connection") as caught:
        at_start(tmp_path, LAB.format(cap=3.0, url=f"{server.url}/v1"))
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("status", "said"), [(404, "no list here"), (401, "Missing scopes: api.model.read"), (500, "broken")]
)
def test_a_server_without_a_list_of_models_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, said: str
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    with scripted_upstream(said_json({"error": said}, status)) as server:
        assert at_start(tmp_path, LAB.format(cap=3.0, url=f"{server.url}/v1")) is not None


def test_a_key_refused_in_the_calls_of_a_run_ends_the_series(tmp_path: Path) -> None:
    async def reply(_request: web.BaseRequest, heard: Heard) -> web.StreamResponse:
        return web.json_response({"data": []}, status=200 if heard.method == "GET" else 401)

    with gate(tmp_path, reply) as open_gate:
        need = ModelNeed("scripted-1", "openai-chat", "here")
        open_gate.keys.ask(need, after=RUN)
        assert open_gate.chat().status == 401
        open_gate.close()
        with pytest.raises(ConfigError, match=r"the upstream here refused its key \(401\)"):
            stop_where_refused(open_gate.keys, cast("Agent", Asks(need)), RUN)


def shown(root: Path, *words: str) -> Result:
    (root / "agents").mkdir(exist_ok=True)
    (root / "agents" / "mine.toml").write_text(
        'schema = "referee.agent/1"\nname = "mine"\nversion = "1"\nmodel = "scripted-1"\nupstream = "lab"\n'
        'dialect = "openai-chat"\ncommand = "true"\n'
    )
    return CliRunner().invoke(make_app("agent"), ["agent", *words, "--workspace", str(root)])


def test_an_agent_is_shown_with_its_price_and_cap(tmp_path: Path) -> None:
    text = LAB.format(cap=2.5, url="http://lab.example/v1")
    (tmp_path / "referee.toml").write_text(text)
    done = shown(tmp_path, "show", "mine")
    assert done.exit_code == 0, done.output
    assert re.search(r"^price +1 USD in and 15 USD out, a million tokens \(\[upstreams", done.stdout, re.MULTILINE)
    assert re.search(r"^cap_usd +2\.5 USD a run$", done.stdout, re.MULTILINE)
    facts = json.loads(shown(tmp_path, "show", "mine", "--json").stdout)
    assert (facts["price"]["output"], facts["cap_usd"]) == (15.0, 2.5)
    for less in (
        text.partition("[upstreams.lab.prices")[0],
        text.replace("max_output", 'dialects=["gemini"]\nmax_output'),
    ):
        (tmp_path / "referee.toml").write_text(less)
        done = shown(tmp_path, "show", "mine")
        assert "price      not known" in done.stdout
        assert isinstance(done.exception, ConfigError)


def test_a_check_has_no_larger_cap_than_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text(LAB.format(cap=2.5, url="http://lab.example/v1"))
    done = shown(tmp_path, "check", "mine", "--cap-usd", "10")
    assert isinstance(done.exception, UsageError)
    assert "--cap-usd 10 is more than the workspace's cap of 2.5 USD" in done.exception.message
