"""Bad input gets one clear sentence and an exit code of its own; nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.conftest import REFEREE, referee

pytestmark = pytest.mark.slow  # each starts the command


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """stderr says what is wrong in one line (and what to do in one more), without a traceback."""
    lines = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    assert 1 <= len(lines) <= 2, done.stderr
    return lines[0]


def test_an_unknown_subject_names_its_neighbours(tmp_path: Path) -> None:
    done = referee("bringup", "run", "segnoo", "--workspace", str(tmp_path))
    assert done.returncode == 5
    assert "segnoo" in one_sentence(done)
    assert "segno" in done.stderr.splitlines()[1]


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "subjects").mkdir()
    (tmp_path / "subjects" / "broken.toml").write_text('schema = "referee.subject/1"\nname = "broken\n')
    done = referee("bringup", "run", "broken", "--workspace", str(tmp_path))
    assert done.returncode == 2
    assert "line 2" in one_sentence(done)


def test_a_broken_configuration_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text("[machine]\nmemory = 3\n")
    done = referee("board", "--workspace", str(tmp_path))
    assert done.returncode == 2
    assert "machine.memory" in one_sentence(done)


def test_an_unknown_agent_is_no_match(tmp_path: Path) -> None:
    done = referee("bringup", "run", "segno", "--agent", "nobody", "--workspace", str(tmp_path))
    assert done.returncode == 5
    assert "nobody" in one_sentence(done)


def test_no_engine_is_said_and_is_not_a_verdict(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "README.md").write_text("# p\n")
    workspace = str(tmp_path / "ws")
    assert referee("subject", "add", str(project), "--name", "p", "--workspace", workspace).returncode == 0
    done = subprocess.run(
        [*REFEREE, "bringup", "run", "p", "--sandbox", "docker", "--workspace", workspace],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DOCKER_HOST": "unix:///nonexistent/engine.sock"},
    )
    assert done.returncode == 4
    assert "Docker" in one_sentence(done)


def test_a_wrong_digest_names_both(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "README.md").write_text("# p\n")
    workspace = tmp_path / "ws"
    assert referee("subject", "add", str(project), "--name", "p", "--workspace", str(workspace)).returncode == 0
    (project / "README.md").write_text("# changed\n")
    done = referee("bringup", "run", "p", "--workspace", str(workspace))
    assert done.returncode == 1
    assert "sha256" in one_sentence(done) or "digest" in one_sentence(done)


def test_an_unreachable_host_is_could_not_verify(tmp_path: Path) -> None:
    (tmp_path / "subjects").mkdir()
    (tmp_path / "subjects" / "far.toml").write_text(
        'schema = "referee.subject/1"\nname = "far"\nkind = "repository"\nsummary = "far away"\n'
        f'[repository]\nurl = "http://127.0.0.1:9/far.git"\ncommit = "{"0" * 40}"\n'
    )
    done = referee("bringup", "run", "far", "--workspace", str(tmp_path))
    assert done.returncode == 4
    assert "127.0.0.1" in one_sentence(done)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nope", "JSON"),
        (b'{"installed": NaN}', "NaN"),
        (b'{"installed": true, "installed": true}', "twice"),
        (b"\xff", "UTF-8"),
        (b"[]", "object"),
        (b'{"installed": "yes"}', "installed"),
        (b" " * 1_000_001, "bytes"),
    ],
)
def test_a_report_is_rejected_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(content)
    done = referee("report", "check", str(file))
    assert done.returncode == 2
    assert said in one_sentence(done)


def test_an_unknown_run_is_no_match(tmp_path: Path) -> None:
    for command in ("show", "play"):
        done = referee(command, "r-nosuchrun", "--workspace", str(tmp_path))
        assert done.returncode == 5, command
        assert "r-nosuchrun" in one_sentence(done)


def test_help_and_version_need_no_engine() -> None:
    assert subprocess.run([sys.executable, "-m", "referee.cli.app", "--version"], check=True, capture_output=True)
    assert referee("--help").returncode == 0
