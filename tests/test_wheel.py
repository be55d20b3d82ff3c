"""The wheel holds everything that the program reads: an installed referee is the one that was tested."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import referee
from referee.adapters.agents.bundled_agent import BundledAgent

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

#: One of each kind that a build could lose: hidden files, files without a suffix, files that are not Python.
TELLING = (
    "referee/bundled/fixtures/env-example/.env.example",
    "referee/bundled/fixtures/env-example/.gitignore",
    "referee/bundled/fixtures/submodules/.gitmodules",
    "referee/bundled/subjects/ms.toml",
    "referee/bundled/vectors/bringup.json",
    "referee/adapters/docker/context/Dockerfile",
    "referee/adapters/docker/context/fetch/node.sh",
    "referee/adapters/agents/baseline/payload/verify_snippets.mjs",
    "referee/publish/templates/frame.html",
    "referee/publish/assets/flow-narrow.svg",
)


def test_the_version_is_the_same_wherever_it_stands(tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    agent = BundledAgent("baseline", contents=dict, program="p", cache=tmp_path)
    assert (declared, newest[1], agent.version) == (referee.__version__,) * 3


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    done = subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("referee-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {
            entry.filename: (archive.read(entry), bool((entry.external_attr >> 16) & 0o111))
            for entry in archive.infolist()
            if entry.filename.startswith("referee/")
        }
    there = {
        path.relative_to(SOURCE).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o111))
        for path in (SOURCE / "referee").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(TELLING) <= there.keys()
    assert sorted(held) == sorted(there)
    assert [name for name in there if held[name] != there[name]] == []
