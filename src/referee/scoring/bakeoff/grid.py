"""Targets by cases, as arrays: what every rate, table and test of a summary is counted from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from referee.core.bakeoff import Bootstrap
from referee.core.cases import CATEGORIES, Suite
from referee.core.tallies import CaseTally, TargetTally
from referee.errors import UsageError
from referee.scoring.bakeoff.figures import FAILURE_GROUPS, Failures, Figures, Rate
from referee.scoring.bakeoff.paired import Whole, in_units
from referee.scoring.bakeoff.statistics import cluster_bootstraps, pass_hat_grouped, wilson

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

#: pass^k is shown for every k up to this one, and for the planned number of repeats where that is more.
SHOWN_K = 10

_COUNTED = ("valid", "passes", "well_formed", "infra", "refused", "broken")


@dataclass(frozen=True)
class Grid:
    """Counts of every target (rows, by name) on every case (columns, by id): both in code-point order.

    The order of cases is part of the bootstrap's result, so it is one that a stranger can rebuild from the export.
    """

    targets: tuple[str, ...]
    cases: tuple[str, ...]
    valid: Counts
    passes: Counts
    well_formed: Counts
    infra: Counts
    refused: Counts
    broken: Counts
    rates: npt.NDArray[np.float64]
    categories: dict[str, Mask]
    languages: dict[str, Mask]
    arms: dict[str, Mask]
    objected: Mask
    unknown_rows: int

    def row(self, target: str) -> int:
        """The row of a target."""
        return self._rows[target]

    def rows_by_case(self, target: str) -> dict[str, int]:
        """How many usable rows a target has of each case of the suite that it has any of."""
        rows = self.valid[self.row(target)] + self.infra[self.row(target)] + self.refused[self.row(target)]
        return {case: many for case, many in zip(self.cases, rows.tolist(), strict=True) if many}

    def mask(self, cases: Sequence[str]) -> Mask:
        """The given cases as a mask; those that the suite does not hold are left out."""
        chosen = np.zeros(len(self.cases), dtype=bool)
        chosen[[self._columns[case] for case in cases if case in self._columns]] = True
        return chosen

    @cached_property
    def units(self) -> Whole:
        """The rates in the unit of the paired test."""
        return in_units(self.rates)

    @cached_property
    def has_row(self) -> Mask:
        """Where a target has at least one usable row of a case."""
        return (self.valid + self.infra + self.refused) > 0

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.targets)}

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {case: index for index, case in enumerate(self.cases)}

    def rate(self, row: int, mask: Mask) -> Rate:
        """Valid-pass of one target on a set of cases, with its Wilson interval."""
        counted = mask & (self.valid[row] > 0)
        n = int(counted.sum())
        if not n:
            why = "no case with a valid attempt" if mask.any() else "no case is left in the ranking"
            return Rate(n=0, value=None, wilson=None, valid=0, passes=0, why=why)
        # fsum: the same to the last bit on every machine, whatever the order.
        value = min(1.0, math.fsum(self.rates[row, counted].tolist()) / n)
        valid, passes = int(self.valid[row, counted].sum()), int(self.passes[row, counted].sum())
        return Rate(n=n, value=value, wilson=wilson(value, n), valid=valid, passes=passes)

    def failures(self, rows: npt.NDArray[np.int64] | Sequence[int], mask: Mask) -> Failures:
        """Where attempts failed, over the given targets and cases."""
        cut = np.ix_(np.asarray(rows, dtype=np.int64), np.flatnonzero(mask))
        broken = self.broken[cut]
        wrong = self.valid[cut] - self.passes[cut] - broken
        groups = dict.fromkeys(FAILURE_GROUPS, 0)
        for category, of_category in self.categories.items():
            groups[category] = int(wrong[:, of_category[mask]].sum())
        groups["format"] = int(broken.sum())
        return Failures(
            failed=int(wrong.sum() + broken.sum()),
            by_group=groups,
            infra=int(self.infra[cut].sum()),
            refused=int(self.refused[cut].sum()),
        )

    def figures(self, rows: Sequence[int], mask: Mask, *, repeats: Sequence[int], plan: Bootstrap) -> list[Figures]:
        """Everything that is said of each of these targets on one set of cases.

        Args:
            rows: the targets.
            mask: the cases.
            repeats: how many attempts a case was to have, by target.
            plan: how the second interval is drawn: all targets with the protocol's seed.
        """
        counted = [mask & (self.valid[row] > 0) for row in rows]
        counts = [(self.passes[row, cases], self.valid[row, cases]) for row, cases in zip(rows, counted, strict=True)]
        drawn = iter(
            cluster_bootstraps([one for one in counts if len(one[0])], iterations=plan.iterations, seed=plan.seed)
        )
        found = []
        for row, cases, (passes, valid), k in zip(rows, counted, counts, repeats, strict=True):
            rate = self.rate(row, mask)
            groups = Counter(zip(passes.tolist(), valid.tolist(), strict=True))
            found.append(
                Figures(
                    cases=int((mask & self.has_row[row]).sum()),
                    rate=rate,
                    bootstrap=next(drawn) if rate.n else None,
                    pass_hat=tuple(pass_hat_grouped(groups, i) for i in sorted({*range(1, min(k, SHOWN_K) + 1), k})),
                    format_rate=int(self.well_formed[row, cases].sum()) / rate.valid if rate.n else None,
                    failures=self.failures([row], mask),
                )
            )
        return found


def grid_of(suite: Suite, targets: Sequence[TargetTally], cases: Sequence[CaseTally]) -> Grid:
    """The counts as arrays. What a case is (category, language, arm) is the frozen suite's word.

    Raises:
        UsageError: a target or a (target, case) is given twice, or a case of a target that is not given.
    """
    names = tuple(sorted(tally.target.name for tally in targets))
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise UsageError(f"two tallies of one target: {', '.join(twice)}", todo="Tally the selected shards once.")
    ids = tuple(sorted(suite.by_id))
    rows, columns = {name: i for i, name in enumerate(names)}, {case: i for i, case in enumerate(ids)}
    shape = (len(names), len(ids))
    counts = np.zeros((len(_COUNTED), *shape), dtype=np.int64)
    known = [tally for tally in cases if tally.case in columns]
    strangers = sorted({tally.target for tally in cases} - set(rows))
    if strangers:
        raise UsageError(f"cases of targets without a tally: {', '.join(strangers[:5])}")
    if known:
        places = np.fromiter((rows[t.target] * shape[1] + columns[t.case] for t in known), np.int64, len(known))
        if np.bincount(places).max() > 1:
            raise UsageError("a case of a target is tallied twice", todo="Tally the selected shards once.")
        read = np.fromiter(map(attrgetter(*_COUNTED), known), np.dtype((np.int64, len(_COUNTED))), len(known))
        counts.reshape(len(_COUNTED), -1)[:, places] = read.T
    arrays = dict(zip(_COUNTED, counts, strict=True))
    ordered = [suite.by_id[case] for case in ids]
    return Grid(
        targets=names,
        cases=ids,
        **arrays,
        rates=arrays["passes"] / np.maximum(arrays["valid"], 1),
        categories=_masks([case.category for case in ordered], CATEGORIES),
        languages=_masks([case.language for case in ordered], sorted({case.language for case in ordered})),
        arms=_masks([case.arm for case in ordered], [arm.name for arm in suite.arms]),
        objected=np.array([case.known_objection is not None for case in ordered], dtype=bool),
        unknown_rows=sum(t.valid + t.infra + t.refused for t in cases if t.case not in columns),
    )


def _masks(values: Sequence[str], names: Sequence[str]) -> dict[str, Mask]:
    array = np.array(values, dtype=object)
    return {name: np.asarray(array == name, dtype=bool) for name in names}
