"""Sealing: what lies in an attempt's spool directory becomes content-addressed evidence with a manifest."""

from __future__ import annotations

from pathlib import Path

from referee.core.canonical import canonical_bytes
from referee.core.records import EvidenceRef
from referee.protocols import Evidence

#: The files that an attempt may leave, in the order in which a reader wants them.
NAMES = (
    "session.raw",
    "session.timing",
    "session.cast",
    "transcript.txt",
    "report.json",
    "rerun.txt",
    "harness.jsonl",
    "mission.json",
    "subject.toml",
    "packages.json",
)


def seal(run: str, directory: Path, evidence: Evidence) -> tuple[tuple[EvidenceRef, ...], str]:
    """Keep every known file of ``directory`` durably.

    Returns:
        The references in the order of ``NAMES``, and the digest of the manifest, itself kept as evidence.
    """
    refs = tuple(evidence.keep(name, directory / name) for name in NAMES if (directory / name).is_file())
    files = [{"bytes": ref.bytes, "digest": ref.digest, "name": ref.name} for ref in sorted(refs, key=lambda r: r.name)]
    manifest = canonical_bytes({"schema": "referee.evidence/1", "run": run, "files": files})
    return refs, evidence.keep("manifest.json", manifest).digest
