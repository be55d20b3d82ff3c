"""The command ``referee``: one file per command, errors turned into a sentence and an exit code.

Only the command that is asked for is imported: a bring-up must not wait for the page templates.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console

import referee
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_INTERNAL, EXIT_INTERRUPTED, RefereeError

#: Command -> the module of ``referee.cli`` that has it; a group is the module's ``app``, a command the function of
#: the command's name.
GROUPS = {
    "bringup": "bringup",
    "subject": "subject",
    "env": "env",
    "site": "site",
    "config": "config",
    "report": "report",
    "bakeoff": "bakeoff",
    "keys": "keys",
    "agent": "agent",
}
COMMANDS = {
    "show": "show",
    "play": "play",
    "replay": "replay_run",
    "board": "boards",
    "verdict": "boards",
    "verify": "verify",
    "conformance": "conformance",
    "reap": "reap",
    "demo": "demo",
}

#: What a system that is full, closed or read-only answers: no fault of the referee's.
REFUSALS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO),
    *(errno.EMFILE, errno.ENFILE, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG),
}

HELP = (
    f"{referee.__doc__} Exit codes: 0 pass, 1 finding, 2 usage, 3 internal, 4 could not verify, 5 nothing matched, "
    "130 interrupted."
)


def make_app(only: str | None = None) -> typer.Typer:
    """The command line: with every command, or with the one that is asked for."""
    app = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, help=HELP, callback=_options
    )
    for name, module in GROUPS.items():
        if only in {None, name}:
            app.add_typer(_load(module, "app"), name=name)
    for name, module in COMMANDS.items():
        if only in {None, name}:
            app.command(name)(_load(module, name))
    return app


def _load(module: str, name: str) -> Any:
    return getattr(import_module(f"referee.cli.{module}"), name)


def _version(value: bool) -> None:
    if value:
        print(f"referee {referee.__version__}")  # noqa: T201
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options of the whole command."""


def main() -> None:
    """Entry point of the console script."""
    _open_standard_streams()
    errors = Console(stderr=True, soft_wrap=True)
    try:
        _call(sys.argv[1] if len(sys.argv) > 1 else None)
    except RefereeError as exc:
        _tell(errors, f"referee: {exc.message}")
        if exc.todo:
            from referee.cli.hints import with_workspace  # noqa: PLC0415 — only an error pays for the import

            _tell(errors, f"  {with_workspace(exc.todo, sys.argv)}")
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        errors.print("referee: interrupted", markup=False)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader has gone: nothing more to say to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_INTERRUPTED)
    except Exception as exc:  # noqa: BLE001 — the one place where an unknown fault becomes exit 3
        if isinstance(exc, OSError) and exc.errno in REFUSALS:
            named = exc.filename2 or exc.filename  # of a copy: where it was to go
            where = f"{named}: " if named else ""
            _tell(errors, f"referee: the system refused: {where}{exc.strerror}")
            errors.print("  see that there is room and that it can be written, then try again", markup=False)
            sys.exit(EXIT_COULD_NOT_VERIFY)
        _tell(errors, f"referee: internal error: {type(exc).__name__}: {exc}")
        errors.print("  please report it with the command that you ran", markup=False)
        sys.exit(EXIT_INTERNAL)


def _tell(errors: Console, sentence: str) -> None:
    """Print what may quote somebody else's words, so that no terminal is steered by them."""
    try:
        from referee.publish.words import visible  # noqa: PLC0415 — only an error pays for the import

        said = visible(sentence)
    except OSError:  # a system that opens no file any more
        said = ascii(sentence)[1:-1]
    errors.print(said, markup=False, highlight=False)


def _open_standard_streams() -> None:
    """Give what the caller closed (``>&-``) to ``/dev/null``: else the next file that is opened takes its place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _call(asked: str | None) -> None:
    """Run the command line; always ends in ``SystemExit`` or in the error to be told."""
    try:
        make_app(asked if asked in {*GROUPS, *COMMANDS} else None)()
    except SystemExit as exc:
        if isinstance(exc.__context__, BrokenPipeError):  # typer makes it status 1, which says "finding" here
            raise exc.__context__ from None
        if exc.code == EXIT_INTERRUPTED and _was_interrupted(exc):  # typer ends without a word
            raise KeyboardInterrupt from None
        sys.stdout.flush()  # now, where a refusal can still be told
        raise


def _was_interrupted(exc: BaseException | None) -> bool:
    """Whether an interrupt stands behind what was raised in its place."""
    return exc is not None and (
        isinstance(exc, KeyboardInterrupt) or _was_interrupted(exc.__cause__ or exc.__context__)
    )


if __name__ == "__main__":
    main()
