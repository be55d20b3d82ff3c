"""Sealing: what lies in an attempt's spool directory becomes content-addressed evidence with a manifest."""

from __future__ import annotations

from pathlib import Path

from referee.core.canonical import canonical_bytes
from referee.core.records import AttemptEnded, AttemptPlanned, EvidenceRef
from referee.protocols import Evidence

#: The files that an attempt may leave, in the order in which a reader wants them.
NAMES = (
    "session.raw",
    "session.timing",
    "session.cast",
    "transcript.txt",
    "report.json",
    "rerun.txt",
    "scripts.json",
    "control.txt",
    "challenge-1.txt",
    "challenge-2.txt",
    "challenge-3.txt",
    "challenge-4.txt",
    "exchanges.jsonl",
    "harness.jsonl",
    "mission.json",
    "subject.toml",
    "packages.json",
    "lock.json",
    "facts.json",
    "commands.json",
    "replay.txt",
    "replay.json",
)


#: What of a record is not kept as ``facts.json``: what only exists once the evidence is sealed.
_AFTER_SEALING = {"kind", "at", "evidence", "evidence_digest"}


def lock_bytes(planned: AttemptPlanned) -> bytes:
    """``lock.json``: the lock as evidence, so that the digest that results quote covers it."""
    return canonical_bytes(
        {"schema": "referee.lock/1", "run": planned.run, **planned.lock.model_dump(mode="json", exclude_none=True)}
    )


def facts_bytes(ended: AttemptEnded) -> bytes:
    """``facts.json``: what the record says was observed, as evidence, so that the digest covers it too.

    What is absent is left out, so that a field that a later version adds changes no earlier run's bytes.
    """
    facts = ended.model_dump(mode="json", exclude=_AFTER_SEALING, exclude_none=True)
    return canonical_bytes({"schema": "referee.facts/1", **facts})


def seal(run: str, directory: Path, evidence: Evidence) -> tuple[tuple[EvidenceRef, ...], str]:
    """Keep every known file of ``directory`` durably; nobody writes to it any more.

    Returns:
        The references in the order of ``NAMES``, and the digest of the manifest, itself kept as evidence.
    """
    there = (name for name in NAMES if (directory / name).is_file())
    refs = tuple(evidence.keep(name, directory / name, given_up=True) for name in there)
    files = [{"bytes": ref.bytes, "digest": ref.digest, "name": ref.name} for ref in sorted(refs, key=lambda r: r.name)]
    manifest = canonical_bytes({"schema": "referee.evidence/1", "run": run, "files": files})
    return refs, evidence.keep("manifest.json", manifest).digest
