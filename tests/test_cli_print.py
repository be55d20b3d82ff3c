"""What a bring-up prints for a person: whole lines, and nothing in them that steers the terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from referee.adapters.catalog.workspace import Config, Workspace, find_root
from referee.cli.bringup import print_document
from referee.cli.progress import Progress

#: The workspace that is found without being named.
HERE = Workspace(find_root(Path.cwd()), Config())

ATTEMPT: dict[str, Any] = {
    "run": "r-1",
    "index": 1,
    "agent": "command",
    "valid": False,
    "reason": "the command succeeded but did not print: \x1b]0;owned\x07 [bold]x[/nope]",
    "evidence": "sha256:" + "a" * 64,
    "not_publishable": ["the budget is 30 s, the methodology's standard tier has 5400 s, so it is not published"],
}
DOCUMENT = {
    "subject": "square",
    "subject_pin": "../proj [x] sha256:" + "b" * 64,
    "verdict": "not_yet_verified",
    "attempts": [ATTEMPT],
}


def test_lines_are_whole_and_brackets_are_text() -> None:
    out = io.StringIO()
    print_document(Console(file=out, width=40), DOCUMENT, HERE)
    lines = out.getvalue().splitlines()
    assert lines[0] == f"square  ../proj [x] sha256:{'b' * 64}"
    assert lines[1] == "verdict: not yet verified  (by this attempt alone; `referee verdict square` rests on all)"
    assert f"    evidence {ATTEMPT['evidence']}" in lines
    assert f"  not publishable: {ATTEMPT['not_publishable'][0]}" in lines


def test_what_an_agent_wrote_cannot_steer_the_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, width=40)
    print_document(console, DOCUMENT, HERE)
    Progress(console).say(ATTEMPT["reason"])
    Progress(console, quiet=True).warn(ATTEMPT["reason"])
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    assert out.getvalue().count(r"\x1b]0;owned\x07 [bold]x[/nope]") == 3
