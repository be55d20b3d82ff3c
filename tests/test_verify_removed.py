"""A run whose record file was taken away, the last of its subject: no number is missing, its evidence tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.core.canonical import canonical_bytes
from referee.errors import Finding, NothingMatched
from referee.runner.verify import verify
from tests.test_verify import attempt, open_shop, report


def test_a_run_that_was_taken_out_of_the_records_is_named_by_its_evidence(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    attempt(shop, "r-good", report_bytes=report())
    shop.records.close()
    shop = open_shop(shop.root)
    before = {path.name for path in (shop.root / "records").glob("*.jsonl")}
    attempt(shop, "r-bad")
    shop.records.close()
    (taken,) = [path for path in (shop.root / "records").glob("*.jsonl") if path.name not in before]
    taken.unlink()
    shop = open_shop(shop.root)
    with pytest.raises(Finding, match=r"manifest sha256:[0-9a-f]{64} of the run r-bad, of which no record speaks"):
        verify(shop.records, shop.evidence, shop.scores)


@pytest.mark.parametrize(
    "value",
    [
        {"schema": "referee.evidence/1", "run": "p-replay", "files": []},
        {"schema": "referee.evidence/2", "run": "r-x", "files": [], "note": "referee.evidence/1"},
        {"files": "referee.evidence/1"},
    ],
)
def test_other_loose_evidence_is_no_fault(tmp_path: Path, value: dict[str, object]) -> None:
    """A replay that died after it had sealed its evidence, and whatever only looks alike."""
    shop = open_shop(tmp_path / "w")
    attempt(shop, "r-good", report_bytes=report())
    shop.evidence.keep("left.over", canonical_bytes(value))
    assert verify(shop.records, shop.evidence, shop.scores).unnamed == 1


def test_where_all_records_were_taken_away_the_evidence_still_tells(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    with pytest.raises(NothingMatched, match="no records"):
        verify(shop.records, shop.evidence, shop.root / "scores")
    attempt(shop, "r-only")
    shop.records.close()
    for file in (shop.root / "records").glob("*.jsonl"):
        file.unlink()
    shop = open_shop(shop.root)
    with pytest.raises(Finding, match="of the run r-only, of which no record speaks"):
        verify(shop.records, shop.evidence, shop.root / "scores")
