"""What a start finds of dead runs, without any engine: records concluded, evidence kept, the spool swept."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from referee.adapters.recorder.writer import TwinWriter
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.failure import Cause
from referee.core.records import AttemptFound
from referee.core.timing import Header
from referee.protocols import Keys
from referee.runner import conclude
from referee.runner import recover as recovering
from referee.runner.recover import recover
from referee.scoring.gather import gather
from tests.test_store_records import ended, planned

TOKEN = "sk-run-9f3ac01b7e55d2486ab0c4ef1122334455667788aabbccdd"


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


class KnownSecret:
    """Of who made the keys, all that is asked here."""

    def secrets(self, _run: str) -> dict[str, str]:
        """As a later start derives it."""
        return {"run-key": TOKEN}


def test_a_dead_runs_recording_is_proven_as_it_is_shown_too(tmp_path: Path) -> None:
    spool, evidence = tmp_path / "spool", LocalEvidence(tmp_path / "evidence")
    dead = RecordFiles(tmp_path / "records")
    plan = planned("r-dead")
    agent = plan.lock.agent.model_copy(update={"cap_usd": 3.0})
    dead.append(plan.model_copy(update={"lock": plan.lock.model_copy(update={"agent": agent})}))
    dead.close()
    directory = spool / "r-dead"
    directory.mkdir(parents=True)
    writer = TwinWriter(directory, Header(120, 32, 0, "xterm"), 0)
    # Only a screen shows it: each letter stands where the cursor was sent to, the last one first.
    for column, letter in reversed([*enumerate(TOKEN, 1)]):
        writer.output(1000 + column, f"\r\x1b[{column}G{letter}".encode())
    writer.output(5000, b"".join(f"Z\b{one}".encode() for one in TOKEN) + b"\r\n")
    writer.close("ended")
    (directory / "harness.jsonl").write_text("{}\n")
    finder = RecordFiles(tmp_path / "records")
    recover(finder, evidence, spool, None, cast("Keys", KnownSecret()))
    end = gather(finder.read())["r-dead"].end
    assert isinstance(end, AttemptFound)
    assert end.cause is Cause.CREDENTIAL_IN_EVIDENCE
    assert [ref.name for ref in end.evidence] == ["harness.jsonl"]


def test_what_only_the_transcript_of_a_dead_run_shows_withholds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    directory = spooled(spool, "r-dead")
    plan = planned("r-dead")
    agent = plan.lock.agent.model_copy(update={"cap_usd": 3.0})
    plan = plan.model_copy(update={"lock": plan.lock.model_copy(update={"agent": agent})})
    monkeypatch.setattr(conclude, "derive", lambda _, to: (to / "transcript.txt").write_text(f"shown: {TOKEN}"))
    cause, _ = recovering._withheld(plan, directory, cast("Keys", KnownSecret()))
    assert cause is Cause.CREDENTIAL_IN_EVIDENCE
    assert not [*directory.iterdir()]
