"""Computes every verdict of a workspace's bake-offs again, from shards, evidence logs and frozen protocols alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import referee
from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol
from referee.adapters.store.answers import AnswerReader, Asked, KeptAnswer, unframe
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import ScannedShard, bodies, every_shard, first_line, scan_shard
from referee.benchmarks.bakeoff.asking import sent_names
from referee.core.bakeoff import Row, ShardOpened
from referee.core.cases import Case
from referee.core.records import EvidenceRef, MarketSnapshot, ProtocolFrozen
from referee.errors import Finding, RefereeError
from referee.runner.bakeoff.announced import SeenShard, check_announced
from referee.runner.bakeoff.budget import counted_cost, price_of
from referee.runner.bakeoff.freeze import frozen_protocol
from referee.runner.bakeoff.ledger import account_of, check_spending
from referee.runner.bakeoff.named_answers import NamedAnswers
from referee.runner.bakeoff.plan import (
    identities,
    identities_digest,
    shard_source,
    suite_digest,
    surface_digest,
    target_digest,
)
from referee.runner.bakeoff.verdict import SUSPECT, read_kept, verdict

_FAILED_500 = 500
#: Sums of the same prices may be added in another order.
_NEAR = 1e-9
#: What every row repeats of its shard's first line.
_OF_THE_SHARD = (
    *("run", "target_digest", "surface_digest", "protocol_digest", "suite_digest", "subset"),
    *("identities_digest", "harness_version"),
)


@dataclass
class Recomputed:
    """What was found to hold.

    ``torn``: torn last lines. ``loose``: kept answers that no row names. ``named``: the blobs of evidence that
    bake-offs name, each read and whole.
    """

    shards: int = 0
    rows: int = 0
    answer_bytes: int = 0
    torn: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    spent: dict[tuple[str, str], float] = field(default_factory=dict)  # US dollars, by account and run


def recompute(records: Path, answers: Path, evidence: LocalEvidence) -> Recomputed:
    """Check every shard of a workspace, whole.

    Raises:
        Finding: the first thing that does not hold: a chain, an answer, a verdict, a blob.
    """
    done = Recomputed()
    if not records.is_dir():
        return done
    log = RecordFiles(records, kind="bakeoff")
    frozen = _freezes(log, evidence, done)
    loaded: dict[str, _Plan] = {}
    seen: dict[str, SeenShard] = {}
    named = NamedAnswers()
    with AnswerReader(answers) as reader:
        for path in every_shard(records):
            if first_line(path) is None:
                done.torn.append(f"{path.name}: its first line is torn, so it holds no row")
                continue
            shard = scan_shard(path)
            digest = shard.opened.protocol_digest
            if digest not in loaded:
                loaded[digest] = _Plan(_loaded(shard, frozen, evidence))
            _named(_checked(shard), evidence, done)
            _rows(shard, loaded[digest], reader, named, done)
            seen[shard.name] = SeenShard.of(shard)
            done.shards += 1
            if shard.fact.torn_bytes and not shard.alive:
                after = shard.fact.rows + 1
                done.torn.append(
                    f"{shard.name}: {shard.fact.torn_bytes} bytes after line {after} are a torn line and no row"
                )
        logs = check_announced(records, log.read_bakeoff(), seen)
        check_spending(records, done.spent)
        done.loose = named.loose(reader, logs, seen)
    return done


def _freezes(log: RecordFiles, evidence: LocalEvidence, done: Recomputed) -> dict[str, ProtocolFrozen]:
    """The freezes by digest; the evidence that they and the markets name is read."""
    frozen: dict[str, ProtocolFrozen] = {}
    for record in log.read_bakeoff():
        if isinstance(record, ProtocolFrozen):
            frozen[record.digest] = record
            _named(record.files, evidence, done)
        elif isinstance(record, MarketSnapshot) and record.said is not None:
            _named([record.said], evidence, done)
    return frozen


class _Plan:
    """A frozen protocol, with what the rows of its shards need of it."""

    def __init__(self, loaded: LoadedProtocol) -> None:
        self.loaded = loaded
        self.suite_digest = suite_digest(loaded)
        self._sent: dict[str, Mapping[str, str]] = {}

    def sent(self, case: Case) -> Mapping[str, str]:
        """The real names of a case's tools, by the names that are sent."""
        found = self._sent.get(case.toolset)
        if found is None:
            tools = self.loaded.suite.tools(case)
            found = dict(zip(sent_names(tools), (tool.name for tool in tools), strict=True))
            self._sent[case.toolset] = found
        return found


def _loaded(shard: ScannedShard, frozen: Mapping[str, ProtocolFrozen], evidence: LocalEvidence) -> LoadedProtocol:
    found = frozen.get(shard.opened.protocol_digest)
    if found is None:
        raise Finding(f"{shard.name}: its protocol {shard.opened.protocol} was never frozen as its rows say")
    return frozen_protocol(found, evidence)


def _opening(shard: ScannedShard, plan: _Plan) -> None:
    """What a shard's first line says is what its frozen protocol gives."""
    opened, loaded = shard.opened, plan.loaded
    planned = next((one for one in loaded.protocol.targets if one.target == opened.target.name), None)
    if planned is None:
        raise Finding(f"{shard.name}: its protocol plans no target {opened.target.name}")
    subset = None if planned.subset is None else loaded.subsets[planned.subset]
    owed = identities(loaded.protocol, loaded.suite, subset)
    holds = {
        "target": opened.target == loaded.targets[opened.target.name],
        "target's digest": opened.target_digest == target_digest(opened.target),
        "lane's digest": opened.surface_digest == surface_digest(opened.surface),
        "suite": opened.suite_digest == plan.suite_digest and opened.grading == loaded.suite.grading,
        "subset": opened.subset == planned.subset,
        "list of what is owed": opened.identities == owed and opened.identities_digest == identities_digest(owed),
    }
    for what, held in holds.items():
        if not held:
            raise Finding(f"{shard.name}: its {what} is not what the frozen protocol gives")


def _rows(shard: ScannedShard, plan: _Plan, reader: AnswerReader, named: NamedAnswers, done: Recomputed) -> None:
    """Every row of a shard: owed, once, with an answer of its own that gives what the row says."""
    _opening(shard, plan)
    opened = shard.opened
    provenance = shard_source(opened)
    left = set(opened.identities)
    for number, body in bodies(shard):
        if body.get("kind") != "row":
            continue
        where = f"{shard.name}, line {number}"
        row = _parsed(where, body)
        slot = (row.case_id, row.k_idx)
        if slot not in left:
            what = "has a second row" if slot in opened.identities else "is not owed"
            raise Finding(f"{where}: case {row.case_id}, k = {row.k_idx} {what}")
        left.remove(slot)
        if row.answer is None:
            raise Finding(f"{where}: names no answer")
        try:
            named.add(shard.name, row.answer)
            entry = reader.read(row.answer)
            asked, tries = unframe(entry)
            _own(row, asked)
        except Finding as exc:
            raise Finding(f"{where}: {exc.message}") from exc
        gives = {**_facts(opened, plan, asked, tries), **_verdict(row, opened, plan, tries), "provenance": provenance}
        for name, value in gives.items():
            if body[name] != value:
                raise Finding(f"{where}: {_differs(name, body[name], value)}{_of_version(opened)}")
        _spent(where, row, opened, tries)
        done.rows += 1
        if row.spent_usd:
            whose = (account_of(opened.target), opened.run)
            done.spent[whose] = done.spent.get(whose, 0.0) + row.spent_usd
        done.answer_bytes += len(entry)


def _parsed(where: str, body: dict[str, Any]) -> Row:
    try:
        return Row.model_validate(body)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Finding(f"{where}: is no row: {place}: {first['msg']}") from exc


def _own(row: Row, asked: Asked) -> None:
    """The answer is this attempt's, not another's."""
    if (asked.run, asked.target, asked.case_id, asked.k_idx) != (row.run, row.target, row.case_id, row.k_idx):
        raise Finding(f"names the answer of {asked.target}, case {asked.case_id}, k = {asked.k_idx}, run {asked.run}")


def _facts(opened: ShardOpened, plan: _Plan, asked: Asked, tries: list[KeptAnswer]) -> dict[str, Any]:
    """What the shard's first line, the suite and the answer's own head give."""
    last = tries[-1]
    case = plan.loaded.suite.by_id.get(asked.case_id)
    return {
        **{name: getattr(opened, name) for name in _OF_THE_SHARD},
        "target": opened.target.name,
        "started_at": asked.started_at,
        "spent_usd": asked.spent_usd,
        **{name: getattr(case, name, None) for name in ("category", "arm", "language")},
        "lane": opened.target.lane,
        "sovereignty": opened.target.sovereignty,
        "expected": len(opened.identities),
        "tries": len(tries),
        "latency_ms": last.latency_ms,
        "http_status": None if opened.surface.shape == "cli-envelope" else last.status,
    }


def _verdict(row: Row, opened: ShardOpened, plan: _Plan, tries: list[KeptAnswer]) -> dict[str, Any]:
    """What the answer gives."""
    suite = plan.loaded.suite
    case = suite.by_id[row.case_id]
    found = verdict(
        case, suite.tools(case), read_kept(tries[-1], opened.surface), grading=suite.grading, sent=plan.sent(case)
    )
    if SUSPECT in row.flags and all(one.status == _FAILED_500 for one in tries):
        found["flags"] = [*found["flags"], SUSPECT]  # what came of other attempts is not to be seen from here
    return found


def _spent(where: str, row: Row, opened: ShardOpened, tries: list[KeptAnswer]) -> None:
    """What the row says that it cost is what the tokens cost by the target's own price, where its file has one.

    A call without a count of tokens counted at its upper estimate: then the rest is a lower bound.
    """
    if (row.spent_usd is not None) != opened.target.metered:
        metered = "metered" if opened.target.metered else "not metered"
        raise Finding(f"{where}: says spent_usd {row.spent_usd!r}, and its target is {metered}")
    if row.spent_usd is None or opened.target.price is None:
        return
    price = price_of(opened.target)
    costs = [counted_cost(price, read_kept(one, opened.surface)) for one in tries]
    known = sum((cost for cost in costs if cost is not None), 0.0)
    same = math.isclose(known, row.spent_usd, rel_tol=_NEAR)
    if not same and (None not in costs or known > row.spent_usd):
        raise Finding(f"{where}: says spent_usd {row.spent_usd!r}, its tokens cost {known!r}")


def _differs(name: str, says: Any, gives: Any) -> str:
    """A sentence that quotes numbers and verdicts, and nothing that stands in an answer."""
    if isinstance(says, str | list) or isinstance(gives, str | list):
        return f"its {name} is not what its answer gives"
    return f"says {name} {says!r}, its answer gives {gives!r}"


def _of_version(opened: ShardOpened) -> str:
    """That another version graded the rows, where one did: a rule that was mended since gives other verdicts."""
    if opened.harness_version == referee.__version__:
        return ""
    return f"; version {opened.harness_version} graded it, this is {referee.__version__}: see the changelog"


def _checked(shard: ScannedShard) -> Iterator[EvidenceRef]:
    """The answers of the start-up check that a shard's first line names."""
    named = shard.opened.environment.get("checked", [])
    for one in named if isinstance(named, list) else []:
        try:
            yield EvidenceRef.model_validate(one)
        except ValidationError as exc:
            raise Finding(f"{shard.name}: names evidence of its start-up check that cannot be read") from exc


def _named(
    refs: Iterator[EvidenceRef] | list[EvidenceRef] | tuple[EvidenceRef, ...], evidence: LocalEvidence, done: Recomputed
) -> None:
    for ref in refs:
        if ref.digest in done.named:
            continue
        try:
            evidence.check(ref.digest)
        except RefereeError as exc:
            raise Finding(f"the evidence {ref.name} of a bake-off: {exc.message}") from exc
        done.named.add(ref.digest)
