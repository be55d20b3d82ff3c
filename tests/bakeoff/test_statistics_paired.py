"""The paired test against scipy and against every toss of the signs; Holm against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from referee.scoring.bakeoff.figures import PairedTest
from referee.scoring.bakeoff.paired import compare, holm, in_units

QUIET = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SIXTHS = (0, 1 / 3, 1 / 2, 2 / 3, 1)

pairs_of_rates = st.lists(st.tuples(st.sampled_from(SIXTHS), st.sampled_from(SIXTHS)), min_size=1, max_size=70)


def paired(a: list[float], b: list[float]) -> PairedTest:
    return compare(in_units(np.array(a)), in_units(np.array(b)))


def whole(a: list[float], b: list[float]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The non-zero differences in sixths: without rounding, so that scipy sees the ties."""
    differences = np.rint(np.array(a) * 6).astype(np.int64) - np.rint(np.array(b) * 6).astype(np.int64)
    return np.asarray(differences[differences != 0])


@settings(QUIET)
@given(pairs_of_rates)
def test_the_normal_approximation_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    ours, differences = paired(a, b), whole(a, b)
    assert ours.nonzero == len(differences)
    assert ours.difference == pytest.approx(np.mean(np.array(a) - np.array(b)), abs=1e-12)
    if len(pairs) > 1:
        assert ours.variance == pytest.approx(np.var(np.array(a) - np.array(b), ddof=1), abs=1e-12)
    if len(differences):
        theirs = stats.wilcoxon(differences, method="asymptotic")
        assert min(ours.w_plus, ours.w_minus) == theirs.statistic
        assert ours.p_normal == pytest.approx(theirs.pvalue, abs=1e-12)


@settings(QUIET, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(SIXTHS), st.sampled_from(SIXTHS)), min_size=1, max_size=13))
def test_small_samples_are_exact_with_ties_as_scipys_permutations_are(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    ours, differences = paired(a, b), whole(a, b)
    if not len(differences):
        assert ours.p is None
        return
    assert ours.method == "exact"
    ranks = stats.rankdata(np.abs(differences))
    smaller = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    sums = [float(np.dot(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(ranks))]
    assert ours.p == pytest.approx(min(1.0, 2 * np.mean([total <= smaller for total in sums])), abs=1e-12)


@pytest.mark.parametrize("n", [6, 20, 50])
def test_without_ties_p_is_scipys_exact_one(n: int) -> None:
    differences = np.random.default_rng(n).uniform(-0.4, 0.6, n)
    ours = paired(differences.clip(0).tolist(), (-differences).clip(0).tolist())
    assert ours.p == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, abs=1e-12)


def test_above_fifty_p_is_the_normal_one_and_says_so() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.integers(0, 4, 300) / 3, generator.integers(0, 4, 300) / 3
    ours = paired(a.tolist(), b.tolist())
    assert ours.nonzero > 50
    assert (ours.method, ours.p) == ("normal", ours.p_normal)


def test_thirds_that_are_equal_in_truth_are_tied() -> None:
    # 2/3 - 1/3 and 1/3 - 0 differ in doubles by a last bit; ranks must not.
    ours = paired([2 / 3, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3])
    assert (ours.w_plus, ours.w_minus) == (1.5 + 3, 1.5)


def test_many_attempts_keep_their_ties() -> None:
    # 97 is beyond what the unit divides: equal differences must be tied all the same.
    a, b = [66 / 97, 33 / 97, 0.0], [33 / 97, 0.0, 34 / 97]
    ours = paired(a, b)
    assert (ours.w_plus, ours.w_minus) == (3.0, 3.0)


def test_all_differences_zero_is_degenerate_and_no_p_is_invented() -> None:
    ours = paired([1 / 3, 1.0, 0.0], [1 / 3, 1.0, 0.0])
    assert ours.degenerate
    assert (ours.p, ours.p_normal, ours.z, ours.method) == (None, None, None, None)
    assert ours.difference == 0
    assert ours.note is not None
    assert "exactly 0" in ours.note


def test_no_shared_case_says_so() -> None:
    ours = paired([], [])
    assert (ours.n, ours.difference, ours.p) == (0, None, None)
    assert ours.note == "the two share no case with a valid attempt on both sides"


def test_five_differences_can_never_be_enough() -> None:
    ours = paired([1.0] * 5, [0.0] * 5)
    assert (ours.p, ours.smallest_p, ours.too_small) == (0.0625, 0.0625, True)
    assert ours.note is not None
    assert "only 5" in ours.note
    six = paired([1.0] * 6, [0.0] * 6)
    assert (six.p, six.too_small, six.note) == (0.03125, False, None)


@settings(QUIET)
@given(pairs_of_rates)
def test_the_two_sides_are_alike(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    there, back = paired(a, b), paired(b, a)
    assert (there.p, there.w_plus, there.w_minus) == (back.p, back.w_minus, back.w_plus)
    assert there.difference == pytest.approx(-(back.difference or 0), abs=1e-15)


# --- Holm ------------------------------------------------------------------------------------------------------------

p_values = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=30)


@settings(QUIET)
@given(p_values)
def test_holm_keeps_the_order_and_rejects_as_its_definition_does(values: list[float | None]) -> None:
    adjusted = holm(values)
    assert [one is None for one in adjusted] == [one is None for one in values]
    known = sorted((p, q) for p, q in zip(values, adjusted, strict=True) if p is not None and q is not None)
    assert [q for _, q in known] == sorted(q for _, q in known)
    assert all(p <= q <= 1 for p, q in known)
    rejected = set()
    for place, (p, _) in enumerate(known):  # step down: stop at the first that is not small enough
        if (len(values) - place) * p > 0.05:
            break
        rejected.add(p)
    assert rejected == {p for p, q in known if q <= 0.05}


@settings(QUIET)
@given(p_values, st.randoms(use_true_random=False))
def test_holm_does_not_care_for_the_order_of_the_tests(values: list[float | None], chance: object) -> None:
    order = list(range(len(values)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    adjusted = holm(values)
    assert list(holm([values[i] for i in order])) == [adjusted[i] for i in order]


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.02, None]) == (0.04, None)  # a test without p counts in the family
