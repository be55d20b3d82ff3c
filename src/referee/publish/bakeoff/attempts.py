"""One page a case: what was asked and expected, and each attempt's verdict with its reason and its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from referee.adapters.store.shard_files import ScannedShard
from referee.core.cases import Case, Suite
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Block, Cell, Document, Facts, Heading, Para, Row, Section, cells, table
from referee.publish.bakeoff.rows import open_rows
from referee.publish.words import count, moment

_COLUMNS = (
    ("case_id", "VARCHAR", "case_id"),
    ("target", "VARCHAR", "target"),
    ("k_idx", "INTEGER", "k_idx"),
    ("passed", "BOOLEAN", "passed"),
    ("infra_class", "VARCHAR", "infra_class"),
    ("reason", "VARCHAR", "reason"),
    ("flags", "VARCHAR[]", "flags"),
    ("run", "VARCHAR", "run"),
    ("started_at", "VARCHAR", "started_at"),
    ("answer", 'STRUCT(log VARCHAR, "offset" BIGINT, length BIGINT, digest VARCHAR)', "answer"),
)

#: Cases that get a page, and attempts that a page lists: failed ones first. The raw export has every row.
MOST_CASES = 2_000
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class Attempt:
    """One physical row of a case. ``counts`` is false where an older row fills its slot."""

    case: str
    target: str
    k: int
    passed: bool | None
    infra: str | None
    reason: str
    flags: tuple[str, ...]
    run: str
    at: str
    counts: bool
    answer: tuple[str, int, int, str] | None


#: Of each case its id, its listed attempts, and how many it has in all.
CaseAttempts = Iterator[tuple[str, list[Attempt], int]]


@contextmanager
def open_attempts(shards: Sequence[ScannedShard], spool: Path) -> Iterator[tuple[CaseAttempts, int]]:
    """Each case with its attempts, failed ones first, and how many it has in all; and how many cases are left out.

    Cases come in order of their ids; beyond ``MOST_CASES``, those with a failed attempt are chosen first.

    Raises:
        Finding: the shards cannot be read as rows.
    """
    slot = "PARTITION BY target, case_id, k_idx ORDER BY epoch_us(started_at::timestamptz), shard, seq"
    listed = "PARTITION BY case_id ORDER BY coalesce(passed, true), target, k_idx, started_at, shard, seq"
    names = ", ".join(name for name, _, _ in _COLUMNS)
    with open_rows(shards, _COLUMNS, spool) as database:
        cases = database.execute("SELECT count(DISTINCT case_id) FROM rows").fetchone()
        chosen = (
            "SELECT case_id FROM rows GROUP BY case_id "  # noqa: S608 — fixed words
            f"ORDER BY bool_or(passed IS false) DESC, case_id LIMIT {MOST_CASES}"
        )
        found = database.execute(
            f"SELECT {names}, older, total FROM (SELECT *, count(*) OVER (PARTITION BY case_id) AS total, "  # noqa: S608 — fixed words
            f"row_number() OVER ({listed}) AS place FROM "
            f"(SELECT *, row_number() OVER ({slot}) AS older FROM rows WHERE case_id IN ({chosen}))) "
            f"WHERE place <= {MOST_ATTEMPTS} ORDER BY case_id, place"
        )
        yield _by_case(found), max(0, (cases[0] if cases else 0) - MOST_CASES)


def _by_case(found: DuckDBPyConnection) -> CaseAttempts:
    for case, rows in groupby(_fetched(found), key=lambda row: row[0]):
        read = list(rows)
        yield str(case), [_attempt(row) for row in read], int(read[0][-1])


def _fetched(found: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while batch := found.fetchmany(2_048):
        yield from batch


def _attempt(row: tuple[Any, ...]) -> Attempt:
    case, target, k, passed, infra, reason, flags, run, at, answer, older, _ = row
    ref = answer if isinstance(answer, dict) else None
    return Attempt(
        case=str(case),
        target=str(target),
        k=int(k),
        passed=None if passed is None else bool(passed),
        infra=None if infra is None else str(infra),
        reason=str(reason or ""),
        flags=tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),
        run=str(run),
        at=str(at),
        counts=older == 1,
        answer=None if ref is None else (str(ref["log"]), int(ref["offset"]), int(ref["length"]), str(ref["digest"])),
    )


def case_document(case: Case, suite: Suite, found: Sequence[Attempt], total: int, lanes: Mapping[str, str]) -> Document:
    """The page of one case; ``lanes`` are the labels of targets: no verdict stands without its lane."""
    asked: list[Block] = []
    if case.prompt is not None:
        asked.append(Facts((("system prompt", Cell(suite.prompts[case.prompt], verbatim=True)),)))
    asked.append(Facts(tuple((message.role, Cell(message.content, verbatim=True)) for message in case.messages)))
    tools = [cells(Cell(tool.name, code=True), tool.description) for tool in suite.tools(case)]
    asked.append(table("Tools that the case offers", ("tool", "what it is for"), tools))
    schemas = ((tool.name, Cell(_json(tool.parameters, indent=2), code=True)) for tool in suite.tools(case))
    asked.append(Facts(tuple(schemas), fold="Schemas of their arguments"))
    expected: tuple[tuple[str, Cell], ...] = (("oracle", Cell("no call: the model must abstain")),)
    if not case.abstains:
        golds = (_json(call.model_dump(mode="json")) for call in case.golds)
        expected = tuple((f"call {number}", Cell(gold, code=True)) for number, gold in enumerate(golds, 1))
    origin = tuple((name, Cell(case.source[name])) for name in sorted(case.source))
    policy = {name: value for name, value in case.policy.model_dump(mode="json").items() if value not in {None, False}}
    known = (Para(f"The linter refuses it: {case.known_objection}"),) if case.known_objection else ()
    rows = [_row(one, lanes) for one in found]
    heads = ("target", "k>", "verdict", "reason", "flags", "started")
    listed: tuple[Block, ...] = (table("Every physical row; of one slot the oldest counts", heads, rows),)
    if total > len(found):
        left = f"{count(total - len(found), 'row')} more without a line here; failed ones come first"
        listed = (*listed, Para(f"{left}. The raw export has every row."))
    return Document(
        f"Case {case.id}",
        f"{case.category}, {figures.say({'de': 'German', 'en': 'English'}, case.language)}, arm {case.arm}.",
        (
            Section("asked", "What is asked", tuple(asked), "cases.json of the frozen protocol"),
            Section(
                "oracle",
                "What decides",
                (
                    Facts((*expected, ("policy", Cell(_json(policy), code=True)))),
                    *known,
                    *((Heading("Where the case comes from"), Facts(origin)) if origin else ()),
                ),
                "scoring.toolcalls (deterministic match), scoring.lint",
            ),
            Section(
                "attempts",
                "Attempts",
                (
                    *listed,
                    Facts(tuple(_to_print(found)), fold="Commands that print the answers"),
                    Para(
                        "Answers lie in the workspace's `answers/`, redacted before they were written. A command names "
                        "a log, where in it the answer lies, and its SHA-256, which is checked.",
                        note=True,
                    ),
                ),
                "adapters.store (shards and answer logs), scoring.toolcalls (reasons)",
            ),
        ),
    )


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=indent)


def _row(one: Attempt, lanes: Mapping[str, str]) -> Row:
    verdict = "excluded" if one.passed is None else "passed" if one.passed else "failed"
    if not one.counts:
        verdict += ", does not count: an older row fills the slot"
    line = cells(
        lanes.get(one.target, one.target),
        str(one.k),
        Cell(verdict, below=one.infra),
        one.reason or "no reason recorded",
        ", ".join(one.flags) or figures.NONE,
        Cell(f"{moment(one.at)} UTC", below=one.run),
    )
    return Row(line.cells, aside=one.passed is None or not one.counts)


def _to_print(found: Sequence[Attempt]) -> Iterator[tuple[str, Cell]]:
    """Of each attempt the command that prints its answer, in the order of the table."""
    for one in found:
        command = Cell("no answer was kept")
        if one.answer is not None:
            log, offset, length, digest = one.answer
            command = Cell(f"referee bakeoff answer {log} {offset} {length} {digest}", code=True)
        yield f"{one.target}, k = {one.k}, {moment(one.at)}", command
