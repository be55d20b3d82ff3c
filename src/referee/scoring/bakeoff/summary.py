"""Everything that a report of a bake-off shows, as numbers: a frozen tree that ``summarise`` makes.

Two things hold throughout. No verdict on a model stands without its lane: every row carries the ``About`` of its target
(bake-off §4). And what is absent is None with a sentence beside it that says why, never NaN, 0 or an empty string.
Nothing is rounded here: rendering rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from referee.core.bakeoff import Comparison
from referee.core.facts import Fact
from referee.core.tallies import ShardFact
from referee.scoring.bakeoff.figures import (
    FAILURE_GROUPS,
    About,
    Bootstrapped,
    Coverage,
    Failures,
    Figures,
    Interval,
    Note,
    PairedTest,
    PassHat,
    Rate,
    Tier,
    TierName,
    Transport,
)

__all__ = [
    "FAILURE_GROUPS",
    "SCHEMA",
    "About",
    "ArmCount",
    "ArmRow",
    "ArmTable",
    "Board",
    "BoardPair",
    "Bootstrapped",
    "Breakdown",
    "Cluster",
    "Compared",
    "Coverage",
    "Decision",
    "Failures",
    "Figures",
    "GoldCase",
    "Interval",
    "LaneLimited",
    "Note",
    "Objected",
    "Overlap",
    "PairedTest",
    "PassHat",
    "Plan",
    "Power",
    "Rate",
    "Scope",
    "Standing",
    "Summary",
    "Tier",
    "TierName",
    "Totals",
    "Transport",
    "Twins",
]

SCHEMA = "referee.bakeoff-summary/1"


@dataclass(frozen=True)
class Standing:
    """One ranked target on a board.

    Args:
        place: its place in the order of presentation, from 1. Within a cluster the order is no verdict.
        places: the first and the last place of its tie cluster: the place that it shares.
        cluster: the number of its tie cluster, from 1.
        figures: over the headline cases that rank: without gold-suspect ones that no review let stand.
        with_flagged: the rate with every gold-suspect case; None where there is none (§3).
        without_flagged: the rate without any gold-suspect case; None where there is none.
    """

    about: About
    place: int
    places: tuple[int, int]
    cluster: int
    tier: Tier
    figures: Figures
    with_flagged: Rate | None
    without_flagged: Rate | None
    coverage: Coverage
    transport: Transport
    caveats: tuple[Note, ...]


@dataclass(frozen=True)
class Cluster:
    """Targets tied with each other: their Wilson intervals overlap, directly or through others (§3)."""

    number: int
    targets: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class BoardPair:
    """Two targets of one board: ``p_holm`` is corrected over all pairs of the board; separated where it is ≤ 0.05.

    A pair without p (degenerate) counts in the family and is never separated.
    """

    a: str
    b: str
    same_cluster: bool
    n: int
    nonzero: int
    difference: float | None
    variance: float | None
    p: float | None
    p_holm: float | None
    separated: bool


@dataclass(frozen=True)
class Power:
    """What difference a board can detect (§12): at ``alpha`` two-sided with the given power.

    ``reference_variance`` 1/9 is that of Miller's example; ``observed_variance`` is the mean over the board's pairs.
    ``mde`` is the minimal detectable difference of two rates, 0 to 1, at the board's smallest n and at its largest.
    """

    alpha: float
    power: float
    n_smallest: int
    n_largest: int
    reference_variance: float
    reference_mde_at_smallest: float
    reference_mde_at_largest: float
    reference_n_for_three_points: int
    observed_pairs: int
    observed_variance: float | None
    observed_mde_at_smallest: float | None
    observed_mde_at_largest: float | None
    observed_why: str | None


@dataclass(frozen=True)
class Board:
    """One board: the whole suite (``subset`` None) or one registered subset, over headline arms only.

    Args:
        cases: the cases that rank.
        of: the cases that would rank, were no gold in doubt or found wrong.
        waiting: of these, by id, the ones that left the ranking until a person has reviewed them.
        wrong: of these, by id, the ones whose gold a person found wrong.
    """

    subset: str | None
    arms: tuple[str, ...]
    cases: int
    of: int
    waiting: tuple[str, ...]
    wrong: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    rows: tuple[Standing, ...]
    pairs: tuple[BoardPair, ...]
    power: Power | None
    caveats: tuple[Note, ...]


@dataclass(frozen=True)
class LaneLimited:
    """A target that is not ranked, with every reason, and what it did answer: counts, no rate (§11).

    ``by_lane``: something that its lane did stands against it. False: nothing does, but it ran no case of the headline,
    or every case that it answered has left the ranking; then ``with_flagged`` is its rate with them.
    """

    about: About
    by_lane: bool
    reasons: tuple[Note, ...]
    with_flagged: Rate | None
    headline_cases: int
    headline_valid: int
    headline_passes: int
    failures: Failures
    coverage: Coverage
    transport: Transport
    caveats: tuple[Note, ...]


@dataclass(frozen=True)
class ArmRow:
    """One target on one arm that is no part of the headline. ``place`` and ``cluster`` None: not ranked, shown."""

    about: About
    place: int | None
    places: tuple[int, int] | None
    cluster: int | None
    tier: Tier
    figures: Figures
    with_flagged: Rate | None
    without_flagged: Rate | None


@dataclass(frozen=True)
class ArmTable:
    """An arm apart from the headline, never pooled into it (§8); one for the full suite and one for each subset.

    ``power`` is what it can detect where it ranks; None where nobody is ranked.
    """

    arm: str
    about_arm: str
    ranked: bool
    subset: str | None
    cases: int
    clusters: tuple[Cluster, ...]
    rows: tuple[ArmRow, ...]
    not_shown: tuple[str, ...]
    power: Power | None


@dataclass(frozen=True)
class Breakdown:
    """One ranked target on the parts of the headline: rates by category and by language."""

    about: About
    by_category: dict[str, Rate]
    by_language: dict[str, Rate]


@dataclass(frozen=True)
class Overlap:
    """Shared cases by who has them: a side *has* a case when all its valid attempts passed, *lacks* it when none did.

    ``unsteady``: at least one side passed some attempts of the case and failed others. At most 200 cases are named.
    """

    both: int
    only_a: int
    only_b: int
    neither: int
    unsteady: int
    only_a_named: tuple[str, ...]
    only_b_named: tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """A paired comparison on one set of cases: the headline, or one arm by name."""

    scope: str
    headline: bool
    a: Rate
    b: Rate
    test: PairedTest
    overlap: Overlap


@dataclass(frozen=True)
class Compared:
    """A registered comparison (§12): uncorrected. With ``matched_lanes`` it shows the lane's effect (§13)."""

    registered: Comparison
    about_a: About | None
    about_b: About | None
    scopes: tuple[Scope, ...]
    caveats: tuple[Note, ...]
    why_absent: str | None


@dataclass(frozen=True)
class Twins:
    """Two arms whose cases are twins of each other, by target: what the one change between them does (§8).

    ``a`` of each scope is the first arm, ``b`` the second.
    """

    arm_a: str
    arm_b: str
    ranked_a: bool
    ranked_b: bool
    pairs: int
    rows: tuple[tuple[About, Scope], ...]


@dataclass(frozen=True)
class GoldCase:
    """A case that two or more targets fail in the same way, or whose gold a person found wrong (§3).

    ``groups`` names the targets that gave one and the same wrong answer. ``ranks``: whether it is in the ranking.
    ``review`` is ``amended`` where the case was changed after its review: then that decides nothing.
    """

    case: str
    arm: str
    category: str
    headline: bool
    suspect: bool
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    review: Literal["unreviewed", "stands", "wrong", "amended"]
    reviewed_at: str | None
    reviewed_by: str | None
    review_note: str | None
    ranks: bool

    @property
    def doubted(self) -> bool:
        """Whether it waits for a review, and is out of the ranking until then."""
        return self.suspect and self.review in {"unreviewed", "amended"}


@dataclass(frozen=True)
class Objected:
    """A case that the linter refuses and that stands in the suite all the same: visible, never ranked."""

    case: str
    arm: str
    sentence: str


@dataclass(frozen=True)
class ArmCount:
    """Attempts of one arm, over all targets."""

    arm: str
    headline: bool
    ranked: bool
    cases: int
    rows: int
    valid: int
    passes: int
    failures: Failures


@dataclass(frozen=True)
class Totals:
    """The report's header (§11): physical rows, of these unique usable ones, and these by arm.

    ``superseded``: physical rows of a slot that an older row fills. ``unknown``: usable rows of cases that the suite
    does not hold. Tokens and spend are sums over the ``*_known_of`` targets that say them; None: none does.
    """

    physical_rows: int
    usable_rows: int
    superseded: int
    unknown: int
    capability_rows: int
    additions_rows: int
    graded: int
    infra: dict[str, int]
    refused: dict[str, int]
    failures: Failures
    by_arm: tuple[ArmCount, ...]
    input_tokens: int | None
    output_tokens: int | None
    tokens_known_of: int
    spent_usd: float | None
    spent_known_of: int


@dataclass(frozen=True)
class Decision:
    """One entry of the decision log."""

    number: int
    at: str
    decided_on: str
    late: bool
    amends: bool
    text: str
    reason: str
    by: str


@dataclass(frozen=True)
class Plan:
    """What was registered, as far as a report shows it."""

    protocol: str
    title: str
    question: str
    suite: str
    suite_version: str
    grading: int
    repeats: int
    arm_repeats: dict[str, int]
    bootstrap_iterations: int
    bootstrap_seed: int
    rules: tuple[str, ...]
    protocol_digests: tuple[str, ...]
    suite_digests: tuple[str, ...]
    not_run: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """Everything that a report shows.

    ``left_alone`` names the cases at which two or more targets gave no call though one is expected: no suspicion.
    """

    plan: Plan
    totals: Totals
    boards: tuple[Board, ...]
    lane_limited: tuple[LaneLimited, ...]
    arms: tuple[ArmTable, ...]
    breakdowns: tuple[Breakdown, ...]
    comparisons: tuple[Compared, ...]
    twins: tuple[Twins, ...]
    gold: tuple[GoldCase, ...]
    left_alone: tuple[str, ...]
    objected: tuple[Objected, ...]
    decisions: tuple[Decision, ...]
    amending: int
    logged_late: int
    shards: tuple[ShardFact, ...]
    caveats: tuple[Note, ...]
    schema: str = field(default=SCHEMA)

    def document(self) -> dict[str, Any]:
        """The summary as JSON: the same bytes for the same facts, whatever the order in which they were given."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(self)}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Fact):
        return value.model_dump(mode="json")
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return value
