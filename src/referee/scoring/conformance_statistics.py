"""Golden vectors of the kind ``bakeoff-statistics``: intervals, the generator, repeated success, power. Pure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from referee.errors import UsageError
from referee.scoring.bakeoff.figures import Bootstrapped, Interval
from referee.scoring.bakeoff.statistics import (
    cluster_bootstrap,
    mulberry32,
    mulberry32_numbers,
    pass_hat,
    questions_needed,
    wilson,
)
from referee.scoring.conformance_shapes import Checks, Runner, ShapeError, a_count, a_list, a_number, member


def _wilson_case(case: Any) -> Checks:
    rate, n = a_number(case, "rate"), a_count(case, "n")
    return [("interval", member(case, "interval"), _or_none(lambda: _ends(wilson(rate, n))), "")]


def _ends(interval: Interval | Bootstrapped) -> list[float]:
    return [interval.low, interval.high]


def _mulberry_case(case: Any) -> Checks:
    first = a_list(case, "first")
    seed = a_count(case, "seed")
    return [
        ("first", first, list(islice(mulberry32(seed), len(first))), "one by one"),
        ("first", first, mulberry32_numbers(seed, len(first)).tolist(), "all at once"),
    ]


def _bootstrap_case(case: Any) -> Checks:
    rates = [rate for rate in map(_rate, a_list(case, "cases")) if rate is not None]
    seed, iterations = a_count(case, "seed"), a_count(case, "iterations")

    def interval() -> list[float]:
        return _ends(cluster_bootstrap(rates, iterations=iterations, seed=seed))

    return [("interval", member(case, "interval"), _or_none(interval), "")]


def _rate(attempts: Any) -> float | None:
    """The rate of a case's valid attempts; None where it has none."""
    if not isinstance(attempts, list) or not all(one in (0, 1) for one in attempts):
        raise ShapeError("cases are lists of attempts, each 0 or 1")
    return sum(map(int, attempts)) / len(attempts) if attempts else None


def _pass_hat_case(case: Any) -> Checks:
    k, counts = a_count(case, "k"), []
    for one in a_list(case, "cases"):
        if not isinstance(one, list) or len(one) != 2 or not all(type(part) is int for part in one):  # noqa: PLR2004
            raise ShapeError("cases are pairs: passes and valid attempts")
        counts.append((one[0], one[1]))
    return [("value", member(case, "value"), _or_none(lambda: pass_hat(counts, k).value), "")]


def _power_case(case: Any) -> Checks:
    mde = a_number(case, "mde")
    named = {name: a_number(case, name) for name in ("variance", "power", "alpha") if name in case}
    return [("n", member(case, "n"), _or_none(lambda: questions_needed(mde, **named)), "")]


def _or_none(compute: Callable[[], Any]) -> Any:
    """What is computed; None where the figure is not defined."""
    try:
        return compute()
    except UsageError:
        return None


MEMBERS: dict[str, Runner] = {
    "wilson": _wilson_case,
    "mulberry32": _mulberry_case,
    "cluster_bootstrap": _bootstrap_case,
    "pass_hat_k": _pass_hat_case,
    "power": _power_case,
}
