"""The lane to an agent CLI against programs that behave badly: nothing of them outlives the call, nothing leaks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

import referee
from referee.adapters.catalog.targets import read_target
from referee.adapters.lanes.cli import lane as lane_module
from referee.adapters.lanes.cli import process
from referee.adapters.lanes.cli.lane import CliLane
from referee.adapters.lanes.cli.programs import PROGRAMS, Setup
from referee.cli.wiring import make_lane
from referee.core.bakeoff import Sampling, Target
from referee.errors import ConfigError, CouldNotVerify, InternalError, UsageError
from referee.protocols import Ask, Said, WireTool

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


def test_status_output_and_errors_come_as_they_are(tmp_path: Path) -> None:
    said = say(tmp_path, "sys.stdout.write('out'); sys.stderr.write('two\\nlines'); sys.exit(3)")
    assert (said.status, said.body, said.broke, said.detail) == (3, b"out", None, "two lines")
    assert said.headers == {"content-type": "application/json", "x-program": "cursor"}


def test_a_program_that_ignores_the_polite_signal_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.3)
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, 1); time.sleep(600)'])
    print(os.getpid(), child.pid, flush=True)
    time.sleep(600)
    """
    said = say(tmp_path, code, deadline=1.5)
    assert (said.status, said.broke) == (None, "timeout")
    assert said.detail.startswith("no end within 1.5 s")
    leader, child = map(int, said.body.split())
    assert not lives(leader)
    assert not lives(child)


def test_a_polite_program_may_say_a_last_word(tmp_path: Path) -> None:
    code = """
    def end(*_):
        print('bye', flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    time.sleep(600)
    """
    said = say(tmp_path, code, deadline=1.0)
    assert (said.broke, said.body) == ("timeout", b"bye\n")


def test_only_its_own_group_is_signalled(tmp_path: Path) -> None:
    """Another process of the test, started in the test's own group, lives through the deadline."""
    code = "time.sleep(600)"

    async def both(lane: CliLane) -> tuple[Said, bool]:
        other = await asyncio.create_subprocess_exec("sleep", "60")
        said = await lane.ask(question(), 0.5)
        alive = lives(other.pid)
        other.kill()
        await other.wait()
        return said, alive

    said, alive = use(target(program(tmp_path, code)), tmp_path / "spool", both)
    assert said.broke == "timeout"
    assert alive


def test_what_it_leaves_in_its_group_is_ended_and_cannot_hold_the_call(tmp_path: Path) -> None:
    """The child keeps the pipes open; the answer is taken all the same, at once."""
    code = """
    child = subprocess.Popen(['sleep', '600'])
    print(child.pid, flush=True)
    """
    said = say(tmp_path, code, deadline=60.0)
    assert (said.status, said.broke) == (0, None)
    assert said.latency_ms < 30_000
    assert not lives(int(said.body))


def test_what_leaves_its_group_is_ended_when_the_lane_is_closed(tmp_path: Path) -> None:
    code = """
    child = subprocess.Popen(['sleep', '600'], start_new_session=True)
    print(child.pid, flush=True)
    """

    async def one(lane: CliLane) -> tuple[Said, bool]:
        said = await lane.ask(question(), 60.0)
        return said, lives(int(said.body))

    said, alive_before = use(target(program(tmp_path, code)), tmp_path / "spool", one)
    assert alive_before
    assert not lives(int(said.body))


def test_an_interrupted_call_leaves_no_program_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"""
    open({str(mark)!r}, 'w').write(str(os.getpid()))
    time.sleep(600)
    """

    async def interrupt(lane: CliLane) -> None:
        asking = asyncio.ensure_future(lane.ask(question(), 600.0))
        while not mark.exists() or not mark.read_text(encoding="utf-8"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not lives(int(mark.read_text(encoding="utf-8")))

    use(target(program(tmp_path, code)), tmp_path / "spool", interrupt)


def test_an_endless_output_is_cut_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.run, "__kwdefaults__", {"most_output": 100_000})
    said = say(tmp_path, "while True: sys.stdout.write('x' * 10_000)", deadline=60.0)
    assert (said.status, said.broke, len(said.body)) == (None, "too-long", 100_000)


def test_a_program_ended_by_a_signal_gives_no_answer(tmp_path: Path) -> None:
    said = say(tmp_path, "print('half', flush=True); os.kill(os.getpid(), 9)")
    assert (said.status, said.broke) == (None, "killed")
    assert said.detail.startswith("ended by signal 9")


def test_the_credential_never_stands_in_the_detail(tmp_path: Path) -> None:
    code = """
    key = os.environ['CURSOR_API_KEY']
    sys.stderr.write(('x' * 15_000 + key + ' ' + 'y' * 990 + key + '\\n') * 3 + 'header: ' + key)
    """
    said = say(tmp_path, code)
    assert "header: [LANE_KEY]" in said.detail
    assert all(KEY[start : start + 8] not in said.detail for start in range(len(KEY) - 8))


def test_the_program_gets_the_named_variables_and_no_others(tmp_path: Path) -> None:
    aim = target(program(tmp_path, "print(json.dumps(dict(os.environ)))"), cli={"inherit": ["COLOUR", "ABSENT"]})
    environ = environ_of(COLOUR="red", SECRET_OF_THE_HOST="x", HOME="/root", CURSOR_API_KEY="another")

    async def both(lane: CliLane) -> tuple[Said, str]:
        return await lane.ask(question(), 20.0), (await lane.check()).verified["environment"]

    said, declared = use(aim, tmp_path / "spool", both, environ)
    seen = json.loads(said.body)
    # LC_CTYPE is Python's own doing.
    assert sorted(seen.keys() - {"LC_CTYPE"}) == declared.split()
    assert (seen["COLOUR"], seen["CURSOR_API_KEY"]) == ("red", KEY)
    assert "SECRET_OF_THE_HOST" not in seen
    assert Path(seen["HOME"]).is_relative_to(tmp_path / "spool")


def test_home_and_place_of_work_are_empty_and_new_for_every_call(tmp_path: Path) -> None:
    code = """
    places = [os.environ['HOME'], os.getcwd(), os.environ['TMPDIR']]
    print(json.dumps([places, [os.listdir(place) for place in places]]))
    for place in places: open(place + '/left', 'w')
    """

    async def twice(lane: CliLane) -> list[Any]:
        return [json.loads((await lane.ask(question(), 20.0)).body) for _ in range(2)]

    first, second = use(target(program(tmp_path, code)), tmp_path / "spool", twice)
    assert first[1] == second[1] == [[], [], []]
    assert set(first[0]).isdisjoint(second[0])
    assert list((tmp_path / "spool").iterdir()) == []


def test_calls_at_once_do_not_meet(tmp_path: Path) -> None:
    code = "time.sleep(0.3); print(json.dumps([os.environ['HOME'], sys.argv[-1]]))"

    async def many(lane: CliLane) -> list[Said]:
        return await asyncio.gather(*(lane.ask(question(f"question {n}"), 60.0) for n in range(6)))

    answers = [json.loads(said.body) for said in use(target(program(tmp_path, code)), tmp_path / "spool", many)]
    assert [text for _, text in answers] == [f"question {n}" for n in range(6)]
    assert len({home for home, _ in answers}) == 6


def test_a_question_too_long_for_an_argument_is_said(tmp_path: Path) -> None:
    said = say(tmp_path, "print('never')", text="x" * 200_000)
    assert (said.status, said.broke, said.body) == (None, "connect", b"")
    assert "cannot be started" in said.detail


def test_a_program_that_is_not_there_is_refused_at_the_check(tmp_path: Path) -> None:
    aim = target(tmp_path / "nowhere")
    with pytest.raises(CouldNotVerify, match="is not there") as caught:
        use(aim, tmp_path / "spool", lambda lane: lane.check())
    assert "1.2.3" in caught.value.todo
    said = use(aim, tmp_path / "spool", lambda lane: lane.ask(question(), 5.0))
    assert said.broke == "connect"


def test_a_program_without_a_version_is_refused_at_the_check(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("#!/bin/sh\necho no number; exit 1\n", encoding="utf-8")
    path.chmod(0o755)
    with pytest.raises(CouldNotVerify, match="does not say its version"):
        use(target(path), tmp_path / "spool", lambda lane: lane.check())


def test_the_check_never_hands_out_the_credential(tmp_path: Path) -> None:
    path = tmp_path / "spy"
    path.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen; echo 1.2.3\n", encoding="utf-8")
    path.chmod(0o755)
    use(target(path), tmp_path / "spool", lambda lane: lane.check())
    assert KEY not in (tmp_path / "seen").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("AWS_*", "one by one"),
        ("", "one by one"),
        ("HOME", "its own"),
        ("XDG_CONFIG_HOME", "its own"),
        ("CURSOR_CONFIG_DIR", "its own"),
        ("OPENAI_BASE_URL", "elsewhere"),
        ("https_proxy", "elsewhere"),
        ("OPENAI_API_BASE", "elsewhere"),
        ("OLLAMA_HOST", "elsewhere"),
    ],
)
def test_variables_that_may_not_be_inherited(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        CliLane(target(tmp_path / "x", cli={"inherit": [name]}), spool=tmp_path, environ=environ_of())


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"cli": {"program": "cursor"}, "base_url": "http://127.0.0.1:1"}, "cannot be given"),
        ({"channel": "router"}, "agent-cli"),
        ({"extra_body": {"top_p": 1}}, "extra_body"),
        ({"cli": {"program": "opencode"}}, "provider/model"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, over: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        CliLane(target(tmp_path / "x", **over), spool=tmp_path, environ=environ_of())


def test_a_target_without_a_program_is_refused(tmp_path: Path) -> None:
    aim = target(tmp_path / "x").model_copy(update={"cli": None})
    with pytest.raises(ConfigError, match=r"no \[cli\] table"):
        CliLane(aim, spool=tmp_path, environ=environ_of())


def test_a_missing_credential_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="LANE_KEY"):
        CliLane(target(tmp_path / "x"), spool=tmp_path / "spool", environ={"PATH": "/bin"})
    assert not (tmp_path / "spool").exists()


def test_what_is_inherited_is_redacted_like_the_credential(tmp_path: Path) -> None:
    aim = target(tmp_path / "x", cli={"inherit": ["TEAM_TOKEN", "PATH"]})
    lane = CliLane(aim, spool=tmp_path, environ=environ_of(TEAM_TOKEN="tok-1"))
    assert dict(lane.secrets) == {"LANE_KEY": KEY, "TEAM_TOKEN": "tok-1"}
    asyncio.run(lane.close())


def test_a_question_with_tools_is_a_fault_of_ours(tmp_path: Path) -> None:
    asked = Ask((("user", "x"),), (WireTool("t", "", {}),), require_call=True, sampling=Sampling())
    with pytest.raises(InternalError):
        use(target(program(tmp_path, "")), tmp_path / "spool", lambda lane: lane.ask(asked, 5.0))


def test_its_surface_says_what_no_agent_cli_controls(tmp_path: Path) -> None:
    lane = CliLane(target(tmp_path / "x"), spool=tmp_path, environ=environ_of())
    surface = lane.surface
    asyncio.run(lane.close())
    assert (surface.channel, surface.shape, surface.tool_channel) == ("agent-cli", "cli-envelope", "inlined")
    assert not surface.latency_admissible
    assert not surface.pins_sampling
    assert "tens of thousands of cached tokens" in " ".join(surface.uncontrolled)


def test_homes_are_made_where_nothing_above_is_read_as_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "project" / "workspace" / "spool"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    assert lane_module._quiet_place(inside) == inside
    (tmp_path / "project" / "AGENTS.md").write_text("Never call a tool.", encoding="utf-8")
    assert lane_module._quiet_place(inside) == elsewhere
    (tmp_path / ".claude").mkdir()
    with pytest.raises(ConfigError, match=r"\.claude as instructions"):
        lane_module._quiet_place(inside)


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:1/v1"])
def test_neither_key_nor_address_stands_among_arguments(name: str, base_url: str | None) -> None:
    """And a file of the empty home holds the key's name at most: no row is ever given the key itself."""
    prepared = PROGRAMS[name].prepare(Setup("provider/m", base_url, "THE_KEY", Path("/call/home")))
    assert all("127.0.0.1" not in argument and "THE_KEY" not in argument for argument in prepared.arguments)
    assert any("provider/m" in argument for argument in prepared.arguments)
    assert all(not Path(path).is_absolute() and ".." not in path for path in prepared.files)
    stated = " ".join([*prepared.files.values(), *prepared.environment.values()])
    assert ("127.0.0.1" in stated) is (base_url is not None and PROGRAMS[name].own_endpoint)


def test_codex_runs_as_the_method_demands() -> None:
    """User configuration ignored, ephemeral, git check skipped, sandbox read-only (bake-off §4)."""
    prepared = PROGRAMS["codex"].prepare(Setup("m", None, None, Path("/call/home")))
    demanded = {"--ignore-user-config", "--ephemeral", "--skip-git-repo-check", "--sandbox=read-only"}
    assert demanded <= set(prepared.arguments)
    assert prepared.files == {}
    own = PROGRAMS["codex"].prepare(Setup("m", "http://127.0.0.1:1/v1", "THE_KEY", Path("/call/home")))
    assert demanded - {"--ignore-user-config"} <= set(own.arguments)
    assert list(own.files) == [".codex/config.toml"]
    assert own.environment == {"CODEX_HOME": "/call/home/.codex"}


@pytest.mark.parametrize(
    ("name", "variable", "handed"),
    [
        ("claude", "LANE_KEY", "ANTHROPIC_API_KEY"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("codex", "LANE_KEY", "CODEX_API_KEY"),
        ("gemini", "LANE_KEY", "GEMINI_API_KEY"),
        ("opencode", "OPENROUTER_API_KEY", "OPENROUTER_API_KEY"),
    ],
)
def test_the_key_goes_under_the_name_that_the_program_takes(
    tmp_path: Path, name: str, variable: str, handed: str
) -> None:
    path = program(tmp_path, "print(json.dumps(dict(os.environ)))")
    aim = target(path, key_env=variable, model="provider/m", cli={"program": name})
    environ = {variable: KEY, "PATH": os.environ["PATH"]}
    seen = json.loads(use(aim, tmp_path / "spool", lambda lane: lane.ask(question(), 20.0), environ).body)
    assert [key for key, value in seen.items() if value == KEY] == [handed]


EXAMPLES = Path(referee.__file__).parent / "bundled" / "targets" / "examples" / "agent-cli"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_loads_and_makes_a_lane(file: Path, tmp_path: Path) -> None:
    loaded = read_target(file.stem, str(file), file.read_bytes())
    environ = {str(loaded.key_env): KEY, "PATH": os.environ["PATH"]}
    lane = make_lane(loaded, spool=tmp_path, environ=environ)
    assert isinstance(lane, CliLane)
    asyncio.run(lane.close())
    assert file.read_text(encoding="utf-8").count("\n# ") >= 1


def test_there_is_an_example_of_every_program() -> None:
    loaded = [read_target(file.stem, "", file.read_bytes()) for file in EXAMPLES.glob("*.toml")]
    assert {one.cli.program for one in loaded if one.cli} == set(PROGRAMS)


def test_the_docs_name_every_program_with_its_version_and_variables() -> None:
    text = (Path(__file__).parents[2] / "docs" / "agent-clis.md").read_text(encoding="utf-8")
    for file in EXAMPLES.glob("*.toml"):
        cli = read_target(file.stem, "", file.read_bytes()).cli
        assert cli is not None
        assert f"`{cli.program}`" in text
        assert cli.version in text
        assert all(f"`{key}`" in text for key in PROGRAMS[cli.program].keys)
