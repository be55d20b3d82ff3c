"""``referee bringup run``: measure a subject and show the evidence."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from referee.adapters.catalog.subjects import Subject, find_subject
from referee.adapters.catalog.workspace import Workspace
from referee.adapters.sources.make import make_source
from referee.cli import hints
from referee.cli.keys_at_start import keys_at_start, stop_where_refused, sweep_keys
from referee.cli.options import WorkspaceOption
from referee.cli.politely import ended_politely
from referee.cli.progress import Progress
from referee.cli.subject import pin
from referee.cli.wiring import (
    SandboxChoice,
    Stores,
    check_host_disk,
    choose_sandbox,
    make_agent,
    make_bench,
    make_rules,
    make_stronger,
    make_workspace,
    open_stores,
)
from referee.core.failure import Cause
from referee.core.records import AttemptEnded, Record
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_PASS, NothingMatched, UsageError
from referee.protocols import Agent, Keys, Sandbox
from referee.publish import words
from referee.publish.spent import spent_words
from referee.runner.attempt import run_attempt
from referee.runner.plan import Plan, PlannedSubject, Rules, make_plan
from referee.runner.recover import recover
from referee.runner.rejudge import judge_run
from referee.runner.series import Patience, Series, next_index, run_series
from referee.scoring.attempts import Judgement
from referee.scoring.render import points
from referee.scoring.verdicts import AgentTier, Verdict, verdict

app = typer.Typer(no_args_is_help=True, help="Bring-up: can an agent, all alone, make a real project run?")

SCHEMA = "referee.bringup-run/1"


@app.callback()
def _group() -> None:
    """Keep ``run`` a command of its own."""


@app.command()
def run(
    subject: Annotated[str, typer.Argument(help="A subject's name or file, pypi:NAME, npm:NAME, a git URL or a path.")],
    agent: Annotated[
        str, typer.Option(help="baseline, command, null, liar, stub, or a file of the workspace's agents/.")
    ] = "baseline",
    command: Annotated[str | None, typer.Option(help="The command line of --agent command.")] = None,
    runs: Annotated[int, typer.Option(min=1, max=99, help="How many valid attempts.")] = 1,
    until_verdict: Annotated[
        bool, typer.Option("--until-verdict", help="Adaptive testing: attempts until the verdict is settled.")
    ] = False,
    stronger: Annotated[
        str | None,
        typer.Option(help="With --until-verdict: the agent that runs when the standard one could not verify."),
    ] = None,
    sandbox: Annotated[SandboxChoice | None, typer.Option(help="docker, overlay or auto.")] = None,
    edition: Annotated[int | None, typer.Option(help="1 scores the report, 2 (default) what was corroborated.")] = None,
    budget_seconds: Annotated[
        int | None, typer.Option(min=1, help="Another time limit; recorded, and makes the run unpublishable.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Measure SUBJECT. The exit code tells the verdict: 0 runs (also with mocks), 4 could not verify."""
    if until_verdict and runs != 1:
        raise UsageError("--until-verdict and --runs exclude each other")
    if stronger is not None and not until_verdict:
        raise UsageError("--stronger goes with --until-verdict")
    stores = open_stores(workspace)
    series = Series("until-verdict", stronger=stronger is not None) if until_verdict else Series("runs", runs)
    agents = [make_agent(agent, command, stores.workspace, sandbox=sandbox)]
    if stronger is not None:
        agents.append(make_stronger(stronger, stores.workspace, sandbox=sandbox))
    with Progress(Console(stderr=True), quiet=quiet) as progress:
        document = measure(
            subject,
            stores=stores,
            series=series,
            agents=agents,
            rules=make_rules(stores.workspace, edition, budget_seconds),
            sandbox_choice=sandbox,
            progress=progress,
        )
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201 — the document is the output
    else:
        print_document(Console(), document, stores.workspace)
    raise typer.Exit(exit_code(document))


def measure(
    spec: str,
    *,
    stores: Stores,
    series: Series,
    agents: Sequence[Agent],
    rules: Rules,
    sandbox_choice: SandboxChoice | None,
    progress: Progress,
) -> dict[str, Any]:
    """Make the series of attempts and return the document that ``--json`` prints.

    ``agents``: the agent that is measured, and the stronger one that stands ready, if any.
    """
    subject = resolve_subject(spec, stores, progress)
    make_workspace(stores)
    check_host_disk(stores.workspace)
    chosen = choose_sandbox(stores.workspace, sandbox_choice, display=subject.content.display)
    keys = keys_at_start(stores, agents, progress.say)
    try:
        found = recover(stores.records, stores.evidence, stores.workspace.spool, chosen, keys)
        for sentence in [*found, *sweep_keys(stores, keys)]:
            progress.say(f"found: {sentence}")
        plans = [_plan(subject, stores, agent, chosen, rules) for agent in agents]
        _announce(plans[0], progress)
        judgements = _make_attempts(plans, stores, series, chosen, keys, progress)
    finally:
        if keys is not None:
            keys.stop()
    return describe(plans[0], judgements, stores.records.read())


def _make_attempts(
    plans: Sequence[Plan], stores: Stores, series: Series, sandbox: Sandbox, keys: Keys | None, progress: Progress
) -> list[Judgement]:
    """The attempts of a series, each judged as soon as it has ended."""
    bench = replace(make_bench(stores, sandbox), keys=keys)
    by_tier = {plan.agent.tier: plan for plan in plans}
    made: list[Judgement] = []

    def attempt(tier: AgentTier) -> Judgement:
        plan = by_tier[tier]
        check_host_disk(stores.workspace)
        index = next_index(stores.records.read(), subject=plan.subject.ref.name, agent=plan.agent.name)
        progress.say(f"attempt {index} of {plan.subject.ref.name} by {plan.agent.name}")
        try:
            run_id = run_attempt(plan, index, bench, tell=progress.tell, on_output=progress.output)
        except KeyboardInterrupt:
            progress.say("  interrupted: the attempt is recorded as invalid, its evidence so far is kept")
            raise
        judgement = judge_run(run_id, stores.records, stores.evidence, stores.workspace.scores)
        progress.say(f"  {run_id}: {judgement.sentence()}")
        made.append(judgement)
        if judgement.cause in {Cause.MODEL_UNAVAILABLE, Cause.KEY_UNAVAILABLE}:
            stop_where_refused(keys, plan.agent, run_id)
        return judgement

    settings = stores.workspace.config.keys
    patience = Patience(first_seconds=settings.retry_seconds, tries=settings.retries, tell=progress.say)
    with ended_politely():
        try:
            return run_series(series, tier=plans[0].agent.tier, attempt=attempt, patience=patience)
        except KeyboardInterrupt:
            progress.say(left_behind(made))
            raise


def left_behind(made: Sequence[Judgement]) -> str:
    """What an interrupted series had come to."""
    told = "; ".join(f"{one.run}: {one.sentence()}" for one in made)
    return f"the series was interrupted after {words.count(len(made), 'ended attempt')}{told and ': '}{told}"


def resolve_subject(spec: str, stores: Stores, progress: Progress) -> Subject:
    """A subject by name or file; a registry name, a URL or a path is pinned on the spot, into the workspace.

    A subject's name stands before a path of the same name: write ``./NAME`` for the path.

    Raises:
        NothingMatched: no subject has that name.
        RefereeError: it cannot be read or pinned.
    """
    if spec.startswith(("./", "../", "/", "~")) and not Path(spec).expanduser().exists():
        raise NothingMatched(f"there is no file or directory {spec}")
    if not _is_spec(spec):
        is_path = Path(spec).exists() and not spec.endswith(".toml")
        known = _named(spec, stores) if is_path else find_subject(spec, stores.workspace.root)
        if known is not None:
            return known
    subject = _pinned(spec, stores)
    if not subject.file.exists():
        subject.file.parent.mkdir(parents=True, exist_ok=True)
        subject.file.write_bytes(subject.file_bytes)
        progress.say(f"pinned {spec} as the subject {subject.name}: {subject.file}")
    return subject


def _pinned(spec: str, stores: Stores) -> Subject:
    """Pin ``spec``; where another pin has its name already, the version or commit joins the name."""
    subject = pin(spec, stores.workspace)
    known = _named(subject.name, stores)
    if known is None:
        return subject
    if known.pin_text() == subject.pin_text():
        return known
    content = subject.content
    version = (
        content.package.version if content.package else str(subject.pin().get("commit") or subject.pin()["sha256"])
    )
    name = re.sub(r"[^a-z0-9._-]+", "-", f"{subject.name}-{version[:12]}".lower())
    return _named(name, stores) or pin(spec, stores.workspace, name=name)


def _named(name: str, stores: Stores) -> Subject | None:
    try:
        return find_subject(name, stores.workspace.root)
    except NothingMatched:
        return None


def _is_spec(spec: str) -> bool:
    if spec.endswith(".toml"):
        return False
    return spec.startswith(("pypi:", "npm:")) or "://" in spec or (os.sep in spec and Path(spec).exists())


def describe(plan: Plan, judgements: Sequence[Judgement], records: Sequence[Record]) -> dict[str, Any]:
    """The document of a series: one schema, one verdict (by these attempts alone), every attempt."""
    ends = {record.run: record for record in records if isinstance(record, AttemptEnded)}
    return {
        "schema": SCHEMA,
        "subject": plan.subject.ref.name,
        "subject_pin": plan.subject.ref.pin,
        "subject_digest": plan.subject.ref.file_digest,
        "verdict": verdict(judgements).value,
        "edition": plan.rules.edition,
        "environment": plan.environment.model_dump(mode="json"),
        "attempts": [{**judgement.document(), **_seen(ends[judgement.run])} for judgement in judgements],
    }


#: What of an attempt's facts its document shows.
_SEEN = {"recording", "quiet", "rerun", "network", "spending", "observed", "phases", "machine"}


def _seen(end: AttemptEnded) -> dict[str, Any]:
    facts = end.model_dump(mode="json", include=_SEEN)
    return {**facts, "spent_words": spent_words(end), "files": {ref.name: ref.digest for ref in end.evidence}}


def exit_code(document: dict[str, Any]) -> int:
    """0 when the verdict is that it runs, 4 when that could not be verified."""
    passed = document["verdict"] in {Verdict.RUNS.value, Verdict.RUNS_WITH_MOCKS.value}
    return EXIT_PASS if passed else EXIT_COULD_NOT_VERIFY


def print_document(console: Console, document: dict[str, Any], workspace: Workspace) -> None:
    """The same document for a person: nothing of it is folded, nothing in it steers the terminal."""

    def line(*parts: str | tuple[str, str]) -> None:
        shown = [words.visible(one) if isinstance(one, str) else (words.visible(one[0]), one[1]) for one in parts]
        console.print(Text.assemble(*shown), soft_wrap=True)

    line((document["subject"], "bold"), f"  {document['subject_pin']}")
    line("verdict: ", (document["verdict"].replace("_", " "), "bold"), f"  ({_alone(document, workspace)})")
    for attempt in document["attempts"]:
        line("")
        line(f"  {attempt['run']}  attempt {attempt['index']} by {attempt['agent']}")
        if attempt["valid"]:
            rows = "  ".join(f"{name} {points(value)}" for name, value in attempt["rows"].items())
            line(f"    {attempt['outcome']}  {points(attempt['total'])} of 100   {rows}")
            line(f"    corroboration: {attempt['corroboration'].replace('_', ' ')}")
        if attempt.get("spending"):
            line(f"    model: {attempt['spent_words']}")
        if attempt["reason"]:
            line(f"    {attempt['reason']}")
        line(f"    evidence {attempt['evidence']}")
    for objection in document["attempts"][-1]["not_publishable"] if document["attempts"] else []:
        line("")
        line(f"  not publishable: {objection}")


def _alone(document: dict[str, Any], workspace: Workspace) -> str:
    made = len(document["attempts"])
    of = "this attempt" if made == 1 else f"these {made} attempts"
    how = hints.command(f"verdict {document['subject']}", workspace)
    return f"by {of} alone; `{how}` rests on all"


def _plan(subject: Subject, stores: Stores, agent: Agent, sandbox: Sandbox, rules: Rules) -> Plan:
    planned = PlannedSubject(
        ref=subject.ref(),
        file_bytes=subject.file_bytes,
        pin=subject.pin(),
        marked_tier=subject.content.tier,
        needs_gpu=subject.content.gpu,
        display=subject.content.display,
    )
    return make_plan(
        planned, source=make_source(subject.kind, stores.workspace.cache), agent=agent, sandbox=sandbox, rules=rules
    )


def _announce(plan: Plan, progress: Progress) -> None:
    environment = plan.environment
    progress.say(f"{plan.subject.ref.name}: {plan.subject.ref.pin}")
    progress.say(f"machine: {environment.sandbox}, {environment.engine}, {environment.image}")
    if not environment.security_boundary:
        progress.warn(
            "note: no Docker Engine is used: the project's code runs on this host's own root, behind NO security "
            "boundary; these runs are never publishable"
        )
    progress.say(f"budget: {plan.budget.seconds} s, tier {plan.budget.tier}: {plan.budget.why}")
