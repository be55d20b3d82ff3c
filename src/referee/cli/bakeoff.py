"""``referee bakeoff``: which model, through which lane, calls tools rightly, and when it must not.

From a plan to a report: ``init``, ``freeze``, ``run``, ``report``; ``decide`` for what changes on the way.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol, load_protocol
from referee.adapters.catalog.targets import load_target
from referee.cli import bakeoff_report, bakeoff_run, cases, hints, targets
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import Stores, make_workspace, open_bakeoff, open_stores
from referee.core.records import DecisionLogged, ProtocolFrozen
from referee.errors import ConfigError, UsageError
from referee.publish.words import count

app = typer.Typer(
    no_args_is_help=True,
    help="Which model, through which lane, calls tools rightly, and keeps from it where none fits? From a plan to a "
    "report: init, freeze, run, report; decide for what changes on the way.",
)

INIT_SCHEMA = "referee.bakeoff-init/1"
FREEZE_SCHEMA = "referee.bakeoff-freeze/1"
DECISION_SCHEMA = "referee.bakeoff-decision/1"
DECISIONS_SCHEMA = "referee.bakeoff-decisions/1"
REVIEW_SCHEMA = "referee.bakeoff-review/1"

NameArgument = Annotated[str, typer.Argument(help="The protocol's name: its directory in protocols/.")]
ByOption = Annotated[str, typer.Option("--by", help="Who says so; it stands in the record.")]


@app.command()
def init(
    name: NameArgument,
    suite: Annotated[str, typer.Option(help="s1; rotating, from a private seed; or a file of cases.")] = "s1",
    target: Annotated[list[str] | None, typer.Option(help="A target to plan; give it once for each.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write protocols/NAME: the plan with its defaults explained, the cases, and a place for subsets."""
    from referee.cli.bakeoff_init import ROTATING  # noqa: PLC0415 — suites and templates are for init alone

    stores = open_stores(workspace)
    seed = private_seed(stores)
    drawn = suite == ROTATING and not seed.exists()
    directory, loaded = init_protocol(stores, name, suite=suite, targets=target or ["keyword-baseline"])
    if as_json:
        _print_json(
            {
                "schema": INIT_SCHEMA,
                "protocol": name,
                "directory": str(directory),
                "suite": loaded.suite.name,
                "cases": len(loaded.suite.cases),
                "targets": [planned.target for planned in loaded.protocol.targets],
                "digest": loaded.digest,
                "seed": str(seed) if suite == ROTATING else None,
            }
        )
        return
    console = out()
    cases_of = f"{count(len(loaded.suite.cases), 'case')} of the suite {loaded.suite.name}"
    console.print(plain(f"{directory}: {cases_of}"), soft_wrap=True)
    if suite == ROTATING:
        fresh = "drawn now and kept in" if drawn else "of"
        said = f"  made from the private seed {fresh} {seed}: keep it private, and keep it"
        console.print(plain(said), soft_wrap=True)
    planned = ", ".join(one.target for one in loaded.protocol.targets)
    why = "" if target else "; no --target was given: add others under [[targets]] in protocol.toml"
    console.print(plain(f"  planned: {planned}{why}"), soft_wrap=True)
    how = hints.command(f"bakeoff freeze {name}", stores.workspace)
    console.print(plain(f"  read and change protocol.toml, then freeze it: {how}"), soft_wrap=True)


def init_protocol(stores: Stores, name: str, *, suite: str, targets: list[str]) -> tuple[Path, LoadedProtocol]:
    """Write a protocol's directory, whole or not at all; return it and what it holds."""
    from referee.cli.bakeoff_init import write_protocol  # noqa: PLC0415 — suites and templates are for init alone

    for target in targets:
        load_target(target, stores.workspace.targets)
    make_workspace(stores)
    directory = stores.workspace.protocols / name
    write_protocol(directory, name, suite=suite, targets=targets, seed=private_seed(stores))
    return directory, load_protocol(directory)


def private_seed(stores: Stores) -> Path:
    """The file of the workspace's private seed, from which rotating cases are made."""
    return stores.workspace.root / "private" / "seed"


@app.command()
def freeze(
    name: NameArgument,
    decision: Annotated[
        int | None, typer.Option(help="The amending decision that a renewed freeze carries out.")
    ] = None,
    by: ByOption = "evaluator",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Freeze the protocol before its first row; afterwards, only a logged decision that amends it can change it."""
    from referee.runner.bakeoff.freeze import freeze as freeze_plan  # noqa: PLC0415

    stores = open_stores(workspace)
    loaded = load(stores, name)
    record = freeze_plan(open_bakeoff(stores), stores.evidence, loaded, by=by, decision=decision)
    if as_json:
        _print_json({"schema": FREEZE_SCHEMA, **record.model_dump(mode="json", exclude={"kind"})})
        return
    console = out()
    console.print(plain(f"{name} is frozen since {record.at[:19]}Z: {record.digest}"), soft_wrap=True)
    for file in record.files:
        console.print(plain(f"  {file.digest}  {file.name}"), soft_wrap=True)


@app.command()
def decide(
    name: NameArgument,
    text: Annotated[str, typer.Argument(help="What was decided, in a sentence.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    amends: Annotated[bool, typer.Option("--amends", help="It changes the frozen protocol.")] = False,
    on: Annotated[str | None, typer.Option(help="The day of the decision, YYYY-MM-DD, when it was not today.")] = None,
    by: ByOption = "evaluator",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add one entry to the decision log: numbered, dated, with its reason, never changed."""
    from referee.runner.bakeoff.decide import decide as log_decision  # noqa: PLC0415

    stores = open_stores(workspace)
    load(stores, name)
    record = log_decision(
        open_bakeoff(stores),
        name,
        text,
        reason=reason,
        by=by,
        amends=amends,
        decided_on=None if on is None else _day(on),
    )
    if as_json:
        _print_json({"schema": DECISION_SCHEMA, **_decision(record)})
        return
    out().print(plain(f"decision {record.number} of {name}{_marks(record)}: {record.text}"), soft_wrap=True)


@app.command()
def decisions(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show the decision log of a protocol, and when it was frozen."""
    from referee.runner.bakeoff.decide import decisions_of  # noqa: PLC0415
    from referee.runner.bakeoff.freeze import freezes_of  # noqa: PLC0415

    stores = open_stores(workspace)
    records = open_bakeoff(stores).read_bakeoff()
    entries, freezes = decisions_of(records, name), freezes_of(records, name)
    if not entries and not freezes:
        load(stores, name)
    amending = sum(one.amends for one in entries)
    if as_json:
        _print_json(
            {
                "schema": DECISIONS_SCHEMA,
                "protocol": name,
                "freezes": [_freeze(one) for one in freezes],
                "amending": amending,
                "decisions": [_decision(one) for one in entries],
            }
        )
        return
    console = out()
    for one in freezes:
        why = "" if one.decision is None else f", carrying out decision {one.decision}"
        console.print(plain(f"frozen {one.at[:19]}Z by {one.by}{why}: {one.digest}"), soft_wrap=True)
    console.print(plain(f"{count(len(entries), 'decision')}, {amending} of which amend the protocol"))
    table = columns("no.>", "decided", "logged", "marks", "decision", "reason", "by")
    for entry in entries:
        table.add_row(
            *(str(entry.number), entry.decided_on, entry.at[:10], _marks(entry).strip(" ()")),
            *(plain(entry.text), plain(entry.reason), plain(entry.by)),
        )
    if entries:
        lay(console, table)


@app.command()
def review(
    name: NameArgument,
    stands: Annotated[bool, typer.Option("--stands/--wrong", help="Whether the gold stands.")],
    note: Annotated[str, typer.Option(help="What was found.")],
    case: Annotated[str | None, typer.Argument(help="The case whose gold is suspect.")] = None,
    all_suspects: Annotated[
        bool, typer.Option("--all-suspects", help="Every case that waits for a review: one record each.")
    ] = False,
    shard: Annotated[
        list[str] | None,
        typer.Option(help="A shard that shows the suspicion; without it, all under the protocol as it is frozen now."),
    ] = None,
    by: ByOption = "evaluator",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record a person's review of a case that two targets failed in the same way; both rates stay visible."""
    from referee.runner.bakeoff.review import review_shown  # noqa: PLC0415

    if (case is None) is not all_suspects:
        raise UsageError(
            "a review is of one case, or of all that wait", todo="name the case, or say --all-suspects, not both"
        )
    stores = open_stores(workspace)
    basis = bakeoff_report.gather_basis(stores, name, shard or [], every=not shard)
    records = review_shown(open_bakeoff(stores), basis, case, stands=stands, note=note, by=by)
    shown = [record.model_dump(mode="json", exclude={"kind"}) for record in records]
    if as_json:
        _print_json({"schema": REVIEW_SCHEMA, **({"reviews": shown} if all_suspects else shown[0])})
        return
    console = out()
    for record in records:
        said = f"{record.case}: the gold {'stands' if record.stands else 'is wrong'}, reviewed by {record.by}"
        console.print(plain(said), soft_wrap=True)


app.command()(bakeoff_run.run)
app.command()(bakeoff_report.report)
app.command()(bakeoff_report.export)
app.command()(bakeoff_report.pairs)
app.command()(bakeoff_report.answer)
app.command("serve-baseline")(targets.serve_baseline)
app.add_typer(targets.app, name="targets")
app.add_typer(cases.app, name="cases")


def load(stores: Stores, name: str) -> LoadedProtocol:
    """The protocol of that name in this workspace.

    Raises:
        NothingMatched: there is none.
        UsageError: the name is a path.
    """
    if Path(name).name != name or name in {"", ".", ".."}:
        raise UsageError(f"{name!r} is no name of a protocol: a path is not taken", todo="give the directory's name")
    return load_protocol(stores.workspace.protocols / name)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise ConfigError(f"{text!r} is no day", todo="write it as YYYY-MM-DD") from exc


def _marks(entry: DecisionLogged) -> str:
    marks = [mark for mark, holds in (("amends the protocol", entry.amends), ("logged late", entry.late)) if holds]
    return f" ({', '.join(marks)})" if marks else ""


def _decision(entry: DecisionLogged) -> dict[str, Any]:
    return entry.model_dump(mode="json", exclude={"kind"})


def _freeze(record: ProtocolFrozen) -> dict[str, Any]:
    return record.model_dump(mode="json", include={"at", "digest", "by", "decision"})


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
