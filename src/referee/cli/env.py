"""``referee env``: build and show the environment image."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from referee.adapters.catalog.workspace import Workspace, find_root, open_workspace
from referee.cli import hints
from referee.cli.options import JsonOption, WorkspaceOption
from referee.errors import CouldNotVerify, EngineUnavailable, EnvironmentUnavailable, UsageError

if TYPE_CHECKING:
    from docker import APIClient

    from referee.adapters.docker.image import ImageFacts

app = typer.Typer(no_args_is_help=True, help="The environment image that disposable machines are made from.")

Variant = Annotated[
    str | None, typer.Option("--variant", help="default, display, rust, go, java, ruby or php; else referee.toml's.")
]


@app.command("build")
def build(
    variant: Variant = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build from the ground, also when up to date.")] = False,
    if_engine: Annotated[
        bool, typer.Option("--if-engine", help="Do nothing, successfully, where no engine answers.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Build the environment image, unless it is up to date."""
    from referee.adapters.docker import engine, image  # noqa: PLC0415 — the engine's SDK is slow to import

    space = open_workspace(find_root(Path.cwd(), workspace))
    progress = Console(stderr=True, soft_wrap=True, highlight=False)
    settings = space.config.environment
    try:
        client = engine.connect()
    except EngineUnavailable as exc:
        if not if_engine:
            raise
        progress.print(f"{exc.message}: there is no image to build, machines are made by overlay")
        return
    made = image.build(
        client,
        image=settings.image,
        variant=variant or settings.variant,
        base=settings.base,
        ca_bundle=space.ca_bundle(),
        rebuild=rebuild,
        say=lambda line: progress.print(line, markup=False),
    )
    _show(made, space, as_json=False)


@app.command("show")
def show(
    variant: Variant = None,
    as_json: JsonOption = False,
    packages: Annotated[bool, typer.Option("--packages", help="Print the package manifest instead.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the environment image: digest, packages, whether it is up to date."""
    from referee.adapters.docker import engine, image  # noqa: PLC0415 — the engine's SDK is slow to import

    space = open_workspace(find_root(Path.cwd(), workspace))
    client = engine.connect()
    facts = _held(space, client, variant)
    if packages:
        manifest = image.read_manifest(client, facts.image_id)
        if manifest is None:
            raise EnvironmentUnavailable(
                f"{facts.tag} holds no package manifest", todo=f"run `referee {_build(facts)}`"
            )
        typer.echo(manifest.decode("utf-8"))
        return
    _show(facts, space, as_json=as_json)


@app.command("ready")
def ready(
    variant: Variant = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing, only exit: 0 ready, 4 not.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Tell whether the environment image is there and up to date. Exit code 2: there is no such variant."""
    from referee.adapters.docker import engine  # noqa: PLC0415 — the engine's SDK is slow to import

    try:
        facts = _held(open_workspace(find_root(Path.cwd(), workspace)), engine.connect(), variant)
        if not facts.current:
            raise EnvironmentUnavailable(f"{facts.tag} is out of date", todo=f"run `referee {_build(facts)}`")
    except CouldNotVerify as exc:
        if quiet:
            raise typer.Exit(exc.exit_code) from exc
        raise
    if not quiet:
        typer.echo(f"{facts.tag} is ready: {facts.image_id}")


def _held(space: Workspace, client: APIClient, variant: str | None) -> ImageFacts:
    from referee.adapters.docker import image  # noqa: PLC0415 — the engine's SDK is slow to import

    settings = space.config.environment
    wanted = variant or settings.variant
    if wanted not in image.variants():
        raise UsageError(f"there is no variant {wanted!r}", todo=f"choose one of: {', '.join(image.variants())}")
    facts = image.inspect(client, f"{settings.image}:{wanted}", variant=wanted, base=settings.base)
    if facts is None:
        raise EnvironmentUnavailable(
            f"the engine holds no image {settings.image}:{wanted}", todo=f"run `referee env build --variant {wanted}`"
        )
    return facts


def _build(facts: ImageFacts) -> str:
    return f"env build --variant {facts.tag.rpartition(':')[2]}"


def _show(facts: ImageFacts, space: Workspace, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"schema": "referee.environment/1", **asdict(facts)}, sort_keys=True))
        return
    rows = {
        "image": facts.tag,
        "digest": facts.image_id,
        "in a registry": ", ".join(facts.repo_digests) or "no, built here",
        "packages": facts.packages_digest or "no manifest",
        "size": f"{facts.size_bytes / 1e6:.0f} MB",
        "architecture": facts.architecture,
        "created": facts.created,
        "up to date": "yes" if facts.current else f"no: run `{hints.command(_build(facts), space)}`",
    }
    for name, value in rows.items():
        typer.echo(f"{name:14} {value}")
