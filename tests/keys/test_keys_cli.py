"""``referee keys`` and the choice of the broker: what was issued is listed, what was left behind is deleted."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from referee.adapters.catalog.workspace import open_workspace
from referee.adapters.keys.ledger import Ledger
from referee.cli.app import make_app
from referee.cli.wiring import make_keys
from referee.errors import ConfigError, CouldNotVerify, RefereeError
from referee.protocols import Issued, Keys, ModelNeed
from tests.keys.scripted_brokers import Fault, ScriptedOpenRouter

NEED = ModelNeed("vendor/model-1", "openai-chat", "any")


@dataclass(frozen=True)
class Lab:
    """A workspace whose broker is the scripted OpenRouter."""

    root: Path
    server: ScriptedOpenRouter

    def keys(self) -> Keys:
        return make_keys(open_workspace(self.root), {"PROVISIONING": self.server.master})

    def issue(self, run: str) -> Issued:
        return self.keys().issue(run, NEED, cap_usd=3.0, ends_at=time.time() + 60)

    def leave_behind(self, run: str) -> None:
        """As if the run's harness had died."""
        ledger = Ledger(self.root / "keys")
        entry = ledger.find(run)
        assert entry is not None
        ledger.closing(entry)

    def run(self, *words: str) -> Result:
        environment = {"PROVISIONING": self.server.master}
        return CliRunner().invoke(make_app("keys"), ["keys", *words, "--workspace", str(self.root)], env=environment)


def configure(root: Path, text: str) -> Path:
    root.mkdir(exist_ok=True)
    (root / "referee.toml").write_text(textwrap.dedent(text))
    return root


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ScriptedOpenRouter() as server:
        text = f"""
        [keys]
        broker = "openrouter"
        base_url = "{server.base}"
        key_env = "PROVISIONING"
        """
        yield Lab(configure(tmp_path / "workspace", text), server)


def test_keys_are_listed_with_their_limit_and_state_and_never_a_secret(lab: Lab) -> None:
    assert "no key was issued" in lab.run("list").stdout
    issued = lab.issue("r-one")
    said = lab.run("list").stdout
    assert "r-one" in said
    assert "in use" in said
    lab.leave_behind("r-one")
    assert "left behind" in lab.run("list").stdout
    document = json.loads(lab.run("list", "--json").stdout)
    assert document["schema"] == "referee.keys/1"
    (key,) = document["keys"]
    assert (key["run"], key["cap_usd"], key["state"], key["in_use"]) == ("r-one", 3.0, "closing", False)
    for secret in issued.secrets.values():
        assert secret not in said + json.dumps(document)


@pytest.mark.slow
def test_a_sweep_deletes_what_was_left_behind_and_nothing_else(lab: Lab) -> None:
    lab.issue("r-one")
    used = lab.issue("r-two")
    lab.leave_behind("r-one")
    result = lab.run("sweep", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert len(document["found"]) == 1
    assert "r-one" in document["found"][0]
    assert document["left"] == []
    assert lab.server.alive == {used.key}
    assert "no key was left behind" in lab.run("sweep").stdout


@pytest.mark.slow
def test_a_sweep_that_cannot_delete_says_so_and_exits_4(lab: Lab) -> None:
    lab.issue("r-one")
    lab.leave_behind("r-one")
    lab.server.faults[("DELETE", "/keys/")] = Fault(status=500)
    result = lab.run("sweep")
    assert isinstance(result.exception, CouldNotVerify)
    assert "not known to be deleted" in result.exception.message
    lab.server.faults.clear()
    assert lab.run("sweep").exit_code == 0
    assert lab.server.alive == set()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[keys]\nbroker = "openrouter"\n', "needs a credential of its own"),
        ('[keys]\nbroker = "openrouter"\nkey_env = "NOT_SET"\n', "NOT_SET"),
        ('[keys]\nbroker = "litellm"\nkey_env = "SET"\n', "needs the address of its proxy"),
        ('[keys]\nbroker = "litellm"\nkey_env = "SET"\nbase_url = "ftp://somewhere"\n', "no address"),
    ],
)
def test_a_broker_that_lacks_a_setting_says_which(tmp_path: Path, text: str, told: str) -> None:
    root = configure(tmp_path / "workspace", text)
    with pytest.raises(ConfigError, match=told) as caught:
        make_keys(open_workspace(root), {"SET": "sk-master-0123456789"})
    assert caught.value.todo or "; write https://HOST" in caught.value.message
    assert not (root / "keys").exists()


@pytest.mark.parametrize("broker", ["as configured", "gateway"])
def test_a_sweep_says_that_a_file_of_a_key_cannot_be_read(lab: Lab, broker: str) -> None:
    lab.issue("r-one")
    (lab.root / "keys" / "live" / "r-one.json").write_text("{")
    if broker == "gateway":
        configure(lab.root, "")
    result = lab.run("sweep")
    assert isinstance(result.exception, CouldNotVerify)
    assert "r-one.json" in result.exception.message
    assert "no key was left behind" not in result.stdout


@pytest.mark.slow
def test_a_key_whose_end_cannot_be_read_is_not_taken_for_gone(lab: Lab) -> None:
    lab.issue("r-one")
    lab.leave_behind("r-one")
    (lab.root / "keys" / "closed").mkdir(exist_ok=True)
    (lab.root / "keys" / "closed" / "r-one.json").write_text("{")
    assert lab.run("sweep").exit_code == 0
    assert lab.server.alive == set()


def test_a_damaged_secret_is_said_without_showing_it(lab: Lab) -> None:
    lab.issue("r-one")
    (lab.root / "keys" / "secret").write_text("0123456789abcdef")
    with pytest.raises(RefereeError) as caught:
        lab.keys()
    assert caught.value.exit_code == 4
    assert "0123456789abcdef" not in caught.value.message


def test_the_gateway_is_the_broker_where_nothing_is_said(tmp_path: Path) -> None:
    keys = make_keys(open_workspace(configure(tmp_path / "workspace", "")), {})
    assert keys.broker == "gateway"
    assert keys.sweep([]) == []
