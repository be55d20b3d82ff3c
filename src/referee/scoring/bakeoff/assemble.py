"""From what was counted to what a report shows: OPEN THIS FIRST."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from referee.core.bakeoff import Protocol, Subset
from referee.core.cases import CATEGORIES, Suite
from referee.core.records import DecisionLogged, GoldReviewed
from referee.core.tallies import CaseTally, ShardFact, TargetTally
from referee.errors import UsageError
from referee.scoring.bakeoff import lanes
from referee.scoring.bakeoff.comparisons import compared, twin_tables
from referee.scoring.bakeoff.figures import Note
from referee.scoring.bakeoff.gold import gold_cases, left_alone
from referee.scoring.bakeoff.grid import grid_of
from referee.scoring.bakeoff.standings import EMPTIED, Measured, arm_tables, board
from referee.scoring.bakeoff.summary import (
    ArmCount,
    Breakdown,
    Decision,
    LaneLimited,
    Objected,
    Plan,
    Summary,
    Totals,
)


def summarise(
    protocol: Protocol,
    suite: Suite,
    targets: Sequence[TargetTally],
    cases: Sequence[CaseTally],
    reviews: Sequence[GoldReviewed],
    decisions: Sequence[DecisionLogged],
    shards: Sequence[ShardFact],
    *,
    subsets: Mapping[str, Subset] | None = None,
) -> Summary:
    """Everything that a report shows, from the counts of the selected shards. The order of the inputs says nothing.

    ``subsets`` are the registered ones, by name: a list of shards is held against the one of its subset.

    Raises:
        UsageError: the tallies are of another suite or of two, or a target or a case of it is tallied twice.
    """
    measured = measure(protocol, suite, targets, cases, reviews, subsets=subsets)
    logged = sorted((entry for entry in decisions if entry.protocol == protocol.name), key=lambda entry: entry.number)
    parts = measured.subsets() or [None]
    return Summary(
        plan=_plan(measured),
        totals=_totals(measured),
        boards=tuple(board(measured, part) for part in parts),
        lane_limited=_lane_limited(measured),
        arms=arm_tables(measured),
        breakdowns=_breakdowns(measured),
        comparisons=compared(measured),
        twins=twin_tables(measured),
        gold=measured.gold,
        left_alone=left_alone(case for case in cases if case.case in suite.by_id),
        objected=tuple(
            Objected(case.id, case.arm, case.known_objection)
            for case in sorted(suite.cases, key=lambda case: case.id)
            if case.known_objection is not None
        ),
        decisions=tuple(
            Decision(d.number, d.at, d.decided_on, d.late, d.amends, d.text, d.reason, d.by) for d in logged
        ),
        amending=sum(entry.amends for entry in logged),
        logged_late=sum(entry.late for entry in logged),
        shards=tuple(sorted(shards, key=lambda shard: (shard.name, shard.sha256))),
        caveats=_caveats(measured, shards),
    )


def measure(
    protocol: Protocol,
    suite: Suite,
    targets: Sequence[TargetTally],
    cases: Sequence[CaseTally],
    reviews: Sequence[GoldReviewed],
    *,
    subsets: Mapping[str, Subset] | None = None,
) -> Measured:
    """The counts as arrays, with what leaves the ranking and why."""
    if protocol.suite != suite.name:
        raise UsageError(
            f"the protocol {protocol.name} is about the suite {protocol.suite}, not {suite.name}",
            todo="Load the suite that the protocol was frozen with.",
        )
    digests = sorted({digest for tally in targets for digest in tally.suites})
    if len(digests) > 1 and all(len(tally.suites) <= 1 for tally in targets):
        raise UsageError(
            f"the selected shards hold rows of {len(digests)} different suites, which cannot stand on one board",
            todo="Select shards of one suite.",
        )
    grid = grid_of(suite, targets, cases)
    gold = gold_cases(suite, cases, reviews, protocol=protocol.name)
    tallies = {tally.target.name: tally for tally in sorted(targets, key=lambda tally: tally.target.name)}
    due = lanes.owed(protocol, suite, subsets or {})
    limited = {name: lanes.reasons(tally, protocol, due, grid.rows_by_case(name)) for name, tally in tallies.items()}
    measured = Measured(
        protocol=protocol,
        suite=suite,
        grid=grid,
        tallies=tallies,
        limited=limited,
        gold=gold,
        flagged=grid.mask([case.case for case in gold if case.suspect or case.review == "wrong"]),
        out=grid.mask([case.case for case in gold if case.review == "wrong" or case.doubted]),
    )
    for name in tallies:
        limited[name] = limited[name] or _nothing_to_rank(measured, name)
    return measured


def _nothing_to_rank(measured: Measured, name: str) -> tuple[Note, ...]:
    """Why a target that otherwise could be ranked has no rate."""
    row = measured.grid.row(name)
    answered = measured.headline & (measured.grid.valid[row] > 0)
    if not (measured.headline & measured.grid.has_row[row]).any():
        return (Note("no-valid-case", "it ran no case of the headline"),)
    if not answered.any():
        return (Note("no-valid-case", "it has no valid attempt at a case of the headline"),)
    if not (answered & ~measured.out).any():
        sentence = "every case of the headline that it answered is gold-suspect or has a wrong gold"
        return (Note(EMPTIED, sentence),)
    return ()


def _plan(measured: Measured) -> Plan:
    protocol, suite = measured.protocol, measured.suite
    tallies = measured.tallies.values()
    return Plan(
        protocol=protocol.name,
        title=protocol.title,
        question=protocol.question,
        suite=suite.name,
        suite_version=suite.version,
        grading=suite.grading,
        repeats=protocol.repeats,
        arm_repeats=dict(protocol.arm_repeats),
        bootstrap_iterations=protocol.bootstrap.iterations,
        bootstrap_seed=protocol.bootstrap.seed,
        rules=protocol.rules,
        protocol_digests=tuple(sorted({digest for tally in tallies for digest in tally.protocols})),
        suite_digests=tuple(sorted({digest for tally in tallies for digest in tally.suites})),
        not_run=tuple(sorted({planned.target for planned in protocol.targets} - set(measured.tallies))),
    )


def _totals(measured: Measured) -> Totals:
    grid, tallies = measured.grid, list(measured.tallies.values())
    everyone = np.arange(len(grid.targets))
    rows = grid.valid + grid.infra + grid.refused
    by_arm = []
    for arm in measured.suite.arms:
        mask = grid.arms[arm.name]
        by_arm.append(
            ArmCount(
                arm=arm.name,
                headline=arm.headline,
                ranked=arm.ranked,
                cases=int(mask.sum()),
                rows=int(rows[:, mask].sum()),
                valid=int(grid.valid[:, mask].sum()),
                passes=int(grid.passes[:, mask].sum()),
                failures=grid.failures(everyone, mask),
            )
        )
    physical, usable = sum(tally.physical for tally in tallies), sum(tally.usable for tally in tallies)
    read = [tally.input_tokens for tally in tallies if tally.input_tokens is not None]
    written = [tally.output_tokens for tally in tallies if tally.output_tokens is not None]
    spent = [tally.spent_usd for tally in tallies if tally.spent_usd is not None]
    return Totals(
        physical_rows=physical,
        usable_rows=usable,
        superseded=physical - usable,
        unknown=grid.unknown_rows,
        capability_rows=sum(count.rows for count in by_arm if count.headline),
        additions_rows=sum(count.rows for count in by_arm if not count.headline),
        graded=int(grid.valid.sum()),
        infra=_added(tally.infra for tally in tallies),
        refused=_added(tally.refused for tally in tallies),
        failures=grid.failures(everyone, np.ones(len(grid.cases), dtype=bool)),
        by_arm=tuple(by_arm),
        input_tokens=sum(read) if read else None,
        output_tokens=sum(written) if written else None,
        tokens_known_of=len(read),
        spent_usd=math.fsum(spent) if spent else None,
        spent_known_of=len(spent),
    )


def _lane_limited(measured: Measured) -> tuple[LaneLimited, ...]:
    grid, headline = measured.grid, measured.headline
    found = []
    for name, tally in measured.tallies.items():
        if not measured.limited[name]:
            continue
        row = grid.row(name)
        valid = grid.valid[row]
        found.append(
            LaneLimited(
                about=lanes.about(tally),
                by_lane=measured.by_lane(name),
                reasons=measured.limited[name],
                with_flagged=grid.rate(row, headline) if measured.emptied(name) else None,
                headline_cases=int((headline & (valid > 0)).sum()),
                headline_valid=int(valid[headline].sum()),
                headline_passes=int(grid.passes[row, headline].sum()),
                failures=grid.failures([row], headline),
                coverage=lanes.coverage(tally),
                transport=lanes.transport(tally, int(valid.sum())),
                caveats=lanes.caveats(tally),
            )
        )
    return tuple(found)


def _breakdowns(measured: Measured) -> tuple[Breakdown, ...]:
    """Categories and languages, over the headline cases that rank (§11), of the ranked targets by name."""
    grid = measured.grid
    ranking = measured.headline & ~measured.out
    found = []
    for name, tally in measured.tallies.items():
        if measured.limited[name]:
            continue
        row = grid.row(name)
        found.append(
            Breakdown(
                about=lanes.about(tally),
                by_category={
                    category: grid.rate(row, ranking & grid.categories[category])
                    for category in CATEGORIES
                    if (measured.headline & grid.categories[category]).any()
                },
                by_language={
                    language: grid.rate(row, ranking & mask)
                    for language, mask in grid.languages.items()
                    if (measured.headline & mask).any()
                },
            )
        )
    return tuple(found)


def _caveats(measured: Measured, shards: Sequence[ShardFact]) -> tuple[Note, ...]:
    notes = []
    torn = sorted(shard.name for shard in shards if shard.torn_bytes)
    if torn:
        notes.append(Note("torn-shards", f"the last line of {', '.join(torn)} was cut off and is not counted"))
    digests = {digest for tally in measured.tallies.values() for digest in tally.protocols}
    if len(digests) > 1:
        sentence = (
            f"rows were made under {len(digests)} frozen versions of the protocol: see the decisions that amend it"
        )
        notes.append(Note("amended-protocol", sentence))
    if measured.grid.unknown_rows:
        notes.append(
            Note("unknown-cases", f"{measured.grid.unknown_rows} rows are of cases that the suite does not hold")
        )
    idle = sorted({planned.target for planned in measured.protocol.targets} - set(measured.tallies))
    if idle:
        notes.append(Note("not-run", f"registered and without a row: {', '.join(idle)}"))
    return tuple(notes)


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
