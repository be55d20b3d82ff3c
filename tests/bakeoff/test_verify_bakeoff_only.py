"""``referee verify`` where there is a bake-off and no run: a real one, of the baseline that needs no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.cli.demo import bake_off
from referee.cli.site import build_site
from referee.cli.wiring import open_stores
from referee.errors import EXIT_PASS, DigestMismatch, Finding

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "referee.toml").write_text("")
    stores = open_stores(tmp_path)
    assert bake_off(stores, Console(quiet=True))[1], "every slot has its row"
    build_site(stores)
    return tmp_path


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(make_app("verify"), ["verify", *arguments])


def test_its_evidence_is_counted_and_its_site_is_made_again(root: Path) -> None:
    blobs = [path for path in (root / "evidence").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in blobs)
    told = verify("--workspace", str(root))
    assert told.exit_code == EXIT_PASS, told.output
    assert len(blobs) > 1
    assert f"evidence      {len(blobs)} files, {size} bytes; 0 unnamed" in told.stdout

    board = root / "site" / "bakeoff" / "demo"
    held = verify("--site", str(root / "site"))
    assert held.exit_code == EXIT_PASS, held.output
    assert "bake-offs     1 report; 3 raw exports" in held.stdout

    numbers, words = (board / "report.json").read_bytes(), (board / "report.md").read_bytes()
    rate = json.loads(numbers)["summary"]["boards"][0]["rows"][0]["figures"]["rate"]["value"]
    (board / "report.json").write_bytes(numbers.replace(str(rate).encode(), b"0.9111"))
    (board / "report.md").write_bytes(words.replace(f"{rate * 100:.1f} %".encode(), b"91.1 %"))
    assert isinstance(verify("--site", str(root / "site")).exception, Finding)
    (board / "report.json").write_bytes(numbers)
    (board / "report.md").write_bytes(words)
    (board / "attempts.jsonl").unlink()
    assert isinstance(verify("--site", str(root / "site")).exception, DigestMismatch)
