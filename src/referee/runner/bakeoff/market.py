"""What the market says of a target as a block of runs begins, archived with the block (bake-off §13)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.bakeoff import Target
from referee.core.records import MarketSnapshot
from referee.core.redaction import Redactor
from referee.errors import RefereeError
from referee.protocols import Lane


async def keep_market(
    target: Target,
    lane: Lane,
    *,
    run: str,
    protocol: str,
    log: RecordFiles,
    evidence: LocalEvidence,
    redactor: Redactor,
) -> None:
    """Keep what the market says now; that it says nothing, too, is kept."""
    detail = "" if target.market else "nothing is published for this lane"
    said: Mapping[str, bytes] = {}
    try:
        said = await lane.market()
    except RefereeError as exc:
        detail = redactor.redact_text(exc.message)
    named: list[tuple[str, bytes | None]] = [*sorted(said.items())] or [("", None)]
    for source, data in named:
        kept = None
        if data is not None:
            kept = evidence.keep(f"market-{target.name}-{source}", redactor.redact(data))
        log.append(
            MarketSnapshot(
                run=run,
                protocol=protocol,
                target=target.name,
                at=datetime.now(UTC).isoformat(timespec="microseconds"),
                source=source or (target.market or "none"),
                said=kept,
                detail=detail or ("" if kept else "the provider's answer did not come"),
            )
        )
