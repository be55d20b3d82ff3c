"""How many attempts a series makes, and by whom (methodology §9)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from referee.core.failure import FAILURES, Cause
from referee.runner.series import MAX_INVALID, Patience, Series, run_series
from referee.scoring.verdicts import AgentTier


@dataclass(frozen=True)
class Seen:
    """As much of a judgement as a series looks at."""

    outcome: str | None
    agent_tier: AgentTier
    valid: bool = True
    retry: bool = False
    cause: Cause | None = None


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


def waits(causes: list[Cause | None], **patience: float) -> tuple[int, list[float]]:
    """How many attempts one valid run takes, and the waits between them. No cause: a valid attempt."""
    left = iter(causes)
    slept: list[float] = []

    def attempt(wanted: AgentTier) -> Seen:
        cause = next(left)
        if cause is None:
            return Seen("fail", wanted)
        return Seen(None, wanted, valid=False, retry=FAILURES[cause].retry, cause=cause)

    how = Patience(sleep=slept.append, **patience)  # type: ignore[arg-type]
    made = run_series(Series("runs", 1), tier="standard", attempt=attempt, patience=how)  # type: ignore[arg-type]
    return len(made), slept


def test_a_key_that_cannot_be_made_is_tried_for_again_after_a_growing_wait() -> None:
    none = Cause.KEY_UNAVAILABLE
    assert waits([none, none, none, None], first_seconds=30.0) == (4, [30.0, 60.0, 120.0])
    assert waits([none] * 9, first_seconds=100.0, most_seconds=250.0, tries=3) == (4, [100.0, 200.0, 250.0])


def test_tries_for_a_key_do_not_use_up_the_repeats_of_an_attempt() -> None:
    keyless, fault = Cause.KEY_UNAVAILABLE, Cause.MACHINE_FAULT
    made, slept = waits([keyless, fault, keyless, fault, keyless, None], first_seconds=1.0)
    assert made == 6
    assert slept == [1.0, 2.0, 4.0]
    assert waits([fault] * 9)[0] == MAX_INVALID + 1


def test_a_model_that_did_not_answer_is_waited_for_and_repeated_twice_at_most() -> None:
    assert waits([Cause.MODEL_UNAVAILABLE] * 9, first_seconds=5.0) == (3, [5.0, 10.0])
    assert waits([Cause.GATEWAY_FAILED, None], first_seconds=5.0) == (2, [5.0])


def test_what_does_not_pass_by_waiting_is_not_waited_for() -> None:
    assert waits([Cause.MACHINE_FAULT, Cause.CREDENTIAL_IN_EVIDENCE, None]) == (3, [])
