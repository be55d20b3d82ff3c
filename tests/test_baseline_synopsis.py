"""The synopsis of a help text in a README is no command: run as one, its failure would be told as the project's."""

from __future__ import annotations

import pytest

from referee.adapters.agents.baseline.commands import read_command


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("faker [-h] [--version] [-o output]", "skip"),
        ("faker address [-l LOCALE]", "skip"),
        ("faker -l de_DE address", "own"),
        ('faker "[-h]"', "own"),
        ("faker a[-1]", "own"),
    ],
)
def test_a_word_that_begins_as_an_option_in_brackets_makes_a_synopsis(line: str, purpose: str) -> None:
    assert read_command(line, 0, "Usage", frozenset({"faker"}), frozenset({"faker"})).purpose == purpose
