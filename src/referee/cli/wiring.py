"""Chooses who answers at each seam; the only place that knows all adapters."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from referee.adapters.agents.baseline_agent import baseline_agent
from referee.adapters.agents.command_agent import CommandAgent, shell_command
from referee.adapters.agents.regression_agent import REGRESSION_AGENTS, regression_agent
from referee.adapters.catalog.agents import BUILT_IN, AgentFile, load_agent_file
from referee.adapters.catalog.workspace import CONFIG_NAME, Workspace, find_root, making, open_workspace
from referee.adapters.catalog.workspace import Keys as KeySettings
from referee.adapters.keys.head_values import fits_a_head
from referee.adapters.recorder import Caps
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.bakeoff import Target
from referee.core.spending import Price
from referee.errors import ConfigError, CouldNotVerify, EngineUnavailable, NothingMatched, UsageError
from referee.protocols import Agent, Keys, Lane, ModelNeed, Sandbox
from referee.runner.attempt import Bench
from referee.runner.plan import Rules

SandboxChoice = Literal["auto", "docker", "overlay"]

_FIRST_CONFIG = """\
# Configuration of this workspace. Every key is optional; `referee config show` lists them with their values.
"""


@dataclass(frozen=True)
class Stores:
    """An open workspace: its settings and its two stores."""

    workspace: Workspace
    records: RecordFiles
    evidence: LocalEvidence


def open_stores(workspace: Path | None, *, reads: bool = False) -> Stores:
    """Open the workspace named on the command line, or the one found from here, for reading and appending.

    ``reads``: the command makes nothing there; a named workspace that does not exist is then an error.
    """
    opened = open_workspace(find_root(Path.cwd(), workspace, reads=reads))
    return Stores(opened, RecordFiles(opened.records), LocalEvidence(opened.evidence))


def open_bakeoff(stores: Stores) -> RecordFiles:
    """The workspace's records of bake-offs: freezes, decisions, reviews, markets."""
    return RecordFiles(stores.workspace.records, kind="bakeoff")


def make_workspace(stores: Stores) -> None:
    """Create the workspace's directory, with a first configuration, where it is not there yet."""
    root = stores.workspace.root
    with making(root):
        root.mkdir(parents=True, exist_ok=True)
    if not (root / CONFIG_NAME).exists():
        (root / CONFIG_NAME).write_text(_FIRST_CONFIG, encoding="utf-8")


def check_host_disk(workspace: Workspace) -> None:
    """Refuse to start where the host's free disk is under the floor.

    Raises:
        CouldNotVerify: there is too little room.
    """
    free = shutil.disk_usage(workspace.root).free
    floor = workspace.config.host_disk_floor_bytes
    if free < floor:
        raise CouldNotVerify(
            f"the disk of {workspace.root} has {free // 10**6} MB free, less than the floor of {floor // 10**6} MB",
            todo=f"free some space, or lower host_disk_floor_bytes in {CONFIG_NAME}",
        )


def choose_sandbox(workspace: Workspace, choice: SandboxChoice | None = None, *, display: bool = False) -> Sandbox:
    """The maker of machines: Docker where an engine answers, else overlay, or the one that was asked for.

    A subject that needs a display gets the environment's second stage, which has one (methodology §4).

    Raises:
        EngineUnavailable: Docker was asked for and does not answer, or overlay cannot work here.
    """
    wanted = choice or workspace.config.environment.sandbox
    if wanted == "overlay":
        return _overlay(workspace)
    try:
        return _docker(workspace, display=display)
    except EngineUnavailable as exc:
        # An engine that was named and does not answer is a mistake; nobody then expects the host itself to be used.
        if wanted == "docker" or os.environ.get("DOCKER_HOST"):
            raise
        return _overlay(workspace, without=exc)


def _docker(workspace: Workspace, *, display: bool = False) -> Sandbox:
    from referee.adapters.docker.sandbox import DockerSandbox  # noqa: PLC0415 — its SDK is slow to import

    config = workspace.config
    sandbox = DockerSandbox(
        image=config.environment.image,
        variant="display" if display and config.environment.variant == "default" else config.environment.variant,
        blocked_networks=config.network.blocked,
        host_reachable=config.network.host_reachable,
        workspace=workspace_id(workspace),
    )
    sandbox.ping()
    return sandbox


def _overlay(workspace: Workspace, *, without: EngineUnavailable | None = None) -> Sandbox:
    """Machines without an engine; ``without`` says why there is none, where one would have been preferred."""
    from referee.adapters.overlay.sandbox import OverlaySandbox, overlay_available  # noqa: PLC0415 — seldom needed

    state = workspace.root / "machines"
    why_not = overlay_available(state)
    if why_not is not None:
        raise EngineUnavailable(
            f"{without.message if without else 'no engine was asked for'}, and the overlay sandbox cannot work here: "
            f"{why_not}",
            todo=without.todo if without else "use Docker Engine instead: --sandbox docker",
        )
    return OverlaySandbox(state, hidden=[workspace.root])


def workspace_id(workspace: Workspace) -> str:
    """Names the workspace on its machines' labels."""
    return hashlib.sha256(str(workspace.root.absolute()).encode()).hexdigest()[:16]


def make_agent(name: str, command: str | None, workspace: Workspace, *, sandbox: SandboxChoice | None = None) -> Agent:
    """The agent of that name: a built-in one, ``command`` with a command line, or one of the workspace's files.

    ``sandbox``: the choice of the command line; a shipped program is installed in a machine of that kind.
    """
    if command is not None and name != "command":
        raise UsageError(f"--command goes with --agent command, not with --agent {name}")
    if name == "baseline":
        return baseline_agent(workspace.cache)
    if name in REGRESSION_AGENTS:
        return regression_agent(name, workspace.cache)
    if name == "command":
        if not command:
            raise UsageError("the agent `command` needs a command line", todo="give one with --command 'LINE'")
        return CommandAgent(name="command", version="1", argv=shell_command(command))
    file = load_agent_file(name, workspace.root / "agents")
    if file.upstream is not None and file.upstream not in workspace.config.upstreams and _has_gateway(workspace):
        raise ConfigError(
            f"{workspace.agents / file.name}.toml names the upstream {file.upstream}, and the workspace has none",
            todo=f"add [upstreams.{file.upstream}] to {CONFIG_NAME}",
        )
    if file.harness is not None:
        return _harness_agent(file, workspace, sandbox)
    need = None
    if file.model is not None and file.upstream is not None and file.dialect is not None:
        need = ModelNeed(model=file.model, dialect=file.dialect, upstream=file.upstream)
    return CommandAgent(
        name=file.name,
        version=file.version or "",
        argv=shell_command(file.command) if isinstance(file.command, str) else tuple(file.command or ()),
        tier=file.tier,
        environment=file.environment,
        files=(workspace.root / "agents" / file.files).resolve() if file.files else None,
        need=need,
    )


def _has_gateway(workspace: Workspace) -> bool:
    """Whether keys are this installation's own: then an upstream must be one of the workspace's."""
    return workspace.config.keys.broker == "gateway"


def _harness_agent(file: AgentFile, workspace: Workspace, choice: SandboxChoice | None) -> Agent:
    from referee.adapters.agents.harnesses.agent import HarnessAgent  # noqa: PLC0415 — only agents with a model need it
    from referee.adapters.agents.harnesses.harness import load_harness  # noqa: PLC0415
    from referee.adapters.agents.harnesses.install import Site  # noqa: PLC0415

    try:
        program = load_harness(file.harness or "")
    except NothingMatched as exc:
        raise ConfigError(f"{workspace.agents / file.name}.toml: {exc.message}", todo=exc.todo) from exc
    return HarnessAgent(
        name=file.name,
        program=program,
        version=file.version or program.version,
        model=file.model or "",
        upstream=file.upstream or "",
        tier=file.tier,
        site=Site(
            cache=workspace.cache,
            sandbox=lambda: choose_sandbox(workspace, choice),
            workspace=workspace_id(workspace),
            limits=workspace.config.machine.limits(),
            ca_bundle=workspace.ca_bundle(),
        ),
    )


def every_agent(workspace: Workspace) -> tuple[list[Agent], list[ConfigError]]:
    """The built-in agents, except ``command``, which needs its line, those of the workspace's ``agents/``, and what is
    wrong with the files that cannot be used.
    """
    agents = [make_agent(name, None, workspace) for name in ("baseline", *REGRESSION_AGENTS)]
    broken: list[ConfigError] = []
    for file in sorted(workspace.agents.glob("*.toml")):
        try:
            agents.append(_own_agent(file, workspace))
        except ConfigError as exc:
            broken.append(exc)
    return agents, broken


def _own_agent(file: Path, workspace: Workspace) -> Agent:
    if file.stem in BUILT_IN:
        raise ConfigError(f"{file}: {file.stem} is the name of a built-in agent", todo="give it another name")
    return make_agent(file.stem, None, workspace)


def make_stronger(name: str, workspace: Workspace, *, sandbox: SandboxChoice | None = None) -> Agent:
    """The stronger agent of that name; its file must say ``tier = "stronger"``.

    Raises:
        UsageError: it is a standard agent.
    """
    agent = make_agent(name, None, workspace, sandbox=sandbox)
    if agent.tier != "stronger":
        raise UsageError(f"the agent {name} is not a stronger one", todo='say tier = "stronger" in its file')
    return agent


def make_bench(stores: Stores, sandbox: Sandbox) -> Bench:
    """What every attempt of this workspace uses."""
    recording = stores.workspace.config.recording
    return Bench(
        sandbox=sandbox,
        records=stores.records,
        evidence=stores.evidence,
        spool=stores.workspace.spool,
        workspace=workspace_id(stores.workspace),
        ca_bundle=stores.workspace.ca_bundle(),
        caps=Caps(max_bytes=recording.max_bytes, max_events=recording.max_events),
        columns=recording.columns,
        rows=recording.rows,
    )


def make_rules(workspace: Workspace, edition: int | None, budget_seconds: int | None) -> Rules:
    """The rules of an attempt; another budget than the methodology's is recorded as such."""
    budgets = workspace.config.budgets.seconds()
    if budget_seconds is not None:
        budgets = dict.fromkeys(budgets, budget_seconds)
    chosen = workspace.config.edition if edition is None else edition
    if chosen not in {1, 2}:
        raise UsageError(f"there is no edition {chosen}", todo="choose 1 or 2")
    config = workspace.config
    return Rules(
        edition=2 if chosen == 2 else 1,  # noqa: PLR2004
        budgets=budgets,
        limits=config.machine.limits(),
        cap_usd=config.keys.cap_usd,
    )


def every_sandbox(workspace: Workspace) -> tuple[list[Sandbox], list[str]]:
    """All makers of machines that answer now, for the reaper; and why the others do not."""
    found: list[Sandbox] = []
    silent: list[str] = []
    for make in (_docker, _overlay):
        try:
            found.append(make(workspace))
        except EngineUnavailable as exc:
            silent.append(exc.message)
    return found, silent


def make_keys(workspace: Workspace, environ: Mapping[str, str]) -> Keys:
    """Who makes the one key of each run, as ``[keys]`` in ``referee.toml`` says. Nothing is asked or listened at yet.

    Args:
        workspace: whose keys they are.
        environ: where the broker's own credential, or those of the upstreams, are read by name.

    Raises:
        ConfigError: a setting is missing or cannot be used, or the named variable is not set.
        CouldNotVerify: the workspace's secret can neither be read nor made.
    """
    settings = workspace.config.keys
    try:
        if settings.broker == "gateway":
            return gateway_keys(workspace, environ)
        from referee.adapters.keys.brokered import BrokeredKeys  # noqa: PLC0415 — only runs with a model need keys
        from referee.adapters.keys.litellm import LiteLLM  # noqa: PLC0415
        from referee.adapters.keys.openrouter import OpenRouter  # noqa: PLC0415

        credential = _broker_credential(settings, environ)
        service: OpenRouter | LiteLLM
        if settings.broker == "openrouter":
            service = OpenRouter(credential, base_url=settings.base_url, ca_bundle=workspace.ca_bundle())
        elif settings.base_url:
            service = LiteLLM(credential, base_url=settings.base_url, ca_bundle=workspace.ca_bundle())
        else:
            raise ConfigError(
                "the broker litellm needs the address of its proxy", todo=f"set base_url in [keys] of {CONFIG_NAME}"
            )
        return BrokeredKeys(service, workspace.keys)
    except (OSError, ValueError) as exc:
        raise CouldNotVerify(
            f"the workspace's secret for keys cannot be used: {exc}", todo=f"see to {workspace.keys / 'secret'}"
        ) from exc


def gateway_keys(workspace: Workspace, environ: Mapping[str, str]) -> Keys:
    """The metering gateway of this installation, with the workspace's upstreams. It listens at nothing yet."""
    from referee.adapters.keys.gateway.keys import GatewayKeys  # noqa: PLC0415 — only runs with a model need keys
    from referee.adapters.keys.gateway.upstream import Upstream  # noqa: PLC0415

    config = workspace.config
    upstreams = {}
    for name, setting in config.upstreams.items():
        secret = environ.get(setting.key_env, "").strip() if setting.key_env else None
        upstreams[name] = Upstream(
            name=name,
            base_url=setting.base_url,
            secret=secret or None,
            dialects=setting.dialects,
            provider=setting.provider,
            prices={
                model: Price(**price.model_dump(), source=f"[upstreams.{name}.prices] of {CONFIG_NAME}")
                for model, price in setting.prices.items()
            },
            max_output_tokens=setting.max_output_tokens,
            unset=setting.key_env if secret == "" else None,
            variable=setting.key_env,
        )
    return GatewayKeys(workspace.keys, upstreams, bodies=config.keys.bodies, ca_bundle=workspace.ca_bundle())


def model_price(workspace: Workspace, need: ModelNeed) -> Price | None:
    """What the model costs as the workspace is configured; no credential is looked at. None: the broker reckons itself.

    Raises:
        ConfigError: no key could come about: upstream, surface or price is missing, or the cap can hold no call.
    """
    from referee.adapters.keys.gateway.keys import GatewayKeys  # noqa: PLC0415 — only agents with a model need it

    settings = workspace.config.upstreams.values()
    keys = gateway_keys(workspace, {one.key_env: "not looked at" for one in settings if one.key_env})
    if not _has_gateway(workspace) or not isinstance(keys, GatewayKeys):
        return None
    return keys.check(need, cap_usd=workspace.config.keys.cap_usd).listed


def _broker_credential(settings: KeySettings, environ: Mapping[str, str]) -> tuple[str, str]:
    """Name and value of the broker's own credential."""
    if not settings.key_env:
        raise ConfigError(
            f"the broker {settings.broker} needs a credential of its own",
            todo=f"name the variable that holds it with key_env in [keys] of {CONFIG_NAME}",
        )
    value = environ.get(settings.key_env, "").strip()
    if not value:
        raise ConfigError(
            f"the variable {settings.key_env}, which holds the credential of the broker {settings.broker}, is not set",
            todo=f"set {settings.key_env} in the environment of this command",
        )
    if not fits_a_head(value):
        raise ConfigError(
            f"the variable {settings.key_env}, with the credential of the broker {settings.broker}, holds a line break "
            "or another character that no request can carry",
            todo=f"set {settings.key_env} to the key alone",
        )
    return settings.key_env, value


def make_lane(target: Target, *, spool: Path, environ: Mapping[str, str], ca_bundle: Path | None = None) -> Lane:
    """The way to a target. Its credential is read here, once, by name; nothing is sent yet.

    Args:
        target: what is asked.
        spool: where an agent CLI gets its empty homes.
        environ: where the credential, and what a CLI may inherit, are read by name.
        ca_bundle: whom to trust instead of the system's authorities.

    Raises:
        UsageError: the credential is missing, or the target's settings cannot be used.
    """
    if target.lane == "cli":
        from referee.adapters.lanes.cli.lane import CliLane  # noqa: PLC0415 — only a bake-off needs lanes

        return CliLane(target, spool=spool, environ=environ)
    from referee.adapters.lanes.make import make_http_lane  # noqa: PLC0415 — aiohttp is slow to import

    if target.lane != "keyword-baseline":
        return make_http_lane(target, environ, ca_bundle=ca_bundle)
    from referee.adapters.keyword_baseline.server import start_embedded  # noqa: PLC0415 — aiohttp is slow to import

    return make_http_lane(target, environ, starter=start_embedded)
