"""What a newcomer meets first: misspelt keys, broken files, wrong workspaces, told in a sentence that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.catalog.workspace import CONFIG_NAME, open_workspace
from referee.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[keys]\ncapusd = 3\n", "unknown key `keys.capusd`; did you mean `cap_usd`?"),
        ("[kyes]\ncap_usd = 3\n", "unknown key `kyes`; did you mean `keys`?"),
        ("zzz = 3\n", "unknown key `zzz`; known there: budgets"),
        (
            '[upstreams.lab]\nbase_url = "http://127.0.0.1/v1"\n[upstreams.lab.prices.lab-small]\ninput = 1\n',
            "`upstreams.lab.prices.lab-small.output` is missing; add it",
        ),
        (
            '[upstreams.lab]\nbase_url = "http://lab/v1"\nprices.lab-small = {input = 1, output = 1, chached_input = 1}\n',
            "unknown key `upstreams.lab.prices.lab-small.chached_input`; did you mean `cached_input`?",
        ),
    ],
)
def test_a_key_that_is_not_known_or_missing_is_said_in_plain_words(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / CONFIG_NAME).write_text(text)
    with pytest.raises(ConfigError) as caught:
        open_workspace(tmp_path)
    assert said in caught.value.message
