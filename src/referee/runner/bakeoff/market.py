"""What the market says of a target as a block of runs begins, archived with the block (bake-off §13)."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.bakeoff import Target
from referee.core.records import MarketSnapshot
from referee.core.redaction import Redactor
from referee.errors import RefereeError
from referee.protocols import Lane
from referee.scoring.bakeoff.market import LISTED

#: Ways whose price somebody publishes.
_PRICED = frozenset({"hosted-free-tier", "router", "hub-inference", "metered-api", "agent-cli"})
_DID_NOT_COME = "the provider's answer did not come"


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
    listed = list_price(target)
    named: list[tuple[str, bytes | None]] = [*sorted(said.items())]
    if not named and (target.market or listed is None):
        named.append(("", None))
    if listed is not None:
        named.append((LISTED, listed))
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
                detail="a list price" if source == LISTED else detail or ("" if kept else _DID_NOT_COME),
            )
        )


def list_price(target: Target) -> bytes | None:
    """The published list price of the target's model, with the version of the table; None where none is known."""
    if target.channel not in _PRICED:
        return None
    from genai_prices import Usage, calc_price  # noqa: PLC0415 — a large table

    # A price that is named outright need not be the endpoint's provider's.
    where = None if target.price_model else target.base_url
    usage = Usage(input_tokens=1000, output_tokens=1000)
    try:
        found = calc_price(usage, target.price_model or target.model, provider_api_url=where)
    except (LookupError, ValueError):
        return None
    document = {
        "provider": found.provider.id,
        "model": found.model.id,
        "input_usd_per_million": float(found.input_price) * 1000,
        "output_usd_per_million": float(found.output_price) * 1000,
        "table": f"genai-prices {importlib.metadata.version('genai-prices')}",
    }
    return json.dumps(document, sort_keys=True).encode() + b"\n"
