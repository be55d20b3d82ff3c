"""``referee config show``: every setting can be shown, also those whose names are the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from referee.adapters.catalog.workspace import open_workspace
from referee.cli.app import make_app
from referee.errors import ConfigError

WRITTEN = """
[upstreams.lab]
base_url = "https://models.example/v1"
key_env = "LAB_KEY"
[upstreams.lab.prices."open/model-5.1"]
input = 1.25
output = 10.0
"""


def shown(workspace: Path, *options: str) -> str:
    done = CliRunner().invoke(make_app("config"), ["config", "show", "--workspace", str(workspace), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_upstreams_and_prices_are_shown_by_name_with_their_origin(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text(WRITTEN)
    lines = shown(tmp_path, "--origin").splitlines()
    price = next(line for line in lines if line.startswith('upstreams.lab.prices."open/model-5.1".input'))
    assert price.split("#")[0].strip().endswith("= 1.25")
    assert price.endswith("# referee.toml")
    unset = next(line for line in lines if line.startswith("upstreams.lab.max_output_tokens"))
    assert unset.endswith("# default")


def test_a_workspace_without_a_file_shows_the_defaults(tmp_path: Path) -> None:
    rows = {row["key"]: row for row in json.loads(shown(tmp_path, "--json"))["settings"]}
    assert rows["keys.cap_usd"] == {"key": "keys.cap_usd", "value": 3.0, "origin": "default"}
    assert rows["upstreams"]["value"] == {}


@pytest.mark.parametrize("section", ["keys", "upstreams.lab"])
def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_shown(tmp_path: Path, section: str) -> None:
    address = 'base_url = "http://lab.example/v1"'
    (tmp_path / "referee.toml").write_text(f'[{section}]\n{address}\nkey_env = "lab-real-key-123456"\n')
    with pytest.raises(ConfigError, match=rf"{section}\.key_env: no name of a variable; write the NAME") as caught:
        open_workspace(tmp_path)
    assert "real-key" not in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:18777/v1", "lab.example/v1", "ftp://lab.example", "http:///v1", "http://user:hidden-1@lab/v1",
     "https://lab/v1?key=hidden-1", "http://lab:99999/v1", "http://lab example/v1"],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_refused(tmp_path: Path, address: str) -> None:
    (tmp_path / "referee.toml").write_text(f'[upstreams.lab]\nbase_url = "{address}"\n')
    with pytest.raises(ConfigError, match=r"upstreams\.lab\.base_url: no address of a server; write https") as caught:
        open_workspace(tmp_path)
    assert "hidden" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "[keys]\ncap_usd = inf",
        "[keys]\ncap_usd = 1e400",
        "[keys]\nretry_seconds = inf",
        '[upstreams.lab]\nbase_url = "http://lab/v1"\n[upstreams.lab.prices.m]\ninput = inf\noutput = 1.0',
    ],
)
def test_no_figure_is_without_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "referee.toml").write_text(text)
    with pytest.raises(ConfigError, match="finite number"):
        open_workspace(tmp_path)
