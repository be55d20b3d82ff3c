"""``referee config show``: every setting can be shown, also those whose names are the user's."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from referee.cli.app import make_app

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
