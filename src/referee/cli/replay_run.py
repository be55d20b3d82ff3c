"""``referee replay RUN``: do a run's recorded commands again on a pristine machine."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from referee.adapters.catalog.subjects import Subject, find_subject, parse_subject
from referee.adapters.sources.make import make_source
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.politely import ended_politely
from referee.cli.progress import Progress
from referee.cli.site import facts_of
from referee.cli.wiring import Stores, check_host_disk, choose_sandbox, make_bench, open_stores
from referee.core.records import Replayed
from referee.errors import (
    EXIT_COULD_NOT_VERIFY,
    EXIT_FINDING,
    EXIT_PASS,
    ConfigError,
    CouldNotVerify,
    NothingMatched,
)
from referee.publish import words
from referee.publish.replays import judge_cold
from referee.runner.rejudge import read_named
from referee.runner.replay import replay_run
from referee.scoring.cold import Cold
from referee.scoring.gather import RunRecords, gather

SCHEMA = "referee.replay/1"
EXITS = {
    "reproducible": EXIT_PASS,
    "not_reproducible": EXIT_FINDING,
    "could_not_be_replayed": EXIT_COULD_NOT_VERIFY,
}


def replay(
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Do the recorded commands of RUN again on a pristine machine, then its report's command.

    Exit 0: reproducible; 1: not reproducible; 4: could not be replayed. What was seen is recorded.
    """
    stores = open_stores(workspace)
    found = gather(stores.records.read())[facts_of(stores, neutral=False).find(run).run]
    with Progress(Console(stderr=True), quiet=quiet) as progress:
        replayed = _replay(found, stores, progress)
    cold = judge_cold(found, replayed, stores.evidence)
    if as_json:
        print(json.dumps(describe(found, replayed, cold), ensure_ascii=False, indent=2))  # noqa: T201 — the output
    else:
        _tell(Console(), replayed, cold)
    raise typer.Exit(EXITS[cold.status])


def _replay(found: RunRecords, stores: Stores, progress: Progress) -> Replayed:
    if found.end is None:
        raise CouldNotVerify(
            f"the run {found.planned.run} has not ended", todo="wait for it; `referee reap` concludes dead ones"
        )
    check_host_disk(stores.workspace)
    subject = _subject(found, stores)
    sandbox = choose_sandbox(stores.workspace, found.planned.lock.environment.sandbox, display=subject.content.display)
    progress.say(f"replay of {found.planned.run}: {subject.name}, {subject.pin_text()}")
    bench = make_bench(stores, sandbox)
    source = make_source(subject.kind, stores.workspace.cache)
    with ended_politely():
        return replay_run(found, bench, source=source, pin=subject.pin(), tell=progress.tell)


def _subject(found: RunRecords, stores: Stores) -> Subject:
    """The subject as the run pinned it; its file where it still stands unchanged, for a local path beside it."""
    ref = found.planned.lock.subject
    try:
        known = find_subject(ref.name, stores.workspace.root)
    except (NothingMatched, ConfigError):
        known = None
    if known is not None and known.digest == ref.file_digest:
        return known
    data = None if found.end is None else read_named(stores.evidence, found.end.evidence, "subject.toml")
    if data is None:
        raise CouldNotVerify(f"the run {found.planned.run} did not keep its subject.toml: there is nothing to place")
    return parse_subject(data, stores.workspace.root / "subjects" / f"{ref.name}.toml")


def describe(found: RunRecords, replayed: Replayed, cold: Cold) -> dict[str, Any]:
    """The document that ``--json`` prints."""
    facts = replayed.model_dump(mode="json", exclude={"kind", "evidence", "evidence_digest"})
    return {
        "schema": SCHEMA,
        **cold.document(),
        "subject": found.planned.lock.subject.name,
        **facts,
        "evidence": replayed.evidence_digest,
        "files": {ref.name: ref.digest for ref in replayed.evidence},
    }


def _tell(console: Console, replayed: Replayed, cold: Cold) -> None:
    said = words.say(words.COLD, cold.status)
    console.print(Text.assemble((said, "bold"), f": {words.visible(cold.reason)}"), soft_wrap=True)
    console.print(Text(f"  run {replayed.run}, replay {replayed.replay}"), soft_wrap=True)
    console.print(Text(f"  steps     {replayed.ran} of {replayed.commands} done again"), soft_wrap=True)
    if replayed.rerun is not None:
        console.print(Text(f"  run again {words.visible(replayed.rerun.command)}"), soft_wrap=True)
    console.print(Text(f"  evidence  {replayed.evidence_digest}"), soft_wrap=True)
