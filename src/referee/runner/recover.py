"""What a dead run left: found, recorded as invalid with its evidence so far, and removed.

Its evidence is shown free of the run's key as that of any other run. Where the key is not known any more, all that may
hold it is withheld.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned
from referee.protocols import Evidence, Keys, Records, Sandbox
from referee.runner.journal import now
from referee.runner.seal import seal


class OpenAttempts(Records, Protocol):
    """Records that know which attempts were planned and never ended though their writer is dead."""

    def open_attempts(self) -> list[AttemptPlanned]:
        """Attempts whose writer died."""

    def recovering(self) -> AbstractContextManager[None]:
        """Held while finding, so that two starts at once do not find the same attempt twice."""


def recover(
    records: OpenAttempts, evidence: Evidence, spool: Path, sandbox: Sandbox | None, keys: Keys | None = None
) -> list[str]:
    """Reap machines and conclude the records of dead runs.

    Args:
        records: the workspace's records.
        evidence: the workspace's evidence.
        spool: directories of attempts under way.
        sandbox: the maker of machines, or None where none answers now.
        keys: who made the keys of dead runs; None where that is not known.

    Returns:
        One sentence for each thing found.
    """
    with records.recovering():
        return _recover(records, evidence, spool, sandbox.reap() if sandbox is not None else [], keys)


def _recover(records: OpenAttempts, evidence: Evidence, spool: Path, reaped: list[str], keys: Keys | None) -> list[str]:
    found = list(reaped)
    for planned in records.open_attempts():
        directory = spool / planned.run
        cause, detail = _withheld(planned, directory, keys)
        refs, digest = seal(planned.run, directory, evidence)
        records.append(
            AttemptFound(
                run=planned.run,
                at=now(),
                cause=cause,
                detail=detail,
                evidence=refs,
                evidence_digest=digest,
                reaped=tuple(sentence for sentence in reaped if planned.run in sentence),
            )
        )
        shutil.rmtree(directory, ignore_errors=True)
        found.append(
            f"the harness of run {planned.run} died during the attempt: recorded as invalid, "
            f"{len(refs)} evidence files kept"
            + (", what may hold its key is withheld" if cause is Cause.CREDENTIAL_IN_EVIDENCE else "")
        )
    return found + _swept(records, spool)


def _withheld(planned: AttemptPlanned, directory: Path, keys: Keys | None) -> tuple[Cause, str]:
    """Delete what cannot be shown free of the dead run's key; the cause that follows, and its sentence."""
    died = FAILURES[Cause.HARNESS_DIED].sentence
    if planned.lock.agent.cap_usd is None or not directory.is_dir():  # it never had a key, or left nothing
        return Cause.HARNESS_DIED, died
    from referee.runner.conclude import derived  # noqa: PLC0415 — as above
    from referee.runner.withhold import Screen, withhold_all  # noqa: PLC0415 — only a run with a key needs it

    secrets = keys.secrets(planned.run) if keys is not None else None
    if secrets is not None:
        derived(directory)  # what is derived from the recording can show what the recording itself does not
    withheld = withhold_all(directory) if secrets is None else Screen(secrets).withhold(directory)
    if not withheld:
        return Cause.HARNESS_DIED, died
    why = "its key is not known any more, so " if secrets is None else ""
    sentence = FAILURES[Cause.CREDENTIAL_IN_EVIDENCE].sentence
    return Cause.CREDENTIAL_IN_EVIDENCE, f"{died}; {why}{sentence}: {', '.join(withheld)}"


def _swept(records: Records, spool: Path) -> list[str]:
    """Remove the spool of runs whose end is on record: their harness died between sealing and sweeping."""
    ended = {record.run for record in records.read() if isinstance(record, AttemptEnded | AttemptFound)}
    left = [directory for directory in sorted(spool.glob("r-*")) if directory.name in ended]
    for directory in left:
        shutil.rmtree(directory, ignore_errors=True)
    return [f"removed what run {directory.name} left in the spool: it is sealed evidence" for directory in left]
