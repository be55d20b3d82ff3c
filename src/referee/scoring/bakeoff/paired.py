"""Two targets on the same cases: Wilcoxon's signed-rank test on per-case rates, and Holm's correction (bake-off §12).

Own arithmetic, checked against scipy in the tests: a board of 80 targets has 3,160 pairs, and most of what a call of
scipy costs is not the test. Rates are small fractions, so that nearly all differences are tied, and ties must be seen:
2/3 - 1/3 is 1/3 - 0 in truth and not in doubles. So rates become whole numbers of a unit of which every fraction of up
to 30 attempts is a multiple; of more attempts, differences within four units are one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from referee.scoring.bakeoff.figures import Interval, PairedTest
from referee.scoring.bakeoff.statistics import ALPHA, Z

#: Up to this many non-zero differences p is exact; beyond, the normal approximation differs in no digit that matters.
EXACT_UP_TO = 50

_UNITS = math.lcm(*range(1, 31))
_SAME = 4

Whole = npt.NDArray[np.int64]


def in_units(rates: npt.NDArray[np.float64]) -> Whole:
    """Rates from 0 to 1 as whole numbers of the unit on which differences are compared."""
    return np.rint(rates * _UNITS).astype(np.int64)


def compare(a: Whole, b: Whole) -> PairedTest:
    """The test of a - b. Both hold one rate a case, by ``in_units``, in the same order of cases.

    Zero differences are dropped, tied ones share the mean of their ranks. Where every difference is 0 the result is
    degenerate and has no p.
    """
    n = len(a)
    differences = a - b
    groups = _groups(differences)
    mean = int(differences.sum()) / (n * _UNITS) if n else None
    variance = _variance(groups, n, mean)
    nonzero = sum(up + down for _, up, down in groups)
    if not nonzero:
        return _degenerate(n, mean, variance)

    w_plus = w_minus = 0.0
    before = 0
    for _, up, down in groups:
        rank = before + (up + down + 1) / 2
        w_plus += rank * up
        w_minus += rank * down
        before += up + down
    sizes = tuple(up + down for _, up, down in groups)
    z = _deviate(w_plus, nonzero, sizes)
    p_normal = math.erfc(abs(z) / math.sqrt(2))
    exact = nonzero <= EXACT_UP_TO
    p = _exact(sizes, round(2 * min(w_plus, w_minus))) if exact else p_normal
    smallest = _smallest(sizes, exact=exact)
    too_small = smallest > ALPHA
    return PairedTest(
        n=n,
        nonzero=nonzero,
        difference=mean,
        difference_interval=_interval(mean, variance, n),
        variance=variance,
        w_plus=w_plus,
        w_minus=w_minus,
        z=z,
        p=p,
        p_normal=p_normal,
        method="exact" if exact else "normal",
        degenerate=False,
        too_small=too_small,
        smallest_p=smallest,
        note=_too_small(nonzero, smallest) if too_small else None,
    )


def holm(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down correction over the whole family; a test without p counts in the family and keeps None."""
    ordered = sorted((p, index) for index, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    floor = 0.0
    for place, (p, index) in enumerate(ordered):
        floor = max(floor, min(1.0, (len(values) - place) * p))
        adjusted[index] = floor
    return tuple(adjusted)


def _groups(steps: Whole) -> list[tuple[float, int, int]]:
    """The non-zero differences by size, ascending: size, how many positive, how many negative."""
    steps = steps[steps != 0]
    # The sign goes into the last bit, so that one plain sort orders by size and keeps who was positive.
    keys = np.sort(np.abs(steps) * 2 + (steps > 0))
    sizes = keys >> 1
    if not len(keys):
        return []
    starts = np.flatnonzero(np.concatenate(([True], sizes[1:] - sizes[:-1] > _SAME)))
    ups = np.add.reduceat(keys & 1, starts).tolist()
    counts = np.diff(np.concatenate((starts, [len(keys)]))).tolist()
    return [
        (size / _UNITS, up, count - up) for size, up, count in zip(sizes[starts].tolist(), ups, counts, strict=True)
    ]


def _variance(groups: list[tuple[float, int, int]], n: int, mean: float | None) -> float | None:
    if n <= 1 or mean is None:
        return None
    away = [(up * (size - mean) ** 2, down * (size + mean) ** 2) for size, up, down in groups]
    zeros = n - sum(up + down for _, up, down in groups)
    return math.fsum([zeros * mean**2, *(part for pair in away for part in pair)]) / (n - 1)


def _interval(mean: float | None, variance: float | None, n: int) -> Interval | None:
    if mean is None or variance is None:
        return None
    half = Z * math.sqrt(variance / n)
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))


def _deviate(w_plus: float, n: int, sizes: tuple[int, ...]) -> float:
    ties = sum(size**3 - size for size in sizes)
    spread = math.sqrt((n * (n + 1) * (2 * n + 1) - ties / 2) / 24)
    return (w_plus - n * (n + 1) / 4) / spread


def _exact(sizes: tuple[int, ...], doubled: int) -> float:
    """Twice the chance that the smaller rank sum is at most that small when every sign is a toss of a fair coin."""
    return min(1.0, 2 * float(_lower_tail(sizes)[doubled]))


@lru_cache(maxsize=256)
def _lower_tail(sizes: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """P(doubled rank sum ≤ index), given the sizes of the groups of ties. Counts stay below 2⁵⁰: exact in doubles."""
    n = sum(sizes)
    ways = np.zeros(n * (n + 1) + 1)
    ways[0] = 1.0
    before = 0
    for size in sizes:
        doubled = 2 * before + size + 1
        for _ in range(size):
            ways[doubled:] = ways[doubled:] + ways[:-doubled]
        before += size
    tail = np.cumsum(ways) / 2.0**n
    tail.setflags(write=False)
    return tail


def _smallest(sizes: tuple[int, ...], *, exact: bool) -> float:
    n = sum(sizes)
    if exact:
        return min(1.0, 2.0 ** (1 - n))
    return math.erfc(abs(_deviate(0.0, n, sizes)) / math.sqrt(2))


def _degenerate(n: int, mean: float | None, variance: float | None) -> PairedTest:
    note = (
        f"all {n} differences are exactly 0: there is nothing to test, and no p-value is invented"
        if n
        else "the two share no case with a valid attempt on both sides"
    )
    return PairedTest(
        n=n,
        nonzero=0,
        difference=mean,
        difference_interval=_interval(mean, variance, n),
        variance=variance,
        w_plus=0.0,
        w_minus=0.0,
        z=None,
        p=None,
        p_normal=None,
        method=None,
        degenerate=True,
        too_small=True,
        smallest_p=None,
        note=note,
    )


def _too_small(nonzero: int, smallest: float) -> str:
    return (
        f"only {nonzero} of the cases differ: even if all pointed one way, p could not fall below {smallest:.3g}, "
        f"so that the test cannot reach {ALPHA}"
    )
