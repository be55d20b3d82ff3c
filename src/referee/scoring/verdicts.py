"""The verdict on a subject, and what adaptive testing does next (methodology §9). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

from referee.errors import UsageError
from referee.scoring.bringup import Edition, Outcome

AgentTier = Literal["standard", "stronger"]
NextStep = Literal["standard", "stronger", "stop"]

#: Complete failing attempts of the standard agent that settle "could not verify": the first and its one retry.
STANDARD_ATTEMPTS = 2


class Verdict(StrEnum):
    """What is said about a subject; never "broken"."""

    RUNS = "runs"
    RUNS_WITH_MOCKS = "runs_with_mocks"
    COULD_NOT_VERIFY = "could_not_verify"
    NOT_YET_VERIFIED = "not_yet_verified"


class Tried(Protocol):
    """One attempt as the verdict needs it; an invalid one does not count, whatever its outcome says."""

    @property
    def valid(self) -> bool:
        """Whether it is a complete attempt."""

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None when it is no measurement."""

    @property
    def agent_tier(self) -> AgentTier:
        """Whether the standard agent or a stronger one made it."""


_T = TypeVar("_T", bound=Tried)


@dataclass(frozen=True)
class Attempt:
    """The least that is an attempt for the verdict."""

    outcome: Outcome | None
    agent_tier: AgentTier
    valid: bool


def verdict(attempts: Sequence[Tried]) -> Verdict:
    """The best result that any valid attempt reached; failures settle only as §9 says.

    Two complete failures of the standard agent, or one of a stronger agent, settle *could not verify*; before that
    the subject is *not yet verified*.
    """
    counted = _counted(attempts)
    outcomes = {tried.outcome for tried in counted}
    if "pass_full" in outcomes:
        return Verdict.RUNS
    if "pass_mock" in outcomes:
        return Verdict.RUNS_WITH_MOCKS
    standard = sum(1 for tried in counted if tried.agent_tier == "standard")
    if standard >= STANDARD_ATTEMPTS or standard < len(counted):
        return Verdict.COULD_NOT_VERIFY
    return Verdict.NOT_YET_VERIFIED


def deciding(publishable: Sequence[_T], set_aside: Sequence[_T]) -> Sequence[_T]:
    """The attempts that a subject's verdict rests on (methodology §9, our reading).

    Attempts that can never be published are left out of it, unless there is no other valid one: then the verdict
    rests on them, which whoever shows it must say beside it.
    """
    return publishable if _counted(publishable) or not _counted(set_aside) else set_aside


def speaking(tried: Sequence[tuple[Edition, bool]]) -> Edition:
    """The edition whose verdict stands for a subject; those of others are shown beside it (methodology §14).

    Args:
        tried: of each attempt its edition and whether it is a complete one.

    Returns:
        The newest edition under which a complete attempt was made; where there is none, the newest of all.

    Raises:
        UsageError: there is no attempt.
    """
    if not tried:
        raise UsageError("without an attempt there is no edition to speak for a subject")
    return max([edition for edition, complete in tried if complete] or [edition for edition, _ in tried])


def settled(attempts: Sequence[Tried]) -> bool:
    """Whether the verdict needs no further attempt of the standard agent."""
    return verdict(attempts) is not Verdict.NOT_YET_VERIFIED


def next_step(attempts: Sequence[Tried], *, stronger_requested: bool = False) -> NextStep:
    """What adaptive testing runs next: the standard agent, a stronger one where asked for, or nothing.

    Any pass ends the testing. The standard agent runs once and, failing, once more; only then, and only on request, a
    stronger agent runs, once. Invalid attempts do not count: they are repeated.
    """
    counted = _counted(attempts)
    if any(tried.outcome in {"pass_full", "pass_mock"} or tried.agent_tier == "stronger" for tried in counted):
        return "stop"
    if len(counted) < STANDARD_ATTEMPTS:
        return "standard"
    return "stronger" if stronger_requested else "stop"


def _counted(attempts: Sequence[Tried]) -> list[Tried]:
    return [tried for tried in attempts if tried.valid and tried.outcome is not None]
