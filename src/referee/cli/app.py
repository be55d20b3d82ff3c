"""The command ``referee``: registers one file per command, turns errors into a sentence and an exit code."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from referee.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, RefereeError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__import__("referee").__doc__)


def main() -> None:
    """Entry point of the console script."""
    errors = Console(stderr=True, soft_wrap=True)
    try:
        app(standalone_mode=True)
    except RefereeError as exc:
        errors.print(f"referee: {exc.message}", markup=False, highlight=False)
        if exc.todo:
            errors.print(f"  {exc.todo}", markup=False, highlight=False)
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        errors.print("referee: interrupted", markup=False)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as exc:  # noqa: BLE001 — the one place where an unknown fault becomes exit 3
        errors.print(f"referee: internal error: {type(exc).__name__}: {exc}", markup=False, highlight=False)
        sys.exit(EXIT_INTERNAL)


if __name__ == "__main__":
    main()
