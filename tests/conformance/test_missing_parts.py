"""A missing engine skips a test with its reason; with ``CI=true`` it fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.mark.parametrize(("ci", "code", "word"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_a_missing_engine(ci: str, code: int, word: str) -> None:
    environment = os.environ | {"CI": ci, "DOCKER_HOST": "unix:///nonexistent/engine.sock"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_sandbox.py")]
    done = subprocess.run(
        [*command, "-k", "docker and test_environment_names"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=HERE.parent.parent,
    )
    assert done.returncode == code, done.stdout
    assert word in done.stdout
    assert "no Docker Engine answers" in done.stdout
