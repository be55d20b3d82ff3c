"""What a person should know before rows are written that will not rank, or that were made before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from referee.core.provenance import sources_differ
from referee.core.records import BakeoffRecord, ShardAnnounced
from referee.runner.bakeoff.announced import missed
from referee.runner.bakeoff.plan import TargetPlan


def before_the_first_call(
    plan: TargetPlan, log: Sequence[BakeoffRecord], *, protocol_digest: str, records: Path
) -> list[str]:
    """What is known of a target before anything is asked.

    A shard that was announced and is gone or shorter leaves slots empty that were run: filling them runs something
    again. And a target that the breaker stopped does not rank, however many rows follow (bake-off §11).
    """
    name = plan.target.name
    there = {head.shard: head for head in plan.after}
    taken = missed(log, there, records=records, among=lambda one: _of(one) == (protocol_digest, name))
    said = [
        f"{name}: {one}: put it back from a copy; rows that are made in the place of its own count as run again, and "
        "`referee verify` fails"
        for one in taken
    ]
    if plan.missing and plan.tripped:
        said.append(
            f"{name}: the rows that come now will not be ranked: the breaker stopped it in shard {plan.tripped}"
        )
    return said


def _of(record: ShardAnnounced) -> tuple[str, str]:
    return record.protocol_digest, record.target


def of_another_source(plan: TargetPlan, source: str) -> str:
    """That the rows to come have another source than those that are there (bake-off §11); empty where they have not."""
    differing = [one for one in plan.sources if one != source]
    if not differing:
        return ""
    return (
        f"{plan.target.name}: the rows that come now have another source than those that are there, so it will "
        f"not be ranked: {sources_differ([*differing, source])}"
    )
