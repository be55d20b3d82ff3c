"""The plan of a run: for each target the exact list of (case, k) that it owes, and which of them have no row yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from referee.adapters.catalog.bakeoff_protocols import CASES, LoadedProtocol
from referee.adapters.store.locks import alone
from referee.adapters.store.shard_files import ScannedShard, alive, every_shard, first_line, scan_shard
from referee.core.bakeoff import Planned, Protocol, ShardOpened, Subset, Surface, Target
from referee.core.canonical import digest_of, digest_of_bytes
from referee.core.cases import Suite
from referee.core.provenance import write_source
from referee.core.records import ShardHead
from referee.errors import CouldNotVerify, NothingMatched, UsageError

_WAIT = "wait for its end, or stop it; then run again: only what is missing is run"

#: One attempt that is owed: the case and the repeat, which counts from 0.
Slot = tuple[str, int]


@dataclass(frozen=True)
class TargetPlan:
    """One target of a run.

    ``owed`` is everything that it owes under the protocol, in the suite's order; ``missing`` what has no row yet, all
    cases once before any case twice, so that a run that is stopped leaves no part of the suite out. ``after`` are the
    earlier shards whose rows fill the rest, ``sources`` where these rows come from, ``served`` the models that answered
    them. ``tripped`` is the shard in which the breaker stopped the target.
    """

    target: Target
    subset: str | None
    owed: tuple[Slot, ...]
    missing: tuple[Slot, ...]
    after: tuple[ShardHead, ...] = ()
    sources: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    tripped: str | None = None


def identities(protocol: Protocol, suite: Suite, subset: Subset | None) -> tuple[Slot, ...]:
    """The exact list of (case, k): the whole suite with the repeats of each arm, or the registered subset."""
    if subset is not None:
        chosen = set(subset.cases)
        return tuple((case.id, k) for case in suite.cases if case.id in chosen for k in range(subset.repeats))
    return tuple(
        (case.id, k) for case in suite.cases for k in range(protocol.arm_repeats.get(case.arm, protocol.repeats))
    )


def identities_digest(slots: Sequence[Slot]) -> str:
    """What rows carry of the list."""
    return digest_of("identities", [list(slot) for slot in slots])


def target_digest(target: Target) -> str:
    """What rows carry of the target's file."""
    return digest_of("target", target.model_dump(mode="json"))


def surface_digest(surface: Surface) -> str:
    """What rows carry of what the lane leaves uncontrolled."""
    return digest_of("surface", surface.model_dump(mode="json"))


def suite_digest(loaded: LoadedProtocol) -> str:
    """What rows carry of the suite: its file's bytes."""
    return digest_of("suite", digest_of_bytes(loaded.files[CASES]))


def choose(protocol: Protocol, names: Sequence[str]) -> list[Planned]:
    """The protocol's targets, or those of them that are named.

    Raises:
        NothingMatched: a name is no target of the protocol.
        UsageError: a name is given twice, or the protocol plans a target twice.
    """
    planned = {one.target: one for one in protocol.targets}
    if len(planned) != len(protocol.targets):
        raise UsageError(f"the protocol {protocol.name} plans a target twice", todo="give it one name for each subset")
    for name in names:
        if name not in planned:
            raise NothingMatched(
                f"the protocol {protocol.name} has no target {name}", todo=f"it has: {', '.join(planned)}"
            )
        if names.count(name) > 1:
            raise UsageError(f"the target {name} is named twice")
    return [one for one in protocol.targets if not names or one.target in names]


def alone_at(records: Path, protocol_digest: str, target: str) -> AbstractContextManager[None]:
    """Hold this from before the plan to the last row: two runs of a target at once would both run what is missing."""
    busy = f"another run of {target} under this protocol is under way"
    return alone(records, f"run {protocol_digest} {target}", busy=busy, todo=_WAIT)


def plan_target(
    loaded: LoadedProtocol, planned: Planned, *, protocol_digest: str, earlier: Sequence[Path]
) -> TargetPlan:
    """What one target owes and lacks.

    A slot is filled by any row of an earlier shard of this frozen protocol, whatever the row says: nothing is run again
    because of its result (bake-off §11).

    Raises:
        Finding: an earlier shard does not hold.
        CouldNotVerify: another run of this target is under way.
    """
    target = loaded.targets[planned.target]
    subset = loaded.subsets[planned.subset] if planned.subset is not None else None
    owed = identities(loaded.protocol, loaded.suite, subset)
    own = [path for path in earlier if _is_of(path, protocol_digest, target.name)]
    for path in own:
        if alive(path):
            raise CouldNotVerify(
                f"another run of {target.name} under this protocol is under way: it writes {path.name}",
                todo=_WAIT,
            )
    scanned = [scan_shard(path) for path in own]
    there, served = answered_slots(scanned)
    missing = tuple(sorted((slot for slot in owed if slot not in there), key=lambda slot: slot[1]))
    after = tuple(ShardHead(shard=one.name, rows=one.fact.rows, head=one.head) for one in scanned)
    sources = tuple(dict.fromkeys(shard_source(one.opened) for one in scanned if one.fact.rows))
    tripped = next((one.name for one in scanned if one.closed is not None and one.closed.ended == "breaker"), None)
    return TargetPlan(target, planned.subset, owed, missing, after, sources, served, tripped)


def answered_slots(shards: Sequence[ScannedShard]) -> tuple[set[Slot], tuple[str, ...]]:
    """The slots that have a row in these shards, and the models that the answers name."""
    if not shards:
        return set(), ()
    from referee.adapters.store.aggregate import filled  # noqa: PLC0415 — DuckDB is slow to import

    return filled(shards)


def earlier_shards(records: Path) -> list[Path]:
    """Every shard of the workspace."""
    return every_shard(records) if records.is_dir() else []


def source_of(target: Target, model: str, pins: Mapping[str, str]) -> str:
    """Where a target's rows come from: what every row says of its provenance.

    The endpoint as the target's file says it, the model as it is listed, and what the start-up check found that pins
    what is measured. Whatever may come out otherwise at the next start stands in the shard's first line alone.
    """
    if target.cli is not None:
        where = f"cli={target.cli.program} {target.cli.version}"
    elif target.base_url is None:
        where = "endpoint=embedded"
    else:
        parts = urlsplit(target.base_url)
        where = f"endpoint={(parts.netloc.rpartition('@')[2] + parts.path).rstrip('/')}"
    return write_source(where, model, pins)


def shard_source(opened: ShardOpened) -> str:
    """Where a shard's rows come from, by its first line; empty where that does not say it."""
    model, pins = opened.environment.get("model"), opened.environment.get("pins")
    if not isinstance(model, str) or not isinstance(pins, dict):
        return ""
    return source_of(opened.target, model, {str(name): str(value) for name, value in pins.items()})


def _is_of(path: Path, protocol_digest: str, target: str) -> bool:
    opened = first_line(path)
    return opened is not None and opened.protocol_digest == protocol_digest and opened.target.name == target
