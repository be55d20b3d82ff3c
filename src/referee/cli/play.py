"""``referee play RUN``: replay a recorded session in the terminal, or print its plain transcript."""

from __future__ import annotations

from typing import Annotated

import typer

from referee.adapters.recorder import RAW_NAME, TIMING_NAME, RecordingFiles
from referee.cli.options import WorkspaceOption
from referee.cli.replay import Pace, play_files
from referee.cli.site import facts_of
from referee.cli.wiring import open_stores
from referee.errors import NothingMatched


def play(
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")],
    workspace: WorkspaceOption = None,
    speed: Annotated[float, typer.Option("--speed", "-s", help="How many times as fast as recorded.")] = 1.0,
    idle_limit: Annotated[
        float | None, typer.Option("--idle-limit", "-i", help="Cut longer pauses to this many seconds, for viewing.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print the plain transcript, also on a terminal.")] = False,
) -> None:
    """Replay the recorded session of RUN; where the output is no terminal, print its plain transcript."""
    pace = Pace(speed, idle_limit)
    stores = open_stores(workspace, reads=True)
    facts = facts_of(stores, neutral=False)
    view = facts.run(facts.find(run))
    found = {file.name: stores.evidence.path(file.digest) for file in view.files if file.there}
    if RAW_NAME not in found or TIMING_NAME not in found:
        raise NothingMatched(
            f"Run {view.run} has no recording in this workspace.",
            todo=f"`referee show {view.run}` tells how the attempt ended and what was kept of it.",
        )
    play_files(RecordingFiles(found[RAW_NAME], found[TIMING_NAME]), pace, plain=plain)
