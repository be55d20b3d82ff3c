"""What is counted from the selected shards of a bake-off, and nothing more: the input of its summary.

A *slot* is (target, case, k). Across runs the oldest physical row of a slot is the usable one (§11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from referee.core.bakeoff import Surface, Target
from referee.core.cases import Category


class CaseTally(NamedTuple):
    """One case of one target, over its usable rows. A tuple: a summary makes tens of thousands of them.

    Args:
        valid: attempts that were graded.
        passes: of these, passed.
        well_formed: of these, well formed.
        infra: attempts excluded by infrastructure, account or configuration.
        refused: attempts excluded because the case did not fit the endpoint (too long, moderated).
        outcomes: 1 and 0 of the valid attempts in order of k.
        wrong: the digest of the one wrong answer that all valid attempts gave; None when they differ or one passed.
        reasons: reason of each failed attempt, in order of k.
        broken: failed attempts whose answer had no readable form: not passed, not well formed, no ``wrong`` answer.
    """

    target: str
    case: str
    category: Category
    arm: str
    language: str
    valid: int
    passes: int
    well_formed: int
    infra: int
    refused: int
    outcomes: tuple[int, ...]
    wrong: str | None
    reasons: tuple[str, ...] = ()
    broken: int = 0


@dataclass(frozen=True)
class LatencyTally:
    """Latency of the graded attempts, milliseconds: how many, median and 95th percentile (nearest rank)."""

    n: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True)
class SpeedTally:
    """Output tokens of the graded attempts that count them, and what these attempts took, milliseconds in all."""

    n: int
    output_tokens: int
    ms: float


@dataclass(frozen=True)
class TargetTally:
    """One target over all selected rows: coverage, provenance, transport.

    ``tokens_n`` counts the graded attempts that say their tokens, in and out; None: nobody counted.
    """

    target: Target
    surface: Surface
    subset: str | None
    expected: int
    physical: int
    usable: int
    missing: tuple[tuple[str, int], ...]
    unexpected: tuple[tuple[str, int], ...]
    infra: dict[str, int]
    refused: dict[str, int]
    flags: dict[str, int]
    protocols: tuple[str, ...]
    suites: tuple[str, ...]
    targets: tuple[str, ...]
    surfaces: tuple[str, ...]
    provenances: tuple[str, ...]
    models_served: tuple[str, ...]
    harness_versions: tuple[str, ...]
    runs: tuple[str, ...]
    ended: tuple[str, ...]
    stopped: str | None
    latency: LatencyTally | None
    input_tokens: int | None
    output_tokens: int | None
    spent_usd: float | None
    over_deadline: int
    speed: SpeedTally | None = None
    tokens_n: int | None = None


@dataclass(frozen=True)
class ShardFact:
    """One selected shard: its base name, the SHA-256 of its bytes, its rows, and whether its last line was torn."""

    name: str
    sha256: str
    rows: int
    torn_bytes: int
