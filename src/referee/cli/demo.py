"""``referee demo``: three bundled subjects, a bake-off that needs no key, and pages to open."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from referee.adapters.catalog.bakeoff_protocols import load_protocol
from referee.adapters.catalog.subjects import DEMO_SUBJECTS
from referee.cli import hints
from referee.cli.bakeoff_init import write_protocol
from referee.cli.bakeoff_report import print_board, write_report
from referee.cli.bakeoff_run import Watch, run_protocol
from referee.cli.bringup import exit_code, measure, print_document
from referee.cli.options import WorkspaceOption
from referee.cli.progress import Progress
from referee.cli.site import build_site
from referee.cli.wiring import SandboxChoice, Stores, make_agent, make_rules, open_bakeoff, open_stores
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_PASS, Finding
from referee.runner.bakeoff.freeze import freeze
from referee.runner.series import Series


def demo(
    workspace: WorkspaceOption = None,
    sandbox: Annotated[SandboxChoice | None, typer.Option(help="docker, overlay or auto.")] = None,
) -> None:
    """Measure three bundled subjects and run a bake-off without a key; print what came out, and write pages."""
    stores = open_stores(workspace)
    out = Console()
    code = EXIT_PASS
    for name in DEMO_SUBJECTS:
        with Progress(Console(stderr=True)) as progress:
            document = measure(
                name,
                stores=stores,
                series=Series("until-verdict"),
                agents=[make_agent("baseline", None, stores.workspace)],
                rules=make_rules(stores.workspace, None, None),
                sandbox_choice=sandbox,
                progress=progress,
            )
        out.print()
        print_document(out, document, stores.workspace)
        code = max(code, exit_code(document))
    page, complete = bake_off(stores, out)
    index = build_site(stores)
    out.print(f"\npages: {index}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"bake-off: {page}", markup=False, highlight=False, soft_wrap=True)
    check = hints.command("verify", stores.workspace).replace("referee", sys.argv[0], 1)
    out.print(f"check every number yourself: {check}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code if complete else max(code, EXIT_COULD_NOT_VERIFY))


def bake_off(stores: Stores, out: Console) -> tuple[Path, bool]:
    """Run suite s1 on ``keyword-baseline`` under a protocol of the demo; print its board.

    A second demo finds every slot filled and asks nothing again.

    Returns:
        The report's page, and whether every slot has its row.
    """
    name = _frozen_protocol(stores)
    with Watch(Console(stderr=True)) as watch:
        done = run_protocol(stores, name, watch=watch)
    basis, page = write_report(stores, name, [], every=True)
    out.print()
    print_board(out, basis.summary, stores.workspace)
    return page, all(target.ended == "complete" for target in done.targets)


def _frozen_protocol(stores: Stores) -> str:
    """The demo's protocol, frozen: the one of an earlier demo, or a new one where its method has changed since."""
    log = open_bakeoff(stores)
    for number in itertools.count(1):
        name = "demo" if number == 1 else f"demo-{number}"
        directory = stores.workspace.protocols / name
        if not directory.exists():
            write_protocol(directory, name, suite="s1", targets=["keyword-baseline"])
        try:
            freeze(log, stores.evidence, load_protocol(directory), by="demo")
        except Finding:
            continue  # something of it changed since: rows under two methods are never mixed
        return name
    raise AssertionError
