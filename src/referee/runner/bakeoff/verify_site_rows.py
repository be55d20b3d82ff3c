"""The raw export of a report, read back: three files that say the same, row by row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb

from referee.errors import Finding
from referee.publish.bakeoff.export import COLUMNS
from referee.publish.bakeoff.rows import quoted

EXPORTS = ("attempts.csv", "attempts.jsonl", "attempts.parquet")

_NAMES = tuple(name for name, _, _ in COLUMNS)
_PIECE = 10_000
_TODO = "get the site again from where it is published, and compare"
#: What a spreadsheet would take for a formula; the export puts a quote before it.
_FORMULA = ("=", "+", "@", "\t", "\r", "-")


@dataclass(frozen=True)
class Attempt:
    """One physical row of the export, as far as counts need it; ``seen`` is its place in the order of age."""

    target: str
    lane: str
    case: str
    category: str
    k: int
    passed: bool | None
    infra: str | None
    seen: datetime


def read_rows(directory: Path) -> list[Attempt]:
    """Every row, in the export's order.

    Raises:
        Finding: the three files do not say the same.
        ValueError, LookupError, TypeError: a row has not the form of one.
    """
    found: list[Attempt] = []
    others = zip_longest(_csv(directory / EXPORTS[0]), _parquet(directory / EXPORTS[2]))
    for number, (row, beside) in enumerate(zip_longest(_json(directory / EXPORTS[1]), others), start=1):
        as_csv, as_parquet = beside or (None, None)
        if row is None or as_parquet != row or as_csv is None or not _same(as_csv, row):
            named = EXPORTS[0] if as_parquet == row else EXPORTS[2]
            raise Finding(f"{directory / named} does not say the same as attempts.jsonl in row {number}", todo=_TODO)
        found.append(_attempt(dict(zip(_NAMES, row, strict=True))))
    return found


def _attempt(row: dict[str, Any]) -> Attempt:
    if row["passed"] not in {True, False, None} or type(row["k_idx"]) is not int:
        raise ValueError("no row of an attempt")
    return Attempt(
        target=row["target"],
        lane=row["lane"],
        case=row["case_id"],
        category=row["category"],
        k=row["k_idx"],
        passed=row["passed"],
        infra=row["infra_class"],
        seen=datetime.fromisoformat(row["started_at"]),
    )


def _json(path: Path) -> Iterator[tuple[Any, ...]]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            row = json.loads(line)
            if tuple(row) != _NAMES:
                raise ValueError("no row on the ten columns")
            yield tuple(row.values())


def _csv(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        if next(rows, None) != list(_NAMES):
            raise Finding(f"{path} has not the ten columns of an export", todo=_TODO)
        yield from rows


def _parquet(path: Path) -> Iterator[tuple[Any, ...]]:
    try:
        with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as database:
            database.execute("SET memory_limit = '512MB'")
            columns = ", ".join(f'"{name}"' for name in _NAMES)
            read = database.execute(f"SELECT {columns} FROM read_parquet('{quoted(path)}')")  # noqa: S608 — fixed words, a quoted path
            while piece := read.fetchmany(_PIECE):
                yield from piece
    except duckdb.Error as exc:
        raise Finding(f"{path} cannot be read as an export: {str(exc).splitlines()[0]}", todo=_TODO) from exc


def _same(as_csv: list[str], row: Iterable[Any]) -> bool:
    """Whether a row of the CSV says what the row of the JSON lines says."""
    told = list(row)
    return len(as_csv) == len(told) and all(_cell(one, value) for one, value in zip(as_csv, told, strict=True))


def _cell(text: str, value: Any) -> bool:
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, str):
        return text == (f"'{value}" if value.startswith(_FORMULA) else value)
    return float(text) == float(value)
