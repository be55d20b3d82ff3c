"""What is said of one target, or of two on the same cases: rates, intervals, failures, transport, paired tests.

These are the leaves of a ``Summary``. What is absent is None with a sentence beside it that says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from referee.core.bakeoff import Price

#: How much a board can bear (§0), by its number of cases.
TierName = Literal["viability", "viability+", "gate"]

#: The groups of genuine failures, in the order in which a report lists them (§10).
FAILURE_GROUPS = ("multi-call-ordering", "hard-args", "tool-selection", "simple-call", "abstain", "format")


@dataclass(frozen=True)
class Interval:
    """A 95 % interval of a rate, 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far its ends lie apart."""
        return self.high - self.low


@dataclass(frozen=True)
class Note:
    """A caveat or a reason: a stable name, and one sentence for a person."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Tier:
    """What a row may be used for (§0), and why it is that tier."""

    name: TierName
    why: str


@dataclass(frozen=True)
class About:
    """A target with its lane: what was measured, and what of it nobody controlled (§4, §5).

    ``models_served`` … ``runs`` are what its rows say; the rest is what was pinned before the run.
    """

    target: str
    model: str
    lane: str
    channel: str
    tool_channel: str
    uncontrolled: tuple[str, ...]
    readable_as: str
    latency_admissible: bool
    pins_sampling: bool
    sovereignty: str
    self_host: str
    precision: str | None
    quantisation: str | None
    context: int | None
    parameters: str | None
    revision: str | None
    cli: str | None
    metered: bool
    price: Price | None
    subset: str | None
    models_served: tuple[str, ...]
    provenances: tuple[str, ...]
    harness_versions: tuple[str, ...]
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Rate:
    """Valid-pass: mean over cases with a valid attempt of valid passes / valid attempts; n counts these cases (§2).

    Args:
        n: cases with at least one valid attempt.
        value: the rate, 0 to 1; None when n is 0, and then ``why`` says so.
        wilson: the primary 95 % interval.
        valid: valid attempts behind it.
        passes: of these, passed.
    """

    n: int
    value: float | None
    wilson: Interval | None
    valid: int
    passes: int
    why: str | None = None


@dataclass(frozen=True)
class Bootstrapped:
    """The second interval: a sensitivity figure, never a rank criterion (§12).

    ``degenerate``: all cases have the same rate, so that drawing them again changes nothing and the width is 0.
    """

    low: float
    high: float
    degenerate: bool
    iterations: int
    seed: int


@dataclass(frozen=True)
class PassHat:
    """pass^k: the chance that k attempts of a case all pass, over the ``cases`` with at least k valid attempts."""

    k: int
    value: float | None
    cases: int


@dataclass(frozen=True)
class Failures:
    """Where attempts failed: each failed attempt stands in exactly one group of ``by_group`` (``FAILURE_GROUPS``).

    ``infra`` and ``refused`` attempts are excluded from every rate and reported here.
    """

    failed: int
    by_group: dict[str, int]
    infra: int
    refused: int


@dataclass(frozen=True)
class Figures:
    """One target on one set of cases.

    Args:
        cases: cases of the set for which it has a row.
        rate: valid-pass, with n and the Wilson interval.
        bootstrap: the second interval; None when there is no valid attempt.
        pass_hat: pass^k for k = 1, 2, …
        format_rate: share of valid attempts whose answer was well formed; None without any.
        failures: where attempts failed.
    """

    cases: int
    rate: Rate
    bootstrap: Bootstrapped | None
    pass_hat: tuple[PassHat, ...]
    format_rate: float | None
    failures: Failures


@dataclass(frozen=True)
class Coverage:
    """The rows against the exact list of identities that the target owed (§11). At most 50 of each list are named."""

    expected: int
    physical: int
    usable: int
    missing: int
    unexpected: int
    missing_named: tuple[tuple[str, int], ...]
    unexpected_named: tuple[tuple[str, int], ...]
    complete: bool


@dataclass(frozen=True)
class Transport:
    """What happened on the way, over all rows of the target, all arms included (§10, §11).

    ``graded``: attempts with a verdict. ``infra`` and ``refused`` by class. ``latency_*`` only where the lane admits a
    latency verdict, milliseconds over graded attempts; else ``latency_why`` says why not. ``spent_usd`` is what was
    paid; a cost *verdict* rests on it only where ``cost_admissible`` (own infrastructure, §13). ``tokens_per_second``:
    output tokens to the whole time of the calls, of the ``tokens_per_second_n`` graded attempts that count tokens; it
    includes the lane, is not comparable across lanes, and is no verdict. ``tokens_n`` counts the graded attempts that
    say their tokens: where it is less than ``graded``, sums of tokens are of a part; None where nobody counted.
    """

    graded: int
    infra: dict[str, int]
    infra_share: float | None
    refused: dict[str, int]
    flags: dict[str, int]
    content_fallback: int
    repaired: int
    over_deadline: int
    latency_n: int | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_why: str | None
    input_tokens: int | None
    output_tokens: int | None
    tokens_why: str | None
    spent_usd: float | None
    spent_why: str | None
    cost_admissible: bool
    ended: tuple[str, ...]
    tokens_per_second: float | None
    tokens_per_second_n: int
    tokens_per_second_why: str | None
    tokens_n: int | None


@dataclass(frozen=True)
class PairedTest:
    """Two targets on the cases that both have: Wilcoxon's signed-rank test on per-case rates (§12), two-sided.

    Args:
        n: shared cases with a valid attempt on both sides.
        nonzero: of these, with unequal rates: zero differences are dropped, as Wilcoxon did.
        difference: mean of rate a - rate b; None when n is 0.
        difference_interval: its normal 95 % interval; None when n is below 2.
        variance: of the per-case differences (n - 1 below); None when n is below 2.
        w_plus: sum of the ranks of positive differences, w_minus: of negative ones.
        z: the normal deviate, corrected for ties; None when degenerate.
        p: exact given the ties up to 50 non-zero differences, normal above; None when degenerate: no p is invented.
        p_normal: the normal approximation in every case, to compare with other software.
        method: how ``p`` was found.
        smallest_p: what ``p`` could be at the least with these differences, were all of one sign.
        note: a sentence where the test says nothing or cannot say anything.
    """

    n: int
    nonzero: int
    difference: float | None
    difference_interval: Interval | None
    variance: float | None
    w_plus: float
    w_minus: float
    z: float | None
    p: float | None
    p_normal: float | None
    method: Literal["exact", "normal"] | None
    degenerate: bool
    too_small: bool
    smallest_p: float | None
    note: str | None
