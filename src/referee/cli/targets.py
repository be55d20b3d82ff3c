"""``referee bakeoff targets``: the models and lanes that a protocol can name; and the embedded baseline, served."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from referee.adapters.catalog.targets import METERED, SCHEMA, SELF_HOSTED, list_targets, load_target, read_target
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import Stores, make_lane, make_workspace, open_stores
from referee.core.bakeoff import Target
from referee.errors import ConfigError, UsageError
from referee.protocols import LaneFacts
from referee.publish.bakeoff import figures

app = typer.Typer(no_args_is_help=True, help="What a bake-off ranks: one model through one lane, pinned in one file.")

LIST_SCHEMA = "referee.bakeoff-targets/1"
SHOW_SCHEMA = "referee.bakeoff-target/1"
ADD_SCHEMA = "referee.bakeoff-target-added/1"
CHECK_SCHEMA = "referee.bakeoff-target-check/1"

NameArgument = Annotated[str, typer.Argument(help="The target's name: its file in targets/.")]


@app.command("list")
def list_all(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the targets of this workspace and those that come with the referee."""
    stores = open_stores(workspace)
    found: list[tuple[str, Target | str]] = []
    for name in list_targets(stores.workspace.targets):
        try:
            found.append((name, load_target(name, stores.workspace.targets)))
        except ConfigError as exc:
            found.append((name, exc.message))
    if as_json:
        rows = [
            {"target": name, "broken": one} if isinstance(one, str) else {"target": name, **one.model_dump(mode="json")}
            for name, one in found
        ]
        _print({"schema": LIST_SCHEMA, "targets": rows})
        return
    table = columns("target", "model", "lane", "channel", "sovereignty", "credential")
    for name, one in found:
        if isinstance(one, str):
            table.add_row(plain(name), plain(f"cannot be used: {one}"), "", "", "", "")
        else:
            channel, class_ = (
                figures.say(figures.CHANNELS, one.channel),
                figures.say(figures.SOVEREIGNTY, one.sovereignty),
            )
            table.add_row(plain(name), plain(one.model), one.lane, channel, class_, _credential(one))
    lay(out(), table)


@app.command()
def add(
    name: NameArgument,
    model: Annotated[str, typer.Option(help="The model, exactly as the endpoint's catalogue names it.")],
    base_url: Annotated[str, typer.Option(help="The endpoint, for instance http://127.0.0.1:8000/v1.")],
    channel: Annotated[
        str, typer.Option(help="The kind of way: local, own-infrastructure, hosted-free-tier, router, …")
    ],
    sovereignty: Annotated[
        str, typer.Option(help="eu-origin, eu-hostable-open-weight, chinese-open-weight or us-closed.")
    ],
    lane: Annotated[
        str, typer.Option(help="The API: openai-chat, openai-responses, anthropic-messages or ollama.")
    ] = "openai-chat",
    key_env: Annotated[
        str | None,
        typer.Option(
            help="The NAME of the environment variable that holds the key, in capitals with underscores between words, "
            "such as PROVIDER_API_KEY; never the key."
        ),
    ] = None,
    self_host: Annotated[
        str | None,
        typer.Option(
            help="Whether one could host it oneself: feasible (the default of local and own-infrastructure), costly or "
            "not-feasible (the default of all others)."
        ),
    ] = None,
    quantisation: Annotated[str | None, typer.Option(help="A pin: such as Q4_K_M.")] = None,
    precision: Annotated[str | None, typer.Option(help="A pin: such as bf16.")] = None,
    context: Annotated[int | None, typer.Option(help="A pin: the context that is served, tokens.")] = None,
    revision: Annotated[str | None, typer.Option(help="A pin: the commit or digest that is served.")] = None,
    metered: Annotated[
        bool, typer.Option("--metered", help="Every call costs money; router and metered-api always are.")
    ] = False,
    credit_usd: Annotated[
        float | None, typer.Option(help="What may be spent, US dollars: a ledger is kept against it.")
    ] = None,
    price: Annotated[
        tuple[float, float] | None, typer.Option(help="INPUT OUTPUT: US dollars for a million tokens.")
    ] = None,
    price_model: Annotated[
        str | None, typer.Option(help="Instead of a price: the model's name in the table of prices that is installed.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write targets/NAME.toml for an endpoint. Every key that the file may have stands in docs/targets.md."""
    stores = open_stores(workspace)
    file = stores.workspace.targets / f"{name}.toml"
    if self_host is None and channel in SELF_HOSTED:
        self_host = "feasible"
    credit, market = _credit(base_url, credit_usd)
    gated = metered or channel in METERED
    if (gated and credit is None) or (credit == "ledger" and price is None and price_model is None):
        raise UsageError(
            f"the target {name} is metered: the budget gate needs to know what may be spent and at which price",
            todo="give --credit-usd 10 and --price INPUT OUTPUT (or --price-model NAME); what costs nothing is of the "
            "channel hosted-free-tier",
        )
    values = {
        "model": model,
        "lane": lane,
        "channel": channel,
        "sovereignty": sovereignty,
        "self_host": self_host,
        "base_url": base_url,
        "key_env": key_env,
        "quantisation": quantisation,
        "precision": precision,
        "context": context,
        "revision": revision,
        "metered": True if gated or credit is not None else None,
        "credit": credit,
        "credit_usd": credit_usd,
        "price_model": price_model,
        "market": market,
    }
    text = f"schema = {json.dumps(SCHEMA)}\n" + _lines(values)
    if price is not None:
        text += "\n[price] # US dollars for a million tokens\n" + _lines({"input": price[0], "output": price[1]})
    if name in list_targets(stores.workspace.targets):
        raise UsageError(f"the target {name} is there already", todo=f"edit {file}, or choose another name")
    read_target(name, f"targets/{name}.toml", text.encode())
    make_workspace(stores)
    file.parent.mkdir(exist_ok=True)
    with file.open("x", encoding="utf-8") as target:
        target.write(text)
    if as_json:
        _print({"schema": ADD_SCHEMA, "target": name, "file": str(file)})
    else:
        typer.echo(str(file))


@app.command()
def show(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show what a target pins, and what its lane leaves uncontrolled."""
    stores = open_stores(workspace)
    target = load_target(name, stores.workspace.targets)
    surface = _surface(target, stores)
    pinned = target.model_dump(mode="json", exclude_none=True)
    if as_json:
        _print({"schema": SHOW_SCHEMA, "target": pinned, "surface": surface})
        return
    console = out()
    for key, value in pinned.items():
        console.print(plain(f"{key:<18} {value if isinstance(value, str) else json.dumps(value)}"), soft_wrap=True)
    if isinstance(surface, str):
        console.print(plain(f"{'lane':<18} cannot be made now: {surface}"), soft_wrap=True)
        return
    for thing in surface["uncontrolled"] or ["nothing that is known"]:
        console.print(plain(f"{'not controlled':<18} {thing}"), soft_wrap=True)
    console.print(plain(f"{'may be read as':<18} {surface['readable_as']}"), soft_wrap=True)


@app.command()
def check(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Ask the lane, as a run does before its first attempt: endpoint there, model in its catalogue, pins verified."""
    stores = open_stores(workspace)
    target = load_target(name, stores.workspace.targets)
    with tempfile.TemporaryDirectory(prefix="referee-check-") as spool:
        facts = asyncio.run(_check(target, Path(spool), stores))
    if as_json:
        _print({"schema": CHECK_SCHEMA, "target": name, "model": facts.model, "verified": dict(facts.verified)})
        return
    console = out()
    console.print(plain(f"{name}: the lane answers, the model is {facts.model}"), soft_wrap=True)
    for what, said in sorted(facts.verified.items()):
        console.print(plain(f"  {what}: {said}"), soft_wrap=True)


def _credit(base_url: str, credit_usd: float | None) -> tuple[str | None, str | None]:
    """Where the remaining credit and the market are read: OpenRouter publishes both, elsewhere a ledger is kept."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # the file is refused for it
        host = ""
    router = host == "openrouter.ai"
    if credit_usd is not None:
        return "ledger", "openrouter" if router else None
    return ("openrouter", "openrouter") if router else (None, None)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items() if value is not None
    )


def serve_baseline(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port on 127.0.0.1; 0 takes a free one.")] = 0,
) -> None:
    """Serve the keyword baseline on loopback in OpenAI's format, until Ctrl-C: to try another client against it."""
    from referee.adapters.keyword_baseline.server import serve  # noqa: PLC0415 — aiohttp is slow to import

    try:
        serve(port, typer.echo)
    except OSError as exc:
        raise UsageError(f"port {port} cannot be used: {exc.strerror}", todo="choose another, or 0") from exc


async def _check(target: Target, spool: Path, stores: Stores) -> LaneFacts:
    from referee.core.redaction import Redactor  # noqa: PLC0415 — with what follows, slow to import
    from referee.runner.bakeoff.keeping import without_credentials, without_secrets  # noqa: PLC0415

    lane = make_lane(target, spool=spool, environ=os.environ, ca_bundle=stores.workspace.ca_bundle())
    try:
        redactor = Redactor(lane.secrets)
        with without_secrets(redactor):
            return without_credentials(await lane.check(), redactor)
    finally:
        await lane.close()


def _surface(target: Target, stores: Stores) -> dict[str, Any] | str:
    """What the lane leaves uncontrolled; or why the lane cannot be made, such as a credential that is not set."""

    async def made(spool: Path) -> dict[str, Any]:
        lane = make_lane(target, spool=spool, environ=os.environ, ca_bundle=stores.workspace.ca_bundle())
        try:
            return lane.surface.model_dump(mode="json")
        finally:
            await lane.close()

    try:
        with tempfile.TemporaryDirectory(prefix="referee-show-") as spool:
            return asyncio.run(made(Path(spool)))
    except UsageError as exc:
        return exc.message


def _credential(target: Target) -> str:
    if target.key_env is None:
        return "none needed"
    return f"{target.key_env} {'is set' if os.environ.get(target.key_env) else 'is not set'}"


def _print(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
