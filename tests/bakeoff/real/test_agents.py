"""Agent CLIs as lanes: one suite for all, the real programs from npm and a stand-in for the one that npm does not have.

Each runs in an empty home with a cleared environment, against a model server on loopback that says what the test wants.
Cursor's program is on no registry; ``fake_cursor`` takes its place and passes the same suite: its row of the table
is tested for what the referee does, not for what Cursor does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from referee.adapters.lanes.cli.homes import strays
from referee.adapters.lanes.cli.lane import CliLane
from referee.cli.wiring import make_lane
from referee.core.bakeoff import Blame, Target
from referee.errors import CouldNotVerify
from tests.bakeoff.real import fake_cursor
from tests.bakeoff.real.model_server import MODEL, Script, model_server
from tests.bakeoff.real.putting import CALENDAR, CLOCK, DENTIST, JOKE, Put, put

KEY = "sk-sentinel-0123456789abcdef"
RIGHT = {"tool_calls": [{"name": "calendar_create", "arguments": {"title": "Zahnarzt", "date": "2026-07-24"}}]}
TOOLS = (CALENDAR, CLOCK)
VERSIONS = {
    "claude": "2.1.197",
    "codex": "0.169.0",
    "cursor": fake_cursor.VERSION,
    "gemini": "0.61.0",
    "opencode": "1.18.33",
}
#: Seconds in which each has surely asked its model, on a busy machine too.
HANGS = {"claude": 8.0, "codex": 8.0, "cursor": 2.0, "gemini": 15.0, "opencode": 20.0}
#: Where each takes its endpoint: with or without the version in the path.
PATHS = {"claude": "", "codex": "/v1", "gemini": "", "opencode": "/v1"}
T = TypeVar("T")

_REAL = (pytest.mark.slow, pytest.mark.registry)


@dataclass(frozen=True)
class World:
    """One program, with the model behind it."""

    program: str
    executable: Path
    spool: Path

    def target(self, url: str, **over: Any) -> Target:
        cli = {
            "program": self.program,
            "version": VERSIONS[self.program],
            "executable": str(self.executable),
            "inherit": ["TZ"],
        }
        body = {
            "name": self.program,
            "model": MODEL,
            "lane": "cli",
            "channel": "agent-cli",
            "sovereignty": "us-closed",
            "key_env": "LANE_KEY",
            "base_url": None if self.program == "cursor" else url + PATHS[self.program],
            "cli": cli | over.pop("cli", {}),
        }
        return Target.model_validate(body | over)

    @asynccontextmanager
    async def lane(self, script: Script, **over: Any) -> AsyncIterator[CliLane]:
        environ = {"LANE_KEY": KEY, "TZ": "UTC", "OPENAI_BASE_URL": "http://127.0.0.1:1", "LEAK": "must-not-be-seen"}
        environ["HOME"] = str(_hostile_home(self.spool.parent / "user"))
        async with model_server(script) as url:
            if self.program == "cursor":
                (self.executable.parent / "endpoint").write_text(url, encoding="utf-8")
            lane = make_lane(self.target(url, **over), spool=self.spool, environ=environ | {"PATH": os.environ["PATH"]})
            assert isinstance(lane, CliLane)
            try:
                yield lane
            finally:
                await lane.close()

    def use(self, script: Script, use: Callable[[CliLane], Awaitable[T]], **over: Any) -> T:
        async def run() -> T:
            async with self.lane(script, **over) as lane:
                return await use(lane)

        return asyncio.run(run())

    def put(self, script: Script, *, case: Any = DENTIST, deadline: float = 120.0) -> Put:
        return self.use(script, lambda lane: put(lane, case, TOOLS, deadline=deadline))


@pytest.fixture(
    params=[
        "cursor",
        pytest.param("claude", marks=_REAL),
        pytest.param("codex", marks=_REAL),
        pytest.param("gemini", marks=_REAL),
        pytest.param("opencode", marks=_REAL),
    ]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    program = str(request.param)
    if program == "cursor":
        executable = tmp_path / "bin" / "cursor-agent"
        executable.parent.mkdir()
        text = Path(fake_cursor.__file__).read_text(encoding="utf-8")
        executable.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        executable.chmod(0o755)
    else:
        agents: Mapping[str, Path] = request.getfixturevalue("agents")
        executable = agents[program]
    spool = tmp_path / "spool"
    yield World(program, executable, spool)
    left = [path for path in spool.rglob("*") if path.exists()]
    assert left == []
    assert strays(spool.resolve()) == ()


@dataclass(frozen=True)
class Came:
    """What came of the same question twice through one lane, the model giving the right call."""

    first: Put
    second: Put
    script: Script
    user: Path


_CAME: dict[str, Came] = {}


@pytest.fixture
def came(world: World) -> Came:
    """Asked once for each program: in a workspace and as a user whose files would lead it astray."""
    if world.program not in _CAME:
        above = world.spool.parent
        (above / ".git").mkdir()  # programs look upwards as far as the repository's root
        for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
            (above / name).write_text("SENTINEL-INSTRUCTION", encoding="utf-8")
        script = Script(text=json.dumps(RIGHT))

        async def twice(lane: CliLane) -> list[Put]:
            return [await put(lane, DENTIST, TOOLS, deadline=120.0) for _ in range(2)]

        first, second = world.use(script, twice)
        _CAME[world.program] = Came(first, second, script, above / "user")
    return _CAME[world.program]


def test_the_right_call_comes_through(came: Came) -> None:
    """Also past a plug-in of the user whose log-in never ends, and past an endpoint that the user has set elsewhere."""
    for one in (came.first, came.second):
        assert (one.said.status, one.said.broke) == (0, None)
        assert [(call.name, call.arguments) for call in one.reading.calls] == [
            ("calendar_create", {"title": "Zahnarzt", "date": "2026-07-24"})
        ]
        assert one.reading.well_formed
        assert one.grade.passed is True, one.grade.reason
        assert one.said.first_byte_ms is not None
        assert one.said.first_byte_ms <= one.said.latency_ms
    assert not (came.user / "started").exists()


def test_the_model_gets_the_question_word_for_word_and_no_tools(came: Came) -> None:
    ((_, prompt),) = came.first.ask.messages
    assert json.dumps(prompt.rstrip("\n"), ensure_ascii=False)[1:-1] in came.script.prompts()
    offered = [name for _, body in came.script.asked for name in _tools(body)]
    # Two small tools of Codex have no switch; neither runs, reads or fetches anything of the host.
    assert set(offered) <= {"request_user_input", "view_image"}


def test_the_key_reaches_the_model_and_nothing_else_of_the_host_does(came: Came) -> None:
    sent = [value for headers in came.script.headers for value in headers.values()]
    assert any(KEY in value for value in sent)
    prompts = came.script.prompts()
    assert "must-not-be-seen" not in prompts
    assert "SENTINEL-INSTRUCTION" not in prompts
    assert KEY not in prompts
    assert KEY not in came.first.said.detail


def test_the_second_call_finds_nothing_of_the_first(came: Came) -> None:
    """What one call leaves in its home would show: both put the very same requests to the model."""
    assert len(came.script.asked) % 2 == 0
    half = len(came.script.asked) // 2
    first, second = (sorted(path for path, _ in part) for part in (came.script.asked[:half], came.script.asked[half:]))
    assert first == second


def test_no_call_is_an_empty_list(world: World) -> None:
    came = world.put(Script(text='{"tool_calls":[]}'), case=JOKE)
    assert came.reading.calls == ()
    assert came.grade.passed is True, came.grade.reason


def test_prose_instead_of_an_envelope_is_a_format_failure(world: World) -> None:
    came = world.put(Script(text="I would create a calendar entry for the dentist."))
    assert came.reading.broken is not None
    assert came.grade.passed is False
    assert came.grade.well_formed is False


@pytest.mark.parametrize(
    ("status", "error", "blames"),
    [
        (402, "Insufficient credits to run this request", {Blame.ACCOUNT}),
        (401, "Invalid API key", {Blame.CONFIG, Blame.ACCOUNT}),
    ],
)
def test_an_error_of_the_api_is_no_answer_whatever_the_exit_status(
    world: World, status: int, error: str, blames: set[Blame]
) -> None:
    came = world.put(Script(status=status, error=error), deadline=30.0)
    assert came.reading.fault is not None, (came.said.status, came.said.body[-600:], came.said.detail)
    assert came.reading.fault.blame in blames, (came.said.status, came.said.body[-600:], came.said.detail)
    assert came.grade.passed is None


def test_a_hang_ends_at_the_deadline_and_the_whole_group_is_dead(world: World) -> None:
    """While it hangs: exactly the declared variables, and neither key nor address among the arguments."""
    script = Script(hang=True)

    async def use(lane: CliLane) -> tuple[Put, Mapping[str, str], list[str], set[int], str]:
        declared = (await lane.check()).verified["environment"]
        asking = asyncio.ensure_future(put(lane, DENTIST, TOOLS, deadline=HANGS[world.program]))
        while not script.asked:
            assert not asking.done(), asking.result().said
            await asyncio.sleep(0.1)
        seen = strays(world.spool.resolve())
        (leader,) = [pid for pid in seen if _parent(pid) == os.getpid()]
        environment = _environment(leader)
        lines = [_arguments(pid) for pid in seen]
        group = {pid for pid in seen if _group(pid) == leader}
        return await asking, environment, lines, group, declared

    came, environment, lines, group, declared = world.use(script, use)
    assert (came.said.broke, came.said.status) == ("timeout", None)
    assert came.reading.fault is not None
    assert came.reading.fault.blame is Blame.INFRA
    assert came.grade.passed is None
    assert [pid for pid in group if _lives(pid)] == []
    assert sorted(environment) == declared.split()
    assert environment["TZ"] == "UTC"
    assert Path(environment["HOME"]).is_relative_to(world.spool)
    assert all(KEY not in line and "127.0.0.1" not in line for line in lines)
    assert HANGS[world.program] <= came.said.latency_ms / 1000 < HANGS[world.program] + 8


def test_the_check_sees_the_pinned_version_and_refuses_another(world: World) -> None:
    facts = world.use(Script(), lambda lane: lane.check())
    assert facts.verified["program"] == f"{world.program} {VERSIONS[world.program]}"
    assert facts.verified["executable"].startswith("sha256:")
    assert facts.model == MODEL
    assert "LEAK" not in facts.verified["environment"].split()
    with pytest.raises(CouldNotVerify, match=r"pins 0\.0\.1"):
        world.use(Script(), lambda lane: lane.check(), cli={"version": "0.0.1"})


def _hostile_home(home: Path) -> Path:
    hang = ["sh", "-c", f"touch {home}/started; sleep 600"]
    server = {"command": hang[0], "args": hang[1:]}
    away = "http://127.0.0.1:1"
    files = {
        ".codex/config.toml": f"""\
model_provider = "away"
[model_providers.away]
name = "away"
base_url = "{away}/v1"
[mcp_servers.login]
command = {json.dumps(hang[0])}
args = {json.dumps(hang[1:])}
startup_timeout_sec = 600
""",
        ".claude.json": json.dumps({"mcpServers": {"login": server}}),
        ".claude/settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": away}}),
        ".gemini/settings.json": json.dumps({"mcpServers": {"login": server | {"timeout": 600_000}}}),
        ".config/opencode/opencode.json": json.dumps({"mcp": {"login": {"type": "local", "command": hang}}}),
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    return home


def _tools(body: Mapping[str, Any]) -> list[str]:
    found = []
    for tool in body.get("tools") or []:
        declared = tool.get("functionDeclarations", [tool.get("function", tool)])
        found += [str(one.get("name") or one.get("type")) for one in declared]
    return found


def _stat(pid: int) -> list[str]:
    """State, parent and group of a process; of one that is gone: a corpse without any."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0", "0"]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _group(pid: int) -> int:
    return int(_stat(pid)[2])


def _lives(pid: int) -> bool:
    """Whether it is more than a corpse that nobody has buried yet."""
    return _stat(pid)[0] != "Z"


def _arguments(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _environment(pid: int) -> dict[str, str]:
    raw = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8").rstrip("\0")
    return dict(entry.split("=", 1) for entry in raw.split("\0"))
