"""Intervals, draws, repeated success, power: golden vectors, plain re-computations, and scipy."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from referee.errors import UsageError
from referee.scoring.bakeoff.statistics import (
    Z,
    cluster_bootstrap,
    cluster_bootstraps,
    detectable,
    mulberry32,
    mulberry32_numbers,
    pass_hat,
    questions_needed,
    wilson,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "bakeoff-statistics.json").read_text())

QUIET = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

rates_of_cases = st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0, 0.2]), min_size=1, max_size=60)
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("vector", VECTORS["wilson"])
def test_wilson_agrees_with_the_vectors_to_the_last_bit(vector: dict[str, Any]) -> None:
    interval = wilson(vector["rate"], vector["n"])
    assert [interval.low, interval.high] == vector["interval"]


def test_successes_need_not_be_whole() -> None:
    interval = wilson(16.5 / 17, 17)
    assert (round(16.5 / 17 * 100), round(interval.low * 100), round(interval.high * 100)) == (97, 77, 100)


def test_35_cases_at_91_percent_give_an_interval_20_points_wide() -> None:
    interval = wilson(32 / 35, 35)
    assert (round(interval.low, 2), round(interval.high, 2)) == (0.78, 0.97)
    assert 0.19 < interval.width < 0.20


@settings(QUIET)
@given(st.integers(1, 3000), st.floats(0, 1))
def test_a_wilson_interval_holds_its_rate_and_solves_its_equation(n: int, rate: float) -> None:
    interval = wilson(rate, n)
    assert 0 <= interval.low <= rate + 1e-12
    assert rate - 1e-12 <= interval.high <= 1
    for end in (interval.low, interval.high):  # the score test at the end is exactly at Z
        assert math.isclose(abs(rate - end), Z * math.sqrt(end * (1 - end) / n), rel_tol=1e-6, abs_tol=1e-7)


@settings(QUIET)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy_on_whole_successes(pair: tuple[int, int]) -> None:
    passes, n = pair
    theirs = stats.binomtest(passes, n).proportion_ci(0.95, method="wilson")
    ours = wilson(passes / n, n)
    assert math.isclose(ours.low, theirs.low, abs_tol=1e-12)
    assert math.isclose(ours.high, theirs.high, abs_tol=1e-12)


@pytest.mark.parametrize(("rate", "n"), [(0.5, 0), (1.1, 5), (-0.1, 5), (math.nan, 5)])
def test_an_interval_of_nothing_is_refused(rate: float, n: int) -> None:
    with pytest.raises(UsageError, match="Wilson"):
        wilson(rate, n)


# --- the generator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["mulberry32"])
def test_mulberry32_agrees_with_the_vectors_one_by_one_and_at_once(vector: dict[str, Any]) -> None:
    first = vector["first"]
    assert list(itertools.islice(mulberry32(vector["seed"]), len(first))) == first
    assert mulberry32_numbers(vector["seed"], len(first)).tolist() == first


@settings(QUIET)
@given(seeds, st.integers(0, 500), st.integers(1, 200))
def test_any_stretch_can_be_had_without_what_comes_before(seed: int, first: int, count: int) -> None:
    plain = list(itertools.islice(mulberry32(seed), first, first + count))
    assert mulberry32_numbers(seed, count, first=first).tolist() == plain


def test_the_generator_comes_round_after_four_billion_numbers() -> None:
    assert mulberry32_numbers(7, 3, first=2**32).tolist() == mulberry32_numbers(7, 3).tolist()


# --- the bootstrap ---------------------------------------------------------------------------------------------------


def plain_bootstrap(rates: list[float], iterations: int, seed: int) -> tuple[float, float]:
    """The rule, written down as plainly as it can be."""
    numbers = mulberry32(seed)
    means = []
    for _ in range(iterations):
        total = 0.0
        for _ in rates:
            total += rates[int(next(numbers) * len(rates))]
        means.append(total / len(rates))
    means.sort()
    return means[math.floor(0.025 * iterations)], means[math.ceil(0.975 * iterations) - 1]


@pytest.mark.parametrize("vector", VECTORS["cluster_bootstrap"])
def test_the_bootstrap_agrees_with_the_vectors_to_the_last_bit(vector: dict[str, Any]) -> None:
    rates = [sum(outcomes) / len(outcomes) for outcomes in vector["cases"]]
    found = cluster_bootstrap(rates, iterations=vector["iterations"], seed=vector["seed"])
    assert [found.low, found.high] == vector["interval"]


@settings(QUIET, max_examples=60)
@given(rates_of_cases, st.integers(1, 300), seeds)
def test_the_bootstrap_is_the_plain_one_to_the_last_bit(rates: list[float], iterations: int, seed: int) -> None:
    found = cluster_bootstrap(rates, iterations=iterations, seed=seed)
    assert (found.low, found.high) == plain_bootstrap(rates, iterations, seed)


@pytest.mark.parametrize(("cases", "iterations"), [(400, 1000), (3, 8193), (1, 20_000), (2, 8192), (1031, 50)])
def test_blocks_leave_no_trace(cases: int, iterations: int) -> None:
    rates = (np.random.default_rng(cases).integers(0, 4, cases) / 3).tolist()
    found = cluster_bootstrap(rates, iterations=iterations, seed=99)
    assert (found.low, found.high) == plain_bootstrap(rates, iterations, 99)


def test_equal_cases_give_width_0_and_say_so() -> None:
    found = cluster_bootstrap([1 / 3] * 17, iterations=500, seed=5)
    assert found.degenerate
    assert (found.low, found.high) == plain_bootstrap([1 / 3] * 17, 500, 5)
    assert found.low == found.high
    assert not cluster_bootstrap([1.0, 0.0], iterations=500, seed=5).degenerate


def _field(cases: int) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    cell = st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    return st.lists(st.lists(cell, min_size=cases, max_size=cases), min_size=1, max_size=6)


@pytest.mark.slow
@settings(QUIET, max_examples=30)
@given(st.lists(st.integers(1, 40).flatmap(_field), min_size=1, max_size=3), st.integers(1, 120), seeds)
def test_many_targets_at_once_are_each_the_plain_one_to_the_last_bit(
    fields: list[list[list[tuple[int, int]]]], iterations: int, seed: int
) -> None:
    targets = [np.array(target, dtype=np.int64) for field in fields for target in field]
    found = cluster_bootstraps([(one[:, 0], one[:, 1]) for one in targets], iterations=iterations, seed=seed)
    for one, interval in zip(targets, found, strict=True):
        rates = (one[:, 0] / one[:, 1]).tolist()
        assert interval == cluster_bootstrap(rates, iterations=iterations, seed=seed)
        assert (interval.low, interval.high) == plain_bootstrap(rates, iterations, seed)


@pytest.mark.parametrize(
    ("targets", "cases", "most"), [(9, 700, 3), (5, 45, 10), (4, 50, 12), (3, 60, 250), (2, 20_000, 3)]
)
def test_many_targets_of_any_size_are_each_the_single_one(targets: int, cases: int, most: int) -> None:
    chance = np.random.default_rng(cases)
    field = []
    for _ in range(targets):
        valid = chance.integers(1, most + 1, cases)
        field.append((chance.integers(0, valid + 1), valid))
    found = cluster_bootstraps(field, iterations=300, seed=17)
    assert found == [cluster_bootstrap((p / n).tolist(), iterations=300, seed=17) for p, n in field]


def test_the_interval_is_near_scipys() -> None:
    rates = np.random.default_rng(2).integers(0, 4, 400) / 3
    theirs = stats.bootstrap((rates,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    ours = cluster_bootstrap(rates.tolist(), iterations=10_000, seed=1)
    assert abs(ours.low - theirs.low) < 0.004
    assert abs(ours.high - theirs.high) < 0.004


@pytest.mark.parametrize(("rates", "iterations"), [([], 100), ([0.5], 0)])
def test_a_bootstrap_of_nothing_is_refused(rates: list[float], iterations: int) -> None:
    with pytest.raises(UsageError, match="bootstrap"):
        cluster_bootstrap(rates, iterations=iterations, seed=1)


# --- repeated success ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["pass_hat_k"])
def test_pass_hat_agrees_with_the_vectors(vector: dict[str, Any]) -> None:
    found = pass_hat([(passes, valid) for passes, valid in vector["cases"]], vector["k"]).value
    if vector["value"] is None:
        assert found is None
    else:
        assert found == pytest.approx(vector["value"], abs=1e-14)


@settings(QUIET)
@given(st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=12))
def test_pass_hat_is_the_share_of_choices_that_all_pass(cases: list[tuple[int, int]]) -> None:
    for k in (1, 2, 3):
        shares = []
        for passes, valid in cases:
            if valid >= k:
                chosen = list(itertools.combinations([1] * passes + [0] * (valid - passes), k))
                shares.append(Fraction(sum(all(choice) for choice in chosen), len(chosen)))
        found = pass_hat(cases, k)
        assert found.cases == len(shares)
        if shares:
            assert found.value == pytest.approx(float(sum(shares) / len(shares)), abs=1e-12)
        else:
            assert found.value is None


def test_pass_hat_of_no_attempts_is_refused() -> None:
    with pytest.raises(UsageError, match="k of at least 1"):
        pass_hat([(1, 1)], 0)


# --- power -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["power"])
def test_power_agrees_with_the_vectors(vector: dict[str, Any]) -> None:
    needed = questions_needed(vector["mde"], variance=vector["variance"], power=vector["power"], alpha=vector["alpha"])
    assert needed == vector["n"]


def test_969_questions_show_three_points() -> None:
    assert questions_needed(0.03) == 969
    assert detectable(969) <= 0.03 < detectable(968)
    assert 0.15 < detectable(35) < 0.16


@settings(QUIET)
@given(st.floats(0.005, 1), st.floats(0.001, 1))
def test_what_is_needed_is_enough_and_no_more(difference: float, variance: float) -> None:
    needed = questions_needed(difference, variance=variance)
    assert detectable(needed, variance=variance) <= difference * (1 + 1e-12)
    if needed > 1:
        assert detectable(needed - 1, variance=variance) > difference * (1 - 1e-12)


def test_the_power_is_the_power() -> None:
    n, variance = 200, 1 / 9
    mean = detectable(n, variance=variance)
    generator = np.random.default_rng(11)
    found = np.abs(generator.normal(mean, math.sqrt(variance / n), 40_000)) > Z * math.sqrt(variance / n)
    assert abs(found.mean() - 0.8) < 0.01


@pytest.mark.parametrize("difference", [0.0, -0.1, math.nan])
def test_no_difference_needs_no_questions(difference: float) -> None:
    with pytest.raises(UsageError, match="above 0"):
        questions_needed(difference)


def test_chances_and_counts_are_checked() -> None:
    with pytest.raises(UsageError, match="power and alpha"):
        detectable(10, power=1.0)
    with pytest.raises(UsageError, match="at least one question"):
        detectable(0)
