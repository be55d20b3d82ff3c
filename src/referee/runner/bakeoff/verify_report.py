"""The reports of a site, each made again from the shards that it names and compared byte for byte."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import every_shard, first_line, select_shards
from referee.errors import Finding, RefereeError
from referee.publish.bakeoff.listing import DIRECTORY, reports_in
from referee.publish.bakeoff.report import report_document, write_files
from referee.runner.bakeoff.report import gather

_TODO = "it was changed after it was written: `referee bakeoff report NAME` writes it anew"


@dataclass(frozen=True)
class ReportsVerified:
    """How many reports were made again and are the same; and why others were not compared.

    ``partial``: which of them are not of every shard that stands under their freeze.
    """

    compared: int = 0
    not_compared: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


def verify_reports(log: RecordFiles, evidence: LocalEvidence, records: Path, site: Path) -> ReportsVerified:
    """Make every report of the site again, in a temporary directory, and compare every file.

    A report that was written by another version, or before the log grew, cannot be the same: that is said, no finding.

    Raises:
        Finding: the first report that differs, or that names a shard which is not there or does not hold.
    """
    compared = 0
    silent: list[str] = []
    partial: list[str] = []
    for report in reports_in(site):
        directory = site / DIRECTORY / report.name
        why = _compare(log, evidence, records, directory)
        partial += _left_out(records, directory)
        if why:
            silent.append(f"the report {report.name} {why}")
        else:
            compared += 1
    return ReportsVerified(compared, tuple(silent), tuple(partial))


def _left_out(records: Path, directory: Path) -> list[str]:
    """Which shards under the freezes of a report's shards it leaves out, in a sentence; it may name some only."""
    named = set(_named(directory, _shown(directory)))
    firsts = {path.name: first for path in every_shard(records) if (first := first_line(path)) is not None}
    freezes = {firsts[name].protocol_digest for name in named if name in firsts}
    beside = sorted(name for name, first in firsts.items() if first.protocol_digest in freezes and name not in named)
    if not beside:
        return []
    made = f"is of {len(named)} of {len(named) + len(beside)} shards under its freeze"
    return [f"the report {directory.name} {made}; it leaves out {', '.join(beside)}"]


def _compare(log: RecordFiles, evidence: LocalEvidence, records: Path, directory: Path) -> str:
    shown = _shown(directory)
    try:
        paths = select_shards(records, _named(directory, shown))
    except RefereeError as exc:
        raise Finding(f"the report {directory.name} cannot be made again: {exc.message}") from exc
    basis = gather(log, evidence, directory.name, paths)
    try:
        why = _older(shown, json.loads(json.dumps(report_document(basis))))
    except (KeyError, TypeError, AttributeError) as exc:
        raise Finding(f"{directory / 'report.json'} has not the form of a report", todo=_TODO) from exc
    if why:
        return why
    with tempfile.TemporaryDirectory(prefix="referee-report-") as name:
        fresh = Path(name)
        write_files(basis, fresh)
        expected = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file()}
        there = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
        for file in sorted(expected | there, key=lambda one: (one != "report.json", one.count("/"), one)):
            if file not in expected:
                raise Finding(f"{directory / file} is no part of the report", todo=_TODO)
            if file not in there or (directory / file).read_bytes() != (fresh / file).read_bytes():
                raise Finding(f"{directory / file} is not what the named shards give", todo=_TODO)
    return ""


def _shown(directory: Path) -> dict[str, Any]:
    """The report's own JSON. Raises ``Finding`` where it is none."""
    try:
        shown = json.loads((directory / "report.json").read_bytes())
    except (OSError, ValueError, RecursionError) as exc:
        raise Finding(f"{directory / 'report.json'} cannot be read as JSON", todo=_TODO) from exc
    if not isinstance(shown, dict):
        raise Finding(f"{directory / 'report.json'} is no JSON object", todo=_TODO)
    return shown


def _named(directory: Path, shown: dict[str, Any]) -> list[str]:
    """The shards that a report names. Raises ``Finding`` where it does not."""
    try:
        return [str(shard["name"]) for shard in shown["summary"]["shards"]]
    except (KeyError, TypeError) as exc:
        raise Finding(f"{directory / 'report.json'} names no shards", todo=_TODO) from exc


def _older(shown: dict[str, Any], now: dict[str, Any]) -> str:
    """Why a report that nobody touched may differ: another version, or freezes, decisions or reviews made since."""
    if shown.get("built_by") != now["built_by"]:
        return f"was written by version {shown.get('built_by')}, this is {now['built_by']}"
    logs = ((shown.get("freezes"), now["freezes"]), (_decisions(shown), _decisions(now)))
    grown = any(isinstance(old, list) and old != new and old == new[: len(old)] for old, new in logs)
    return "is older than the log of its protocol" if grown or _reviews(shown) < _reviews(now) else ""


def _decisions(document: dict[str, Any]) -> list[Any]:
    found = document.get("summary", {}).get("decisions", [])
    return found if isinstance(found, list) else []


def _reviews(document: dict[str, Any]) -> set[tuple[str, str]]:
    gold = document.get("summary", {}).get("gold", [])
    return {(str(case["case"]), str(case["reviewed_at"])) for case in gold if case.get("reviewed_at")}
