"""What a command answers when it is not the command's fault: a reader that has gone, a system that refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from referee.adapters.catalog.workspace import Config, Workspace
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_INTERRUPTED, EXIT_NOTHING_MATCHED, EXIT_USAGE, ConfigError

REFEREE = (sys.executable, "-m", "referee.cli.app")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("subject", "list"), ("subject", "list", "--json"), ("config", "show")])
def test_a_reader_that_has_gone_is_no_finding(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*REFEREE, *arguments], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, "")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_the_caller_closed_is_no_fault_and_no_file_takes_its_place(tmp_path: Path, closed: str) -> None:
    """Else what is printed would be written into whatever is opened first, a lock or a record."""
    workspace = tmp_path / "ws"
    line = f'"$@" {closed}'
    for command in (("subject", "list"), ("show",), ("subject", "add", str(tmp_path / "square"))):
        (tmp_path / "square").mkdir(exist_ok=True)
        (tmp_path / "square" / "README.md").write_text("# square\n")
        workspace.mkdir(exist_ok=True)
        argv = ["/bin/sh", "-c", line, "sh", *REFEREE, *command, "--workspace", str(workspace)]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert "internal" not in done.stderr
    pinned = (workspace / "subjects" / "square.toml").read_text()
    assert pinned.startswith("schema = ")
    assert "pinned" not in pinned


@pytest.mark.slow
def test_a_list_that_goes_to_a_file_has_a_line_for_each_subject(tmp_path: Path) -> None:
    def lines(*options: str) -> list[str]:
        done = subprocess.run([*REFEREE, "subject", "list", *options], cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode().splitlines()

    names = [subject["name"] for subject in json.loads("\n".join(lines("--json")))["subjects"]]
    assert [line.split()[0] for line in lines()] == ["name", *names]


def test_a_full_disk_under_stdout_is_said_in_a_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*REFEREE, "config", "show"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == EXIT_COULD_NOT_VERIFY
    assert "the system refused: No space left on device" in done.stderr
    assert "internal" not in done.stderr


def test_a_place_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*REFEREE, "subject", "add", str(tmp_path), "--workspace", str(tmp_path / "file" / "ws")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == EXIT_COULD_NOT_VERIFY
    assert "the system refused: " in done.stderr
    assert "Not a directory" in done.stderr


def test_a_wrong_option_is_a_usage_error(tmp_path: Path) -> None:
    done = subprocess.run([*REFEREE, "board", "--nope"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE
    assert (done.stdout, "--nope" in done.stderr) == ("", True)


def test_a_misspelt_subject_makes_no_workspace(tmp_path: Path) -> None:
    done = subprocess.run(
        [*REFEREE, "bringup", "run", "segnoo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == EXIT_NOTHING_MATCHED
    assert "segnoo" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_ca_bundle_names_where_it_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(ConfigError) as caught:
        Workspace(tmp_path, Config()).ca_bundle()
    assert "SSL_CERT_FILE" in caught.value.todo
    with pytest.raises(ConfigError) as caught:
        Workspace(tmp_path, Config(ca_bundle="ours.pem")).ca_bundle()
    assert "ca_bundle in referee.toml" in caught.value.todo
