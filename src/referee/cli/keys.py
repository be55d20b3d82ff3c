"""``referee keys``: what was issued, and the deletion of what no running attempt uses."""

from __future__ import annotations

import json
import os

import typer

from referee.adapters.keys.ledger import Entry, Ledger
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import gateway_keys, make_keys, open_stores
from referee.core.spending import usd
from referee.errors import CouldNotVerify
from referee.publish import words

app = typer.Typer(no_args_is_help=True, help="The one key of each run with a model.")


@app.command("list")
def list_keys(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List every key that was issued: whose it was, its limit, what it spent, what became of it. Never a secret."""
    stores = open_stores(workspace, reads=True)
    entries = Ledger(stores.workspace.keys).every()
    if as_json:
        rows = [entry.model_dump(mode="json", exclude={"format"}) | {"in_use": _in_use(entry)} for entry in entries]
        print(json.dumps({"schema": "referee.keys/1", "keys": rows}, ensure_ascii=False, indent=2))  # noqa: T201
        return
    console = out()
    if not entries:
        console.print("no key was issued in this workspace")
        return
    table = columns("run", "broker", "model", "cap>", "spent>", "made", "state")
    for entry in entries:
        spent = entry.spending.spent_usd if entry.spending is not None else None
        cost = "not known" if spent is None else words.money(spent)
        cells = (entry.run, entry.broker, entry.model, usd(entry.cap_usd), cost, entry.made_at, _state(entry))
        table.add_row(*map(plain, cells))
    lay(console, table)


@app.command("sweep")
def sweep(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Delete every key that belongs to no running attempt. Every start of an attempt does the same."""
    stores = open_stores(workspace, reads=True)
    running = [planned.run for planned in stores.records.attempts_under_way()]
    found: list[str] = []
    # The gateway's keys too, where another broker is configured now: they are dead, and the ledger is told so.
    brokers = [make_keys(stores.workspace, os.environ)]
    if brokers[0].broker != "gateway":
        brokers.append(gateway_keys(stores.workspace, os.environ))
    for keys in brokers:
        try:
            found += keys.sweep(running)
        finally:
            keys.stop()
    ledger = Ledger(stores.workspace.keys)
    left = [entry.name for entry in ledger.live() if entry.left_behind()]
    left += [f"that of keys/live/{name}, which cannot be read" for name in ledger.unreadable()]
    if as_json:
        document = {"schema": "referee.keys-sweep/1", "found": found, "left": left}
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201
    else:
        for sentence in found or ([] if left else ["no key was left behind"]):
            out().print(plain(sentence), soft_wrap=True)
    if left:
        raise CouldNotVerify(
            f"{len(left)} keys that no running attempt uses are not known to be deleted: {', '.join(left)}",
            todo="see that [keys] names the broker that made them and that it can be reached, then sweep again",
        )


def _in_use(entry: Entry) -> bool:
    return not entry.left_behind()


def _state(entry: Entry) -> str:
    """What became of a key, in words."""
    if entry.state == "closed":
        return "deleted"
    return "in use" if _in_use(entry) else "left behind: referee keys sweep deletes it"
