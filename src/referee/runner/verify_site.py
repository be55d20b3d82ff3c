"""The built site, compared with what records and evidence give now: byte for byte, page by page."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import referee
from referee.errors import Finding
from referee.publish import pages
from referee.publish.bakeoff.listing import DIRECTORY, reports_in
from referee.publish.facts import Facts, Known

_PIECE = 1 << 20
_TODO = "it was changed after the site was built: `referee site build` writes the site anew"


@dataclass(frozen=True)
class SiteVerified:
    """What was found of the site.

    ``there``: whether there is one. ``not_compared``: why its pages cannot be what this program makes of the records,
    so that they were not compared; empty when they were. ``older``: the records have grown since it was built; it was
    compared with what they held then. ``todo``: what to do where it was not compared.
    """

    there: bool
    not_compared: str
    files: int
    older: bool = False
    todo: str = ""


def verify_site(facts: Facts, site: Path) -> SiteVerified:
    """Write the pages again in a temporary directory and compare every file; evidence in the site by its digest.

    A site that was built before records were added is compared with what the records held then.

    Raises:
        Finding: the first file that differs, is missing, or is none of the site's.
    """
    if not (site / "index.html").is_file() and not (site / "index.json").is_file():
        return SiteVerified(there=False, not_compared="", files=0)
    shown = _Index.of(site)
    if shown is not None and shown.built_by != referee.__version__:
        why = f"site/ was built by version {shown.built_by}, this is {referee.__version__}"
        return SiteVerified(there=True, not_compared=why, files=0, todo="`referee site build` writes it anew")
    if shown is not None and not facts.knows_names(shown.names):
        if facts.lacks_names():
            why = "names.json, which says what each letter of the site stands for, is missing from the workspace"
            return SiteVerified(there=True, not_compared=why, files=0, todo="put it back from a copy")
        raise Finding(
            "the site quotes another mapping of neutral names than names.json holds",
            todo="put the names.json of the day on which it was built back from a copy",
        )
    older = shown is not None and _older(shown, facts)
    if shown is not None and older:
        facts = facts.as_of(shown.runs, shown.names)
    with tempfile.TemporaryDirectory(prefix="referee-site-") as name:
        fresh = Path(name)
        reports = reports_in(site)
        blobs = pages.write_pages(facts, fresh, reports)
        expected = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file()}
        # Pages first, the front page before all: a change is best named where a reader meets it.
        for file in sorted(expected, key=lambda one: (one.count("/"), one)):
            _same(site, fresh / file, file)
    for file in sorted(blobs):
        _whole(site, file)
    _nothing_else(site, expected | set(blobs), tuple(f"{DIRECTORY}/{report.name}/" for report in reports))
    return SiteVerified(there=True, not_compared="", files=len(expected) + len(blobs), older=older)


@dataclass(frozen=True)
class _Index:
    """What a site's index says: who built it, with which names, and how far it knew each run."""

    built_by: str
    names: str | None
    runs: dict[str, Known]

    @classmethod
    def of(cls, site: Path) -> _Index | None:
        told = site / "index.json"
        try:
            index: Any = json.loads(told.read_bytes() if told.is_file() else b"")  # a pipe would be waited for
            runs = {
                str(run["run"]): Known(str(run["state"]), int(run["notes"]), int(run.get("replays_made", 0)))
                for run in index["runs"]
            }
            return cls(str(index["built_by"]), index.get("names"), runs)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


def _older(shown: _Index, facts: Facts) -> bool:
    """Whether the records have grown since the site was built. One that shows more than they hold is not old but wrong.

    Raises:
        Finding: it leaves out a run that was planned before another that it shows: that is no matter of age.
    """
    now = facts.known()
    if shown.runs == now or not all(run in now and known.before(now[run]) for run, known in shown.runs.items()):
        return False
    planned = facts.planned()
    last = max((planned.index(run) for run in shown.runs), default=-1)
    left_out = next((run for run in planned[: last + 1] if run not in shown.runs), None)
    if left_out is not None:
        raise Finding(
            f"the site leaves out the run {left_out}, which was planned before others that it shows", todo=_TODO
        )
    return True


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
