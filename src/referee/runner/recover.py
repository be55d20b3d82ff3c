"""What a dead run left: found, recorded as invalid with its evidence so far, and removed."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned
from referee.protocols import Evidence, Records, Sandbox
from referee.runner.journal import now
from referee.runner.seal import seal


class OpenAttempts(Records, Protocol):
    """Records that know which attempts were planned and never ended though their writer is dead."""

    def open_attempts(self) -> list[AttemptPlanned]:
        """Attempts whose writer died."""

    def recovering(self) -> AbstractContextManager[None]:
        """Held while finding, so that two starts at once do not find the same attempt twice."""


def recover(records: OpenAttempts, evidence: Evidence, spool: Path, sandbox: Sandbox | None) -> list[str]:
    """Reap machines and conclude the records of dead runs.

    Args:
        records: the workspace's records.
        evidence: the workspace's evidence.
        spool: directories of attempts under way.
        sandbox: the maker of machines, or None where none answers now.

    Returns:
        One sentence for each thing found.
    """
    with records.recovering():
        return _recover(records, evidence, spool, sandbox.reap() if sandbox is not None else [])


def _recover(records: OpenAttempts, evidence: Evidence, spool: Path, reaped: list[str]) -> list[str]:
    found = list(reaped)
    for planned in records.open_attempts():
        directory = spool / planned.run
        refs, digest = seal(planned.run, directory, evidence)
        records.append(
            AttemptFound(
                run=planned.run,
                at=now(),
                cause=Cause.HARNESS_DIED,
                detail=FAILURES[Cause.HARNESS_DIED].sentence,
                evidence=refs,
                evidence_digest=digest,
                reaped=tuple(sentence for sentence in reaped if planned.run in sentence),
            )
        )
        shutil.rmtree(directory, ignore_errors=True)
        found.append(
            f"the harness of run {planned.run} died during the attempt: recorded as invalid, "
            f"{len(refs)} evidence files kept"
        )
    return found + _swept(records, spool)


def _swept(records: Records, spool: Path) -> list[str]:
    """Remove the spool of runs whose end is on record: their harness died between sealing and sweeping."""
    ended = {record.run for record in records.read() if isinstance(record, AttemptEnded | AttemptFound)}
    left = [directory for directory in sorted(spool.glob("r-*")) if directory.name in ended]
    for directory in left:
        shutil.rmtree(directory, ignore_errors=True)
    return [f"removed what run {directory.name} left in the spool: it is sealed evidence" for directory in left]
