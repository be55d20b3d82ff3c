"""``referee site build``: write the static pages of a workspace."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.wiring import Stores, open_stores
from referee.publish import pages
from referee.publish.facts import Facts, agents_of
from referee.publish.mapping import FILE_NAME, check_letters, keep_mapping, read_mapping

SCHEMA = "referee.site-build/1"

app = typer.Typer(no_args_is_help=True, help="Static pages: they open from disk and request nothing from elsewhere.")


@app.callback()
def _group() -> None:
    """Keep ``build`` a command of its own."""


@app.command()
def build(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Write the pages into the workspace's site/ and print the one to open."""
    index = build_site(open_stores(workspace, reads=True))
    document = {"schema": SCHEMA, "index": str(index), "open": index.absolute().as_uri()}
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2) if as_json else str(index))


def build_site(stores: Stores) -> Path:
    """Write the pages of this workspace; return the page to open."""
    names = stores.workspace.root / FILE_NAME
    check_letters(names, stores.workspace.site)
    keep_mapping(names, agents_of(stores.records.read()))
    return pages.build(facts_of(stores), stores.workspace.site)


def facts_of(stores: Stores, *, neutral: bool = True) -> Facts:
    """What pages and terminals show of this workspace."""
    records = stores.records.read()
    mapping = read_mapping(stores.workspace.root / FILE_NAME)
    return Facts(records, stores.evidence, neutral=neutral, mapping=mapping)
