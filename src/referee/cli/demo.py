"""``referee demo``: three bundled subjects, measured with the built-in agent, and pages to open."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from referee.adapters.catalog.subjects import DEMO_SUBJECTS
from referee.cli.bringup import exit_code, measure, print_document
from referee.cli.options import WorkspaceOption
from referee.cli.progress import Progress
from referee.cli.site import build_site
from referee.cli.wiring import SandboxChoice, make_agent, make_rules, open_stores
from referee.errors import EXIT_PASS
from referee.runner.series import Series


def demo(
    workspace: WorkspaceOption = None,
    sandbox: Annotated[SandboxChoice | None, typer.Option(help="docker, overlay or auto.")] = None,
) -> None:
    """Measure three bundled subjects, print verdict, score rows and evidence digest, and write pages."""
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
        print_document(out, document)
        code = max(code, exit_code(document))
    index = build_site(stores)
    out.print(f"\npages: {index}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"check every number yourself: {sys.argv[0]} verify", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)
