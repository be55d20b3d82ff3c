"""The verdict on a subject, and what adaptive testing does next (methodology §9). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_FINDING, EXIT_PASS
from referee.scoring.bringup import Outcome

Verdict = Literal["runs", "runs_with_mocks", "could_not_verify", "not_yet_verified"]
AgentTier = Literal["standard", "stronger"]
NextStep = Literal["standard", "stronger", "stop"]

#: Complete failing attempts of the standard agent that settle "could not verify": the first and its one retry.
STANDARD_ATTEMPTS = 2


@dataclass(frozen=True)
class Tried:
    """One attempt as the verdict needs it; an invalid one does not count, whatever its outcome says."""

    outcome: Outcome | None
    agent: AgentTier
    valid: bool


def verdict(attempts: Sequence[Tried]) -> Verdict:
    """The best result that any valid attempt reached; failures settle only as §9 says.

    Two complete failures of the standard agent, or one of a stronger agent, settle *could not verify*; before that
    the subject is *not yet verified*.
    """
    counted = [tried for tried in attempts if tried.valid and tried.outcome is not None]
    outcomes = {tried.outcome for tried in counted}
    if "pass_full" in outcomes:
        return "runs"
    if "pass_mock" in outcomes:
        return "runs_with_mocks"
    standard = sum(1 for tried in counted if tried.agent == "standard")
    if standard >= STANDARD_ATTEMPTS or any(tried.agent == "stronger" for tried in counted):
        return "could_not_verify"
    return "not_yet_verified"


def settled(attempts: Sequence[Tried]) -> bool:
    """Whether the verdict needs no further attempt of the standard agent."""
    return verdict(attempts) != "not_yet_verified"


def next_step(attempts: Sequence[Tried], *, stronger_requested: bool = False) -> NextStep:
    """What adaptive testing runs next: the standard agent, a stronger one where asked for, or nothing.

    Any pass ends the testing. The standard agent runs once and, failing, once more; only then, and only on request, a
    stronger agent runs, once. Invalid attempts do not count: they are repeated.
    """
    counted = [tried for tried in attempts if tried.valid and tried.outcome is not None]
    if any(tried.outcome in {"pass_full", "pass_mock"} for tried in counted):
        return "stop"
    if any(tried.agent == "stronger" for tried in counted):
        return "stop"
    if len(counted) < STANDARD_ATTEMPTS:
        return "standard"
    return "stronger" if stronger_requested else "stop"


def exit_code(found: Verdict) -> int:
    """The exit code that tells a verdict: 0 it runs, 1 it runs with mocks only, 4 not verified."""
    if found == "runs":
        return EXIT_PASS
    return EXIT_FINDING if found == "runs_with_mocks" else EXIT_COULD_NOT_VERIFY
