"""Verification of a workspace from its records and evidence alone: no engine, no key, no network.

Every chain, every digest, every manifest, every derived recording and every score is computed again; the first thing
that does not hold is named.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import referee
from referee.core import toml_text
from referee.core.canonical import canonical_bytes, digest_of, digest_of_bytes, strict_loads
from referee.core.cast import cast
from referee.core.chain import Link
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, EvidenceRef, Record, Replayed
from referee.core.transcript import transcript
from referee.errors import Finding, NothingMatched, UsageError
from referee.protocols import Evidence
from referee.runner.agreement import check_agreement, check_numbers
from referee.runner.bakeoff.recompute import Recomputed
from referee.runner.rejudge import judge_from, read_named, score_bytes
from referee.runner.verify_cut import ends_cut_off
from referee.runner.verify_replays import check_replay
from referee.scoring.gather import RunRecords, gather

_PIECE = 1 << 20
MANIFEST_SCHEMA = "referee.evidence/1"
_MANIFEST = b'{"files":'

#: What is derived from the recording, and how.
_DERIVED: dict[str, Callable[[Iterable[bytes], Iterable[bytes]], Iterator[bytes]]] = {
    "session.cast": cast,
    "transcript.txt": transcript,
}


class ChainFile(Protocol):
    """A record file whose chain holds."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def links(self) -> Sequence[Link]:
        """Its whole lines."""


class TornLine(Protocol):
    """A torn last line, reported and no fault."""

    @property
    def sentence(self) -> str:
        """What to tell the reader."""


class ReadableRecords(Protocol):
    """Records that can be verified."""

    def files(self) -> Sequence[ChainFile]:
        """All files, each chain checked. Raises ``Finding``."""

    def read(self) -> list[Record]:
        """All records. Raises ``Finding``."""

    def torn(self) -> Sequence[TornLine]:
        """Torn last lines of dead writers."""


class ReadableEvidence(Evidence, Protocol):
    """Evidence that can be verified."""

    def digests(self) -> Iterator[str]:
        """The digests of all blobs."""


@dataclass
class Verified:
    """What was found to hold, in counts; ``unjudged`` runs have not ended, ``unnamed`` blobs belong to no record.

    ``torn`` lines, ``loose`` answers, which no row names, and ends that may be ``cut_off`` are told and no fault.
    """

    record_files: int = 0
    records: int = 0
    runs: int = 0
    unjudged: int = 0
    evidence_files: int = 0
    evidence_bytes: int = 0
    unnamed: int = 0
    derived: int = 0
    scores: int = 0
    scores_compared: int = 0
    replays: int = 0
    shards: int = 0
    rows: int = 0
    answer_bytes: int = 0
    torn: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)


def verify(
    records: ReadableRecords,
    evidence: ReadableEvidence,
    scores: Path,
    runs: Sequence[str] = (),
    *,
    bakeoff: Recomputed | None = None,
) -> Verified:
    """Verify a workspace, or some of its runs (the chains are always verified whole).

    Args:
        records: the workspace's records.
        evidence: the workspace's evidence.
        scores: the directory of derived judgements; a missing one is fine, a wrong one is not.
        runs: ids of the runs; empty means all, and every blob and score file besides.
        bakeoff: what was found of the bake-offs' rows, which stand in files of their own.

    Raises:
        Finding: the first thing that does not hold.
        NothingMatched: there is no record at all, or none of a named run.
    """
    done = Verified()
    files = records.files()
    done.record_files = len(files)
    done.records = sum(len(file.links) for file in files)
    done.torn = [torn.sentence for torn in records.torn()]
    every = gather(records.read())
    for run in runs:
        if run not in every:
            raise NothingMatched(f"there is no run {run}", todo="`referee show` lists the runs of this workspace")
    named: frozenset[str] = frozenset()
    if bakeoff is not None:
        done.shards, done.rows, done.answer_bytes = bakeoff.shards, bakeoff.rows, bakeoff.answer_bytes
        done.torn += bakeoff.torn
        done.loose = bakeoff.loose
        named = frozenset(bakeoff.named)
        done.evidence_files += len(named)  # each was read whole, and is what it is called
        done.evidence_bytes += sum(_size(evidence, digest) for digest in named)
    if not every and not done.record_files and not done.shards:
        _loose(every, evidence, scores, done, named)  # records that were taken away whole leave their evidence
        raise NothingMatched("there is nothing to verify: the workspace has no records")
    for run in runs or every:
        _run(every[run], evidence, scores, done)
        _replays(every[run], evidence, done)
    if not runs:
        check_numbers(every.values())
        _loose(every, evidence, scores, done, named)
    done.cut_off = ends_cut_off([every[run] for run in runs or every], _manifests(evidence))
    return done


def _size(evidence: Evidence, digest: str) -> int:
    with evidence.open(digest) as blob:
        return blob.seek(0, os.SEEK_END)


def _run(found: RunRecords, evidence: Evidence, scores: Path, done: Verified) -> None:
    done.runs += 1
    planned, end = found.planned, found.end
    if end is None:
        done.unjudged += 1
        return
    run = planned.run
    _manifest(run, end, evidence)
    done.evidence_files += 1
    for ref in end.evidence:
        done.evidence_bytes += _blob(run, ref, evidence)
        done.evidence_files += 1
    _lock(planned, end, evidence)
    _recording(run, end)
    check_agreement(planned, end, evidence)
    for name, make in _DERIVED.items():
        done.derived += _derived(run, end, evidence, name, make)
    judgement = judge_from(planned, end, evidence)
    done.scores += 1
    kept = scores / f"{run}.json"
    if kept.is_file():
        if kept.read_bytes() != score_bytes(judgement):
            raise Finding(
                f"run {run}: the score in {kept} is not what records and evidence give{_age(planned)}",
                todo="records, evidence or this score were changed after judging: compare them with a copy kept "
                "elsewhere before you delete the score to have it computed again",
            )
        done.scores_compared += 1


def _age(planned: AttemptPlanned) -> str:
    """What is said of a run that another version made: it may have judged otherwise."""
    made = planned.lock.harness_version
    return "" if made == referee.__version__ else f" to version {referee.__version__}; version {made} made the run"


def _replays(found: RunRecords, evidence: Evidence, done: Verified) -> None:
    for replayed in found.replays:
        _manifest(replayed.replay, replayed, evidence)
        done.evidence_files += 1 + len(replayed.evidence)
        done.evidence_bytes += sum(_blob(replayed.replay, ref, evidence) for ref in replayed.evidence)
        check_replay(found, replayed, evidence)
        done.replays += 1


def _manifest(run: str, end: AttemptEnded | AttemptFound | Replayed, evidence: Evidence) -> None:
    """The manifest names exactly the files that the record names, and is canonical."""
    try:
        with evidence.open(end.evidence_digest) as blob:
            data = blob.read()
    except (UsageError, Finding) as exc:
        raise Finding(f"run {run}: the evidence manifest: {exc.message}", todo=exc.todo) from exc
    if digest_of_bytes(data) != end.evidence_digest:
        raise Finding(f"run {run}: the evidence manifest {end.evidence_digest} has changed")
    files = [{"bytes": ref.bytes, "digest": ref.digest, "name": ref.name} for ref in end.evidence]
    expected = {"schema": MANIFEST_SCHEMA, "run": run, "files": sorted(files, key=lambda one: str(one["name"]))}
    if canonical_bytes(expected) != data:
        raise Finding(f"run {run}: the evidence manifest {end.evidence_digest} is not that of the record's files")


def _blob(run: str, ref: EvidenceRef, evidence: Evidence) -> int:
    sha = hashlib.sha256()
    size = 0
    try:
        with evidence.open(ref.digest) as blob:
            for piece in _pieces(blob):
                sha.update(piece)
                size += len(piece)
    except (UsageError, Finding) as exc:
        raise Finding(f"run {run}: {ref.name}: {exc.message}", todo=exc.todo) from exc
    if f"sha256:{sha.hexdigest()}" != ref.digest:
        raise Finding(f"run {run}: the evidence file {ref.name} ({ref.digest}) has changed")
    if size != ref.bytes:
        raise Finding(f"run {run}: the evidence file {ref.name} has {size} bytes, its record says {ref.bytes}")
    return size


def _lock(planned: AttemptPlanned, end: AttemptEnded | AttemptFound, evidence: Evidence) -> None:
    """The digests of the lock are those of the files that were kept."""
    lock = planned.lock
    subject = read_named(evidence, end.evidence, "subject.toml")
    if subject is not None:
        _same(planned.run, "subject.toml", _subject_digest(planned.run, subject), lock.subject.file_digest)
    mission = read_named(evidence, end.evidence, "mission.json")
    if mission is not None:
        _same(planned.run, "mission.json", _mission_digest(planned.run, mission), lock.mission_digest)
    packages = read_named(evidence, end.evidence, "packages.json")
    if packages is not None:
        _same(planned.run, "packages.json", digest_of_bytes(packages), lock.environment.packages_digest or "none")


def _same(run: str, name: str, found: str, locked: str) -> None:
    if found != locked:
        raise Finding(f"run {run}: {name} has the digest {found}, the run was planned with {locked}")


def _subject_digest(run: str, data: bytes) -> str:
    try:
        return digest_of("subject", toml_text.loads(data.decode("utf-8")))
    except (ValueError, UsageError) as exc:
        raise Finding(f"run {run}: subject.toml cannot be read: {exc}") from exc


def _mission_digest(run: str, data: bytes) -> str:
    try:
        told: Any = strict_loads(data)
    except UsageError as exc:
        raise Finding(f"run {run}: mission.json is {exc.message}") from exc
    if not isinstance(told, dict):
        raise Finding(f"run {run}: mission.json is no object")
    return digest_of("mission", {key: value for key, value in told.items() if key not in {"run", "deadline"}})


def _recording(run: str, end: AttemptEnded | AttemptFound) -> None:
    """The totals that the record gives of the recording are those of its bytes."""
    if not isinstance(end, AttemptEnded) or end.recording is None:
        return
    raw = [ref for ref in end.evidence if ref.name == "session.raw"]
    if raw and raw[0].bytes != end.recording.bytes:
        raise Finding(f"run {run}: session.raw has {raw[0].bytes} bytes, its record says {end.recording.bytes}")


def _derived(
    run: str,
    end: AttemptEnded | AttemptFound,
    evidence: Evidence,
    name: str,
    make: Callable[[Iterable[bytes], Iterable[bytes]], Iterator[bytes]],
) -> int:
    refs = {ref.name: ref for ref in end.evidence}
    if name not in refs:
        return 0
    if "session.raw" not in refs or "session.timing" not in refs:
        raise Finding(f"run {run}: there is a {name} without the recording that it is derived from")
    if isinstance(end, AttemptFound) and refs[name].bytes == 0:
        return 0
    sha = hashlib.sha256()
    left = refs[name].bytes
    with evidence.open(refs["session.raw"].digest) as raw, evidence.open(refs["session.timing"].digest) as timing:
        for piece in make(_pieces(raw), _pieces(timing)):
            # A harness that was killed may have written the first part of it only.
            part = piece[:left] if isinstance(end, AttemptFound) else piece
            sha.update(part)
            left -= len(part)
    if f"sha256:{sha.hexdigest()}" != refs[name].digest:
        raise Finding(f"run {run}: {name} is not what raw bytes and times give")
    return 1


def _loose(
    every: dict[str, RunRecords], evidence: ReadableEvidence, scores: Path, done: Verified, checked: frozenset[str]
) -> None:
    """Blobs that no record names must be whole too; a score needs a run. ``checked`` blobs are named and whole."""
    named = set(checked)
    named |= {ref.digest for found in every.values() if found.end is not None for ref in found.end.evidence}
    named |= {found.end.evidence_digest for found in every.values() if found.end is not None}
    for found in every.values():
        named |= {ref.digest for replayed in found.replays for ref in replayed.evidence}
        named |= {replayed.evidence_digest for replayed in found.replays}
    for digest in evidence.digests():
        if digest not in named:
            done.unnamed += 1
            with evidence.open(digest) as blob:
                first = blob.read(_PIECE)
                sha = hashlib.sha256(first)
                for piece in _pieces(blob):
                    sha.update(piece)
            if f"sha256:{sha.hexdigest()}" != digest:
                raise Finding(f"the evidence {digest}, which no record names, has changed")
            run = _run_of_manifest(first)
            if run is not None and run not in every:
                raise Finding(
                    f"the evidence holds the manifest {digest} of the run {run}, of which no record speaks",
                    todo="restore the missing record file from a copy: every attempt counts",
                )
    for file in sorted(scores.glob("*.json")) if scores.is_dir() else ():
        if file.stem not in every:
            raise Finding(f"{file} is the score of a run that is not in the records")


def _manifests(evidence: ReadableEvidence) -> Iterator[tuple[str, str]]:
    """Digest and run of each run's manifest that the store holds."""
    for digest in evidence.digests():
        with evidence.open(digest) as blob:
            start = blob.read(len(_MANIFEST))
            run = _run_of_manifest(start + blob.read()) if start == _MANIFEST else None
        if run is not None:
            yield digest, run


def _run_of_manifest(data: bytes) -> str | None:
    """The run whose manifest that is; None for other bytes. An attempt is planned in the records before it has one."""
    if not data.startswith(_MANIFEST) or MANIFEST_SCHEMA.encode() not in data:
        return None
    try:
        found = strict_loads(data)
    except UsageError:
        return None
    run = found.get("run") if isinstance(found, dict) and found.get("schema") == MANIFEST_SCHEMA else None
    return run if isinstance(run, str) and run.startswith("r-") else None


def _pieces(blob: BinaryIO) -> Iterator[bytes]:
    while piece := blob.read(_PIECE):
        yield piece
