"""``baseline`` on bundled subjects of several kinds, in real containers, with real packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import referee

pytestmark = [pytest.mark.engine, pytest.mark.registry, pytest.mark.slow]

#: Name and what the recording must show: the trouble that was worked through, or what was decoded.
VERIFIED = {
    "env-example": ".env",
    "make-c": "make",
    "prompt-setup": "",
    "lfs-pointers": "",
    "ms": "npm install",
    "npm-monorepo": "npm",
    "scm-version": "PRETEND_VERSION",
    "anyjson": "setuptools",
    "cmake-bzip2": "libbz2-dev",
    "memory-hungry-build": "",
}


def run(workspace: Path, name: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = referee("bringup", "run", name, "--json", "--workspace", str(workspace), *options, timeout=900)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("name", VERIFIED)
def test_a_subject_runs_and_a_stranger_can_check_it(tmp_path: Path, name: str) -> None:
    code, document = run(tmp_path, name)
    attempt = document["attempts"][-1]
    assert (code, document["verdict"]) == (0, "runs"), attempt["reason"]
    assert attempt["corroboration"] == "corroborated"
    transcript = next((tmp_path / "evidence").glob("*/" + attempt["files"]["transcript.txt"].removeprefix("sha256:")))
    assert VERIFIED[name] in transcript.read_text(encoding="utf-8")
    checked = referee("verify", "--workspace", str(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_cannot_run_here_is_said_honestly(tmp_path: Path) -> None:
    code, document = run(tmp_path, "asynctest", "--until-verdict")
    assert (code, document["verdict"]) == (4, "could_not_verify")
    assert [attempt["valid"] for attempt in document["attempts"]] == [True, True], "one retry rules out a fluke"
    assert all(attempt["rows"]["depth"] == 0 for attempt in document["attempts"])
    assert all(attempt["outcome"] == "fail" for attempt in document["attempts"])


def test_the_overlay_sandbox_measures_too_and_is_labelled(tmp_path: Path) -> None:
    code, document = run(tmp_path, "env-example", "--sandbox", "overlay")
    assert (code, document["verdict"]) == (0, "runs")
    assert document["environment"]["security_boundary"] is False
    assert document["attempts"][0]["not_publishable"] == ["the sandbox is no security boundary"]
