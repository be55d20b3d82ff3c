"""Holds the shards of a workspace against the log of its runs: none may be gone, added or shortened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.adapters.store.shard_files import ScannedShard, first_line
from referee.core.records import BakeoffRecord, ShardAnnounced, ShardHead, ShardSealed
from referee.errors import Finding

_TODO = "rows that were made are never taken away: put the file back from a copy"


@dataclass(frozen=True)
class SeenShard:
    """What is remembered of a shard that was read."""

    run: str
    target: str
    protocol_digest: str
    rows: int
    head: str
    closed: bool
    alive: bool

    @classmethod
    def of(cls, shard: ScannedShard) -> SeenShard:
        """The little that is held against the log."""
        opened = shard.opened
        return cls(
            run=opened.run,
            target=opened.target.name,
            protocol_digest=opened.protocol_digest,
            rows=shard.fact.rows,
            head=shard.head,
            closed=shard.closed is not None,
            alive=shard.alive,
        )


def check_announced(records: Path, log: Sequence[BakeoffRecord], seen: Mapping[str, SeenShard]) -> dict[str, str]:
    """Every shard that a run announced is there, as long as the log says, and none holds rows that nobody announced.

    Args:
        records: the directory of shards.
        log: the workspace's bake-off records, read after the shards.
        seen: what was read, by name.

    Returns:
        The evidence log of each announced shard, by the shard's name.

    Raises:
        Finding: the first shard that does not hold.
    """
    announced: dict[str, ShardAnnounced] = {}
    for record in log:
        if isinstance(record, ShardAnnounced) and announced.setdefault(record.shard, record) is not record:
            raise Finding(f"the shard {record.shard} was announced twice")
    for record in announced.values():
        _there(records, record, seen)
    for name, shard in seen.items():
        if shard.rows and name not in announced:
            raise Finding(f"{name}: no run announced it, and it holds {shard.rows} rows", todo="no run made this file")
    for ended in log:
        if isinstance(ended, ShardSealed):
            _sealed(ended, seen)
    return {name: record.answers for name, record in announced.items()}


def missed(
    log: Sequence[BakeoffRecord],
    there: Mapping[str, ShardHead],
    *,
    records: Path,
    among: Callable[[ShardAnnounced], bool],
) -> list[str]:
    """Which announced shards are gone, or hold other rows than the log says: a clause for each.

    Args:
        log: the workspace's bake-off records.
        there: how far the shards reach that were read, by name.
        records: the directory of shards.
        among: of which announcements to say it.
    """
    ends = _farthest(log)
    announced = {one.shard: one for one in log if isinstance(one, ShardAnnounced) and among(one)}
    said = []
    for name, record in sorted(announced.items()):
        end, now = ends.get(name), there.get(name)
        if not (records / name).exists():
            held = f" with {end.rows} rows" if end is not None else ""
            said.append(f"the shard {name}, announced by run {record.run} on {record.at[:10]}, is gone{held}")
        elif end is not None and now is None and _emptied(records / name):
            said.append(f"the shard {name} holds 0 rows, where it held {end.rows}")
        elif end is not None and now is not None and (now.rows, now.head) != (end.rows, end.head):
            others = " others" if now.rows == end.rows else ""
            said.append(f"the shard {name} holds {now.rows} rows, where it held {end.rows}{others}")
    return said


def _farthest(log: Sequence[BakeoffRecord]) -> dict[str, ShardHead]:
    """How far each shard reached at most, of what the log says."""
    ends: dict[str, ShardHead] = {}
    for record in log:
        if isinstance(record, ShardAnnounced | ShardSealed):
            for end in record.after if isinstance(record, ShardAnnounced) else (record.end,):
                if end.shard not in ends or ends[end.shard].rows < end.rows:
                    ends[end.shard] = end
    return ends


def _emptied(shard: Path) -> bool:
    try:
        return first_line(shard) is None
    except Finding:  # whoever reads it says so
        return False


def _there(records: Path, record: ShardAnnounced, seen: Mapping[str, SeenShard]) -> None:
    shard = seen.get(record.shard)
    if shard is not None:
        said = (record.run, record.target, record.protocol_digest)
        if said != (shard.run, shard.target, shard.protocol_digest):
            raise Finding(f"{record.shard}: says another run, target or protocol than its run announced")
    elif not (records / record.shard).exists():  # it may have been opened since
        when = f"announced by run {record.run} on {record.at[:10]}"
        raise Finding(f"the shard {record.shard} of {record.target}, {when}, is gone", todo=_TODO)
    for earlier in record.after:
        _reaches(earlier, seen, f"run {record.run} went on from it")


def _sealed(record: ShardSealed, seen: Mapping[str, SeenShard]) -> None:
    shard = seen.get(record.end.shard)
    if shard is not None and shard.alive:
        return  # it was read before its last line was written
    _reaches(record.end, seen, f"run {record.run} closed it")


def _reaches(end: ShardHead, seen: Mapping[str, SeenShard], when: str) -> None:
    """The shard ends where it ended then."""
    shard = seen.get(end.shard)
    if shard is None:
        raise Finding(f"the shard {end.shard}, which held {end.rows} rows when {when}, is gone", todo=_TODO)
    if shard.head != end.head or shard.rows != end.rows:
        held = f"it held {end.rows}{' others' if shard.rows == end.rows else ''} when {when}"
        raise Finding(f"{end.shard}: holds {shard.rows} rows, {held}", todo=_TODO)
