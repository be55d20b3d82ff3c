"""The ledger of an account whose provider publishes no credit: what all earlier rows of it cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from referee.adapters.store.shard_files import first_line, scan_shard
from referee.core.bakeoff import Target


def spent_of_account(target: Target, shards: Sequence[Path]) -> float:
    """US dollars that the rows of every target with the same credential cost, in any protocol of the workspace.

    Raises:
        Finding: one of these shards does not hold.
    """
    own = []
    for path in shards:
        opened = first_line(path)
        if opened is not None and opened.target.metered and opened.target.key_env == target.key_env:
            own.append(scan_shard(path))
    if not own:
        return 0.0
    from referee.adapters.store.aggregate import spent_usd  # noqa: PLC0415 — DuckDB is slow to import

    return spent_usd(own)
