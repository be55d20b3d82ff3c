"""``referee bakeoff report``, ``export`` and ``pairs``: what the named shards say, in words, files and pages."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from referee.adapters.catalog.workspace import Workspace
from referee.cli import hints
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import Stores, open_bakeoff, open_stores
from referee.core.bakeoff import Comparison
from referee.errors import NothingMatched, UsageError
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Heading, Items, Para, Table
from referee.publish.bakeoff.loud import counted, left, scope, with_all, without
from referee.publish.bakeoff.who import label
from referee.scoring.bakeoff.summary import Compared, Standing, Summary

if TYPE_CHECKING:  # DuckDB and the templates are loaded when a report is made
    from referee.publish.bakeoff.report import Basis

REPORT_SCHEMA = "referee.bakeoff-report-written/1"
EXPORT_SCHEMA = "referee.bakeoff-export/1"
ANSWER_SCHEMA = "referee.bakeoff-answer/1"
PAIRS_SCHEMA = "referee.bakeoff-pairs/1"

NameArgument = Annotated[str, typer.Argument(help="The protocol's name.")]
ShardOption = Annotated[
    list[str] | None,
    typer.Option("--shard", help="A shard by its base name (results-….jsonl); give it once for each."),
]
EveryOption = Annotated[bool, typer.Option("--all", help="Every shard under the protocol as it is frozen now.")]


def report(
    name: NameArgument,
    shard: ShardOption = None,
    every: EveryOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report of the named shards into the site: page, Markdown, JSON and raw rows, byte for byte the same."""
    stores = open_stores(workspace, reads=True)
    basis, page = write_report(stores, name, shard or [], every=every)
    warn_of_gone(stores, basis, every=every)
    if as_json:
        document = {
            "schema": REPORT_SCHEMA,
            "protocol": name,
            "page": str(page),
            "open": page.absolute().as_uri(),
            "shards": [one.name for one in basis.shards],
            "summary": basis.summary.document(),
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    console = out()
    print_board(console, basis.summary, stores.workspace)
    console.print(plain(f"\npage: {page}"), soft_wrap=True)


def export(
    name: NameArgument,
    to: Annotated[Path, typer.Option("--to", help="The directory to write into.")] = Path("bakeoff-export"),
    shard: ShardOption = None,
    every: EveryOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write every row of the named shards on ten columns: CSV, JSON lines, Parquet, and their SHA256SUMS."""
    from referee.publish.bakeoff.export import export as write_export  # noqa: PLC0415 — DuckDB is slow to import

    stores = open_stores(workspace, reads=True)
    basis = gather_basis(stores, name, shard or [], every=every)
    files = write_export(basis.shards, to)
    warn_of_gone(stores, basis, every=every)
    if as_json:
        document = {
            "schema": EXPORT_SCHEMA,
            "protocol": name,
            "rows": basis.summary.totals.physical_rows,
            "shards": [one.name for one in basis.shards],
            "files": [str(file) for file in files],
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    for file in files:
        typer.echo(str(file))


def pairs(
    name: NameArgument,
    a: Annotated[str, typer.Argument(help="One target.")],
    b: Annotated[str, typer.Argument(help="The other.")],
    shard: ShardOption = None,
    every: EveryOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lay two targets side by side, case by case: the same model through two lanes shows what the lane does."""
    found, exact = compare(open_stores(workspace, reads=True), name, a, b, shard or [], every=every)
    if as_json:
        document = {"schema": PAIRS_SCHEMA, "protocol": name, "comparison": exact}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    from referee.publish.bakeoff.beside import compared  # noqa: PLC0415

    console = out()
    for block in compared(found):
        if isinstance(block, Table):
            table = columns(*block.heads)
            for row in block.rows:
                table.add_row(*(plain(f"{one.text} ({one.below})" if one.below else one.text) for one in row.cells))
            lay(console, table)
        elif isinstance(block, Items):
            console.print(plain(block.lead), soft_wrap=True)
            for item in block.items:
                console.print(plain(f"  {item}"), soft_wrap=True)
        elif isinstance(block, Para | Heading):
            console.print(plain(block.text), soft_wrap=True)


def answer(
    log: Annotated[str, typer.Argument(help="The answer log, as a case's page names it: answers-….log.")],
    offset: Annotated[int, typer.Argument(min=0, help="Where the answer begins, in bytes.")],
    length: Annotated[int, typer.Argument(min=0, help="Its length in bytes.")],
    digest: Annotated[str, typer.Argument(help="Its SHA-256: sha256:….")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the answer behind a verdict, as it was kept: every try, checked against its digest."""
    from referee.adapters.store.answers import AnswerReader, is_log, unframe  # noqa: PLC0415
    from referee.core.bakeoff import AnswerRef  # noqa: PLC0415

    if not is_log(log):
        raise UsageError(f"{log!r} is no name of an answer log", todo="take it from the page of a case")
    with AnswerReader(open_stores(workspace, reads=True).workspace.answers) as reader:
        asked, tries = unframe(reader.read(AnswerRef(log=log, offset=offset, length=length, digest=digest)))
    if as_json:
        shown = [{**asdict(one), "body": one.body.decode("utf-8", "backslashreplace")} for one in tries]
        document = {"schema": ANSWER_SCHEMA, "asked": asdict(asked), "tries": shown}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    console = out()
    whose = f"{asked.target}, case {asked.case_id}, k = {asked.k_idx}, begun {asked.started_at}, run {asked.run}"
    console.print(plain(whose), soft_wrap=True)
    for number, one in enumerate(tries, 1):
        broke = f", {one.broke}: {one.detail}" if one.broke else ""
        said = "no status" if one.status is None else f"status {one.status}"
        console.print(plain(f"try {number}: {said}, {one.latency_ms:.0f} ms{broke}"), soft_wrap=True)
        for name, value in sorted(one.headers.items()):
            console.print(plain(f"  {name}: {value}"), soft_wrap=True)
        console.print(plain(one.body.decode("utf-8", "backslashreplace")), soft_wrap=True)


def gather_basis(
    stores: Stores, name: str, named: list[str], *, every: bool, beside: Comparison | None = None
) -> Basis:
    """What a report of these shards is made of."""
    from referee.runner.bakeoff.freeze import freezes_of  # noqa: PLC0415 — with what follows, slow to import
    from referee.runner.bakeoff.report import gather, shards_of  # noqa: PLC0415 — numpy, scipy and DuckDB

    if Path(name).name != name:
        raise UsageError(f"{name!r} is no name of a protocol: a path is not taken", todo="give the directory's name")
    log = open_bakeoff(stores)
    if not (stores.workspace.protocols / name).is_dir() and not freezes_of(log.read_bakeoff(), name):
        raise NothingMatched(f"there is no protocol named {name!r} here", todo=_protocols(stores))
    if not named and not every:
        raise UsageError("no shard is named", todo="ask for all with --all, or name each with --shard results-….jsonl")
    paths = shards_of(log, stores.workspace.records, name, named, every=every)
    return gather(log, stores.evidence, name, paths, beside=beside)


def _protocols(stores: Stores) -> str:
    known = sorted(file.parent.name for file in stores.workspace.protocols.glob("*/protocol.toml"))
    return f"protocols: {', '.join(known)}" if known else "`referee bakeoff init NAME` writes one"


def warn_of_gone(stores: Stores, basis: Basis, *, every: bool) -> None:
    """Say on stderr which shards and evidence logs are gone: a report is of what is there, and says nothing of them."""
    from referee.runner.bakeoff.report import answers_gone, shards_missed  # noqa: PLC0415

    log, space = open_bakeoff(stores), stores.workspace
    console = Console(stderr=True, soft_wrap=True)
    for shard in shards_missed(log, space.records, basis, every=every):
        console.print(plain(f"warning: {shard}: put it back from a copy; as it is, `referee verify` fails"))
    gone = answers_gone(log, space.answers, basis)
    if gone:
        sentence = f"{', '.join(gone)}: gone from answers/, so `referee verify` cannot hold these rows against them"
        console.print(plain(f"warning: {sentence}"))


def write_report(stores: Stores, name: str, named: list[str], *, every: bool) -> tuple[Basis, Path]:
    """Write the report and the site around it; return what it is made of and the page to open."""
    from referee.cli.site import build_site  # noqa: PLC0415
    from referee.publish.bakeoff.report import write_report as write  # noqa: PLC0415

    basis = gather_basis(stores, name, named, every=every)
    page = write(basis, stores.workspace.site / "bakeoff" / name)
    build_site(stores)
    return basis, page


def compare(
    stores: Stores, name: str, a: str, b: str, named: list[str], *, every: bool
) -> tuple[Compared, dict[str, Any]]:
    """Two targets side by side, as registered, or as asked for now, which is said; and the same with exact numbers.

    Raises:
        UsageError: it is one target twice.
        NothingMatched: the protocol does not plan one of them.
    """
    if a == b:
        raise UsageError(f"{a} is compared with itself", todo="name two targets")
    basis = gather_basis(stores, name, named, every=every)
    for place, one in enumerate(basis.summary.comparisons):
        if {one.registered.a, one.registered.b} == {a, b}:
            return one, basis.summary.document()["comparisons"][place]
    planned = {row.about.target for board in basis.summary.boards for row in board.rows}
    planned |= {row.about.target for row in basis.summary.lane_limited}
    for target in (a, b):
        if target not in planned:
            raise NothingMatched(
                f"the named shards have no row of {target}", todo=f"they have: {', '.join(sorted(planned))}"
            )
    asked = Comparison(a=a, b=b, why="Asked for now; it was not registered before the run.")
    summary = gather_basis(stores, name, named, every=every, beside=asked).summary
    return summary.comparisons[0], summary.document()["comparisons"][0]


def print_board(console: Console, summary: Summary, workspace: Workspace) -> None:
    """The boards as tables, and the targets that are not ranked with the reason."""
    for board in summary.boards:
        console.print(plain(f"{summary.plan.title}. {scope(board)}"), soft_wrap=True)
        if loud := left(board, summary):
            console.print(plain(f"! {loud}"), style="bold", soft_wrap=True)
            if board.waiting:
                how = hints.command(f"bakeoff review {summary.plan.protocol} CASE", workspace)
                console.print(plain(f"  look at each, then: {how} --stands (or --wrong) --note …"), soft_wrap=True)
        table = columns(
            *("place>", "tie>", "target", "model and lane", "sovereignty", "tier", "valid-pass>", "second interval>"),
            *("pass^k>", "format>", "cases>", "attempts>"),
            *(("with all cases>",) if without(board) else ()),
        )
        for row in board.rows:
            every = ("the same" if row.with_flagged is None else counted(row.with_flagged),)
            table.add_row(*_line(row), *(every if without(board) else ()))
        lay(console, table) if board.rows else console.print("  no target is ranked", markup=False)
    for limited in summary.lane_limited:
        reasons = "; ".join(note.sentence for note in limited.reasons)
        console.print(plain(f"not ranked: {label(limited.about)}: {reasons}"), soft_wrap=True)
    for arm in summary.arms:
        for one in arm.rows:
            rate = one.figures.rate
            of = arm.arm if arm.subset is None else f"{arm.arm}, subset {arm.subset}"
            also = with_all(rate, one.with_flagged)
            said = f"{of}, never pooled: {label(one.about)}: {counted(rate)}{f'; {also}' if also else ''}"
            console.print(plain(said), soft_wrap=True)
    totals = summary.totals
    console.print(
        plain(
            f"rows: {totals.physical_rows} physical, {totals.usable_rows} usable, of these {totals.capability_rows} in "
            f"the capability arm and {totals.additions_rows} in additions; decisions: {len(summary.decisions)}, "
            f"{summary.amending} of which amend the protocol"
        ),
        soft_wrap=True,
    )


def _line(row: Standing) -> tuple[Any, ...]:
    about, found = row.about, row.figures
    return (
        figures.places(row.places),
        str(row.cluster),
        plain(about.target),
        plain(f"{about.model} through {about.lane}, {figures.say(figures.CHANNELS, about.channel)}"),
        figures.say(figures.SOVEREIGNTY, about.sovereignty),
        row.tier.name if about.subset is None else f"{row.tier.name}, subset {about.subset}",
        figures.rate(found.rate),
        figures.bootstrapped(found.bootstrap),
        figures.pass_hat(found.pass_hat, found.rate.n),
        figures.percent(found.format_rate),
        figures.count(found.rate.n),
        figures.count(found.rate.valid),
    )
