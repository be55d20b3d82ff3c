"""The numbers of a report, made again from its raw export: counts by target, and rates where the suite is at hand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

from referee.adapters.suites.files import bundled_names, bundled_suite, suite_bytes
from referee.core.bakeoff import Bootstrap
from referee.core.canonical import digest_of, digest_of_bytes
from referee.core.cases import Suite
from referee.core.tallies import CaseTally, TargetTally
from referee.errors import CouldNotVerify, Finding
from referee.runner.bakeoff.verify_site_rows import Attempt
from referee.scoring.bakeoff.figures import Figures, Rate
from referee.scoring.bakeoff.grid import Grid, Mask, grid_of
from referee.scoring.bakeoff.paired import compare, holm
from referee.scoring.bakeoff.standings import clusters
from referee.scoring.bakeoff.statistics import ALPHA, wilson
from referee.scoring.bakeoff.summary import ArmRow, ArmTable, Board, LaneLimited, Plan, Standing, Summary

_TODO = "get the site again from where it is published, and compare"
#: Sums of the same numbers may be added otherwise on another machine.
_NEAR = 1e-9
#: What drawing again would take beyond this (8 bytes an iteration) is not spent on a stranger's word.
_MOST_DRAWN = 10_000_000


def suite_of(plan: Plan) -> Suite | None:
    """The bundled suite that a report is of; None where it is another."""
    if plan.suite not in bundled_names():
        return None
    suite = bundled_suite(plan.suite)
    return suite if (digest_of("suite", digest_of_bytes(suite_bytes(suite))),) == plan.suite_digests else None


def check_counts(name: str, summary: Summary, rows: Sequence[Attempt]) -> None:
    """Rows, graded, excluded by class, of each target and of all; and each rate's interval from the rate itself.

    Raises:
        Finding: a number is not what the export gives.
    """
    used = _usable(rows)
    told = _told(summary)
    strangers = {one.target for one in rows} - set(told)
    if strangers:
        raise Finding(f"{name} tells nothing of the target {min(strangers)}, of which the export has rows", todo=_TODO)
    for target, row in told.items():
        physical = [one for one in rows if one.target == target]
        own = [one for one in used if one.target == target]
        excluded = Counter(one.infra or "unnamed" for one in own if one.passed is None)
        wanted = (len(physical), len(own), sum(1 for one in own if one.passed is not None), excluded)
        transport = row.transport
        said = (
            row.coverage.physical,
            row.coverage.usable,
            transport.graded,
            Counter(transport.infra) + Counter(transport.refused),
        )
        if summary.totals.unknown:  # rows of cases that the suite does not hold are graded and counted nowhere
            wanted, said = (*wanted[:2], 0, wanted[3]), (*said[:2], 0, said[3])
        if said != wanted or {one.lane for one in physical} - {row.about.lane}:
            raise Finding(f"{name}: the counts of {target} are not what the export gives", todo=_TODO)
    totals = summary.totals
    graded = sum(1 for one in used if one.passed is not None)
    if (totals.physical_rows, totals.usable_rows, totals.superseded) != (len(rows), len(used), len(rows) - len(used)):
        raise Finding(f"{name}: the number of its rows is not that of the export", todo=_TODO)
    passes = sum(one.passed is True for one in used)
    if not totals.unknown and (totals.graded, sum(arm.passes for arm in totals.by_arm)) != (graded, passes):
        raise Finding(f"{name}: its graded or passed attempts are not those of the export", todo=_TODO)
    for rate in _rates(summary):
        if rate.passes > rate.valid or (rate.value is None) != (rate.n == 0):
            raise Finding(f"{name} tells a rate of {rate.passes} passes in {rate.valid} attempts", todo=_TODO)
        if not _near(rate.wilson, None if rate.value is None else wilson(rate.value, rate.n)):
            raise Finding(f"{name}: the interval of the rate {rate.value} of {rate.n} cases is another", todo=_TODO)


def check_rates(name: str, summary: Summary, rows: Sequence[Attempt], suite: Suite) -> None:
    """Every rate of boards, arms and parts, with its second interval, pass^k, ties and paired tests.

    Raises:
        Finding: a number is not what the export gives.
        CouldNotVerify: the second interval says so many drawings that they are not done again here.
    """
    if summary.plan.bootstrap_iterations > _MOST_DRAWN:
        raise CouldNotVerify(
            f"{name} says {summary.plan.bootstrap_iterations} drawings, more than are done again for a site",
            todo="`referee verify` in the workspace makes the report again",
        )
    checked = _Checked(name, summary, _grid(name, summary, rows, suite), suite)
    for board in summary.boards:
        checked.board(board)
    for limited in summary.lane_limited:
        checked.limited(limited)
    for table in summary.arms:
        checked.arm(table)
    for parts in summary.breakdowns:
        for told, masks in (
            (parts.by_category, checked.grid.categories),
            (parts.by_language, checked.grid.languages),
        ):
            for part, rate in told.items():
                checked.rate(parts.about.target, rate, checked.ranking & masks[part])
    for count in summary.totals.by_arm:
        mask = checked.grid.arms[count.arm]
        made = (int(checked.grid.valid[:, mask].sum()), int(checked.grid.passes[:, mask].sum()))
        if (count.valid, count.passes) != made:
            raise Finding(f"{name}: the counts of the arm {count.arm} are not what the export gives", todo=_TODO)


@dataclass(frozen=True)
class _Checked:
    """One report against the counts of its export."""

    name: str
    summary: Summary
    grid: Grid
    suite: Suite

    @property
    def headline(self) -> Mask:
        arms = {arm.name for arm in self.suite.arms if arm.headline and arm.ranked}
        cases = [case.id for case in self.suite.cases if case.arm in arms]
        return self.grid.mask(cases) & ~self.grid.objected

    @property
    def out(self) -> Mask:
        return self.grid.mask([one.case for one in self.summary.gold if one.review == "wrong" or one.doubted])

    @property
    def flagged(self) -> Mask:
        return self.grid.mask([one.case for one in self.summary.gold if one.suspect or one.review == "wrong"])

    @property
    def ranking(self) -> Mask:
        return self.headline & ~self.out

    def board(self, board: Board) -> None:
        for row in board.rows:
            self.row(row, self.ranking, self.headline, both=True)
        intervals = {row.about.target: row.figures.rate.wilson for row in board.rows}
        made = clusters({name: one for name, one in intervals.items() if one is not None})
        told = [cluster.targets for cluster in board.clusters]
        if [set(one) for one in made] != [set(one) for one in told] or [
            (name, number) for number, names in enumerate(told, start=1) for name in names
        ] != [(row.about.target, row.cluster) for row in board.rows]:
            raise Finding(f"{self.name}: who is tied with whom is not what the rates give", todo=_TODO)
        self._pairs(board)

    def arm(self, table: ArmTable) -> None:
        ranked = self.suite.arm_of[table.arm].ranked
        cases = self.grid.arms[table.arm]
        cases = cases & ~self.grid.objected if ranked else cases
        for row in table.rows:
            self.row(row, cases & ~self.out if ranked else cases, cases, both=ranked)

    def row(self, row: Standing | ArmRow, mask: Mask, every: Mask, *, both: bool) -> None:
        self._figures(row.about.target, row.figures, mask)
        doubted = both and bool((every & self.flagged).any())
        for told, cases in ((row.with_flagged, every), (row.without_flagged, every & ~self.flagged)):
            if (told is not None) != doubted:
                raise self._differs(row.about.target)
            if told is not None:
                self.rate(row.about.target, told, cases)

    def limited(self, row: LaneLimited) -> None:
        at = self.grid.row(row.about.target)
        valid, passes = self.grid.valid[at][self.headline], self.grid.passes[at][self.headline]
        made = (int((valid > 0).sum()), int(valid.sum()), int(passes.sum()))
        if (row.headline_cases, row.headline_valid, row.headline_passes) != made:
            raise self._differs(row.about.target)
        if row.with_flagged is not None:
            self.rate(row.about.target, row.with_flagged, self.headline)

    def rate(self, target: str, told: Rate, mask: Mask) -> None:
        if not _near(told, self.grid.rate(self.grid.row(target), mask)):
            raise self._differs(target)

    def _figures(self, target: str, told: Figures, mask: Mask) -> None:
        plan = self.summary.plan
        drawn = Bootstrap(iterations=plan.bootstrap_iterations, seed=plan.bootstrap_seed)
        repeats = told.pass_hat[-1].k
        (made,) = self.grid.figures([self.grid.row(target)], mask, repeats=[repeats], plan=drawn)
        failed = (told.failures.failed, told.failures.infra + told.failures.refused)
        same = failed == (made.failures.failed, made.failures.infra + made.failures.refused)
        for part in ("cases", "rate", "bootstrap", "pass_hat"):
            same = same and _near(getattr(told, part), getattr(made, part))
        if not same:
            raise self._differs(target)

    def _pairs(self, board: Board) -> None:
        order = [(row.about.target, row.cluster) for row in board.rows]
        tests = []
        for (a, _), (b, _) in combinations(order, 2):
            i, j = self.grid.row(a), self.grid.row(b)
            shared = self.ranking & (self.grid.valid[i] > 0) & (self.grid.valid[j] > 0)
            tests.append(compare(self.grid.units[i, shared], self.grid.units[j, shared]))
        corrected = holm([test.p for test in tests])
        made = [
            (a[0], b[0], a[1] == b[1], test.n, test.difference, test.p, p, p is not None and p <= ALPHA)
            for (a, b), test, p in zip(combinations(order, 2), tests, corrected, strict=True)
        ]
        told = [
            (one.a, one.b, one.same_cluster, one.n, one.difference, one.p, one.p_holm, one.separated)
            for one in board.pairs
        ]
        if not _near(told, made):
            raise Finding(f"{self.name}: a paired test of its board is not what the export gives", todo=_TODO)

    def _differs(self, target: str) -> Finding:
        return Finding(f"{self.name}: a rate or count of {target} is not what the export gives", todo=_TODO)


def _grid(name: str, summary: Summary, rows: Sequence[Attempt], suite: Suite) -> Grid:
    """The usable rows as arrays; what an answer's form was is not in an export and stays zero."""
    counted: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for one in _usable(rows):
        case = suite.by_id.get(one.case)
        if case is not None and case.category != one.category:
            raise Finding(f"{name}: the export has the case {one.case} in another category than its suite", todo=_TODO)
        counted[one.target, one.case].append(one)
    cases = []
    for (target, case_id), own in counted.items():
        known = suite.by_id.get(case_id)
        if known is None:
            continue
        valid = [one for one in own if one.passed is not None]
        cases.append(
            CaseTally(
                target=target,
                case=case_id,
                category=known.category,
                arm=known.arm,
                language=known.language,
                valid=len(valid),
                passes=sum(one.passed is True for one in valid),
                well_formed=0,
                infra=len(own) - len(valid),
                refused=0,
                outcomes=(),
                wrong=None,
            )
        )
    # Of a target's tally a grid needs the name alone.
    targets = [cast("TargetTally", SimpleNamespace(target=SimpleNamespace(name=target))) for target in _told(summary)]
    return grid_of(suite, targets, cases)


def _usable(rows: Sequence[Attempt]) -> list[Attempt]:
    """The oldest row of each slot; of rows that began at one moment, the first of the export."""
    oldest: dict[tuple[str, str, int], Attempt] = {}
    for one in rows:
        slot = (one.target, one.case, one.k)
        if slot not in oldest or one.seen < oldest[slot].seen:
            oldest[slot] = one
    return list(oldest.values())


def _told(summary: Summary) -> dict[str, Standing | LaneLimited]:
    found: dict[str, Standing | LaneLimited] = {row.about.target: row for row in summary.lane_limited}
    return found | {row.about.target: row for board in summary.boards for row in board.rows}


def _rates(value: Any) -> Iterator[Rate]:
    """Every rate that stands anywhere in a summary."""
    if isinstance(value, Rate):
        yield value
    elif is_dataclass(value):
        for part in fields(value):
            yield from _rates(getattr(value, part.name))
    elif isinstance(value, tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _rates(one)


def _near(told: Any, made: Any) -> bool:
    """Whether two values say the same, but for what the last bits of a sum may differ in."""
    if isinstance(told, float) and isinstance(made, float):
        return math.isclose(told, made, rel_tol=_NEAR, abs_tol=_NEAR)
    if is_dataclass(told) and type(told) is type(made):
        return all(_near(getattr(told, part.name), getattr(made, part.name)) for part in fields(told))
    if isinstance(told, tuple | list) and isinstance(made, tuple | list):
        return len(told) == len(made) and all(_near(a, b) for a, b in zip(told, made, strict=True))
    return bool(told == made)
