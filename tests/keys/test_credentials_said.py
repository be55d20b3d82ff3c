"""No message repeats a credential, however it was set and whatever a broker says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.keys.broker_api import BrokerApi, BrokerFault
from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.errors import ConfigError
from referee.protocols import ModelNeed
from tests.keys.gateway_calls import PRICE
from tests.keys.scripted_brokers import Fault, ScriptedLiteLLM
from tests.runs.conftest import referee

SECRET = "master-7f3a9c1e5b2d4f60"
TWO_LINES = f"{SECRET}\nsecond-line"


def test_a_broker_that_repeats_a_credential_of_any_form_is_not_quoted_with_it() -> None:
    with ScriptedLiteLLM() as server:
        server.master = SECRET
        server.faults["GET", "/key/list"] = Fault(status=401)
        with pytest.raises(BrokerFault) as raised:
            BrokerApi("the broker", server.url, SECRET).ask("GET", "/key/list")
    assert raised.value.status == 401
    assert "scripted failure" in raised.value.sentence
    assert SECRET not in raised.value.sentence


@pytest.mark.parametrize("credential", [TWO_LINES, f"{SECRET}\N{HORIZONTAL ELLIPSIS}"])
def test_a_credential_that_no_request_can_carry_is_not_quoted(credential: str) -> None:
    with ScriptedLiteLLM() as server, pytest.raises(BrokerFault) as raised:
        BrokerApi("the broker", server.url, credential).ask("GET", "/key/list")
    assert SECRET not in raised.value.sentence
    assert not server.got


def test_a_brokers_credential_that_no_request_can_carry_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "referee.toml").write_text('[keys]\nbroker = "openrouter"\nkey_env = "MANAGEMENT"\n')
    monkeypatch.setenv("MANAGEMENT", TWO_LINES)
    done = referee("keys", "sweep", "--workspace", str(tmp_path))
    assert done.returncode == 2
    assert "MANAGEMENT" in done.stderr
    assert "line break" in done.stderr
    assert SECRET not in done.stderr + done.stdout


def test_an_upstreams_credential_that_no_request_can_carry_is_said_before_anything_starts(tmp_path: Path) -> None:
    upstream = Upstream("here", "http://127.0.0.1:9/v1", TWO_LINES, prices={"m": PRICE}, variable="REAL_KEY")
    keys = GatewayKeys(tmp_path / "keys", {"here": upstream})
    with pytest.raises(ConfigError, match="REAL_KEY") as raised:
        keys.check(ModelNeed("m", "openai-chat", "here"))
    assert "line break" in raised.value.message
    assert SECRET not in f"{raised.value.message}{raised.value.todo}"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            f'[keys]\nbroker = "litellm"\nkey_env = "SET"\nbase_url = "https://lab:{SECRET}@proxy.example"\n',
            "no address",
        ),
        ('[upstreams.mine]\nbase_url = "https://h/v1"\nkey_env = "AIzaSyD4mas7er7f3a9c1e5b2d4f60"\n', "not the key"),
        ('[upstreams.mine]\nbase_url = "https://h/v1"\nkey_env = "a7f3a9c1e5b2d4f60c3d2e1f0"\n', "not the key"),
    ],
)
def test_a_credential_in_the_place_of_something_else_is_refused_and_not_shown(
    tmp_path: Path, settings: str, told: str
) -> None:
    (tmp_path / "referee.toml").write_text(settings)
    done = referee("config", "show", "--workspace", str(tmp_path))
    assert done.returncode == 2
    assert told in done.stderr
    assert "7f3a9c1e5b2d4f60" not in done.stderr + done.stdout
