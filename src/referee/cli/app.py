"""The command ``referee``: registers one file per command, turns errors into a sentence and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

import referee
from referee.cli import bringup, config, env, report, subject
from referee.cli.boards import board, verdict
from referee.cli.conformance import conformance
from referee.cli.demo import demo
from referee.cli.play import play
from referee.cli.reap import reap
from referee.cli.show import show
from referee.cli.site import app as site
from referee.cli.verify import verify
from referee.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE, RefereeError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=f"{referee.__doc__} Exit codes: 0 pass, 1 finding, 2 usage, 3 internal, 4 could not verify, "
    "5 nothing matched, 130 interrupted.",
)
app.add_typer(bringup.app, name="bringup")
app.add_typer(subject.app, name="subject")
app.add_typer(env.app, name="env")
app.add_typer(config.app, name="config")
app.add_typer(report.app, name="report")
app.add_typer(site, name="site")
for command in (show, play, board, verdict, verify, conformance, reap, demo):
    app.command()(command)


def _version(value: bool) -> None:
    if value:
        print(f"referee {referee.__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options of the whole command."""


def main() -> None:
    """Entry point of the console script."""
    errors = Console(stderr=True, soft_wrap=True)
    try:
        app()
    except RefereeError as exc:
        errors.print(f"referee: {exc.message}", markup=False, highlight=False)
        if exc.todo:
            errors.print(f"  {exc.todo}", markup=False, highlight=False)
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        errors.print("referee: interrupted", markup=False)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.exit(EXIT_USAGE)
    except Exception as exc:  # noqa: BLE001 — the one place where an unknown fault becomes exit 3
        errors.print(f"referee: internal error: {type(exc).__name__}: {exc}", markup=False, highlight=False)
        errors.print("  please report it with the command that you ran", markup=False)
        sys.exit(EXIT_INTERNAL)


if __name__ == "__main__":
    main()
