"""The last sections: trust in the gold, decisions, markets, and the bytes behind the report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from referee.core.cases import Suite
from referee.core.records import ProtocolFrozen
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Block, Cell, Facts, Items, Notice, Para, Section, cells, several, table
from referee.publish.bakeoff.who import Names
from referee.publish.words import count, moment
from referee.scoring.bakeoff.summary import GoldCase, Summary


def gold(summary: Summary, paged: Collection[str]) -> Section:
    """Cases that several targets fail in the same way, reviews of them, and cases that the linter refuses (§3, §8).

    ``paged`` are the cases that have a page to look at.
    """
    blocks: list[Block] = []
    if summary.gold:
        names = Names(summary)
        heads = ("case", "category", "the same wrong answer from", "review", "in the ranking")
        rows = [
            cells(
                Cell(
                    case.case,
                    code=True,
                    href=f"cases/{case.case}.html" if case.case in paged else None,
                    below=f"arm {case.arm}",
                ),
                case.category,
                several([names.all(targets) for _, targets in case.groups]) if case.groups else "no two targets",
                _review(case),
                "yes" if case.ranks else "no",
            )
            for case in summary.gold
        ]
        blocks.append(table("Nothing is removed silently: the headline shows both rates", heads, rows))
    else:
        blocks.append(Para("No two targets fail one case with the same answer, and no gold was found wrong."))
    alone = [case.case for case in summary.gold if not case.suspect and case.review == "wrong"]
    if alone:
        blocks.append(Notice((f"Out although no two targets agree, by a person's review alone: {', '.join(alone)}.",)))
    if any(case.doubted for case in summary.gold):
        name = summary.plan.protocol
        blocks.append(
            Para(
                f"To bring a case back or to keep it out, look at its page, then `referee bakeoff review {name} CASE` "
                "with `--stands` or `--wrong` and a `--note`; `--all-suspects` in the place of a case reviews each "
                "that waits."
            )
        )
    if summary.left_alone:
        lead = "No call where one is expected, from two targets or more. No answer is shared, so none is suspect:"
        blocks.append(Items(lead, (", ".join(summary.left_alone),)))
    if summary.objected:
        lines = tuple(f"{one.case} (arm {one.arm}): {one.sentence}" for one in summary.objected)
        blocks.append(Items("Cases that the linter refuses, visible and never ranked:", lines))
    return Section("gold", "Trust in the gold", tuple(blocks), "scoring.bakeoff.gold, scoring.lint")


def _review(case: GoldCase) -> Cell:
    by = (
        None
        if case.reviewed_by is None
        else f"{(case.reviewed_at or '')[:10]} by {case.reviewed_by}: {case.review_note or ''}"
    )
    return Cell(figures.say(figures.REVIEWS, case.review), below=by)


def decisions(summary: Summary, freezes: Sequence[ProtocolFrozen]) -> Section:
    """The decision log, and every freeze (§1)."""
    amends = f"{summary.amending} of which amend the protocol"
    late = f"; {summary.logged_late} logged late" if summary.logged_late else ""
    blocks: list[Block] = [Para(f"{count(len(summary.decisions), 'decision')}, {amends}{late}.")]
    if summary.decisions:
        rows = [
            cells(
                str(one.number),
                Cell(one.decided_on, below=f"logged late, on {one.at[:10]}" if one.late else None),
                "amends the protocol" if one.amends else "no amendment",
                one.text,
                one.reason,
                one.by,
            )
            for one in summary.decisions
        ]
        heads = ("no.>", "decided", "effect", "decision", "reason", "by")
        blocks.append(table("In order of assignment; nothing is ever taken out", heads, rows))
    rows = [
        cells(
            f"{moment(one.at)} UTC",
            one.by,
            "the first" if one.decision is None else f"carries out decision {one.decision}",
            Cell(one.digest, code=True),
        )
        for one in freezes
    ]
    if rows:
        blocks.append(table("Freezes of the protocol", ("at", "by", "why", "digest"), rows))
    return Section("decisions", "Decision log", tuple(blocks), "runner.bakeoff.decide, runner.bakeoff.freeze")


def cases(suite: Suite, paged: Sequence[str], left_out: int) -> Section:
    """Every case with a page of its own, where each attempt's reason and its evidence stand."""
    heads = ("case", "category", "arm", "language", "oracle")
    rows = [
        cells(
            Cell(case.id, code=True, href=f"cases/{case.id}.html"),
            *(case.category, case.arm, case.language),
            "no call" if case.abstains else ", ".join(call.name for call in case.golds),
        )
        for case in (suite.by_id[name] for name in paged)
    ]
    blocks: list[Block] = []
    if rows:
        blocks.append(
            table("Each leads to its attempts, their reasons and the answers behind them", heads, rows, fold=True)
        )
    if left_out:
        blocks.append(Para(f"{figures.count(left_out)} further cases have no page here: the raw export has every row."))
    if not rows:
        blocks.append(Para("No case has an attempt in the named shards."))
    return Section("cases", "Cases and their attempts", tuple(blocks), "scoring.toolcalls (one reason an attempt)")


def evidence(summary: Summary, freezes: Sequence[ProtocolFrozen]) -> Section:
    """The bytes behind the report: shards by name and SHA-256, the frozen files, and how to make it again."""
    shards = [
        cells(
            Cell(shard.name, code=True),
            figures.count(shard.rows),
            Cell(
                shard.sha256,
                code=True,
                below=f"{shard.torn_bytes} bytes of a torn last line" if shard.torn_bytes else None,
            ),
        )
        for shard in summary.shards
    ]
    files = (
        [cells(Cell(file.name, code=True), Cell(file.digest, code=True)) for file in freezes[-1].files]
        if freezes
        else []
    )
    name = summary.plan.protocol
    return Section(
        "evidence",
        "Evidence",
        (
            table("Shards, by base name", ("shard", "rows>", "SHA-256"), shards),
            *((table("Frozen files", ("file", "SHA-256"), files),) if files else ()),
            Facts(
                (
                    (
                        "make this report again",
                        Cell(f"referee bakeoff report {name} --shard NAME … (each shard above)", code=True),
                    ),
                    ("raw rows on ten columns", Cell(f"referee bakeoff export {name} --shard NAME …", code=True)),
                )
            ),
        ),
        "adapters.store (shards, evidence), publish.bakeoff (this page; the same shards give the same bytes)",
    )
