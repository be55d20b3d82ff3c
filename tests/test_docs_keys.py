"""docs/keys.md: its settings are read by the program, every field is named, and its figures are the program's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from referee.adapters.catalog.workspace import Config, PriceSetting, UpstreamSetting
from referee.adapters.keys.gateway.account import MOST_AT_ONCE
from referee.adapters.keys.gateway.arriving import MOST_REQUEST
from referee.adapters.keys.gateway.forward import PATIENCE_SECONDS
from referee.core.redaction import SHORTEST
from referee.core.spending import CAP_USD

TEXT = (Path(__file__).parents[1] / "docs" / "keys.md").read_text(encoding="utf-8")


def test_the_examples_are_settings_that_the_program_takes() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        Config.model_validate(tomllib.loads(block))


def test_every_field_of_an_upstream_is_named() -> None:
    section = TEXT.partition("| field of `[upstreams.NAME]` |")[2].partition("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
    assert named == set(UpstreamSetting.model_fields)
    assert all(f"`{name}`" in section for name in PriceSetting.model_fields)


def test_its_figures_are_those_of_the_program() -> None:
    assert f"({CAP_USD:g} US dollars" in TEXT
    assert f"more than {MOST_AT_ONCE} calls of the run at once" in TEXT
    assert f"larger than {MOST_REQUEST // 2**20} MB" in TEXT
    assert f"({UpstreamSetting.model_fields['max_output_tokens'].default})" in TEXT
    assert f"fewer than {SHORTEST} characters" in TEXT
    assert PATIENCE_SECONDS == 600
    assert "said nothing for ten minutes" in TEXT
