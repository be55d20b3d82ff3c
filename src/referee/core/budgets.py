"""Budgets of one attempt: three tiers, chosen by rule and recorded (methodology §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["standard", "heavy", "gpu"]

#: Seconds per tier as the methodology publishes them.
PUBLISHED_SECONDS: dict[Tier, int] = {"standard": 90 * 60, "heavy": 120 * 60, "gpu": 120 * 60}

#: A repository larger than this by its host's figure is heavy (500 MB, a MB being 10^6 bytes).
HEAVY_BYTES = 500 * 10**6


@dataclass(frozen=True)
class Budget:
    """The one budget of a run, with the rule that chose it."""

    tier: Tier
    seconds: int
    why: str


def choose_budget(*, marked: Tier | None, size_bytes: int | None, needs_gpu: bool, seconds: dict[Tier, int]) -> Budget:
    """Choose the tier by rule: a GPU need, then the owner's mark, then the size, else standard.

    Args:
        marked: the tier the subject's file names, or None.
        size_bytes: size by the host's figure, or None where unknown.
        needs_gpu: whether the subject's file says that it needs a GPU.
        seconds: the configured budget per tier.
    """
    if needs_gpu or marked == "gpu":
        return Budget("gpu", seconds["gpu"], "the subject needs a GPU")
    if marked == "heavy":
        return Budget("heavy", seconds["heavy"], "the owner marked the subject heavy")
    if size_bytes is not None and size_bytes > HEAVY_BYTES:
        return Budget("heavy", seconds["heavy"], f"{size_bytes} bytes are more than {HEAVY_BYTES}")
    return Budget("standard", seconds["standard"], "no rule for another tier applies")
