"""Registered comparisons, matched lanes and twin arms: two sides on the same cases, uncorrected (§12, §13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from referee.core.bakeoff import Comparison
from referee.core.cases import Suite
from referee.scoring.bakeoff import lanes
from referee.scoring.bakeoff.figures import Note
from referee.scoring.bakeoff.grid import Grid, Mask
from referee.scoring.bakeoff.paired import compare
from referee.scoring.bakeoff.standings import Measured
from referee.scoring.bakeoff.summary import Compared, Overlap, Scope, Twins

#: At most so many cases of an overlap are named.
NAMED = 200

#: The name of the scope that takes all headline arms together.
HEADLINE = "headline"

Columns = npt.NDArray[np.int64]


def compared(measured: Measured) -> tuple[Compared, ...]:
    """Every registered comparison, in the protocol's order; one that cannot be made says why."""
    return tuple(_compared(measured, registered) for registered in measured.protocol.comparisons)


def _compared(measured: Measured, registered: Comparison) -> Compared:
    sides = [measured.tallies.get(name) for name in (registered.a, registered.b)]
    missing = [name for name, side in zip((registered.a, registered.b), sides, strict=True) if side is None]
    scopes: tuple[Scope, ...] = ()
    why = f"no row of {' and '.join(missing)} is among the selected shards" if missing else None
    if not missing:
        scopes = _scopes(measured, registered)
        why = None if scopes else _no_scope(measured, registered)
    return Compared(
        registered=registered,
        about_a=lanes.about(sides[0]) if sides[0] else None,
        about_b=lanes.about(sides[1]) if sides[1] else None,
        scopes=scopes,
        caveats=_caveats(measured, registered),
        why_absent=why,
    )


def _no_scope(measured: Measured, registered: Comparison) -> str:
    """Why there is no set of cases to compare on."""
    a, b = (measured.grid.valid[measured.grid.row(name)] > 0 for name in (registered.a, registered.b))
    if (a & b & measured.out).any():
        return "every case with a valid attempt on both sides left the ranking: its gold is suspect or wrong"
    return "the two share no case with a valid attempt on both sides"


def _scopes(measured: Measured, registered: Comparison) -> tuple[Scope, ...]:
    sets: list[tuple[str, bool, Mask]] = [(HEADLINE, True, measured.headline & ~measured.out)]
    for arm in measured.suite.arms:
        if not (arm.headline and arm.ranked):
            cases = measured.cases_of(arm)
            sets.append((arm.name, False, cases & ~measured.out if arm.ranked else cases))
    a, b = measured.grid.row(registered.a), measured.grid.row(registered.b)
    found = []
    for name, headline, mask in sets:
        shared = np.flatnonzero(mask & (measured.grid.valid[a] > 0) & (measured.grid.valid[b] > 0))
        if len(shared):
            found.append(_scope(measured.grid, name, _Side(a, shared), _Side(b, shared), headline=headline))
    return tuple(found)


@dataclass(frozen=True)
class _Side:
    """One side of a comparison: a row of the grid, and its cases in the order in which they are paired."""

    row: int
    columns: Columns


def _scope(grid: Grid, name: str, a: _Side, b: _Side, *, headline: bool) -> Scope:
    rates = []
    for side in (a, b):
        mask = np.zeros(len(grid.cases), dtype=bool)
        mask[side.columns] = True
        rates.append(grid.rate(side.row, mask))
    test = compare(grid.units[a.row, a.columns], grid.units[b.row, b.columns])
    return Scope(name, headline, rates[0], rates[1], test, _overlap(grid, a, b))


def _overlap(grid: Grid, a: _Side, b: _Side) -> Overlap:
    passes_a, passes_b = grid.passes[a.row, a.columns], grid.passes[b.row, b.columns]
    has_a, has_b = passes_a == grid.valid[a.row, a.columns], passes_b == grid.valid[b.row, b.columns]
    lacks_a, lacks_b = passes_a == 0, passes_b == 0
    only_a, only_b = has_a & lacks_b, has_b & lacks_a
    both, neither = has_a & has_b, lacks_a & lacks_b
    return Overlap(
        both=int(both.sum()),
        only_a=int(only_a.sum()),
        only_b=int(only_b.sum()),
        neither=int(neither.sum()),
        unsteady=int((~(only_a | only_b | both | neither)).sum()),
        only_a_named=_named(grid, a.columns[only_a]),
        only_b_named=_named(grid, b.columns[only_b]),
    )


def _named(grid: Grid, columns: Columns) -> tuple[str, ...]:
    return tuple(grid.cases[column] for column in columns[:NAMED].tolist())


def _caveats(measured: Measured, registered: Comparison) -> tuple[Note, ...]:
    """What may not be left out when the comparison is quoted."""
    notes = []
    if registered.registered_after_one_side_was_public:
        sentence = "registered after the result of one side was public: its outcome was partly known"
        notes.append(Note("registered-after-one-side-was-public", sentence))
    sides = [measured.tallies[name] for name in (registered.a, registered.b) if name in measured.tallies]
    for side in sides:
        name, limited = side.target.name, measured.limited[side.target.name]
        if limited:
            code, how = ("lane-limited", "lane-limited and ") if measured.by_lane(name) else ("not-ranked", "")
            sentence = f"{name} is {how}not ranked: {'; '.join(note.sentence for note in limited)}"
            notes.append(Note(code, sentence))
        if side.subset is not None:
            sentence = f"{name} ran the registered subset {side.subset}: only the shared cases are compared"
            notes.append(Note("subset", sentence))
    if len({side.surface.tool_channel for side in sides}) > 1:
        sentence = "one side had native tool calls, the other inlined schemas: the channel is part of the difference"
        notes.append(Note("mixed-tool-channels", sentence))
    if registered.matched_lanes and len({side.target.model for side in sides}) > 1:
        models = " and ".join(side.target.model for side in sides)
        sentence = f"registered as one model through two lanes, but the models are pinned as {models}"
        notes.append(Note("other-models", sentence))
    if measured.out.any():
        notes.append(Note("gold-suspect", "gold-suspect cases that no review let stand are left out on both sides"))
    return tuple(notes)


# --- twin arms -------------------------------------------------------------------------------------------------------


def twin_tables(measured: Measured) -> tuple[Twins, ...]:
    """For every two arms whose cases are twins: what each target does on the one and on the other."""
    grid = measured.grid
    columns = {case: column for column, case in enumerate(grid.cases)}
    tables = []
    for (arm_a, arm_b), pairs in _twins(measured.suite).items():
        left = np.array([columns[a] for a, _ in pairs], dtype=np.int64)
        right = np.array([columns[b] for _, b in pairs], dtype=np.int64)
        rows = []
        for name, tally in sorted(measured.tallies.items()):
            if measured.barred(name):
                continue
            row = grid.row(name)
            on_both = (grid.valid[row, left] > 0) & (grid.valid[row, right] > 0)
            if on_both.any():
                a, b = _Side(row, left[on_both]), _Side(row, right[on_both])
                rows.append((lanes.about(tally), _scope(grid, f"{arm_a} / {arm_b}", a, b, headline=False)))
        of = measured.suite.arm_of
        tables.append(Twins(arm_a, arm_b, of[arm_a].ranked, of[arm_b].ranked, len(pairs), tuple(rows)))
    return tuple(tables)


def _twins(suite: Suite) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Pairs of cases by pair of arms; the arm that the suite lists first is the first side."""
    order = {arm.name: place for place, arm in enumerate(suite.arms)}
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for case in suite.cases:
        other = suite.by_id.get(case.twin) if case.twin else None
        if other is None or other.arm == case.arm:
            continue
        first, second = sorted((case, other), key=lambda one: order[one.arm])
        found.setdefault((first.arm, second.arm), set()).add((first.id, second.id))
    return {arms: sorted(pairs) for arms, pairs in sorted(found.items(), key=lambda item: _places(item[0], order))}


def _places(arms: Sequence[str], order: dict[str, int]) -> list[int]:
    return [order[arm] for arm in arms]
