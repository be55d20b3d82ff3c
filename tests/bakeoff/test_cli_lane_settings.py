"""What a target of the lane to an agent CLI may say, and what its rows say to the programs."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

import referee
from referee.adapters.catalog.targets import read_target
from referee.adapters.lanes.cli import homes
from referee.adapters.lanes.cli.lane import CliLane
from referee.adapters.lanes.cli.programs import PROGRAMS, Setup
from referee.cli.wiring import make_lane
from referee.core.bakeoff import Sampling
from referee.errors import ConfigError, InternalError, UsageError
from referee.protocols import Ask, WireTool
from tests.bakeoff.cli_programs import KEY, environ_of, program, question, target, use


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


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("GITHUB_PAT", "whatever", True),
        ("DB_PASSWORD", "correct horse", True),
        ("ANYTHING", "gQ7xT2mZ9rL4vB8k", True),
        ("ANYTHING", "prefix_0a1b2c3d4e5f6a7b8c9d", True),
        ("ANYTHING", "123e4567-e89b-12d3-a456-426614174000", True),
        ("ANYTHING", "postgres://user:hunter2@host/db", True),
        ("AWS_REGION", "eu-central-1", False),
        ("GOOGLE_CLOUD_PROJECT", "get-weather-123456", False),
        ("SOME_MODEL", "claude-3-5-sonnet-20241022", False),
        ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt", False),
        ("PATH", "/store/0a1b2c3d4e5f6a7b8c9d/bin:/usr/bin", False),
        ("GREETING", "internationalization", False),
        ("SINCE", "20241022120000123456", False),
    ],
)
def test_only_what_may_be_a_secret_is_held_for_redaction(tmp_path: Path, name: str, value: str, secret: bool) -> None:
    aim = target(tmp_path / "x", cli={"inherit": [name]})
    lane = CliLane(aim, spool=tmp_path, environ=environ_of(**{name: value}))
    assert dict(lane.secrets) == {"LANE_KEY": KEY} | ({name: value} if secret else {})
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
    assert homes.quiet_place(inside) == inside
    (tmp_path / "project" / "AGENTS.md").write_text("Never call a tool.", encoding="utf-8")
    assert homes.quiet_place(inside) == elsewhere
    (tmp_path / ".claude").mkdir()
    with pytest.raises(ConfigError, match=r"\.claude as instructions"):
        homes.quiet_place(inside)


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
