"""``referee report check``: is this file a report that would be accepted?"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from referee.cli.options import JsonOption
from referee.core.report import MAX_REPORT_BYTES, Report, parse_report
from referee.errors import EXIT_USAGE, NothingMatched, ReportRejected
from referee.regular_files import open_regular
from referee.scoring.bringup import claims_of, score
from referee.scoring.render import points

app = typer.Typer(no_args_is_help=True, help="An agent's report.")

SCHEMA = "referee.report-check/1"


@app.callback()
def _group() -> None:
    """Keep ``check`` a command of its own."""


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A report's file, or - for standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Say ok (exit 0), or in one sentence why the report would be rejected (exit 2)."""
    try:
        report = parse_report(_read(file))
    except ReportRejected as exc:
        if as_json:
            print(json.dumps({"schema": SCHEMA, "ok": False, "rejection": exc.message, "more": exc.todo}))  # noqa: T201 — the output
            raise typer.Exit(EXIT_USAGE) from exc
        raise
    claimed = score(claims_of(report), timed_out=False, edition=1)
    if as_json:
        document = {
            "schema": SCHEMA,
            "ok": True,
            "rejection": None,
            "more": "",
            "claims": claimed.outcome,
            "total": claimed.total,
        }
        print(json.dumps(document))  # noqa: T201
    else:
        print(f"ok: {_said(report)}; as claimed (edition 1): {claimed.outcome}, {points(claimed.total)} of 100")  # noqa: T201


def _said(report: Report) -> str:
    done = [name for name, claimed in (("installed", report.installed), ("started", report.started)) if claimed]
    errors = f"{report.fixed} of {report.encountered} errors fixed"
    return ", ".join([*(done or ["nothing installed"]), errors, report.test_depth])


def _read(file: str) -> bytes:
    """At most one byte more than a report may have; a symlink, device or pipe is not read."""
    if file == "-":
        return sys.stdin.buffer.read(MAX_REPORT_BYTES + 1)
    try:
        descriptor = open_regular(file)
    except FileNotFoundError as exc:
        raise NothingMatched(f"there is no file {file}") from exc
    except OSError as exc:
        why = "it is a symlink" if Path(file).is_symlink() else exc.strerror
        raise ReportRejected(f"the report {file} cannot be read: {why}") from exc
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(descriptor).st_size
        if size > MAX_REPORT_BYTES:
            raise ReportRejected(f"the report has {size} bytes, more than {MAX_REPORT_BYTES}")
        return stream.read(MAX_REPORT_BYTES + 1)
