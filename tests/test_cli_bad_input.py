"""Bad input at the command line: one sentence that names what is wrong, its own exit code, and nothing done."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.adapters.sources import pip_client, registries
from referee.cli import app
from referee.errors import (
    EXIT_COULD_NOT_VERIFY,
    EXIT_FINDING,
    EXIT_NOTHING_MATCHED,
    EXIT_PASS,
    EXIT_USAGE,
    SourceUnreachable,
)
from tests.publish_workspace import Try, Written
from tests.test_publish_terminal import referee

#: More than any reader of TOML or JSON goes down.
DEEP = "a = " + "[" * 20_000


@pytest.mark.parametrize("command", [("bringup", "run", ""), ("subject", "add", ""), ("subject", "add", " ")])
def test_a_subject_without_a_name_is_not_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """``referee bringup run "$SUBJECT"`` with a variable that is not set."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ws").mkdir()
    (tmp_path / "private.txt").write_text("not a subject")
    done = referee(tmp_path / "ws", *command)
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert "the subject has no name" in done.stderr
    assert not (tmp_path / "ws" / "subjects").exists()


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("referee.toml", ("config", "show")),
        ("subjects/deep.toml", ("subject", "list")),
        ("subjects/deep.toml", ("bringup", "run", "deep")),
        ("agents/deep.toml", ("agent", "show", "deep")),
        ("targets/deep.toml", ("bakeoff", "targets", "show", "deep")),
        ("protocols/deep/protocol.toml", ("bakeoff", "freeze", "deep")),
    ],
)
def test_a_file_nested_too_deeply_is_named(tmp_path: Path, file: str, command: tuple[str, ...]) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(DEEP)
    for name in ("cases.json", "subsets.toml") if path.name == "protocol.toml" else ():
        (path.parent / name).write_text("")
    done = referee(tmp_path, *command)
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert f"{path.name} is no TOML: nested too deeply" in done.stderr


@pytest.mark.parametrize("data", [b"\xff", b"{", b'{"schema": "referee.names/1", "agents": 3}', b"[" * 20_000])
def test_a_broken_mapping_of_names_is_named(tmp_path: Path, data: bytes) -> None:
    Written(tmp_path).write((Try("r-1", "square", agent="maker-1"),))
    (tmp_path / "names.json").write_bytes(data)
    done = referee(tmp_path, "site", "build")
    assert done.returncode == EXIT_USAGE
    assert f"{tmp_path / 'names.json'} is no mapping of neutral names" in done.stderr
    assert (tmp_path / "names.json").read_bytes() == data


def test_a_name_of_no_answer_log_is_no_finding(tmp_path: Path) -> None:
    done = referee(tmp_path, "bakeoff", "answer", "../x.log", "0", "0", "sha256:0")
    assert done.returncode == EXIT_USAGE
    assert "'../x.log' is no name of an answer log" in done.stderr


@pytest.mark.parametrize("name", ["", ".", "../elsewhere", "/etc"])
def test_a_path_is_no_protocol_to_run(tmp_path: Path, name: str) -> None:
    done = referee(tmp_path, "bakeoff", "run", name)
    assert done.returncode == EXIT_USAGE
    assert f"{name!r} is no name of a protocol" in done.stderr


def test_a_directory_is_no_agent_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "agents" / "folder.toml").mkdir(parents=True)
    done = referee(tmp_path, "agent", "show", "folder")
    assert done.returncode == EXIT_NOTHING_MATCHED
    assert "folder" not in done.stderr.partition("known agents")[2]


def test_a_full_disk_is_named_by_the_place_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a copy the system names its source first, which is not where room is missing."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/source/README.md", None, "/workspace/cache/README.md")

    monkeypatch.setattr(app, "_call", refuse)
    with pytest.raises(SystemExit) as left:
        app.main()
    assert left.value.code == EXIT_COULD_NOT_VERIFY
    assert "the system refused: /workspace/cache/README.md: No space left on device" in capsys.readouterr().err


def test_an_answer_of_pip_that_was_cut_off_is_no_internal_error(tmp_path: Path) -> None:
    """The program that asks pip dies while it writes: a disk that is full, a kill."""
    (tmp_path / "pip_client.py").write_text("import sys; open(sys.argv[1], 'w').close(); sys.exit('No space left')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pip_client, "__file__", str(tmp_path / "pip_client.py"))
        with pytest.raises(SourceUnreachable, match="pip could not be asked for square: No space left"):
            registries.pypi_choose("square", None, sdist=False, scratch=tmp_path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_mapping_of_names_that_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    Written(tmp_path).write((Try("r-1", "square", agent="maker-1"),))
    make(tmp_path / "names.json")
    done = referee(tmp_path, "site", "build")
    assert done.returncode == EXIT_USAGE
    assert f"{tmp_path / 'names.json'} is no regular file" in done.stderr


@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_a_sites_index_is_not_waited_for(tmp_path: Path) -> None:
    Written(tmp_path).write((Try("r-1", "square", agent="maker-1", end="open"),))
    assert referee(tmp_path, "site", "build").returncode == EXIT_PASS
    (tmp_path / "site" / "index.json").unlink()
    os.mkfifo(tmp_path / "site" / "index.json")
    verified, built = referee(tmp_path, "verify"), referee(tmp_path, "site", "build")
    assert (verified.returncode, built.returncode) == (EXIT_FINDING, EXIT_USAGE)
    assert "index.json" in verified.stderr
    assert "is no built site and is left alone" in built.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--names", "names.json"), "--names is given without --site"), (("r-1", "--site", "site"), "checked whole")],
)
def test_what_verify_would_not_look_at_is_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    (tmp_path / "site").mkdir()
    done = referee(tmp_path, "verify", *options)
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert said in done.stderr


def test_what_a_hostile_site_says_cannot_steer_the_terminal_that_checks_it(tmp_path: Path) -> None:
    run = {"run": "r-1\x1b]0;owned\x07", "edition": 2}
    (tmp_path / "index.json").write_text(json.dumps({"runs": [run], "subjects": []}))
    done = referee(tmp_path, "verify", "--site", str(tmp_path))
    assert done.returncode == EXIT_FINDING
    assert r"r-1\x1b]0;owned\x07/run.json is missing" in done.stderr
    assert "\x1b" not in done.stderr
