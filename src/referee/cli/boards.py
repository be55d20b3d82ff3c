"""``referee board`` and ``referee verdict SUBJECT``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from referee.cli import hints
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.site import facts_of
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import open_stores
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_PASS, NothingMatched
from referee.publish import export, pages, words
from referee.publish.views import BoardView, RunView, StandingView, SubjectView, VerdictView
from referee.scoring import render
from referee.scoring.verdicts import Verdict


def board(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show the board of agents and the verdict on every subject."""
    stores = open_stores(workspace, reads=True)
    site = facts_of(stores, neutral=False).site()
    if as_json:
        typer.echo(json.dumps(export.board_document(site), ensure_ascii=False, indent=2))
        return
    console = out()
    if not site.runs:
        how = hints.command("bringup run SUBJECT", stores.workspace)
        console.print(plain(f"No attempt has been recorded here yet: `{how}` makes one."), soft_wrap=True)
        return
    for board in site.boards:
        console.print(_heading(board), markup=False)
        lay(console, _standings(board.standings))
        console.print()
        lay(console, _sets(board.standings))
        console.print()
    lay(console, _verdicts(site.subjects))


def verdict(
    subject: Annotated[str, typer.Argument(help="A subject's name.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say the verdict on SUBJECT. Exit code: 0 runs (also with mocks), 4 could not or not yet verify, 5 unknown."""
    site = facts_of(open_stores(workspace, reads=True), neutral=False).site()
    found = next((one for one in site.subjects if one.name == subject), None)
    if found is None:
        raise NothingMatched(
            f"no attempt at a subject named {subject!r} is recorded here",
            todo="`referee board` lists the subjects that were tried",
        )
    if as_json:
        typer.echo(json.dumps(export.verdict_document(found), ensure_ascii=False, indent=2))
    else:
        _print_verdict(out(), found)
    passed = found.verdict in {Verdict.RUNS, Verdict.RUNS_WITH_MOCKS}
    raise typer.Exit(EXIT_PASS if passed else EXIT_COULD_NOT_VERIFY)


def _heading(board: BoardView) -> str:
    said = f"edition {board.edition}: attempts that were planned under it, and no others"
    return said if board.edition > 1 else f"{said}; it scores the report as it stands, without corroboration"


def _standings(standings: tuple[StandingView, ...]) -> Table:
    priced = any(line.spent is not None for line in standings)
    table = columns(
        *("rank>", "agent", "on pages", "board score>", "subjects behind it>", "pass rate>", "attempts>", "invalid>"),
        *(("spent on models>",) if priced else ()),
        "never publishable",
    )
    for line in standings:
        table.add_row(
            "test of the rules" if line.regression else "unranked" if line.rank is None else str(line.rank),
            plain(f"{line.agent.label} {line.agent.version or ''}".strip()),
            plain(line.agent.neutral),
            render.points(line.score),
            f"{line.subjects_counted} of {len(line.sets)}",
            render.percent_of(line.pass_rate),
            str(line.attempts),
            str(line.invalid),
            *(("" if line.spent is None else words.money(line.spent.total_usd),) if priced else ()),
            _set_aside(line.aside),
        )
    return table


def _sets(standings: tuple[StandingView, ...]) -> Table:
    table = columns("agent", "subject", "totals", "median>", "spread>", "in the board score", "never publishable")
    for line in standings:
        for one in line.sets:
            table.add_row(
                plain(line.agent.label),
                plain(one.subject),
                ", ".join(render.number(total) for _, total in one.totals) or "none counted",
                render.points(one.median),
                render.spread_text(one.spread, len(one.totals)),
                one.excluded or "yes",
                ", ".join(f"{render.number(total)} ({', '.join(run.never)})" for run, total in one.aside) or "none",
            )
    return table


def _verdicts(subjects: tuple[SubjectView, ...]) -> Table:
    table = columns(
        "subject",
        "verdict",
        "edition>",
        "decided by",
        "agent",
        "on pages",
        "points>",
        "attempts>",
        "invalid>",
        "evidence",
    )
    for name, subject in ((one.name, said) for one in subjects for said in (one, *one.others)):
        by = subject.by
        table.add_row(
            plain(name),
            _said(subject),
            str(subject.edition),
            "no counted attempt" if by is None else by.run,
            "none" if by is None else plain(by.agent.label),
            "none" if by is None else plain(by.agent.neutral),
            "no score" if by is None else render.points(by.total),
            str(subject.counted),
            str(subject.invalid),
            _digest(by),
        )
    return table


def _said(subject: VerdictView) -> Text:
    styles = {"runs": "green", "runs_with_mocks": "yellow"}
    said = Text(words.say(words.VERDICTS, subject.verdict), style=styles.get(subject.verdict, "bold"))
    if subject.under_review:
        said.append(" (under review)")
    for label in subject.unstable:
        said.append(f" (unstable: {words.visible(label)})")
    if subject.aside:
        said.append(f" ({pages.aside_words(subject)})")
    return said


def _set_aside(runs: tuple[RunView, ...]) -> str:
    reasons = dict.fromkeys(reason for run in runs for reason in run.never)
    return f"{len(runs)} not counted ({', '.join(reasons)})" if runs else "none"


def _digest(run: RunView | None) -> str:
    return "none" if run is None or run.manifest is None else words.short(run.manifest.digest)


def _print_verdict(console: Console, subject: SubjectView) -> None:
    console.print(Text.assemble((words.visible(subject.name), "bold"), ": ", _said(subject)), soft_wrap=True)
    console.print(plain(f"  pin       {subject.pin}"), soft_wrap=True)
    console.print(plain(f"  edition   {subject.edition}"))
    console.print(plain(f"  attempts  {subject.counted} counted, {subject.invalid} invalid"))
    if subject.by is not None:
        console.print(plain(f"  by run    {subject.by.run}, {render.points(subject.by.total)} points"))
        named = subject.by.agent
        on_pages = "" if named.neutral == named.label else f', on pages "{named.neutral}"'
        console.print(plain(f"  by agent  {named.label}{on_pages}"), soft_wrap=True)
        if subject.by.manifest is not None:
            console.print(plain(f"  evidence  {subject.by.manifest.digest}"), soft_wrap=True)
        for objection in subject.by.objections:
            console.print(plain(f"  not publishable: {objection}"), soft_wrap=True)
    for other in subject.others:
        said = Text.assemble(f"  edition {other.edition}, by its own attempts: ", _said(other))
        console.print(said.append(f", {other.counted} counted, {other.invalid} invalid"), soft_wrap=True)
