"""Hints can be followed: they name the workspace that was given, and no command that would refuse them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from referee.adapters.catalog.workspace import CONFIG_NAME, Config, Workspace
from referee.adapters.docker.image import ImageFacts
from referee.cli import app, env, hints
from referee.errors import (
    EXIT_COULD_NOT_VERIFY,
    EXIT_NOTHING_MATCHED,
    EXIT_PASS,
    EXIT_USAGE,
    UsageError,
)
from tests.test_publish_terminal import referee


def test_a_hint_names_the_workspace_where_it_is_not_found_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFEREE_WORKSPACE", raising=False)
    (tmp_path / "with space").mkdir()
    (tmp_path / CONFIG_NAME).write_text("")
    monkeypatch.chdir(tmp_path)
    other = Workspace(tmp_path / "with space", Config())
    assert hints.command("verdict segno", Workspace(tmp_path, Config())) == "referee verdict segno"
    assert shlex.split(hints.command("verdict segno", other)) == ["referee", "verdict", "segno", "-w", str(other.root)]
    monkeypatch.setenv("REFEREE_WORKSPACE", str(other.root))
    assert hints.command("verdict segno", other) == "referee verdict segno"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["referee", "show", "x"], "`referee show` lists them, `other` does not"),
        (["referee", "show", "x", "-w", "a b"], "`referee show -w 'a b'` lists them, `other` does not"),
        (["referee", "show", "--workspace", "ws"], "`referee show -w ws` lists them, `other` does not"),
        (["referee", "show", "--workspace=ws"], "`referee show -w ws` lists them, `other` does not"),
    ],
)
def test_what_to_do_after_an_error_keeps_the_workspace_of_the_command(argv: list[str], said: str) -> None:
    assert hints.with_workspace("`referee show` lists them, `other` does not", argv) == said


def test_an_error_at_the_command_line_keeps_the_workspace(tmp_path: Path) -> None:
    done = referee(tmp_path, "verdict", "nosuch")
    assert done.returncode == EXIT_NOTHING_MATCHED
    assert f"`referee board -w {tmp_path}` lists" in done.stderr
    done = referee(tmp_path, "board")
    assert done.returncode == EXIT_PASS
    assert f"`referee bringup run SUBJECT -w {tmp_path}` makes one" in done.stdout


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("agent", "check", "command"), EXIT_USAGE, "write agents/NAME.toml"),
        (("agent", "show", "command"), EXIT_USAGE, "write agents/NAME.toml"),
        (("subject", "add", "/dev/null"), EXIT_USAGE, "/dev/null is neither a directory nor an archive"),
        (("bringup", "run", "/dev/null"), EXIT_USAGE, "/dev/null is neither a directory nor an archive"),
        (("bakeoff", "report", "nosuch"), EXIT_NOTHING_MATCHED, "`referee bakeoff init NAME"),
        (("bakeoff", "export", "nosuch", "--all"), EXIT_NOTHING_MATCHED, "no protocol named 'nosuch'"),
    ],
)
def test_what_is_advised_can_be_done(tmp_path: Path, command: tuple[str, ...], code: int, said: str) -> None:
    done = referee(tmp_path, *command)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "--command 'LINE'" not in done.stderr
    assert "freeze nosuch" not in done.stderr


def test_the_agent_file_that_is_advised_is_one(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "own.toml").write_text('name = "own"\nversion = "1"\ncommand = "true"\n')
    refused = referee(tmp_path, "agent", "show", "own")
    assert refused.returncode == EXIT_USAGE
    line = refused.stderr.partition("`schema` is missing; add `")[2].partition("`")[0]
    (tmp_path / "agents" / "own.toml").write_text(f'{line}\nname = "own"\nversion = "1"\ncommand = "true"\n')
    assert json.loads(referee(tmp_path, "agent", "show", "own", "--json").stdout)["name"] == "own"


def test_a_protocol_without_named_shards_is_told_of_all(tmp_path: Path) -> None:
    assert referee(tmp_path, "bakeoff", "init", "x1").returncode == EXIT_PASS
    done = referee(tmp_path, "bakeoff", "report", "x1")
    assert done.returncode == EXIT_USAGE
    assert "--all" in done.stderr
    assert "protocols: x1" in referee(tmp_path, "bakeoff", "report", "x2", "--all").stderr


@pytest.mark.engine
@pytest.mark.parametrize("command", ["ready", "show"])
def test_a_variant_that_does_not_exist_is_not_to_be_built(tmp_path: Path, command: str) -> None:
    done = referee(tmp_path, "env", command, "--variant", "foo")
    assert done.returncode == EXIT_USAGE
    assert "there is no variant 'foo'" in done.stderr
    assert "env build" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [("bringup", "run", "segno"), ("subject", "add", "SRC"), ("bringup", "run", "SRC"), ("bakeoff", "init", "x")],
)
def test_a_workspace_where_no_directory_can_be_made_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("a project")
    argv = [str(tmp_path) if word == "SRC" else word for word in command]
    done = CliRunner().invoke(app.make_app(argv[0]), [*argv, "-w", "/proc/referee-workspace"])
    assert isinstance(done.exception, UsageError)
    assert "the workspace /proc/referee-workspace cannot be made" in done.exception.message


@pytest.mark.parametrize("name", ["mïne 3", ".x", "a/b", "x" * 121])
def test_a_name_that_is_none_of_a_target_is_refused_in_words(tmp_path: Path, name: str) -> None:
    address = ("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--channel", "local")
    done = referee(tmp_path, "bakeoff", "targets", "add", *address, "--sovereignty", "eu-origin", name)
    assert done.returncode == EXIT_USAGE
    assert "is no name of a target" in done.stderr
    assert "pattern" not in done.stderr
    assert not (tmp_path / "targets").exists()


def test_a_target_file_with_such_a_name_does_not_stop_the_list(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "m 3.toml").write_text("")
    done = referee(tmp_path, "bakeoff", "targets", "list", "--json")
    assert done.returncode == EXIT_PASS
    broken = [row for row in json.loads(done.stdout)["targets"] if "broken" in row]
    assert broken == [{"target": "m 3", "broken": "'m 3' is no name of a target"}]


def test_an_image_that_is_out_of_date_names_its_own_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = ImageFacts(
        tag="referee-env:rust",
        image_id="sha256:0",
        variant="rust",
        packages_digest=None,
        repo_digests=(),
        size_bytes=1,
        architecture="amd64",
        created="",
        current=False,
    )
    monkeypatch.setattr("referee.adapters.docker.engine.connect", lambda: None)
    monkeypatch.setattr("referee.adapters.docker.image.inspect", lambda *_, **__: facts)
    env.show(variant="rust", workspace=tmp_path)
    assert f"no: run `referee env build --variant rust -w {tmp_path}`" in capsys.readouterr().out
    done = referee(tmp_path, "env", "ready", "--variant", "rust")
    assert done.returncode == EXIT_COULD_NOT_VERIFY
    assert f"run `referee env build --variant rust -w {tmp_path}`" in done.stderr
