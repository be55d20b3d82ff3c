"""Reading shards: chosen by base name only, chains checked on their bytes, torn last lines kept aside and reported."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import ValidationError

from referee.adapters.store.exclusive import writer_lives
from referee.core.bakeoff import ShardClosed, ShardOpened
from referee.core.canonical import canonical_bytes, strict_loads
from referee.core.chain import genesis
from referee.core.facts import Fact
from referee.core.tallies import ShardFact
from referee.errors import Finding, NothingMatched, UsageError
from referee.regular_files import open_regular

_NAME = re.compile(r"results-[A-Za-z0-9-]{1,80}\.jsonl")
#: What helps against a shard that was changed.
_TODO = "rows that were made are never changed: put the file back from a copy"
_TAG = hashlib.sha256(b"referee/record/1\n")
_Line = TypeVar("_Line", bound=Fact)


@dataclass(frozen=True)
class ScannedShard:
    """One shard whose chain holds: what it says of itself, and how far its whole lines reach.

    ``closed`` is None where the writer was killed or still lives; ``whole`` counts the bytes of the whole lines, and
    ``head`` is the digest of the last of them.
    """

    path: Path
    fact: ShardFact
    opened: ShardOpened
    closed: ShardClosed | None
    whole: int
    alive: bool
    longest: int
    head: str

    @property
    def name(self) -> str:
        """Its base name."""
        return self.path.name


def select_shards(records: Path, names: Sequence[str]) -> list[Path]:
    """The shards of these base names, in order of name.

    Raises:
        UsageError: a name bears a path, is no shard's, or stands twice; or none is named.
        NothingMatched: there is no such shard.
    """
    if not names:
        raise UsageError("no shard is named", todo="name the shards of the report by their base names")
    for name in names:
        if not _NAME.fullmatch(name):
            why = "bears a path" if "/" in name or "\\" in name else "is no name of a shard"
            raise UsageError(f"{name!r} {why}", todo="name shards as results-….jsonl, without a directory")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the shard {name} is named twice", todo="name each shard once")
        if not (records / name).is_file() or (records / name).is_symlink():
            raise NothingMatched(f"there is no shard {name}", todo="see the workspace's records/ for their names")
    return [records / name for name in sorted(names)]


def every_shard(records: Path) -> list[Path]:
    """Every shard of a workspace, in order of name."""
    return sorted(path for path in records.glob("results-*.jsonl") if _NAME.fullmatch(path.name))


def first_line(path: Path) -> ShardOpened | None:
    """What a shard says of itself, without reading the rest; None where not even its first line is whole.

    Raises:
        Finding: its first line is none of a shard.
    """
    with _opened(path) as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        return None
    return _parse(ShardOpened, line, path.name, 1)


def alive(path: Path) -> bool:
    """Whether the shard's writer lives."""
    with _opened(path) as file:
        return writer_lives(file.fileno())


def scan_shard(path: Path) -> ScannedShard:
    """Check a shard's chain on its bytes, in one pass and constant memory.

    That the lines are canonical JSON, too, is left to ``referee verify``; a line that was changed, moved, added or
    taken out is found here.

    Raises:
        Finding: the first line that does not hold, by number, and why.
    """
    name = path.name
    with _opened(path) as file:
        living = writer_lives(file.fileno())  # asked before reading: a dead writer's file can no longer grow
        whole, prev, seq, longest = 0, genesis(name).encode(), 0, 0
        sha = hashlib.sha256()
        last = b""
        torn = odd = 0
        opened: ShardOpened | None = None
        alike: tuple[bytes, ...] = ()
        for line in file:
            sha.update(line)
            if not line.endswith(b'},"prev":"%b","seq":%d}\n' % (prev, seq)):
                if not line.endswith(b"\n"):
                    torn = len(line)
                    break
                raise _broken(name, line, prev.decode(), seq)
            digest = _TAG.copy()
            digest.update(memoryview(line)[:-1])
            prev = b"record:sha256:" + digest.hexdigest().encode()
            for part in alike:
                if part not in line:
                    odd = odd or seq
            whole += len(line)
            if not seq:
                opened = _parse(ShardOpened, line, name, 1)
                alike = _alike(opened)
            longest = max(longest, len(line))
            seq += 1
            last = line
    if opened is None:
        raise Finding(f"{name}: has no whole line", todo="leave this shard out: its runner ended before its first row")
    closed = _parse(ShardClosed, last, name, seq) if b'"kind":"shard-closed"' in last and seq > 1 else None
    rows = seq - 1 - (closed is not None)
    if 0 < odd <= rows:
        what = "is no row that says of run, target and lists what the first line says"
        raise Finding(f"{name}, line {odd + 1}: {what}", todo=_TODO)
    if closed is not None and closed.rows != rows:
        raise Finding(f"{name}: its last line counts {closed.rows} rows, it has {rows}", todo=_TODO)
    fact = ShardFact(name=name, sha256=sha.hexdigest(), rows=rows, torn_bytes=torn)
    return ScannedShard(path, fact, opened, closed, whole, living, longest, prev.decode())


def bodies(shard: ScannedShard) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and body of every whole line, strictly read.

    Raises:
        Finding: a line is not in canonical form.
    """
    with _opened(shard.path) as file:
        left = shard.whole
        for number, line in enumerate(file, 1):
            if left <= 0:
                return
            left -= len(line)
            read = _strictly(line, shard.name, number)
            if canonical_bytes(read) != line[:-1] or not isinstance(read["body"], dict):
                raise Finding(f"{shard.name}, line {number}: is not in canonical form")
            yield number, read["body"]


def _alike(opened: ShardOpened) -> tuple[bytes, ...]:
    """What stands in every row of the shard, as its canonical line spells it: members of neighbouring names at once.

    A quotation mark inside a string is escaped, so none of this can stand in one.
    """
    runs: tuple[dict[str, Any], ...] = (
        {"expected": len(opened.identities)},
        {"harness_version": opened.harness_version},
        {"identities_digest": opened.identities_digest},
        {"kind": "row", "lane": opened.target.lane},
        {"protocol_digest": opened.protocol_digest},
        {"run": opened.run, "sovereignty": opened.target.sovereignty},
        {
            "subset": opened.subset,
            "suite_digest": opened.suite_digest,
            "surface_digest": opened.surface_digest,
            "target": opened.target.name,
            "target_digest": opened.target_digest,
        },
    )
    return tuple(canonical_bytes(run)[1:-1] + b"," for run in runs)


def _opened(path: Path) -> BinaryIO:
    try:
        descriptor = open_regular(path)
    except OSError as exc:
        raise Finding(f"the shard {path.name} cannot be read: {exc.strerror}") from exc
    return os.fdopen(descriptor, "rb", buffering=1 << 20)


def _broken(name: str, line: bytes, prev: str, seq: int) -> Finding:
    """Why a whole line does not stand where it stands."""
    where = f"{name}, line {seq + 1}"
    try:
        read = strict_loads(line)
    except UsageError as exc:
        return Finding(f"{where}: {exc.message}", todo=_TODO)
    if not isinstance(read, dict) or set(read) != {"body", "prev", "seq"} or not isinstance(read["body"], dict):
        return Finding(f"{where}: is no record line of body, prev and seq", todo=_TODO)
    if read["seq"] != seq:
        return Finding(f"{where}: says it is number {read['seq']}, it stands at {seq}", todo=_TODO)
    if read["prev"] != prev:
        return Finding(f"{where}: does not continue the line before it", todo=_TODO)
    return Finding(f"{where}: is not in canonical form", todo=_TODO)


def _strictly(line: bytes, name: str, number: int) -> dict[str, Any]:
    try:
        read: dict[str, Any] = strict_loads(line)
    except UsageError as exc:
        raise Finding(f"{name}, line {number}: {exc.message}") from exc
    return read


def _parse(kind: type[_Line], line: bytes, name: str, number: int) -> _Line:
    try:
        return kind.model_validate(_strictly(line, name, number)["body"])
    except (ValidationError, TypeError, KeyError) as exc:
        what = "opening" if kind is ShardOpened else "closing"
        raise Finding(f"{name}, line {number}: is no {what} line of a shard") from exc
