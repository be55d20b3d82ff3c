"""``referee conformance``: vector files against this installation's scorers, graders and statistics."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from referee.cli.options import JsonOption
from referee.core.canonical import strict_loads
from referee.errors import (
    EXIT_COULD_NOT_VERIFY,
    EXIT_FINDING,
    EXIT_PASS,
    EXIT_USAGE,
    CouldNotVerify,
    NothingMatched,
    UsageError,
)
from referee.scoring.conformance import Difference, conform

SCHEMA = "referee.conformance/1"

#: The vectors that ship with the package.
BUNDLED = ("bringup.json", "bakeoff-grading.json", "grading2.json", "bakeoff-statistics.json")

#: A vector file larger than this is not read, bytes.
MAX_BYTES = 64 * 1024**2

_EXITS = {
    "broken": EXIT_USAGE,
    "differs": EXIT_FINDING,
    "not_implemented": EXIT_COULD_NOT_VERIFY,
    "agrees": EXIT_PASS,
}


def conformance(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Vector files; none means those that ship.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run golden vectors; name each case that differs.

    Exit 0: all agree; 1: a case differs; 2: a file is broken or of an unknown kind; 4: a kind is not implemented.
    """
    results = [_run(name, data) for name, data in _sources(files or [])]
    if as_json:
        print(json.dumps({"schema": SCHEMA, "files": results}, ensure_ascii=False, indent=2))  # noqa: T201 — the output
    else:
        for result in results:
            _tell(result)
    worst = next(status for status in _EXITS if any(one["status"] == status for one in results))
    raise typer.Exit(_EXITS[worst])


def _sources(files: list[Path]) -> list[tuple[str, bytes | str]]:
    """Name and bytes of each file; instead of the bytes, a sentence where they cannot be had."""
    if not files:
        folder = resources.files("referee") / "bundled" / "vectors"
        return [(f"{name} (shipped)", (folder / name).read_bytes()) for name in BUNDLED]
    for file in files:
        if not file.exists():
            raise NothingMatched(f"there is no file {file}")
    return [(str(file), _bytes(file)) for file in files]


def _bytes(file: Path) -> bytes | str:
    try:
        if not file.is_file():
            return "it is no regular file"
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as exc:
        return f"it cannot be read: {exc.strerror}"
    return data if len(data) <= MAX_BYTES else f"it has more than {MAX_BYTES} bytes"


def _run(name: str, data: bytes | str) -> dict[str, Any]:
    result: dict[str, Any] = {"file": name, "kind": None, "status": "agrees", "message": None}
    if isinstance(data, str):
        return {**result, "status": "broken", "message": data, "cases": {}, "differences": []}
    try:
        document = strict_loads(data)
        if isinstance(document, dict) and isinstance(document.get("kind"), str):
            result["kind"] = document["kind"]
        found = conform(document)
    except UsageError as exc:
        return {**result, "status": "broken", "message": exc.message, "cases": {}, "differences": []}
    except CouldNotVerify as exc:
        return {**result, "status": "not_implemented", "message": exc.message, "cases": {}, "differences": []}
    return {
        **result,
        "status": "differs" if found.differences else "agrees",
        "cases": dict(found.cases),
        "differences": [_difference(one) for one in found.differences],
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "member": one.member,
        "index": one.index,
        "field": one.field,
        "expected": one.expected,
        "got": one.got,
        "note": one.note,
        "sentence": one.sentence,
    }


def _tell(result: dict[str, Any]) -> None:
    out = Console(highlight=False, soft_wrap=True)
    if result["message"] is not None:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"referee: {result['file']}: {result['message']}", markup=False
        )
        return
    total = sum(result["cases"].values())
    by_member = ", ".join(f"{member} {count}" for member, count in result["cases"].items())
    cases = len({(one["member"], one["index"]) for one in result["differences"]})
    said = f"{cases} of {total} cases differ" if cases else f"all {total} cases agree"
    out.print(f"{result['file']}: {said} ({by_member})", markup=False)
    for one in result["differences"]:
        out.print(f"  {one['sentence']}", markup=False)
