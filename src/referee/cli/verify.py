"""``referee verify``: everything again, from records and evidence alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from referee.adapters.catalog.workspace import find_root, open_workspace
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.options import JsonOption, WorkspaceOption
from referee.errors import EXIT_FINDING, Finding
from referee.runner.verify import Verified
from referee.runner.verify import verify as verify_workspace

SCHEMA = "referee.verify/1"


def verify(
    runs: Annotated[list[str] | None, typer.Argument(help="Run ids; none means the whole workspace.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute every digest, chain, recording and score again; name the first thing that does not hold (exit 1).

    Needs no container engine and no network. Exit 0: all holds; 5: there is nothing to verify.
    """
    opened = open_workspace(find_root(Path.cwd(), workspace))
    try:
        done = verify_workspace(RecordFiles(opened.records), LocalEvidence(opened.evidence), opened.scores, runs or ())
    except Finding as exc:
        if as_json:
            print(json.dumps({"schema": SCHEMA, "holds": False, "finding": exc.message}))  # noqa: T201 — the output
            raise typer.Exit(EXIT_FINDING) from exc
        raise
    if as_json:
        print(json.dumps({"schema": SCHEMA, "holds": True, "finding": None, **asdict(done)}))  # noqa: T201
    else:
        _tell(Console(highlight=False, soft_wrap=True), done)


def _tell(console: Console, done: Verified) -> None:
    console.print("all holds")
    console.print(f"  record files  {done.record_files}, with {done.records} records in unbroken chains")
    console.print(f"  runs          {done.runs}, of which {done.unjudged} have not ended")
    console.print(f"  evidence      {done.evidence_files} files, {done.evidence_bytes} bytes; {done.unnamed} unnamed")
    console.print(f"  recordings    {done.derived} casts and transcripts derived again, the same to the byte")
    console.print(f"  scores        {done.scores} computed again, {done.scores_compared} compared with scores/")
    for sentence in done.torn:
        console.print(f"  note: {sentence}", markup=False)
