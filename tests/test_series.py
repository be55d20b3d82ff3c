"""How many attempts a series makes, and by whom (methodology §9)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from referee.runner.series import Series, run_series
from referee.scoring.verdicts import AgentTier


@dataclass(frozen=True)
class Seen:
    """As much of a judgement as a series looks at."""

    outcome: str | None
    agent_tier: AgentTier
    valid: bool = True
    retry: bool = False


def made(series: Series, outcomes: list[str], tier: AgentTier = "standard") -> list[tuple[str, str | None]]:
    left = iter(outcomes)

    def attempt(wanted: AgentTier) -> Seen:
        said = next(left)
        if said.startswith("invalid"):
            return Seen(None, wanted, valid=False, retry=said == "invalid-retry")
        return Seen(said, wanted)

    return [(one.agent_tier, one.outcome) for one in run_series(series, tier=tier, attempt=attempt)]  # type: ignore[arg-type]


UNTIL = Series("until-verdict")


@pytest.mark.parametrize(
    ("series", "outcomes", "tiers"),
    [
        (UNTIL, ["pass_full"], ["standard"]),
        (UNTIL, ["fail", "pass_mock"], ["standard", "standard"]),
        (UNTIL, ["fail", "timeout"], ["standard", "standard"]),
        (UNTIL, ["invalid-retry", "fail", "fail"], ["standard"] * 3),
        (Series("until-verdict", stronger=True), ["fail", "fail", "pass_full"], ["standard", "standard", "stronger"]),
        (Series("until-verdict", stronger=True), ["pass_full"], ["standard"]),
        (Series("until-verdict", stronger=True), ["fail", "fail", "fail"], ["standard", "standard", "stronger"]),
        (Series("runs", 3), ["fail", "pass_full", "invalid-retry", "timeout"], ["standard"] * 4),
        (Series("runs", 1), ["invalid-retry"] * 3, ["standard"] * 3),
        (Series("runs", 2), ["fail", "invalid-for-good"], ["standard"] * 2),
    ],
)
def test_attempts_go_on_until_the_series_is_complete(series: Series, outcomes: list[str], tiers: list[str]) -> None:
    assert [tier for tier, _ in made(series, outcomes)] == tiers


def test_a_stronger_agent_asked_for_alone_settles_with_one_attempt() -> None:
    assert made(UNTIL, ["fail"], tier="stronger") == [("stronger", "fail")]
