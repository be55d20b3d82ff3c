"""Reads reports and runs the commands that write them."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from referee.cli.app import main


@dataclass(frozen=True)
class Done:
    """What a command answered."""

    code: int
    stdout: str
    stderr: str


def run(*argv: str, root: Path, code: int = 0) -> Done:
    """One command of the group in this process: what counts here is what it says and its exit code."""
    said, complained = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        patched.setattr(sys, "argv", ["referee", "bakeoff", *argv, "-w", str(root)])
        with pytest.raises(SystemExit) as ended:
            main()
    done = Done(int(ended.value.code or 0), said.getvalue(), complained.getvalue())
    assert done.code == code, done.stderr
    return done


def run_apart(*argv: str, root: Path, environment: dict[str, str]) -> None:
    """One command of the group in a process of its own, under other settings."""
    command = [sys.executable, "-m", "referee.cli.app", "bakeoff", *argv, "-w", str(root)]
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True, timeout=120, check=True)


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class Text(HTMLParser):
    """The text of a page, its tags and its links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: set[str] = set()
        self.links: list[str] = []

    @classmethod
    def of(cls, path: Path) -> str:
        read = cls()
        read.feed(path.read_text("utf-8"))
        return read.text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.text += data
