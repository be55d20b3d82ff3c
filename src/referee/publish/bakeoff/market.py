"""What the market said when a block of runs began, beside our own tokens a second: kept, no verdict (bake-off §13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from referee.core.spending import usd
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Block, Cell, Items, Para, Row, Section, cells, table
from referee.publish.bakeoff.who import Names, label, target
from referee.publish.words import moment
from referee.scoring.bakeoff.market import Market, Offer
from referee.scoring.bakeoff.summary import LaneLimited, Standing, Summary

_NOT_SAID = "not published"


def markets(found: Sequence[Market], summary: Summary) -> Section:
    """Our own speed, what providers publish, and the bytes behind it."""
    names = Names(summary)
    blocks = [*_own(summary), *_offers(found, names), *_snapshots(found, names)]
    return Section(
        "market",
        "Market snapshots",
        tuple(blocks),
        "scoring.bakeoff.market, scoring.bakeoff.lanes (our own speed), runner.bakeoff.market (what is archived)",
    )


def _own(summary: Summary) -> Iterator[Block]:
    rows: list[Standing | LaneLimited] = [row for board in summary.boards for row in board.rows]
    rows += summary.lane_limited
    shown = [
        cells(
            target(row.about),
            figures.speed(row.transport.tokens_per_second),
            figures.count(row.transport.tokens_per_second_n),
        )
        for row in rows
        if row.transport.tokens_per_second is not None
    ]
    if shown:
        heads = ("target", "output tokens a second>", "graded attempts>")
        yield table("Our own, lane included: not comparable across lanes, and no verdict", heads, shown)
    silent = [
        f"{label(row.about)}: {row.transport.tokens_per_second_why or 'no reason recorded'}"
        for row in rows
        if row.transport.tokens_per_second is None
    ]
    if silent:
        yield Items("No tokens a second of our own for:", tuple(silent))


def _offers(found: Sequence[Market], names: Names) -> Iterator[Block]:
    rows = [_offer(one, offer, names) for one in found for offer in one.offers]
    if rows:
        heads = ("target", "at", "provider", "input>", "output>", "uptime>", "output tokens a second>")
        caption = "As providers published it: US dollars for a million tokens; uptime and median speed of 30 minutes"
        yield table(caption, heads, rows)
    silent: dict[tuple[str, str], dict[str, None]] = {}
    for one in found:
        if one.why:
            silent.setdefault((one.snapshot.source, one.why), {})[one.snapshot.target] = None
    if silent:
        said = (f"{source}: {why} ({names.all(targets)})" for (source, why), targets in silent.items())
        yield Items("Nothing is shown where:", tuple(said))


def _offer(one: Market, offer: Offer, names: Names) -> Row:
    return cells(
        Cell(names(one.snapshot.target), below=one.snapshot.source),
        f"{moment(one.snapshot.at)} UTC",
        Cell(offer.provider, below=offer.quantisation),
        *(_NOT_SAID if price is None else usd(price) for price in (offer.input_usd, offer.output_usd)),
        _NOT_SAID if offer.uptime is None else figures.percent(offer.uptime / 100),
        _NOT_SAID if offer.tokens_per_second is None else figures.speed(offer.tokens_per_second),
    )


def _snapshots(found: Sequence[Market], names: Names) -> Iterator[Block]:
    rows = [
        cells(
            names(one.target),
            f"{moment(one.at)} UTC",
            one.source,
            one.detail or "as published",
            Cell(one.said.digest, code=True),
        )
        for one in (each.snapshot for each in found)
        if one.said is not None
    ]
    if not rows:
        yield Para("No document was archived with these runs.")
        return
    heads = ("target", "at", "source", "what", "evidence")
    yield table("Archived with each block of runs", heads, rows, fold=True)
