"""Judging runs from records and evidence, and keeping what was judged where it can be deleted without loss."""

from __future__ import annotations

from pathlib import Path

from referee.adapters.store.durable import write_atomically
from referee.core.canonical import canonical_bytes, digest_of_bytes
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, EvidenceRef
from referee.errors import CouldNotVerify, DigestMismatch, NothingMatched
from referee.protocols import Evidence, Records
from referee.scoring.attempts import Judgement, judge
from referee.scoring.gather import gather

SCORE_SCHEMA = "referee.score/1"


def judge_run(run: str, records: Records, evidence: Evidence, scores: Path) -> Judgement:
    """Judge one run and keep the judgement as ``scores/<run>.json``.

    Args:
        run: the run's id.
        records: the workspace's records.
        evidence: the workspace's evidence.
        scores: the directory of derived judgements.

    Raises:
        NothingMatched: no record speaks of the run.
        CouldNotVerify: it has not ended.
        Finding: the evidence that is judged is missing or is not what was recorded.
    """
    found = gather(records.read()).get(run)
    if found is None:
        raise NothingMatched(f"there is no run {run}", todo="`referee show` lists the runs of this workspace")
    if found.end is None:
        raise CouldNotVerify(f"the run {run} has not ended", todo="wait for it; `referee reap` concludes dead ones")
    judgement = judge_from(found.planned, found.end, evidence)
    write_atomically(scores / f"{run}.json", score_bytes(judgement))
    return judgement


def rejudge_all(records: Records, evidence: Evidence, scores: Path) -> list[Judgement]:
    """Judge every run that has ended and rewrite ``scores/``; in the order of the records."""
    judgements = [
        judge_from(found.planned, found.end, evidence)
        for found in gather(records.read()).values()
        if found.end is not None
    ]
    for judgement in judgements:
        write_atomically(scores / f"{judgement.run}.json", score_bytes(judgement))
    return judgements


def judge_from(planned: AttemptPlanned, end: AttemptEnded | AttemptFound, evidence: Evidence) -> Judgement:
    """Judge one run from its two records and the evidence that they name; nothing is written."""
    return judge(
        planned,
        end,
        report_bytes=read_named(evidence, end.evidence, "report.json"),
        rerun_output=read_named(evidence, end.evidence, "rerun.txt"),
        read=lambda name, limit: read_named(evidence, end.evidence, name, limit=limit),
    )


def score_bytes(judgement: Judgement) -> bytes:
    """The bytes of ``scores/<run>.json``: canonical JSON of the judgement with its schema's version."""
    return canonical_bytes({"schema": SCORE_SCHEMA, **judgement.document()})


def read_named(
    evidence: Evidence, refs: tuple[EvidenceRef, ...], name: str, *, limit: int | None = None
) -> bytes | None:
    """The checked bytes of a run's evidence file; None when the run has none of that name, or a longer than ``limit``.

    Raises:
        DigestMismatch: the bytes are not those that the record names.
    """
    for ref in refs:
        if ref.name == name:
            if limit is not None and ref.bytes > limit:
                return None
            with evidence.open(ref.digest) as blob:
                data = blob.read()
            if digest_of_bytes(data) != ref.digest:
                raise DigestMismatch(f"the evidence file {name} ({ref.digest}) is not what was recorded")
            return data
    return None
