"""Reviews of suspect gold, held against what the named shards show: only a doubted case is reviewed (§3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from referee.adapters.store.records import RecordFiles
from referee.core.records import GoldReviewed
from referee.errors import NothingMatched, UsageError
from referee.runner.bakeoff.decide import review

if TYPE_CHECKING:
    from referee.publish.bakeoff.report import Basis


def review_shown(
    log: RecordFiles, basis: Basis, case: str | None, *, stands: bool, note: str, by: str
) -> list[GoldReviewed]:
    """Append a person's review of one case, or of each case that waits for one.

    Args:
        log: the workspace's bake-off records.
        basis: what a report of the named shards is made of.
        case: the case's id; None for every case that waits.
        stands: whether the gold stands.
        note: what was found.
        by: who reviewed it.

    Raises:
        NothingMatched: the suite has no such case, or none waits.
        UsageError: the shards do not show the case as suspect and it was never reviewed; or the note is empty.
    """
    name, suite = basis.summary.plan.protocol, basis.suite
    if case is None:
        chosen = [one.case for one in basis.summary.gold if one.doubted]
        if not chosen:
            raise NothingMatched(f"no case of {name} waits for a review in the named shards")
    else:
        if case not in suite.by_id:
            raise NothingMatched(f"the suite {suite.name} has no case {case!r}")
        if case not in {one.case for one in basis.summary.gold}:
            raise UsageError(
                f"the named shards do not show the case {case} as suspect, so there is nothing to review",
                todo=f'a gold that is wrong all the same goes through `referee bakeoff decide {name} "…" --amends`',
            )
        chosen = [case]
    return [review(log, name, one, stands=stands, note=note, by=by, suite=suite) for one in chosen]
