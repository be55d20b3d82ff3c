"""The end of an attempt: derive, show free of credentials, seal, append. All is durable before it is announced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from referee.adapters.recorder import CAST_NAME, TRANSCRIPT_NAME, RecordingFiles, derive
from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptEnded, RecordingFacts
from referee.errors import Finding
from referee.protocols import Evidence, Records
from referee.runner.journal import Journal, now
from referee.runner.seal import facts_bytes, seal
from referee.runner.seen import Seen

if TYPE_CHECKING:
    from referee.runner.withhold import Screen


def conclude(
    run: str,
    directory: Path,
    seen: Seen,
    journal: Journal,
    *,
    records: Records,
    evidence: Evidence,
    screen: Screen | None,
) -> None:
    """Append the record of an attempt's end.

    Args:
        run: its id.
        directory: its spool directory.
        seen: what it has shown.
        journal: its log, closed here.
        records: where the record goes.
        evidence: where the files go.
        screen: what they must be free of; None for a run without a key.
    """
    with journal.phase("seal"):
        _derive(directory, seen)
    phases = journal.close()
    if screen is not None:
        _withhold(directory, seen, screen)
    ended = AttemptEnded(
        run=run,
        at=now(),
        cause=seen.cause,
        detail=seen.detail,
        evidence=(),
        evidence_digest="",
        recording=seen.recorded.facts() if seen.recorded is not None else _lost(directory),
        quiet=seen.quiet,
        report_rejected=seen.report_rejected,
        rerun=seen.rerun,
        network=seen.network,
        spent_usd=(seen.spending.spent_usd if seen.spending is not None else None) or 0.0,
        spending=seen.spending,
        observed=seen.observed,
        phases=phases,
        machine=seen.machine or {},
    )
    if screen is not None:
        ended = screen.ended(ended)
    (directory / "facts.json").write_bytes(facts_bytes(ended))
    refs, digest = seal(run, directory, evidence)
    records.append(ended.model_copy(update={"at": now(), "evidence": refs, "evidence_digest": digest}))
    journal.sweep()


def _withhold(directory: Path, seen: Seen, screen: Screen) -> None:
    """Keep nothing that cannot be shown free of the run's key; that outweighs whatever else ended the attempt."""
    withheld = screen.withhold(directory)
    if not withheld:
        return
    before = f"; before that: {seen.detail}" if seen.cause is not None else ""
    sentence = FAILURES[Cause.CREDENTIAL_IN_EVIDENCE].sentence
    seen.found_out(Cause.CREDENTIAL_IN_EVIDENCE, f"{sentence}: {', '.join(withheld)}{before}")


def _derive(directory: Path, seen: Seen) -> None:
    """Make cast and transcript. Where that fails the primary evidence is kept as it is, and the cause is named."""
    why_not = derived(directory)
    if why_not is not None:
        seen.end(Cause.RECORDING_INCOMPLETE, f"the recording could not be derived: {why_not}")


def derived(directory: Path) -> str | None:
    """Make cast and transcript of the recording in ``directory``, where there is one; why that failed, else None."""
    files = RecordingFiles.of(directory)
    if not files.raw.exists():
        return None
    try:
        derive(files, directory)
    except (Finding, OSError, ValueError) as exc:
        (directory / CAST_NAME).unlink(missing_ok=True)
        (directory / TRANSCRIPT_NAME).unlink(missing_ok=True)
        return str(exc)
    return None


def _lost(directory: Path) -> RecordingFacts | None:
    """What is known of a recording that was cut off by an exception: how much of it there is."""
    files = RecordingFiles.of(directory)
    if not files.raw.exists():
        return None
    size = files.raw.stat().st_size
    try:
        events = files.coverage().events
    except Finding:
        events = 0
    return RecordingFacts(complete=False, bytes=size, events=events, seconds=0.0, exit_status=None)
