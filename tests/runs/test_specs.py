"""What may stand where a subject is asked for, and which engine is used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.runs.conftest import REFEREE, referee


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "README.md").write_text("# tree\n")
    return tree


def run(
    tmp_path: Path, spec: str, *, host: str = "unix:///nonexistent/engine.sock"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*REFEREE, "bringup", "run", spec, "--workspace", str(tmp_path / "ws")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "DOCKER_HOST": host},
    )


@pytest.mark.slow
def test_an_engine_that_was_named_and_is_silent_is_not_replaced_by_the_host(tmp_path: Path, project: Path) -> None:
    done = run(tmp_path, "tree")
    assert done.returncode == 4, done.stderr
    assert "Docker" in done.stderr
    assert "machine: overlay" not in done.stderr
    assert (tmp_path / "ws" / "subjects" / "tree.toml").is_file(), "a path without ./ is pinned all the same"


def test_a_path_that_is_not_there_is_called_a_path(tmp_path: Path) -> None:
    done = run(tmp_path, "./nothing")
    assert done.returncode == 5
    assert "no file or directory ./nothing" in done.stderr


@pytest.mark.slow
def test_a_second_pin_of_a_name_stands_beside_the_first(tmp_path: Path, project: Path) -> None:
    run(tmp_path, "./tree")
    (project / "README.md").write_text("# another tree\n")
    run(tmp_path, "./tree")
    names = sorted(path.name for path in (tmp_path / "ws" / "subjects").iterdir())
    assert names[-1] == "tree.toml"
    assert len(names) == 2
    assert referee("subject", "list", "--workspace", str(tmp_path / "ws")).returncode == 0
