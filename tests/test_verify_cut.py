"""The record of an end that was cut off: the run looks as if its harness had died, its sealed evidence tells of it."""

from __future__ import annotations

import json
from pathlib import Path

from referee.core.records import AttemptFound
from referee.runner.recover import recover
from referee.runner.rejudge import rejudge_all
from referee.runner.verify import verify
from referee.scoring.gather import gather
from tests.test_verify import Shop, attempt, open_shop, report


def cut(root: Path, run: str) -> Shop:
    """A workspace with a run of another file, and one from whose file the last line was taken."""
    shop = open_shop(root)
    attempt(shop, "r-whole")
    shop.records.close()
    before = {*(root / "records").glob("*.jsonl")}
    shop = open_shop(root)
    attempt(shop, run, report_bytes=report())
    shop.records.close()
    (file,) = {*(root / "records").glob("*.jsonl")} - before
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    return open_shop(root)


def recovered(shop: Shop) -> Shop:
    """After a start that found the run's harness dead."""
    finder = open_shop(shop.root)
    (said,) = recover(finder.records, finder.evidence, shop.root / "spool", None)
    assert "r-pass died during the attempt" in said
    finder.records.close()
    return open_shop(shop.root)


def test_a_pass_whose_end_was_cut_off_and_found_dead_is_named(tmp_path: Path) -> None:
    shop = recovered(cut(tmp_path / "w", "r-pass"))
    done = verify(shop.records, shop.evidence, shop.scores)
    (said,) = done.cut_off
    assert said.startswith("run r-pass: its evidence was sealed with the manifest sha256:")
    assert "its record says that the harness died before" in said
    assert "or the record of the end was cut off" in said
    assert verify(shop.records, shop.evidence, shop.scores, ["r-pass"]).cut_off == [said]
    assert verify(shop.records, shop.evidence, shop.scores, ["r-whole"]).cut_off == []
    rejudge_all(shop.records, shop.evidence, shop.scores)
    told = shop.referee("verify")
    assert told.exit_code == 0
    assert f"note: {said}" in told.stdout
    assert json.loads(shop.referee("verify", "--json").stdout)["cut_off"] == [said]


def test_an_end_that_was_cut_off_and_not_found_yet_is_named(tmp_path: Path) -> None:
    shop = cut(tmp_path / "w", "r-pass")
    (said,) = verify(shop.records, shop.evidence, shop.scores).cut_off
    assert "run r-pass: its evidence was sealed with the manifest" in said
    assert "no record tells of an end" in said


def test_a_harness_that_died_after_its_facts_is_named_and_one_that_died_before_is_not(tmp_path: Path) -> None:
    for number, (name, told) in enumerate((("facts.json", 1), ("session.raw", 0))):
        shop = cut(tmp_path / str(number), "r-pass")
        for blob in [path for path in (shop.root / "evidence").rglob("*") if path.is_file()]:
            if b'"run":"r-pass","schema":"referee.evidence/1"' in blob.read_bytes():
                blob.unlink()  # it had not come to its manifest
        spool = shop.root / "spool" / "r-pass"
        spool.mkdir(parents=True)
        (spool / name).write_bytes(b"{}")
        shop = recovered(shop)
        end = gather(shop.records.read())["r-pass"].end
        assert isinstance(end, AttemptFound)
        assert [ref.name for ref in end.evidence] == [name]
        said = verify(shop.records, shop.evidence, shop.scores).cut_off
        assert len(said) == told
        assert all("has the facts of its end (facts.json), but its record says" in one for one in said)


def test_whole_ends_are_not_named(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    attempt(shop, "r-pass", report_bytes=report())
    assert verify(shop.records, shop.evidence, shop.scores).cut_off == []
