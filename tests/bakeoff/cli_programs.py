"""Programs that stand in for an agent CLI, and the lane to them, for the tests of the lane."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from referee.adapters.lanes.cli.lane import CliLane
from referee.core.bakeoff import Sampling, Target
from referee.protocols import Ask, Said

KEY = "sk-sentinel-0123456789abcdef"
T = TypeVar("T")


def program(directory: Path, code: str) -> Path:
    """An executable of that Python code; it says version 1.2.3."""
    path = directory / "cursor-agent"
    head = "import json, os, signal, subprocess, sys, time\n"
    head += "if '--version' in sys.argv: print('cursor 1.2.3'); sys.exit()\n"
    path.write_text(f"#!{sys.executable}\n{head}{textwrap.dedent(code)}", encoding="utf-8")
    path.chmod(0o755)
    return path


def target(executable: Path | str | None, **over: Any) -> Target:
    cli = {"program": "cursor", "version": "1.2.3", "executable": None if executable is None else str(executable)}
    body = {
        "name": "cursor",
        "model": "some-model",
        "lane": "cli",
        "channel": "agent-cli",
        "sovereignty": "us-closed",
        "key_env": "LANE_KEY",
        "cli": cli | over.pop("cli", {}),
    }
    return Target.model_validate(body | over)


def environ_of(**more: str) -> Mapping[str, str]:
    return {"LANE_KEY": KEY, "PATH": os.environ["PATH"], **more}


def question(text: str = "What time is it?") -> Ask:
    return Ask((("user", text),), (), require_call=False, sampling=Sampling())


def use(
    aim: Target, spool: Path, use_it: Callable[[CliLane], Awaitable[T]], environ: Mapping[str, str] | None = None
) -> T:
    async def run() -> T:
        lane = CliLane(aim, spool=spool, environ=environ_of() if environ is None else environ)
        try:
            return await use_it(lane)
        finally:
            await lane.close()

    return asyncio.run(run())


def say(tmp_path: Path, code: str, *, deadline: float = 20.0, text: str = "What time is it?", **over: Any) -> Said:
    """One question to a program of that code."""
    aim = target(program(tmp_path, code), **over)
    return use(aim, tmp_path / "spool", lambda lane: lane.ask(question(text), deadline))


def lives(pid: int) -> bool:
    """Whether the process is more than a corpse."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False
