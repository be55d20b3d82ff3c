"""docs/cases.md: its example is sound, every rule of the linter and every command is named in it."""

from __future__ import annotations

import re
from pathlib import Path

from referee.cli.cases import app
from referee.core.cases import CATEGORIES, Policy
from referee.core.suite_file import parse_suite
from referee.scoring import lint as room
from referee.scoring.lint import lint

PAGE = (Path(__file__).parents[2] / "docs" / "cases.md").read_text(encoding="utf-8")


def test_the_example_is_a_suite_that_the_linter_has_nothing_against() -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    suite = parse_suite(example.encode(), "docs/cases.md")
    assert [case.abstains for case in suite.cases] == [False, True]
    assert lint(suite) == ()


def test_every_rule_of_the_linter_is_in_the_table_and_no_other() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(room.__path__[0]).glob("*.py"))
    rules = set(re.findall(r'Objection\(\s*[\w.]+,\s*"([a-z-]+)"', sources))
    assert len(rules) > 20
    told = {
        name
        for line in PAGE.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])
    }
    assert told == rules


def test_every_command_category_and_policy_is_named() -> None:
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        assert f"referee bakeoff cases {name}" in PAGE
    for word in (*CATEGORIES, *Policy().model_dump(by_alias=True)):
        assert f"`{word}`" in PAGE
