"""The built site, compared with what records and evidence give now: byte for byte, page by page."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from referee.errors import Finding
from referee.publish import pages
from referee.publish.bakeoff.listing import DIRECTORY, reports_in
from referee.publish.facts import Facts

_PIECE = 1 << 20
_TODO = "it was changed after the site was built: `referee site build` writes the site anew"


@dataclass(frozen=True)
class SiteVerified:
    """What was found of the site.

    ``there``: whether there is one. ``not_compared``: why its pages cannot be what this program makes of the records
    now, so that they were not compared; empty when they were.
    """

    there: bool
    not_compared: str
    files: int


def verify_site(facts: Facts, site: Path) -> SiteVerified:
    """Write the pages again in a temporary directory and compare every file; evidence in the site by its digest.

    Raises:
        Finding: the first file that differs, is missing, or is none of the site's.
    """
    if not (site / "index.html").is_file() and not (site / "index.json").is_file():
        return SiteVerified(there=False, not_compared="", files=0)
    with tempfile.TemporaryDirectory(prefix="referee-site-") as name:
        fresh = Path(name)
        reports = reports_in(site)
        blobs = pages.write_pages(facts, fresh, reports)
        expected = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file()}
        why = _incomparable(_Index.of(site), _Index.of(fresh))
        if why:
            return SiteVerified(there=True, not_compared=why, files=0)
        # Pages first, the front page before all: a change is best named where a reader meets it.
        for file in sorted(expected, key=lambda one: (one.count("/"), one)):
            _same(site, fresh / file, file)
    for file in sorted(blobs):
        _whole(site, file)
    _nothing_else(site, expected | set(blobs), tuple(f"{DIRECTORY}/{report.name}/" for report in reports))
    return SiteVerified(there=True, not_compared="", files=len(expected) + len(blobs))


@dataclass(frozen=True)
class _Index:
    """What a site's index says: who built it, and of each run the state and how many notes and replays it has."""

    built_by: str
    runs: dict[str, tuple[str, int, int]]

    @classmethod
    def of(cls, site: Path) -> _Index | None:
        try:
            index: Any = json.loads((site / "index.json").read_bytes())
            runs = {
                str(run["run"]): (str(run["state"]), int(run["notes"]), int(run.get("replays_made", 0)))
                for run in index["runs"]
            }
            return cls(str(index["built_by"]), runs)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _incomparable(shown: _Index | None, now: _Index | None) -> str:
    """Why a site that nobody touched may differ; a site that shows more than the records hold is not old but wrong."""
    if shown is None or now is None:
        return ""
    if shown.built_by != now.built_by:
        return f"site/ was built by version {shown.built_by}, this is {now.built_by}"
    older = all(
        run in now.runs
        and state in {"open", now.runs[run][0]}
        and notes <= now.runs[run][1]
        and replays <= now.runs[run][2]
        for run, (state, notes, replays) in shown.runs.items()
    )
    return "site/ is older than the records" if older and shown.runs != now.runs else ""


def _same(site: Path, expected: Path, name: str) -> None:
    found = site / name
    if not found.is_file():
        raise Finding(f"the site has no {found}, which records and evidence give", todo=_TODO)
    if found.read_bytes() != expected.read_bytes():
        raise Finding(f"{found} is not what records and evidence give", todo=_TODO)


def _whole(site: Path, name: str) -> None:
    """A blob of the site is called by its digest."""
    found = site / name
    if not found.is_file():
        raise Finding(f"the site has no {found}, the evidence of a run", todo=_TODO)
    sha = hashlib.sha256()
    with found.open("rb") as data:
        while piece := data.read(_PIECE):
            sha.update(piece)
    if sha.hexdigest() != found.name.removesuffix(".bin"):
        raise Finding(f"{found} is not the evidence that its name says", todo=_TODO)


def _nothing_else(site: Path, expected: set[str], apart: tuple[str, ...]) -> None:
    """Nothing stands in the site but what is expected; reports of bake-offs (``apart``) are compared by themselves."""
    for directory, below, files in os.walk(site):
        below.sort()
        for file in sorted(files):
            name = Path(directory, file).relative_to(site).as_posix()
            if name not in expected and not name.startswith(apart):
                raise Finding(f"{site / name} is no page that records and evidence give", todo=_TODO)
