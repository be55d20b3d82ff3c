"""Intervals, draws and power (bake-off §2, §12). Pure arithmetic: every figure follows from its arguments alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from referee.errors import UsageError
from referee.scoring.bakeoff.figures import Bootstrapped, Interval, PassHat

#: The 97.5 % point of the normal distribution, as the methodology writes it.
Z = 1.959963984540054

#: Variance of the paired difference in Miller's example (arXiv 2411.00640): 969 questions for three points.
REFERENCE_VARIANCE = 1 / 9
ALPHA = 0.05
POWER = 0.8

_WORD = 0xFFFFFFFF
_STEP = 0x6D2B79F5
_U = np.uint32

#: Draws are made in blocks that stay in the second-level cache: this many iterations side by side, this many cells.
_WIDE = 8192
_CELLS = 40_960

#: Up to so many iterations side by side, adding along the draws is faster than line by line.
_NARROW = 256

#: Below this product of unit and squared cases no rounding can disturb the order of sums: they stray by at most
#: cases² · 2⁻⁵³ from the truth, and differ by 1/unit.
_EXACT = 2**50

#: Lanes of a word in which targets are added side by side: the narrowest that holds so many of the largest numbers.
_LANES = (np.uint8, np.uint16, np.uint32)
_ROOMY = 8
_FINEST = 2**32 // _ROOMY - 1

Rates = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def wilson(rate: float, n: int) -> Interval:
    """The Wilson 95 % interval of ``rate`` over n cases; rate · n need not be whole (§2).

    Raises:
        UsageError: n is below 1, or the rate lies outside 0 to 1.
    """
    if n < 1 or not 0 <= rate <= 1:
        raise UsageError(f"a Wilson interval needs a rate from 0 to 1 and at least one case, not {rate!r} of {n}")
    squared = Z * Z
    below = 1 + squared / n
    middle = (rate + squared / (2 * n)) / below
    half = Z * math.sqrt(rate * (1 - rate) / n + squared / (4 * n * n)) / below
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


# --- draws -----------------------------------------------------------------------------------------------------------


def mulberry32(seed: int) -> Iterator[float]:
    """The generator's numbers from 0 to below 1, one by one: the plain form, to compare the fast one with."""
    state = seed & _WORD
    while True:
        state = (state + _STEP) & _WORD
        mixed = ((state ^ (state >> 15)) * (state | 1)) & _WORD
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & _WORD)) & _WORD
        yield (mixed ^ (mixed >> 14)) / 2**32


def mulberry32_numbers(seed: int, count: int, *, first: int = 0) -> Rates:
    """``count`` of the generator's numbers, from the one at position ``first`` on.

    Its state is a counter, so that any stretch can be had without what comes before it.
    """
    states = _states(np.arange(first + 1, first + count + 1, dtype=np.uint64), seed)
    spare, other = np.empty_like(states), np.empty_like(states)
    _mix(states, spare, other)
    return states / np.float64(2**32)


def _states(positions: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint32]:
    """The states at the given positions; 0 is the seed itself."""
    return ((positions % 2**32 * _STEP + (seed & _WORD)) & np.uint64(_WORD)).astype(_U)


def _mix(state: npt.NDArray[np.uint32], spare: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32]) -> None:
    """Turn states into the generator's words in place; ``spare`` and ``other`` are room of the same shape."""
    np.right_shift(state, _U(15), out=spare)
    np.bitwise_xor(spare, state, out=spare)
    np.bitwise_or(state, _U(1), out=state)
    np.multiply(spare, state, out=state)
    np.right_shift(state, _U(7), out=spare)
    np.bitwise_xor(spare, state, out=spare)
    np.bitwise_or(state, _U(61), out=other)
    np.multiply(spare, other, out=spare)
    np.add(spare, state, out=spare)
    np.bitwise_xor(state, spare, out=state)
    np.right_shift(state, _U(14), out=spare)
    np.bitwise_xor(state, spare, out=state)


def cluster_bootstrap(rates: Sequence[float], *, iterations: int, seed: int) -> Bootstrapped:
    """The cluster bootstrap's 95 % interval of the mean of per-case rates (§12).

    Each iteration draws as many cases as there are, with replacement; a case comes with all its valid attempts, that is
    with its rate. Draw j of iteration i is number i · m + j of mulberry32, and chooses case ⌊number · m⌋. The rates are
    added in the order of their drawing, so that the result is the same to the last bit on every machine. The ends are
    the order statistics ⌊0.025 · B⌋ and ⌈0.975 · B⌉ - 1.

    Time grows with iterations · cases (about 3 ns each); memory with the iterations alone.

    Raises:
        UsageError: there is no case, no iteration, or more cases than the generator can tell apart.
    """
    _check(len(rates), iterations)
    values = np.asarray(rates, dtype=np.float64)
    if (values == values[0]).all():
        return _degenerate(values, iterations, seed)
    means = _means(values, np.arange(iterations, dtype=np.uint64), seed)
    means.sort()
    low, high = _ends(iterations)
    return Bootstrapped(float(means[low]), float(means[high]), degenerate=False, iterations=iterations, seed=seed)


def cluster_bootstraps(counts: Sequence[tuple[Counts, Counts]], *, iterations: int, seed: int) -> list[Bootstrapped]:
    """The same for many targets, each given as passes and valid attempts by case: to the last bit, much faster.

    Targets with equally many cases draw the same positions, since the seed is one: positions are drawn once. Several
    targets are summed together in whole numbers, in which the rank of an iteration is exact. Only the few iterations
    that tie at an end are then added up in the order of their drawing.
    """
    done: dict[int, Bootstrapped] = {}
    alike: dict[int, list[int]] = {}
    for place, (passes, valid) in enumerate(counts):
        _check(len(valid), iterations)
        values = passes / valid
        if (values == values[0]).all():
            done[place] = _degenerate(values, iterations, seed)
        else:
            alike.setdefault(len(valid), []).append(place)
    for cases, places in alike.items():
        # Every rate is a whole number of 1/unit; rounding must never carry a sum of rates past its neighbour.
        unit = math.lcm(*{n for place in places for n in np.flatnonzero(np.bincount(counts[place][1])).tolist()})
        if len(places) == 1 or unit * cases**2 >= _EXACT or unit > _FINEST:
            for place in places:
                passes, valid = counts[place]
                done[place] = cluster_bootstrap((passes / valid).tolist(), iterations=iterations, seed=seed)
            continue
        whole = np.array([counts[place][0] * (unit // counts[place][1]) for place in places], dtype=np.int64)
        for place, row in zip(places, _whole_sums(whole, iterations, seed), strict=True):
            passes, valid = counts[place]
            low, high = (_exactly(passes / valid, row, rank, seed) for rank in _ends(iterations))
            done[place] = Bootstrapped(low, high, degenerate=False, iterations=iterations, seed=seed)
    return [done[place] for place in range(len(counts))]


def _check(cases: int, iterations: int) -> None:
    if not 1 <= cases < 2**32 or iterations < 1:
        raise UsageError(f"a bootstrap needs cases and iterations, not {cases} and {iterations}")


def _degenerate(values: Rates, iterations: int, seed: int) -> Bootstrapped:
    """All cases have one rate: all iterations add the same number again and again, and one is enough."""
    mean = float(_means(values, np.zeros(1, dtype=np.uint64), seed)[0])
    return Bootstrapped(mean, mean, degenerate=True, iterations=iterations, seed=seed)


def _ends(iterations: int) -> tuple[int, int]:
    # 0.025 · B and 0.975 · B in whole numbers: no rounding of a product decides which value is taken.
    return iterations * 25 // 1000, -(-iterations * 975 // 1000) - 1


def _means(values: Rates, iterations: npt.NDArray[np.uint64], seed: int) -> Rates:
    """The mean of each given iteration's draws, added in the order of drawing."""
    sums = np.zeros(len(iterations))
    room = np.empty(0)
    for columns, chosen in _positions(iterations, len(values), seed):
        if room.shape != chosen.shape:
            room = np.empty(chosen.shape)
        np.take(values, chosen, out=room, mode="clip")
        _add_in_order(sums[columns], room)
    return np.asarray(sums / len(values))


def _positions(
    iterations: npt.NDArray[np.uint64], count: int, seed: int, *, deep: int | None = None
) -> Iterator[tuple[slice, Counts]]:
    """The drawn positions of the given iterations, block by block: which iterations, and one row for each draw of them.

    The rows of an iteration come in the order of drawing, at most ``deep`` at once. A block is overwritten by the next.
    """
    wide = min(_WIDE if deep is None else max(1, _CELLS // min(deep, count)), len(iterations))
    high = max(1, min(count, _CELLS // wide, deep or count))
    state, spare, other = (np.empty((high, wide), dtype=_U) for _ in range(3))
    chosen, room = np.empty((high, wide), dtype=np.int64), np.empty((high, wide))
    steps = _states(np.arange(1, count + 1, dtype=np.uint64), 0)[:, None]
    for start in range(0, len(iterations), wide):
        # Iteration i has used i · count numbers before it.
        origin = _states(iterations[start : start + wide] * np.uint64(count), seed)[None, :]
        for row in range(0, count, high):
            part = np.s_[: min(high, count - row), : origin.shape[1]]
            np.add(steps[row : row + high], origin, out=state[part])
            _mix(state[part], spare[part], other[part])
            _choose(state[part], count, chosen[part], room[part])
            yield slice(start, start + origin.shape[1]), chosen[part]


def _add_in_order(total: Rates, drawn: Rates) -> None:
    """Add the rows of ``drawn`` to ``total`` one after the other; a plain reduction may add in another order."""
    if len(total) > _NARROW:
        for line in drawn:
            np.add(total, line, out=total)
    else:
        drawn[0] += total
        total[:] = np.add.accumulate(drawn, axis=0)[-1]


def _whole_sums(whole: Counts, iterations: int, seed: int) -> Iterator[Counts]:
    """For each target's whole numbers, one a case: their sum over each iteration's draws.

    Several targets share a 64-bit word, each in a lane of its own: one look-up and one addition serve them all. Before
    a lane can overflow, the lanes are added to sums that hold everything.
    """
    count, most = whole.shape[1], int(whole.max())
    lane = next(kind for kind in _LANES if np.iinfo(kind).max // most >= _ROOMY)
    together = 8 // np.dtype(lane).itemsize
    lanes = np.zeros((-(-len(whole) // together), count, together), dtype=lane)
    for place, row in enumerate(whole):
        lanes[place // together, :, place % together] = row
    words = lanes.view(np.uint64)[:, :, 0]
    sums = np.zeros((len(words), iterations, together), dtype=np.int64)
    room = np.empty(0, dtype=np.uint64)
    deep = int(np.iinfo(lane).max) // most
    for columns, chosen in _positions(np.arange(iterations, dtype=np.uint64), count, seed, deep=deep):
        if room.shape != chosen.shape:
            room = np.empty(chosen.shape, dtype=np.uint64)
        for word, total in zip(words, sums, strict=True):
            np.take(word, chosen, out=room, mode="clip")
            total[columns] += np.add.reduce(room, axis=0).view(lane).reshape(-1, together)
    for place in range(len(whole)):
        yield sums[place // together, :, place % together]


def _exactly(values: Rates, sums: Counts, rank: int, seed: int) -> float:
    """The mean at a rank, from sums whose order is exact: of those that tie there, each in its own order of drawing."""
    at = np.partition(sums, rank)[rank]
    tied = np.flatnonzero(sums == at).astype(np.uint64)
    before = int((sums < at).sum())
    return float(np.sort(_means(values, tied, seed))[rank - before])


def _choose(words: npt.NDArray[np.uint32], count: int, out: Counts, room: Rates) -> None:
    """⌊word / 2³² · count⌋, computed in whole numbers where the product of doubles is exact, in doubles beyond."""
    if count <= 2**21:
        np.copyto(out, words)
        np.multiply(out, count, out=out)
        np.right_shift(out, 32, out=out)
    else:
        np.multiply(words, 1 / 2**32, out=room)
        np.multiply(room, count, out=room)
        np.copyto(out, room, casting="unsafe")


# --- repeated success ------------------------------------------------------------------------------------------------


def pass_hat(counts: Iterable[tuple[int, int]], k: int) -> PassHat:
    """pass^k over cases given as (passes c, valid attempts n): C(c, k) / C(n, k), averaged over cases with n ≥ k (§2).

    Raises:
        UsageError: k is below 1.
    """
    return pass_hat_grouped(Counter(counts), k)


def pass_hat_grouped(groups: Mapping[tuple[int, int], int], k: int) -> PassHat:
    """The same from (passes, valid attempts) and how many cases have them."""
    if k < 1:
        raise UsageError(f"pass^k needs k of at least 1, not {k}")
    enough = {key: times for key, times in groups.items() if key[1] >= k}
    cases = sum(enough.values())
    if not cases:
        return PassHat(k, None, 0)
    chances = (math.comb(passes, k) / math.comb(valid, k) * times for (passes, valid), times in enough.items())
    return PassHat(k, math.fsum(chances) / cases, cases)


# --- power -----------------------------------------------------------------------------------------------------------


def questions_needed(
    difference: float, *, variance: float = REFERENCE_VARIANCE, power: float = POWER, alpha: float = ALPHA
) -> int:
    """How many questions show a difference of two paired rates, two-sided (Miller 2024, arXiv 2411.00640, §12).

    Args:
        difference: of the two rates, 0 to 1.
        variance: of the paired per-case difference.
        power: chance that a true difference of that size is found.
        alpha: chance that a difference is found where there is none.

    Raises:
        UsageError: the difference is not above 0, or a chance lies outside 0 to 1.
    """
    if not difference > 0:
        raise UsageError(f"a difference to detect is above 0, not {difference!r}")
    needed = _deviates(power, alpha) ** 2 * variance / difference**2
    return max(1, math.ceil(needed))


def detectable(n: int, *, variance: float = REFERENCE_VARIANCE, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest difference of two paired rates that n questions show, 0 to 1; above 1 means: none.

    Raises:
        UsageError: n is below 1, or a chance lies outside 0 to 1.
    """
    if n < 1:
        raise UsageError(f"a detectable difference needs at least one question, not {n}")
    return _deviates(power, alpha) * math.sqrt(variance / n)


def _deviates(power: float, alpha: float) -> float:
    if not 0 < power < 1 or not 0 < alpha < 1:
        raise UsageError(f"power and alpha lie between 0 and 1, not {power!r} and {alpha!r}")
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
