"""The floors of the house: who may import whom, checked with the tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "referee"


def test_every_import_contract_is_kept() -> None:
    argv = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("module", ["referee.runner.verify", "referee.runner.rejudge", "referee.cli.verify"])
def test_verification_needs_no_engine(module: str) -> None:
    code = f"import sys, {module}; sys.exit(', '.join(m for m in sys.modules if m.split('.')[0] == 'docker') or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("room", ["utils", "helpers", "helper", "common", "base", "manager"])
def test_no_room_without_a_name(room: str) -> None:
    assert [path for path in _modules() if path.stem == room or room in path.relative_to(SOURCE).parts] == []


def test_core_and_scoring_open_nothing() -> None:
    """Import contracts cannot see builtins: none that reads, writes or runs anything in the pure rooms."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.func.id}"
        for path in _modules()
        if path.relative_to(SOURCE).parts[0] in {"core", "scoring"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "eval", "exec", "__import__"}
    ]
    assert found == []
