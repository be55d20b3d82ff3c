"""The README's commands: each that there is stands there, and each that stands there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from referee.cli.app import make_app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

#: Command lines of the README, as words: in blocks, several on a line, and in the text.
SHOWN = [part.split() for part in re.findall(r"\breferee ((?:(?!referee )[^`#\n])+)", README)]


def commands() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every command by its words, with its options."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(make_app()))]
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", None)
        if below is None:
            yield words, [name for option in command.params for name in option.opts]
        else:
            waiting += [((*words, name), one) for name, one in below.items()]


COMMANDS = dict(commands())


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=" ".join)
def test_every_command_stands_in_the_readme(words: tuple[str, ...]) -> None:
    *group, name = words
    assert any(name in line[len(group) :] for line in SHOWN if line[: len(group)] == group)


def test_every_shown_option_is_one_of_its_command() -> None:
    looked_at = 0
    for line in SHOWN:
        known = [options for words, options in COMMANDS.items() if list(words) == line[: len(words)]]
        if len(known) == 1:
            given = [name for word in line for name in re.findall(r"^\[?(--[a-z-]+)", word)]
            assert [name for name in given if name not in known[0]] == [], line
            looked_at += len(given)
    assert looked_at > 15
