"""Boards: who is ranked, in which tie cluster, in which order, and which pairs a paired test separates (§3, §12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np

from referee.core.bakeoff import Protocol, Sovereignty
from referee.core.cases import Arm, Suite
from referee.core.tallies import TargetTally
from referee.scoring.bakeoff import lanes
from referee.scoring.bakeoff.figures import Figures, Interval, Note, Rate
from referee.scoring.bakeoff.grid import Grid, Mask
from referee.scoring.bakeoff.paired import compare, holm
from referee.scoring.bakeoff.statistics import ALPHA, POWER, REFERENCE_VARIANCE, detectable, questions_needed
from referee.scoring.bakeoff.summary import ArmRow, ArmTable, Board, BoardPair, Cluster, GoldCase, Power, Standing

#: Order of presentation within a tie cluster (§3, §5): classes as the methodology lists them, what is no model last.
SOVEREIGNTY_ORDER: tuple[str, ...] = get_args(Sovereignty)
SELF_HOST_ORDER = ("feasible", "costly", "not-feasible")

#: Reasons that keep a target from the headline and from nothing else: it may still stand on an arm of its own.
EMPTIED = "gold-suspect"
HEADLINE_ONLY = frozenset({"no-valid-case", EMPTIED})

#: The difference for which every board says how many questions it would take.
THREE_POINTS = 0.03


@dataclass(frozen=True)
class Measured:
    """What all tables are made from. ``limited`` holds, by target, why it may not be ranked; empty: it may."""

    protocol: Protocol
    suite: Suite
    grid: Grid
    tallies: Mapping[str, TargetTally]
    limited: Mapping[str, tuple[Note, ...]]
    gold: tuple[GoldCase, ...]
    flagged: Mask
    out: Mask

    @property
    def headline(self) -> Mask:
        """The cases of the headline: headline arms that rank, without what the linter objects to."""
        return self._any_arm([arm for arm in self.suite.arms if arm.headline and arm.ranked]) & ~self.grid.objected

    def cases_of(self, arm: Arm) -> Mask:
        """The cases of an arm that count on its table: all where it is not ranked."""
        cases = self.grid.arms[arm.name]
        return cases & ~self.grid.objected if arm.ranked else cases

    def rankable(self, subset: str | None) -> list[str]:
        """The targets that may be ranked and ran this part of the suite, by name."""
        return [
            name for name, tally in sorted(self.tallies.items()) if tally.subset == subset and not self.limited[name]
        ]

    def emptied(self, name: str) -> bool:
        """Whether nothing but gold in doubt keeps a target from the headline: its lane has no part in it."""
        return {note.code for note in self.limited[name]} == {EMPTIED}

    def by_lane(self, name: str) -> bool:
        """Whether something that its lane did keeps a target from the headline, not the plan or gold in doubt alone."""
        ran = (self.headline & self.grid.has_row[self.grid.row(name)]).any()
        return bool(self.limited[name]) and not self.emptied(name) and bool(self.barred(name) or ran)

    def answered(self, subset: str | None) -> Mask:
        """The cases of which a target that ran this part of the suite has rows, lane-limited ones left out."""
        names = [name for name, tally in self.tallies.items() if tally.subset == subset]
        rows = [self.grid.row(name) for name in names if not self.limited[name] or self.emptied(name)]
        found: Mask = np.logical_or.reduce(np.asarray(self.grid.has_row)[rows], axis=0)
        return found

    def barred(self, name: str) -> bool:
        """Whether a target may not be ranked on any arm either."""
        return any(note.code not in HEADLINE_ONLY for note in self.limited[name])

    def subsets(self) -> list[str | None]:
        """What was run: the whole suite first, then subsets by name."""
        found = {tally.subset for tally in self.tallies.values()}
        return sorted(found, key=lambda subset: (subset is not None, subset or ""))

    def figures(self, names: Sequence[str], mask: Mask, *, arm: str | None = None) -> dict[str, Figures]:
        """The figures of targets on a set of cases; ``arm`` names the arm whose repeats were planned."""
        found = self.grid.figures(
            [self.grid.row(name) for name in names],
            mask,
            repeats=[self._repeats(name, arm, mask) for name in names],
            plan=self.protocol.bootstrap,
        )
        return dict(zip(names, found, strict=True))

    def both_rates(self, name: str, mask: Mask) -> tuple[Rate | None, Rate | None]:
        """The rates with and without the gold-suspect cases of a set; None where the set holds none."""
        if not (mask & self.flagged).any():
            return None, None
        row = self.grid.row(name)
        return self.grid.rate(row, mask), self.grid.rate(row, mask & ~self.flagged)

    def _repeats(self, name: str, arm: str | None, mask: Mask) -> int:
        if self.tallies[name].subset is None:
            plan = self.protocol
            arms = [arm] if arm else [one.name for one in self.suite.arms if one.headline and one.ranked]
            return max((plan.arm_repeats.get(one, plan.repeats) for one in arms), default=plan.repeats)
        row = self.grid.row(name)  # a subset has repeats of its own: as many as its cases have attempts
        attempts = self.grid.valid[row, mask] + self.grid.infra[row, mask] + self.grid.refused[row, mask]
        return max(1, int(attempts.max(initial=0)))

    def _any_arm(self, arms: Sequence[Arm]) -> Mask:
        chosen = np.zeros(len(self.grid.cases), dtype=bool)
        for arm in arms:
            chosen |= self.grid.arms[arm.name]
        return chosen


@dataclass(frozen=True)
class _Place:
    """Where a target stands: its place, the places that its cluster shares, and the cluster's number."""

    place: int
    places: tuple[int, int]
    cluster: int


# --- clusters and order ----------------------------------------------------------------------------------------------


def clusters(intervals: Mapping[str, Interval]) -> list[list[str]]:
    """Tie clusters, best first: the connected components of overlapping intervals; touching counts (§3)."""
    found: list[list[str]] = []
    reach = -math.inf
    for name in sorted(intervals, key=lambda name: (intervals[name].low, intervals[name].high, name)):
        if intervals[name].low > reach:
            found.append([])
        found[-1].append(name)
        reach = max(reach, intervals[name].high)
    return found[::-1]


def presentation(tally: TargetTally, rate: Rate) -> tuple[int, int, float, float, float, str]:
    """The key of the order within a cluster: no verdict. Sovereignty, self-hosting, cost, latency where admissible.

    Where the rules leave two targets level, the higher valid-pass stands first, then the name.
    """
    target = tally.target
    cost = 0.0
    if target.metered:
        # What was spent is of every physical row, so an attempt's cost is too.
        cost = math.inf if tally.spent_usd is None or not tally.physical else tally.spent_usd / tally.physical
    admissible = tally.latency if tally.surface.latency_admissible else None
    return (
        SOVEREIGNTY_ORDER.index(target.sovereignty),
        SELF_HOST_ORDER.index(target.self_host),
        cost,
        admissible.p50_ms if admissible else math.inf,
        -(rate.value or 0.0),
        target.name,
    )


def _ordered(measured: Measured, rates: Mapping[str, Rate]) -> tuple[tuple[Cluster, ...], dict[str, _Place]]:
    """The clusters, and every target's place, in the order of presentation."""
    intervals = {name: rate.wilson for name, rate in rates.items() if rate.wilson is not None}
    made: list[Cluster] = []
    order: dict[str, _Place] = {}
    for number, members in enumerate(clusters(intervals), start=1):
        names = sorted(members, key=lambda name: presentation(measured.tallies[name], rates[name]))
        low, high = min(intervals[name].low for name in names), max(intervals[name].high for name in names)
        made.append(Cluster(number, tuple(names), low, high))
        shared = (len(order) + 1, len(order) + len(names))
        order |= {name: _Place(at, shared, number) for at, name in enumerate(names, start=shared[0])}
    return tuple(made), order


# --- boards ----------------------------------------------------------------------------------------------------------


def board(measured: Measured, subset: str | None) -> Board:
    """The headline board of the whole suite (None) or of one registered subset; the two are never mixed (§8)."""
    everything = measured.headline
    ranking = everything & ~measured.out
    figures = measured.figures(measured.rankable(subset), ranking)
    made, order = _ordered(measured, {name: found.rate for name, found in figures.items()})
    rows = []
    for name, at in order.items():
        tally = measured.tallies[name]
        with_flagged, without = measured.both_rates(name, everything)
        rows.append(
            Standing(
                about=lanes.about(tally),
                place=at.place,
                places=at.places,
                cluster=at.cluster,
                tier=lanes.tier(figures[name].rate.n, measured.suite),
                figures=figures[name],
                with_flagged=with_flagged,
                without_flagged=without,
                coverage=lanes.coverage(tally),
                transport=lanes.transport(tally, int(measured.grid.valid[measured.grid.row(name)].sum())),
                caveats=(*lanes.caveats(tally), *_lost(figures[name])),
            )
        )
    pairs = _pairs(measured, [(name, at.cluster) for name, at in order.items()], ranking)
    answered = measured.answered(subset) & everything
    left = [case for case in measured.gold if answered[measured.grid.mask([case.case])].any()]
    return Board(
        subset=subset,
        arms=tuple(arm.name for arm in measured.suite.arms if arm.headline and arm.ranked),
        cases=int((answered & ranking).sum()),
        of=int(answered.sum()),
        waiting=tuple(case.case for case in left if case.doubted),
        wrong=tuple(case.case for case in left if case.review == "wrong"),
        clusters=made,
        rows=tuple(rows),
        pairs=pairs,
        power=_power([row.figures.rate.n for row in rows], pairs),
        caveats=_board_caveats(measured, rows, answered),
    )


def _lost(figures: Figures) -> tuple[Note, ...]:
    """A small n that is no subset: cases were run and lost to the lane (§8)."""
    lost = figures.cases - figures.rate.n
    if not lost:
        return ()
    sentence = f"{lost} of {figures.cases} cases have no valid attempt: they were run and lost to the lane"
    return (Note("lost-cases", sentence),)


def _pairs(measured: Measured, order: Sequence[tuple[str, int]], mask: Mask) -> tuple[BoardPair, ...]:
    """All pairs of a board, in its order, with Holm's correction over all of them."""
    grid = measured.grid
    rows = [grid.row(name) for name, _ in order]
    units, valid = grid.units[rows][:, mask], grid.valid[rows][:, mask] > 0
    complete = np.logical_and.reduce(valid, axis=1).tolist()
    tests = []
    for i, j in combinations(range(len(order)), 2):
        if complete[i] and complete[j]:
            tests.append((i, j, compare(units[i], units[j])))
        else:
            shared = valid[i] & valid[j]
            tests.append((i, j, compare(units[i, shared], units[j, shared])))
    corrected = holm([test.p for _, _, test in tests])
    return tuple(
        BoardPair(
            a=order[i][0],
            b=order[j][0],
            same_cluster=order[i][1] == order[j][1],
            n=test.n,
            nonzero=test.nonzero,
            difference=test.difference,
            variance=test.variance,
            p=test.p,
            p_holm=adjusted,
            separated=adjusted is not None and adjusted <= ALPHA,
        )
        for (i, j, test), adjusted in zip(tests, corrected, strict=True)
    )


def _power(counts: Sequence[int], pairs: Sequence[BoardPair]) -> Power | None:
    """What a board can detect whose rows rest on so many cases; None where nobody is ranked."""
    if not counts:
        return None
    least, most = min(counts), max(counts)
    variances = [pair.variance for pair in pairs if pair.variance is not None]
    variance = math.fsum(variances) / len(variances) if variances else None
    why = None if variances else "no pair of ranked targets shares two cases or more"
    if variance == 0:  # of which it would follow that any difference is seen, however small
        variance, why = None, "no pair of ranked targets differs more on one case than on another"
    return Power(
        alpha=ALPHA,
        power=POWER,
        n_smallest=least,
        n_largest=most,
        reference_variance=REFERENCE_VARIANCE,
        reference_mde_at_smallest=detectable(least),
        reference_mde_at_largest=detectable(most),
        reference_n_for_three_points=questions_needed(THREE_POINTS),
        observed_pairs=len(variances),
        observed_variance=variance,
        observed_mde_at_smallest=None if variance is None else detectable(least, variance=variance),
        observed_mde_at_largest=None if variance is None else detectable(most, variance=variance),
        observed_why=why,
    )


def _board_caveats(measured: Measured, rows: Sequence[Standing], cases: Mask) -> tuple[Note, ...]:
    notes = []
    if len({row.about.tool_channel for row in rows}) > 1:
        notes.append(
            Note("mixed-tool-channels", "native tool calls and inlined schemas stand side by side: compare with care")
        )
    waiting = [g.case for g in measured.gold if g.doubted and cases[measured.grid.mask([g.case])].any()]
    if waiting:
        many = "1 gold-suspect case waits" if len(waiting) == 1 else f"{len(waiting)} gold-suspect cases wait"
        notes.append(Note(EMPTIED, f"{many} for a review, out of the ranking until then; both rates are shown"))
    if rows and len({row.figures.rate.n for row in rows}) > 1:
        notes.append(Note("unequal-n", "not every row rests on the same number of cases: some lost cases to the lane"))
    return tuple(notes)


# --- arms apart from the headline ------------------------------------------------------------------------------------


def arm_tables(measured: Measured) -> tuple[ArmTable, ...]:
    """Every arm that is no part of the headline, in the suite's order, apart for the whole suite and each subset."""
    apart = [arm for arm in measured.suite.arms if not (arm.headline and arm.ranked)]
    tables = [_arm_table(measured, arm, subset) for arm in apart for subset in measured.subsets()]
    return tuple(table for table in tables if table.rows or table.not_shown)


def _arm_table(measured: Measured, arm: Arm, subset: str | None) -> ArmTable:
    grid, cases = measured.grid, measured.cases_of(arm)
    counted = cases & ~measured.out if arm.ranked else cases
    ran = [name for name, tally in sorted(measured.tallies.items()) if tally.subset == subset]
    ran = [name for name in ran if (grid.has_row[grid.row(name)] & cases).any()]
    shown = [name for name in ran if not measured.barred(name)]
    figures = measured.figures(shown, counted, arm=arm.name)
    made, order = _ordered(measured, {name: found.rate for name, found in figures.items()}) if arm.ranked else ((), {})
    # Who has no rate, or no place on an arm that is not ranked, stands below by name.
    listed = [*order, *(name for name in shown if name not in order)]
    rows = []
    for name in listed:
        with_flagged, without = measured.both_rates(name, cases) if arm.ranked else (None, None)
        at = order.get(name)
        rows.append(
            ArmRow(
                about=lanes.about(measured.tallies[name]),
                place=at.place if at else None,
                places=at.places if at else None,
                cluster=at.cluster if at else None,
                tier=lanes.tier(figures[name].rate.n, measured.suite),
                figures=figures[name],
                with_flagged=with_flagged,
                without_flagged=without,
            )
        )
    return ArmTable(
        arm=arm.name,
        about_arm=arm.about,
        ranked=arm.ranked,
        subset=subset,
        cases=int((np.asarray(grid.has_row)[[grid.row(name) for name in ran]].any(axis=0) & counted).sum()),
        clusters=made,
        rows=tuple(rows),
        not_shown=tuple(name for name in ran if measured.barred(name)),
        power=_power(
            [figures[name].rate.n for name in order],
            _pairs(measured, [(name, at.cluster) for name, at in order.items()], counted),
        ),
    )
