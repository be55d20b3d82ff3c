"""``referee verify``: everything again, from records and evidence alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import referee
from referee.adapters.catalog.workspace import find_root, open_workspace
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.options import JsonOption, WorkspaceOption
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_FINDING, CouldNotVerify, Finding, NothingMatched, UsageError
from referee.publish import words
from referee.publish.facts import Facts
from referee.publish.mapping import FILE_NAME, read_mapping
from referee.runner.bakeoff.recompute import recompute
from referee.runner.bakeoff.verify_report import ReportsVerified, verify_reports
from referee.runner.verify import Verified
from referee.runner.verify import verify as verify_workspace
from referee.runner.verify_public import PublicVerified, verify_public
from referee.runner.verify_site import SiteVerified, verify_site

SCHEMA = "referee.verify/1"
SITE_SCHEMA = "referee.verify-site/1"
_NOT_FROM_A_SITE = (
    "a site has no answers of a bake-off: whether an attempt rightly passed, which gold is in doubt, who may be "
    "ranked, the order within a tie, failures by kind, comparisons beside the boards, power, latency, tokens, sums and "
    "the frozen protocol were not made again; `referee verify` in the workspace makes them again"
)


def verify(
    runs: Annotated[list[str] | None, typer.Argument(help="Run ids; none means the whole workspace.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    site_alone: Annotated[
        Path | None, typer.Option("--site", help="A built site, checked by itself: no workspace is needed.")
    ] = None,
    names: Annotated[
        Path | None, typer.Option("--names", help="With --site: the mapping of neutral names, where it was revealed.")
    ] = None,
) -> None:
    """Compute every digest, chain, recording, score and page again; name the first thing that does not hold (exit 1).

    Needs no container engine and no network. Exit 0: all holds; 4: what could be compared holds, and not all could be;
    5: there is nothing to verify.
    """
    if site_alone is None and names is not None:
        raise UsageError("--names is given without --site", todo="name the site that quotes the mapping: --site DIR")
    if site_alone is not None and runs:
        raise UsageError("a site is checked whole, and runs are named", todo="leave them out, or --site")
    if site_alone is not None:
        _site_alone(site_alone, names, as_json=as_json)
        return
    opened = open_workspace(find_root(Path.cwd(), workspace, reads=True))
    records, evidence = RecordFiles(opened.records), LocalEvidence(opened.evidence)
    site, reports = SiteVerified(there=False, not_compared="", files=0), ReportsVerified()
    try:
        bakeoff = None if runs else recompute(opened.records, opened.answers, evidence)
        done = verify_workspace(records, evidence, opened.scores, runs or (), bakeoff=bakeoff)
        if not runs:
            site = verify_site(
                Facts(records.read(), evidence, mapping=read_mapping(opened.root / FILE_NAME)), opened.site
            )
            log = RecordFiles(opened.records, kind="bakeoff")
            reports = verify_reports(log, evidence, opened.records, opened.site)
    except Finding as exc:
        if as_json:
            print(json.dumps({"schema": SCHEMA, "holds": False, "finding": exc.message}))  # noqa: T201 — the output
            raise typer.Exit(EXIT_FINDING) from exc
        raise
    strays = [] if runs else [str(stray) for stray in evidence.strays()]
    if as_json:
        document = {"schema": SCHEMA, "holds": True, "finding": None, **asdict(done), "site": asdict(site)}
        document["reports"] = asdict(reports)
        print(json.dumps({**document, "strays": strays}))  # noqa: T201
    else:
        _tell(Console(highlight=False, soft_wrap=True), done, site, reports, strays)
    if site.not_compared or reports.not_compared:
        raise typer.Exit(EXIT_COULD_NOT_VERIFY)


def _site_alone(site: Path, names: Path | None, *, as_json: bool) -> None:
    """What a stranger can check who has the published site and nothing else."""
    try:
        if names is not None and not names.is_file():
            raise NothingMatched(f"there is no mapping {names}", todo="name the names.json that was revealed")
        done = verify_public(site, None if names is None else read_mapping(names))
    except (Finding, CouldNotVerify) as exc:
        if as_json:
            holds = False if isinstance(exc, Finding) else None  # None: it cannot be told here
            print(json.dumps({"schema": SITE_SCHEMA, "holds": holds, "finding": exc.message}))  # noqa: T201
            raise typer.Exit(exc.exit_code) from exc
        raise
    if as_json:
        print(json.dumps({"schema": SITE_SCHEMA, "holds": True, "finding": None, **asdict(done)}))  # noqa: T201
    else:
        _tell_site(Console(highlight=False, soft_wrap=True), done)
    if done.bakeoffs.not_compared:
        raise typer.Exit(EXIT_COULD_NOT_VERIFY)


def _tell_site(console: Console, done: PublicVerified) -> None:
    found = done.bakeoffs
    if found.not_compared:
        console.print("what could be compared holds; not all could be")
    else:
        console.print("what a site alone can show holds" if found.reports else "all holds")
    if done.runs:
        console.print(f"  evidence      {words.count(done.files, 'file')}, each the bytes of its name")
        console.print(
            f"  recordings    {done.recordings} casts and logs derived again; {done.masks} masks in their places"
        )
        console.print(f"  runs          {done.runs}, {done.scores} scores and {done.replays} replays judged again")
        console.print(f"  board         {words.count(done.agents, 'agent')}, computed again")
    if found.reports:
        many = words.count(found.reports, "report")
        console.print(f"  bake-offs     {many}; {found.exports} raw exports, each the bytes of its sum")
    if found.attempts:
        said = f"{found.attempts} in the exports, counted again; report.md is what report.json says"
        console.print(f"  attempts      {said}")
    if done.names:
        console.print("  names         the mapping is the one that the site quotes")
    for why in found.not_compared:
        console.print(f"  note: {words.visible(why)}", markup=False)
    if done.built_by is not None:
        said = f"  note: version {words.visible(done.built_by)} built the site; it was checked by {referee.__version__}"
        console.print(said, markup=False)
    console.print("  note: pages in HTML are renderings of these documents and were not compared", markup=False)
    if found.reports:
        console.print(f"  note: {_NOT_FROM_A_SITE}", markup=False)


def _tell(console: Console, done: Verified, site: SiteVerified, reports: ReportsVerified, strays: list[str]) -> None:
    silent = site.not_compared or reports.not_compared
    console.print("what could be compared holds; not all could be" if silent else "all holds")
    console.print(f"  record files  {done.record_files}, with {words.count(done.records, 'record')} in unbroken chains")
    console.print(f"  runs          {done.runs}, of which {done.unjudged} have not ended")
    files = words.count(done.evidence_files, "file")
    console.print(f"  evidence      {files}, {done.evidence_bytes} bytes; {done.unnamed} unnamed")
    console.print(f"  recordings    {done.derived} casts and transcripts derived again, the same to the byte")
    console.print(f"  scores        {done.scores} computed again, {done.scores_compared} compared with scores/")
    if done.replays:
        console.print(f"  replays       {done.replays} compared with their recordings and judged again")
    if done.shards:
        rows = f"{words.count(done.shards, 'shard')} with {words.count(done.rows, 'row')}"
        console.print(f"  bake-offs     {rows}, every verdict computed again from {done.answer_bytes} bytes of answers")
    if site.there and not site.not_compared:
        since = ", from the records as they were when it was built" if site.older else ""
        console.print(f"  site          {words.count(site.files, 'file')} compared with the pages written again{since}")
    if reports.compared:
        console.print(
            f"  reports       {reports.compared} written again from the shards they name, the same to the byte"
        )
    for why in reports.not_compared:
        console.print(f"  note: {words.visible(why)}, so it was not compared", markup=False)
    for why in reports.partial:
        console.print(f"  note: {words.visible(why)}", markup=False)
    if site.not_compared:
        said = f"  note: {words.visible(site.not_compared)}, so the site was not compared: {site.todo}"
        console.print(said, markup=False)
    for sentence in (*done.torn, *done.cut_off, *done.loose):
        console.print(f"  note: {words.visible(sentence)}", markup=False)
    for stray in strays:
        console.print(f"  note: evidence/{words.visible(stray)} is no evidence: no record can name it", markup=False)
