"""``referee reap``: remove what dead runs left, and conclude their records."""

from __future__ import annotations

import json

from rich.console import Console

from referee.cli.keys_at_start import keys_at_start, sweep_keys
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.wiring import every_sandbox, open_stores
from referee.errors import EngineUnavailable
from referee.runner.recover import recover


def reap(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Remove containers, volumes, networks, processes, mounts and keys of dead runs; record those runs as invalid."""
    stores = open_stores(workspace)
    found: list[str] = []
    sandboxes, silent = every_sandbox(stores.workspace)
    errors = Console(stderr=True, soft_wrap=True)
    for why in silent:
        errors.print(f"note: not looked at: {why}", markup=False, highlight=False)
    if not sandboxes:
        raise EngineUnavailable("no sandbox answers, so nothing can be reaped", todo="start the Docker Engine")
    for sandbox in sandboxes[1:]:
        found += sandbox.reap()
    keys = keys_at_start(stores, (), lambda why: errors.print(why, markup=False, highlight=False))
    try:
        found += recover(stores.records, stores.evidence, stores.workspace.spool, sandboxes[0], keys)
        found += sweep_keys(stores, keys)
    finally:
        if keys is not None:
            keys.stop()
    if as_json:
        print(json.dumps({"schema": "referee.reap/1", "found": found}, ensure_ascii=False, indent=2))  # noqa: T201
        return
    console = Console()
    for sentence in found:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if not found:
        console.print("nothing to reap")
