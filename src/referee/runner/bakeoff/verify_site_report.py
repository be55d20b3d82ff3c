"""The reports of a site, checked by a stranger who has no shards: exports by their sums, counts and rates made again.

The raw export has every attempt and whether it passed; with the suite, where it is a bundled one, that gives every rate
again. Answers are not published: whether an attempt rightly passed is not told from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import referee
from referee.core.records import MarketSnapshot, ProtocolFrozen
from referee.errors import DigestMismatch, Finding, UsageError
from referee.publish.bakeoff import headline, markdown
from referee.publish.bakeoff.blocks import Document
from referee.publish.bakeoff.export import SUMS
from referee.publish.bakeoff.listing import DIRECTORY, index_document, reports_in
from referee.publish.bakeoff.report import told_by_document
from referee.runner.bakeoff.verify_site_counts import check_counts, check_rates, suite_of
from referee.runner.bakeoff.verify_site_rows import EXPORTS, read_rows
from referee.runner.site_files import read_document, sha256_of
from referee.runner.verify_told import formed
from referee.scoring.bakeoff.market import Market, Offer
from referee.scoring.bakeoff.summary import Summary

_TODO = "get the site again from where it is published, and compare"
_SUM = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._-]+)")
_SUMMARY: TypeAdapter[Summary] = TypeAdapter(Summary)
_OFFERS: TypeAdapter[tuple[Offer, ...]] = TypeAdapter(tuple[Offer, ...])


@dataclass(frozen=True)
class SiteReports:
    """How many reports, files of their exports and attempts were checked; and what could not be, in sentences."""

    reports: int = 0
    exports: int = 0
    attempts: int = 0
    not_compared: tuple[str, ...] = ()


def verify_site_reports(site: Path) -> SiteReports:
    """Check every report of a bake-off in a site by itself.

    Raises:
        Finding: the first thing that does not hold.
    """
    root = site / DIRECTORY
    for directory in sorted(root.iterdir()) if root.is_dir() else ():
        if directory.is_dir() and not (directory / "report.json").is_file():
            raise Finding(f"{directory} has no report.json", todo=_TODO)
    found = reports_in(site)
    listed = read_document(root / "index.json") if (root / "index.json").exists() else index_document(())
    if listed != index_document(found):
        raise Finding(f"{root / 'index.json'} does not list the reports that the site holds as they are", todo=_TODO)
    attempts, exports = 0, 0
    silent: list[str] = []
    for report in found:
        directory = root / report.name
        exports += _sums(directory)
        shown = read_document(directory / "report.json")
        told = shown.get("built_by")
        try:
            rows, why = _report(directory, shown)
        except DigestMismatch:
            raise
        except UsageError as exc:  # numbers that nothing can be computed with
            raise Finding(f"the report {report.name}: {exc.message}", todo=_TODO) from exc
        except Finding as exc:
            if not isinstance(told, str) or told == referee.__version__:
                raise
            silent.append(
                f"version {told} wrote the report {report.name}, this is {referee.__version__}, "
                f"which finds: {exc.message}"
            )
            continue
        attempts += rows
        silent += why
    return SiteReports(len(found), exports, attempts, tuple(silent))


def _sums(directory: Path) -> int:
    """Every file that ``SHA256SUMS`` names is there with these bytes, and it names every export; how many there are."""
    file = directory / SUMS
    with formed(str(file)):
        lines = file.read_bytes().decode("ascii").splitlines() if file.is_file() else []
    if not lines:
        raise Finding(f"{file} is missing or empty", todo=_TODO)
    named: set[str] = set()
    for line in lines:
        match = _SUM.fullmatch(line)
        if match is None:
            raise Finding(f"{file} has a line that is no sum of a file", todo=_TODO)
        path = directory / match[2]
        if not path.is_file() or sha256_of(path) != match[1]:
            raise DigestMismatch(f"{path} is missing, or has other bytes than SHA256SUMS says", todo=_TODO)
        named.add(match[2])
    for name in EXPORTS:
        if name not in named:
            raise Finding(f"{file} does not name {name}", todo=_TODO)
    return len(named)


def _report(directory: Path, shown: dict[str, Any]) -> tuple[int, list[str]]:
    """Check one report; how many attempts it rests on, and what could not be made again."""
    name = str(directory / "report.json")
    with formed(str(directory / EXPORTS[1])):
        rows = read_rows(directory)
    with formed(name):
        summary = _SUMMARY.validate_python(shown["summary"])
        if shown["limitations"] != list(headline.limits(summary)):
            raise Finding(f"{name} tells other limitations than its own numbers give", todo=_TODO)
        check_counts(name, summary, rows)
        suite = suite_of(summary.plan)
        if suite is not None:
            check_rates(name, summary, rows, suite)
        _markdown(directory, shown, summary)
    if suite is None:
        why = f"the report {directory.name} is of the suite {summary.plan.suite}, which this program does not bring"
        return len(rows), [f"{why}: which case is in which rate is not known here, and rates were not made again"]
    return len(rows), []


def _markdown(directory: Path, shown: dict[str, Any], summary: Summary) -> None:
    """``report.md`` is what ``report.json`` renders to, but for the sections of the frozen protocol and its cases."""
    file = directory / "report.md"
    text = file.read_bytes().decode() if file.is_file() else ""
    freezes = tuple(ProtocolFrozen.model_validate(one) for one in shown["freezes"])
    markets = [_market(one) for one in shown["market"]]
    paged = [path.stem for path in (directory / "cases").glob("*.html")]
    before, after = told_by_document(summary, freezes, markets, paged)
    head = _written(before)
    tail = _written(Document("", "", after)).removeprefix(_written(Document("", "", ())))
    rest = text.removeprefix(head)
    protocol, found, cases = rest.partition(tail)
    if not text.startswith(head) or not found or len(_heads(protocol)) != 1 or len(_heads(cases)) != 1:
        raise Finding(f"{file} is not what report.json says: {_first(text, head, tail)}", todo=_TODO)


def _written(part: Document) -> str:
    """As a report's file has it."""
    return markdown.render(part).encode("utf-8", "backslashreplace").decode()


def _market(told: dict[str, Any]) -> Market:
    snapshot = {key: value for key, value in told.items() if key not in {"offers", "no_offer"}}
    return Market(MarketSnapshot.model_validate(snapshot), _OFFERS.validate_python(told["offers"]), told["no_offer"])


def _heads(text: str) -> Sequence[str]:
    return [line for line in text.split("\n") if line.startswith("## ")]


def _first(text: str, head: str, tail: str) -> str:
    """Where the two part, by the section in which they do."""
    section = "its beginning"
    there: Iterator[str] = iter(text.split("\n"))
    for line in head.split("\n")[:-1]:
        if line.startswith("## "):
            section = f"the section {line.removeprefix('## ')}"
        if next(there, None) != line:
            return section
    names = " and ".join(line.removeprefix("## ") for line in _heads(tail))
    return f"the sections {names}, or what stands around them"
