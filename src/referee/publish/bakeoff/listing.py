"""The bake-off reports that stand in a site: what its index says of each, read from the report's own JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from referee.errors import Finding

DIRECTORY = "bakeoff"
INDEX_SCHEMA = "referee.bakeoff-index/1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


@dataclass(frozen=True)
class ReportView:
    """One report in a list: counts as its own JSON gives them."""

    name: str
    title: str
    suite: str
    ranked: int
    lane_limited: int
    rows: int
    shards: int


def reports_in(site: Path) -> tuple[ReportView, ...]:
    """The reports of a site, by name; none where the site or its ``bakeoff`` directory is not there.

    Raises:
        Finding: a directory there holds no report.
    """
    root = site / DIRECTORY
    if not root.is_dir():
        return ()
    return tuple(_view(path) for path in sorted(root.iterdir()) if path.is_dir() and _NAME.fullmatch(path.name))


def index_document(reports: tuple[ReportView, ...]) -> dict[str, Any]:
    """The list as JSON."""
    return {"schema": INDEX_SCHEMA, "reports": [asdict(one) for one in reports]}


def _view(directory: Path) -> ReportView:
    try:
        summary = json.loads((directory / "report.json").read_bytes())["summary"]
        return ReportView(
            name=directory.name,
            title=str(summary["plan"]["title"]),
            suite=str(summary["plan"]["suite"]),
            ranked=sum(len(board["rows"]) for board in summary["boards"]),
            lane_limited=sum(bool(row.get("by_lane", True)) for row in summary["lane_limited"]),
            rows=int(summary["totals"]["physical_rows"]),
            shards=len(summary["shards"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise Finding(
            f"{directory} holds no report of a bake-off",
            todo="move it away: `referee bakeoff report NAME` writes reports there",
        ) from exc
