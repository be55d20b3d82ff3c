"""``referee agent``: which agents there are, what one is made of, and a dry run of one before money is spent."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from referee.adapters.catalog.workspace import Workspace
from referee.cli.keys_at_start import keys_at_start, sweep_keys
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.politely import ended_politely
from referee.cli.progress import Progress
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import (
    SandboxChoice,
    check_host_disk,
    choose_sandbox,
    every_agent,
    make_agent,
    make_rules,
    make_workspace,
    model_price,
    open_stores,
    workspace_id,
)
from referee.core.spending import SpendingFacts, usd
from referee.errors import ConfigError, UsageError
from referee.protocols import Agent
from referee.runner.agent_check import Bounds, Checked, check_agent

#: The agent ``command`` in a list: what it is made of is the line that ``--command`` gives it.
_COMMAND: dict[str, str | None] = dict.fromkeys(("name", "version", "harness", "model", "upstream", "surface"))
_COMMAND |= {"name": "command", "version": "1", "tier": "standard", "digest": None}

app = typer.Typer(no_args_is_help=True, help="Agents: what bring-up ranks.")

NameArgument = Annotated[str, typer.Argument(help="A built-in agent, or a file of the workspace's agents/.")]


@app.command("list")
def list_agents(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the built-in agents and those of the workspace; a file that cannot be used is named (exit 2)."""
    known, broken = every_agent(open_stores(workspace, reads=True).workspace)
    rows = [_facts(agent) for agent in known]
    rows.insert(1, _COMMAND)
    if as_json:
        wrong = [{"message": one.message, "todo": one.todo} for one in broken]
        document = {"schema": "referee.agents/1", "agents": rows, "broken": wrong}
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201 — the document is the output
    else:
        table = columns("agent", "version", "harness", "model", "tier")
        for row in rows:
            model = "none" if row["model"] is None else f"{row['model']} ({row['upstream']})"
            table.add_row(*map(plain, (row["name"], row["version"], row["harness"] or "none", model, row["tier"])))
        lay(out(), table)
    if len(broken) == 1:
        raise broken[0]
    if broken:
        said = "\n".join(f"  {one.message}{one.todo and '; '}{one.todo}" for one in broken)
        raise ConfigError(f"{len(broken)} files of agents/ cannot be used:\n{said}")


@app.command("show")
def show(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show what an agent is made of, with the digest that stands in records, its model's price and its key's cap.

    Where no key could come about for it as the workspace is configured, that is said (exit 2).
    """
    opened = open_stores(workspace, reads=True).workspace
    agent = _make(name, opened)
    facts: dict[str, Any] = {**_facts(agent), "price": None, "cap_usd": None}
    lack: ConfigError | None = None
    if agent.need is not None:
        facts["cap_usd"] = opened.config.keys.cap_usd
        try:
            price = model_price(opened, agent.need)
        except ConfigError as exc:
            lack = exc
        else:
            facts["price"] = price.model_dump(mode="json") if price is not None else None
    if as_json:
        print(json.dumps({"schema": "referee.agent-facts/1", **facts}, ensure_ascii=False, indent=2))  # noqa: T201
    else:
        if agent.need is not None:
            facts["price"] = "not known" if lack is not None else _price(facts["price"], opened.config.keys.broker)
            facts["cap_usd"] = f"{usd(facts['cap_usd'])} a run"
        for label, value in facts.items():
            typer.echo(f"{label:10} {value if value is not None else 'none'}")
    if lack is not None:
        raise lack


@app.command("check")
def check(
    name: NameArgument,
    seconds: Annotated[int, typer.Option(min=10, max=3600, help="The agent's time for the one step.")] = 300,
    cap_usd: Annotated[
        float | None, typer.Option(min=0.001, help="The cap of the check's key (default: the workspace's).")
    ] = None,
    sandbox: Annotated[SandboxChoice | None, typer.Option(help="docker, overlay or auto.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Install the agent NAME, ask its model for one trivial step, read its report, and tell what that cost."""
    stores = open_stores(workspace)
    agent = _make(name, stores.workspace, sandbox)
    make_workspace(stores)
    check_host_disk(stores.workspace)
    rules = make_rules(stores.workspace, None, None)
    if cap_usd is not None and cap_usd > rules.cap_usd:
        raise UsageError(
            f"--cap-usd {cap_usd:g} is more than the workspace's cap of {usd(rules.cap_usd)}",
            todo="give a lower one, or raise cap_usd in [keys] of referee.toml",
        )
    bounds = Bounds(
        cap_usd=cap_usd if cap_usd is not None else rules.cap_usd,
        seconds=seconds,
        limits=rules.limits,
        workspace=workspace_id(stores.workspace),
        ca_bundle=stores.workspace.ca_bundle(),
    )
    with (
        ended_politely(),
        tempfile.TemporaryDirectory(prefix="referee-check-") as scratch,
        Progress(Console(stderr=True), quiet=quiet) as progress,
    ):
        keys = keys_at_start(stores, [agent], progress.say, cap_usd=bounds.cap_usd)
        try:
            for sentence in sweep_keys(stores, keys):
                progress.say(f"found: {sentence}")
            checked = check_agent(
                agent,
                sandbox=choose_sandbox(stores.workspace, sandbox),
                keys=keys,
                bounds=bounds,
                scratch=Path(scratch),
                tell=progress.tell,
                on_output=progress.output,
            )
        finally:
            if keys is not None:
                keys.stop()
    if as_json:
        print(json.dumps(checked.document(), ensure_ascii=False, indent=2))  # noqa: T201 — the document is the output
    else:
        print_checked(out(), checked)
    if checked.trouble is not None:
        raise checked.trouble


def _make(name: str, workspace: Workspace, sandbox: SandboxChoice | None = None) -> Agent:
    """The agent of that name; what only ``bringup run`` can give a command line has to stand in a file here."""
    if name == "command":
        raise UsageError(
            "the agent `command` has a command line only where `referee bringup run` is given one with --command",
            todo='write agents/NAME.toml with schema = "referee.agent/1", name, version and command, and name that one',
        )
    return make_agent(name, None, workspace, sandbox=sandbox)


def print_checked(console: Console, checked: Checked) -> None:
    """The check as lines: what was done, what it cost, what became of the key."""
    rows = {
        "agent": f"{checked.agent} {checked.version}",
        "harness": checked.harness or "none",
        "model": checked.model or "none: it speaks to no model",
        "install": _install(checked),
        "step": _step(checked),
        "report": _report(checked),
        **({} if checked.spending is None else _spending(checked.spending)),
    }
    for label, value in rows.items():
        console.print(plain(f"{label:8} {value}"), soft_wrap=True)
    if checked.trouble is not None and checked.printed:
        console.print("it printed at the end:")
        for line in checked.printed:
            console.print(plain(f"  {line}"), soft_wrap=True)


def _install(checked: Checked) -> str:
    if checked.install_seconds is None:
        return "failed"
    tree = f", tree {checked.tree_digest}" if checked.tree_digest is not None else ""
    return f"ready in {checked.install_seconds:.1f} s{tree}"


def _step(checked: Checked) -> str:
    if checked.step_seconds is None:
        return "not made"
    ended = "no exit status" if checked.exit_status is None else f"exit status {checked.exit_status}"
    return f"{checked.step_seconds:.1f} s, {ended}"


def _report(checked: Checked) -> str:
    if checked.report is None:
        return "none"
    if checked.model is None:
        return "read"
    quoted = "quotes the line that the step printed" if checked.quoted else "does not quote what the step printed"
    return f"read; final_state {quoted}"


def _spending(spending: SpendingFacts) -> dict[str, str]:
    told = [
        f"{count} {what}"
        for count, what in (
            (spending.calls, "calls"),
            (spending.input_tokens, "tokens in"),
            (spending.cached_tokens, "of them cached"),
            (spending.output_tokens, "tokens out"),
            (spending.refused or None, "refused"),
        )
        if count is not None
    ]
    cost = "not known" if spending.spent_usd is None else f"{spending.spent_usd:.6f} USD"
    gone = "deleted" if spending.deleted else "NOT known to be deleted"
    return {
        "tokens": ", ".join(told) or f"the broker {spending.broker} does not tell",
        "cost": f"{cost} of at most {usd(spending.cap_usd)}",
        "key": f"{spending.key}: {gone}: {spending.how}",
    }


def _price(price: dict[str, Any] | None, broker: str) -> str:
    if price is None:
        return f"the broker {broker} reckons itself"
    told = f"{usd(price['input'])} in and {usd(price['output'])} out, a million tokens"
    return f"{told} ({price['source']})"


def _facts(agent: Agent) -> dict[str, Any]:
    need = agent.need
    return {
        "name": agent.name,
        "version": agent.version,
        "harness": agent.harness,
        "model": need.model if need is not None else None,
        "upstream": need.upstream if need is not None else None,
        "surface": need.dialect if need is not None else None,
        "tier": agent.tier,
        "digest": agent.digest(),
    }
