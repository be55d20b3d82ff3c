"""``referee show [RUN]``: the runs, or one's score rows, corroboration, errors and fixes, phases, digests."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.site import facts_of
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import open_stores
from referee.core.records import AttemptEnded, ChallengeFacts, ControlFacts
from referee.publish import export, words
from referee.publish.facts import Facts
from referee.publish.spent import spent_words
from referee.publish.views import DetailView, RunView
from referee.scoring import render


def show(
    run: Annotated[
        str | None, typer.Argument(help="A run's id, the beginning of one, or `last`; without it, all runs are listed.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show RUN: score rows, timeline of errors and fixes, digests of its evidence. Without RUN, list the runs."""
    facts = facts_of(open_stores(workspace, reads=True), neutral=False)
    if run is None:
        _list(facts, as_json=as_json)
        return
    view = facts.run(facts.find(run))
    detail = facts.detail(view)
    if as_json:
        typer.echo(json.dumps(export.run_document(view, detail), ensure_ascii=False, indent=2))
        return
    console = out()
    _head(console, view)
    _scores(console, view)
    _corroboration(console, view)
    _cold(console, view)
    _report(console, detail)
    _phases(console, detail)
    _evidence(console, view)


def _list(facts: Facts, *, as_json: bool) -> None:
    """Every run, the newest first."""
    runs = facts.site().runs[::-1]
    if as_json:
        document = {"schema": "referee.runs/1", "runs": [export.run_summary(one) for one in runs]}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    console = out()
    if not runs:
        console.print("There is no run here yet: `referee bringup run SUBJECT` makes one.", markup=False)
        return
    table = columns("run", "planned", "subject", "agent", "edition>", "state", "score>")
    for one in runs:
        score = render.points(one.total) if one.valid else ""
        state = "open" if one.state == "open" else one.outcome if one.valid and one.outcome else "invalid"
        cells = (one.run, words.moment(one.planned.at), one.subject, one.agent.label, str(one.edition))
        table.add_row(*map(plain, (*cells, words.say(words.OUTCOMES, state), score)))
    lay(console, table)


def _head(console: Console, run: RunView) -> None:
    lock = run.planned.lock
    console.print(Text.assemble((words.visible(run.subject), "bold"), f", attempt {lock.index}, run {run.run}"))
    _line(console, "pin", lock.subject.pin)
    on_pages = "" if run.agent.neutral == run.agent.label else f', on pages "{run.agent.neutral}"'
    _line(console, "agent", f"{run.agent.label} {run.agent.version or ''}".strip() + on_pages)
    _line(console, "edition", str(lock.edition))
    _line(console, "budget", f"{lock.budget.tier}, {words.seconds(lock.budget.seconds)} ({lock.budget.why})")
    environment = lock.environment
    boundary = "a security boundary" if environment.security_boundary else "NO SECURITY BOUNDARY, never publishable"
    _line(console, "machine", f"{environment.sandbox}, {environment.image}, {boundary}")
    _line(console, "image", environment.image_digest)
    if run.state == "open":
        _line(console, "outcome", "no end is recorded: under way, or its harness died")
    elif not run.valid:
        _line(console, "outcome", f"invalid, not counted: {run.reason or 'no reason recorded'}")
    else:
        said = words.say(words.OUTCOMES, run.outcome or "")
        mark = f" (never publishable: {', '.join(run.never)})" if run.never else ""
        _line(console, "outcome", f"{said}, {render.points(run.total)} of 100{mark}")
    if isinstance(run.ended, AttemptEnded) and run.ended.spending is not None:
        _line(console, "model", spent_words(run.ended))
    if run.flagged:
        _line(console, "flagged", "the report was contradicted: a person must look at it")
    for note in run.corrections:
        _line(console, "note", f"{words.moment(note.at)}: {note.note}")
    for objection in run.objections:
        _line(console, "not publishable", objection)


def _scores(console: Console, run: RunView) -> None:
    if not run.scores:
        return
    heads = [f"edition {score.edition}{' (counts)' if score.counting else ''}>" for score in run.scores]
    table = columns("score", *heads, "of>")
    for rows in zip(*(score.rows for score in run.scores), strict=True):
        table.add_row(rows[0].label, *(render.number(row.points) for row in rows), render.number(rows[0].out_of))
    table.add_row("total", *(render.number(score.total) for score in run.scores), "100", style="bold")
    table.add_row("outcome", *(words.say(words.OUTCOMES, score.outcome) for score in run.scores), "")
    console.print()
    lay(console, table)


def _corroboration(console: Console, run: RunView) -> None:
    if run.corroboration is None:
        return
    console.print()
    _line(console, "corroboration", words.say(words.CORROBORATION, run.corroboration))
    for why in run.corroboration_why:
        _line(console, "", why)
    rerun = run.ended.rerun if isinstance(run.ended, AttemptEnded) else None
    if rerun is not None:
        _line(console, "run again", rerun.command)
        ended = "stopped at its time limit" if rerun.timed_out else f"exit status {rerun.exit_status}"
        _line(console, "", f"{rerun.could_not_run or ended}, after {words.seconds(rerun.seconds)}")
    observed = run.ended.observed if isinstance(run.ended, AttemptEnded) else None
    if observed is not None and observed.control is not None:
        _line(console, "control", f"on a fresh machine without the project: {_came_of(observed.control)}")
    for one in (observed.challenges or ()) if observed is not None else ():
        _line(console, "challenge", f"{one.original} replaced by {one.replaced_by}: {_came_of(one)}")


def _came_of(made: ControlFacts | ChallengeFacts) -> str:
    if made.could_not_run is not None:
        return f"could not be run: {made.could_not_run}"
    return "stopped at its time limit" if made.timed_out else f"exit status {made.exit_status}"


def _cold(console: Console, run: RunView) -> None:
    for one in run.replays:
        _line(console, "replayed", f"{words.say(words.COLD, one.status)}, {words.moment(one.at)} UTC: {one.reason}")
        _line(console, "", f"{one.ran} of {words.count(one.commands, 'recorded step')} done again, replay {one.replay}")


def _report(console: Console, detail: DetailView) -> None:
    console.print()
    if detail.report is None:
        _line(console, "report", detail.report_rejected or "none was left")
        return
    _line(console, "final state", detail.report.final_state)
    console.print()
    if not detail.report.errors:
        console.print("The report lists no error.")
        return
    console.print(Text("Errors and fixes, in order", style="bold"))
    for number, error in enumerate(detail.report.errors, start=1):
        mark = Text("fixed", style="green") if error.fixed else Text("not fixed", style="red")
        console.print(Text.assemble(f"  {number}. ", mark, ": ", words.visible(error.what)), soft_wrap=True)
        if error.how:
            console.print(plain(f"     {error.how}"), soft_wrap=True)


def _phases(console: Console, detail: DetailView) -> None:
    if not detail.steps:
        return
    table = columns("phase", "began>", "took>", "error")
    for step in detail.steps:
        began = "" if step.began is None else f"+{words.seconds(step.began)}"
        table.add_row(plain(step.text), began, words.seconds(step.took), plain(step.fault or ""))
    console.print()
    lay(console, table)


def _evidence(console: Console, run: RunView) -> None:
    console.print()
    if run.manifest is not None:
        _line(console, "evidence", run.manifest.digest)
    if not run.files:
        console.print("No evidence is recorded.")
        return
    table = columns("file", "size>", "digest")
    for file in run.files:
        table.add_row(plain(file.name), words.size(file.bytes), file.digest + ("" if file.there else " MISSING"))
    lay(console, table)


def _line(console: Console, head: str, text: str) -> None:
    shown = words.visible(text).replace("\n", "\n" + " " * 16)
    console.print(Text.assemble((f"{head:<16}", "dim"), shown), soft_wrap=True)
