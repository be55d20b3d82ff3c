"""Writes a report: its page, pages of cases, Markdown, JSON and raw rows, to the byte the same for the same shards.

Nothing here computes a number: they come from ``scoring.bakeoff`` and are only said.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment

import referee
from referee.adapters.store.shard_files import ScannedShard
from referee.core.bakeoff import Protocol
from referee.core.cases import Suite
from referee.core.records import ProtocolFrozen
from referee.publish import pages
from referee.publish.bakeoff import beside, grounds, headline, markdown, market
from referee.publish.bakeoff.attempts import case_document, open_attempts
from referee.publish.bakeoff.blocks import Document, Section, coded
from referee.publish.bakeoff.export import export
from referee.publish.bakeoff.plan import plan
from referee.publish.bakeoff.who import every_about, label
from referee.scoring.bakeoff.market import Market
from referee.scoring.bakeoff.summary import Summary

SCHEMA = "referee.bakeoff-report/1"

_SHA256 = re.compile(r"((?:[a-z0-9-]+:)*)([0-9a-f]{32})([0-9a-f]{32})")

#: The report's forms beside its page, as the page links them.
FORMS = (
    ("Markdown", "report.md"),
    ("JSON", "report.json"),
    ("raw rows as CSV", "attempts.csv"),
    ("JSON lines", "attempts.jsonl"),
    ("Parquet", "attempts.parquet"),
    ("SHA256SUMS", "SHA256SUMS"),
)


@dataclass(frozen=True)
class Basis:
    """Everything that a report is made of.

    Args:
        summary: the numbers.
        protocol: the frozen protocol.
        suite: the frozen suite.
        freezes: the freezes of the protocol, in order.
        market: the snapshots of the runs behind the shards, by target and time.
        shards: the selected shards.
    """

    summary: Summary
    protocol: Protocol
    suite: Suite
    freezes: tuple[ProtocolFrozen, ...]
    market: tuple[Market, ...]
    shards: tuple[ScannedShard, ...]


def document(basis: Basis, paged: Sequence[str], left_out: int) -> Document:
    """The report; ``paged`` are the cases that have a page, ``left_out`` counts those that have none."""
    before, after = told_by_document(basis.summary, basis.freezes, basis.market, paged)
    last = grounds.cases(basis.suite, paged, left_out)
    return Document(before.title, before.lede, (*before.sections, plan(basis.protocol), *after, last))


def told_by_document(
    summary: Summary, freezes: tuple[ProtocolFrozen, ...], offers: Sequence[Market], paged: Sequence[str]
) -> tuple[Document, tuple[Section, ...]]:
    """What of a report ``report.json`` tells: all before the protocol's section, and what stands after it.

    Left out are the protocol's own section and the last, the list of the cases: those need what was frozen.
    """
    before = (
        headline.boards(summary),
        headline.limitations(summary),
        headline.ground(summary, freezes),
        beside.lanes(summary),
        headline.separated(summary),
        beside.parts(summary),
        beside.arms(summary),
        beside.lane_limited(summary),
        grounds.gold(summary, frozenset(paged)),
        beside.failures(summary),
        beside.coverage(summary),
        headline.power(summary),
        beside.latency(summary),
        beside.comparisons(summary),
        market.markets(offers, summary),
    )
    lede = f"{summary.plan.question} {headline.head(summary)}"
    return Document(summary.plan.title, lede, before), (
        grounds.decisions(summary, freezes),
        grounds.evidence(summary, freezes),
    )


def write_report(basis: Basis, out: Path) -> Path:
    """Write the report's directory and put it in the place of the one before; return the page to open.

    Args:
        basis: what it is made of.
        out: ``bakeoff/NAME`` of a site.

    Raises:
        Finding: the shards cannot be read as rows.
    """
    fresh = out.parent / f".{out.name}-{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        write_files(basis, fresh)
        pages.put_in_place(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return out / "index.html"


def write_files(basis: Basis, out: Path) -> None:
    """Write every file of a report into the empty directory ``out``."""
    found = _templates()
    paged, left_out = _write_cases(basis, found, out)
    whole = document(basis, paged, left_out)
    page = found.get_template("bakeoff/document.html")
    html = page.render(**_frame("../../"), document=whole, data="report.json", up="", up_name="", forms=FORMS)
    _write(out / "index.html", html)
    _write(out / "report.md", markdown.render(whole))
    _write(out / "report.json", json.dumps(report_document(basis), ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    export(basis.shards, out)


def report_document(basis: Basis) -> dict[str, Any]:
    """The report as JSON: exact numbers, and what they stand on."""
    return {
        "schema": SCHEMA,
        "built_by": referee.__version__,
        "limitations": list(headline.limits(basis.summary)),
        "summary": basis.summary.document(),
        "freezes": [one.model_dump(mode="json", exclude={"kind"}) for one in basis.freezes],
        "market": [
            {
                **one.snapshot.model_dump(mode="json", exclude={"kind"}),
                "offers": [asdict(offer) for offer in one.offers],
                "no_offer": one.why,
            }
            for one in basis.market
        ],
    }


def _write_cases(basis: Basis, found: Environment, out: Path) -> tuple[list[str], int]:
    """Write the cases' pages; return which have one, and how many cases with rows have none."""
    page = found.get_template("bakeoff/document.html")
    spool = out / ".spool"
    spool.mkdir()
    paged: list[str] = []
    lanes = {about.target: label(about) for about in every_about(basis.summary)}
    try:
        with open_attempts(basis.shards, spool) as (cases, left_out):
            for name, rows, total in cases:
                case = basis.suite.by_id.get(name)
                if case is None:  # a row of a case that the suite does not hold: counted as unknown in the header
                    continue
                html = page.render(
                    **_frame("../../../"),
                    document=case_document(case, basis.suite, rows, total, lanes),
                    data="../report.json",
                    up="../index.html",
                    up_name=basis.summary.plan.title,
                    forms=(),
                )
                _write(out / "cases" / f"{name}.html", html)
                paged.append(name)
    finally:
        shutil.rmtree(spool, ignore_errors=True)
    return paged, left_out


def _frame(root: str) -> dict[str, str]:
    return {"root": root, "policy": pages.POLICY, "here": "bakeoff"}


def _templates() -> Environment:
    """The site's templates, with what a plot needs: places on a scale of 0 to 1000."""
    environment = pages.templates()
    environment.filters |= {
        "across": _across,
        "between": _between,
        "coded": coded,
        "halves": _halves,
    }
    return environment


def _across(share: float, shift: float = 0) -> str:
    return f"{share * 1000 + shift:.1f}"


def _between(ends: tuple[float, float]) -> str:
    return f"{(ends[1] - ends[0]) * 1000:.1f}"


def _halves(text: str) -> tuple[str, ...]:
    """A SHA-256 in its prefix and two halves, between which it may break; anything else is whole."""
    found = _SHA256.fullmatch(text)
    return found.groups() if found else (text,)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
