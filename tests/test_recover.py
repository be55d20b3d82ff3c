"""What a start finds of dead runs, without any engine: records concluded, evidence kept, the spool swept."""

from __future__ import annotations

from pathlib import Path

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.failure import Cause
from referee.core.records import AttemptFound
from referee.runner.recover import recover
from referee.scoring.gather import gather
from tests.test_store_records import ended, planned


def spooled(spool: Path, run: str) -> Path:
    directory = spool / run
    directory.mkdir(parents=True)
    (directory / "session.raw").write_bytes(b"so far")
    return directory


def test_a_dead_run_is_found_once_and_a_living_one_left_alone(tmp_path: Path) -> None:
    spool, evidence = tmp_path / "spool", LocalEvidence(tmp_path / "evidence")
    dead, living = RecordFiles(tmp_path / "records"), RecordFiles(tmp_path / "records")
    dead.append(planned("r-dead"))
    dead.close()
    living.append(planned("r-living"))
    spooled(spool, "r-dead")
    kept = spooled(spool, "r-living")
    finder = RecordFiles(tmp_path / "records")
    (said,) = recover(finder, evidence, spool, None)
    assert "r-dead died during the attempt" in said
    assert recover(finder, evidence, spool, None) == []
    end = gather(finder.read())["r-dead"].end
    assert isinstance(end, AttemptFound)
    assert end.cause is Cause.HARNESS_DIED
    (ref,) = end.evidence
    assert evidence.read(ref.digest) == b"so far"
    assert [path.name for path in spool.iterdir()] == [kept.name]


def test_the_spool_of_a_run_that_ended_is_swept(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    dead = RecordFiles(tmp_path / "records")
    dead.append(planned("r-ended"))
    dead.append(ended("r-ended"))
    dead.close()
    spooled(spool, "r-ended")
    stranger = spooled(spool, "r-not-planned-yet")
    finder = RecordFiles(tmp_path / "records")
    (said,) = recover(finder, LocalEvidence(tmp_path / "evidence"), spool, None)
    assert "r-ended left in the spool" in said
    assert list(spool.iterdir()) == [stranger]
