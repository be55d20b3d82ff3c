"""Gathers what a report is made of: the frozen protocol, the counts of the named shards, and the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from referee.adapters.store.aggregate import tally
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import ScannedShard, every_shard, first_line, scan_shard, select_shards
from referee.core.bakeoff import Comparison, Protocol
from referee.core.records import BakeoffRecord, MarketSnapshot, ShardAnnounced, ShardHead
from referee.errors import Finding, NothingMatched, UsageError
from referee.publish.bakeoff.report import Basis
from referee.runner.bakeoff.announced import missed
from referee.runner.bakeoff.decide import decisions_of, reviews_of
from referee.runner.bakeoff.freeze import freezes_of, frozen_protocol
from referee.scoring.bakeoff import summarise
from referee.scoring.bakeoff.market import Market, market


def gather(
    log: RecordFiles,
    evidence: LocalEvidence,
    name: str,
    shards: Sequence[Path],
    *,
    beside: Comparison | None = None,
) -> Basis:
    """Everything behind a report of these shards, under the protocol as it was last frozen.

    Args:
        log: the workspace's bake-off records.
        evidence: where the frozen bytes are kept.
        name: the protocol.
        shards: the files, chosen by ``shards_of`` or ``select_shards``.
        beside: a comparison that is asked for now and was not registered.

    Raises:
        Finding: the protocol was never frozen, a shard is of another protocol, or its chain does not hold.
    """
    records = log.read_bakeoff()
    freezes = freezes_of(records, name)
    if not freezes:
        raise Finding(f"the protocol {name} is not frozen", todo=f"`referee bakeoff freeze {name}`, then run it")
    loaded = frozen_protocol(freezes[-1], evidence)
    scanned: list[ScannedShard] = []

    def scan(path: Path) -> ScannedShard:
        shard = scan_shard(path)
        if shard.opened.protocol != name:
            raise Finding(
                f"the shard {shard.name} is of the protocol {shard.opened.protocol}, not of {name}",
                todo="name the shards of one protocol",
            )
        scanned.append(shard)
        return shard

    targets, cases, facts = tally(shards, scan=scan)
    summary = summarise(
        _with(loaded.protocol, beside),
        loaded.suite,
        targets,
        cases,
        reviews_of(records, name),
        decisions_of(records, name),
        facts,
        subsets=loaded.subsets,
    )
    runs = {shard.opened.run for shard in scanned}
    return Basis(
        summary=summary,
        protocol=loaded.protocol,
        suite=loaded.suite,
        freezes=tuple(freezes),
        market=_markets(records, name, runs, evidence),
        shards=tuple(scanned),
    )


def shards_of(log: RecordFiles, records: Path, name: str, named: Sequence[str], *, every: bool) -> list[Path]:
    """The shards that were named, or, where ``every``, all under the protocol as it is frozen now.

    Shards under an earlier freeze are taken by name: rows under two freezes are two provenances.

    Raises:
        UsageError: none is named, a name is none of a shard, or shards are named and all are asked for.
        NothingMatched: there is no such shard, or the protocol has none.
    """
    if named and every:
        raise UsageError("--all and --shard say two different things", todo="name the shards, or ask for all of them")
    if named or not every:
        return select_shards(records, named)
    said = log.read_bakeoff()
    freezes = freezes_of(said, name)
    if not freezes:
        how = f"`referee bakeoff freeze {name}`, then run it"
        raise NothingMatched(f"the protocol {name} was never frozen here, so it has no shard", todo=how)
    wanted = (name, freezes[-1].digest)
    opened = ((path, first_line(path)) for path in every_shard(records))
    found = [path for path, first in opened if first and (first.protocol, first.protocol_digest) == wanted]
    if not found:
        announced = (one for one in said if isinstance(one, ShardAnnounced))
        if any((one.protocol, one.protocol_digest) == wanted for one in announced):
            raise NothingMatched(f"every shard of the protocol {name} is gone", todo="put the files back from a copy")
        raise NothingMatched(f"the protocol {name} has no shard yet", todo=f"`referee bakeoff run {name}` makes them")
    return found


def answers_gone(log: RecordFiles, answers: Path, basis: Basis) -> list[str]:
    """The evidence logs behind a report's rows that are no longer in the directory ``answers``, by name.

    A report says nothing of them, since it is made of its shards alone; `referee verify` needs them.
    """
    rows = {shard.name for shard in basis.shards if shard.fact.rows}
    announced = (one for one in log.read_bakeoff() if isinstance(one, ShardAnnounced) and one.shard in rows)
    return sorted({one.answers for one in announced if not (answers / one.answers).is_file()})


def shards_missed(log: RecordFiles, records: Path, basis: Basis, *, every: bool) -> list[str]:
    """Which shards beside a report's were announced and are gone, or hold other rows than the log says.

    Where ``every`` shard was asked for, those of all targets under its freezes, else those of its own targets.
    """
    there = {one.name: ShardHead(shard=one.name, rows=one.fact.rows, head=one.head) for one in basis.shards}
    freezes = {one.opened.protocol_digest for one in basis.shards}
    targets = {(one.opened.protocol_digest, one.opened.target.name) for one in basis.shards}

    def among(one: ShardAnnounced) -> bool:
        return one.protocol_digest in freezes and (every or (one.protocol_digest, one.target) in targets)

    return missed(log.read_bakeoff(), there, records=records, among=among)


def _with(protocol: Protocol, beside: Comparison | None) -> Protocol:
    return protocol if beside is None else protocol.model_copy(update={"comparisons": (beside,)})


def _markets(
    records: Sequence[BakeoffRecord], name: str, runs: set[str], evidence: LocalEvidence
) -> tuple[Market, ...]:
    """The snapshots of the runs behind the shards, read: those of later runs are no part of this report."""
    found = [one for one in records if isinstance(one, MarketSnapshot) and one.protocol == name and one.run in runs]
    ordered = sorted(found, key=lambda one: (one.target, one.at, one.run, one.source))
    return tuple(market(one, None if one.said is None else evidence.read(one.said.digest)) for one in ordered)
