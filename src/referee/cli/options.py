"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        help="The workspace's directory (default: the nearest with a referee.toml, else ./referee-workspace).",
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
