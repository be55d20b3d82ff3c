"""The plan of one attempt: everything resolved, fetched and checked before anything is spent."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import referee
from referee.benchmarks.bringup.instructions import instructions_digest
from referee.benchmarks.bringup.mission import mission, mission_digest
from referee.core.budgets import PUBLISHED_SECONDS, Budget, Tier, choose_budget
from referee.core.records import AgentRef, BudgetRef, EnvironmentRef, Limits, Lock, SubjectRef
from referee.core.spending import CAP_USD, usd
from referee.protocols import Agent, AgentStart, Placement, Sandbox, Source

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True)
class PlannedSubject:
    """A subject as the runner needs it: its reference, its pin for the source, and what chooses the budget."""

    ref: SubjectRef
    file_bytes: bytes
    pin: Mapping[str, object]
    marked_tier: Tier | None
    needs_gpu: bool
    display: bool


@dataclass(frozen=True)
class Rules:
    """What of the configuration decides over an attempt."""

    edition: Literal[1, 2]
    budgets: Mapping[Tier, int]
    limits: Limits
    cap_usd: float = CAP_USD


@dataclass(frozen=True)
class Plan:
    """All that attempts at one subject by one agent share; ``lock`` makes one attempt's lock of it."""

    subject: PlannedSubject
    placement: Placement
    agent: Agent
    start: AgentStart
    budget: Budget
    environment: EnvironmentRef
    packages: bytes | None
    mission: Mapping[str, object]
    rules: Rules
    agent_digest: str

    def lock(self, index: int) -> Lock:
        """The lock of attempt number ``index`` (from 1): every digest it depends on."""
        return Lock(
            edition=self.rules.edition,
            subject=self.subject.ref,
            agent=AgentRef(
                name=self.agent.name,
                version=self.agent.version,
                digest=self.agent_digest,
                tier=self.agent.tier,
                harness=self.agent.harness,
                model=self.agent.need.model if self.agent.need else None,
                tree_digest=self.start.tree_digest,
                cap_usd=self.rules.cap_usd if self.agent.need else None,
            ),
            index=index,
            budget=BudgetRef(tier=self.budget.tier, seconds=self.budget.seconds, why=self.budget.why),
            environment=self.environment,
            limits=self.rules.limits,
            instructions_digest=instructions_digest(self.subject.ref.kind),
            mission_digest=mission_digest(self.mission),
            harness_version=referee.__version__,
            not_publishable=tuple(self._objections()),
        )

    def _objections(self) -> list[str]:
        objections = []
        if not self.environment.security_boundary:
            objections.append("the sandbox is no security boundary")
        if self.budget.seconds != PUBLISHED_SECONDS[self.budget.tier]:
            objections.append(
                f"the budget is {self.budget.seconds} s, the methodology's {self.budget.tier} tier has "
                f"{PUBLISHED_SECONDS[self.budget.tier]} s"
            )
        if self.agent.need is not None and self.rules.cap_usd != CAP_USD:
            objections.append(f"the key's cap is {usd(self.rules.cap_usd)}, the methodology's is {usd(CAP_USD)}")
        return objections


def make_plan(subject: PlannedSubject, *, source: Source, agent: Agent, sandbox: Sandbox, rules: Rules) -> Plan:
    """Resolve everything an attempt depends on.

    Raises:
        RefereeError: whatever is missing, before any attempt is counted: the engine, the image, the subject, a pin
            that does not hold.
    """
    environment = sandbox.environment()
    placement = source.fetch(subject.pin)
    budget = choose_budget(
        marked=subject.marked_tier,
        size_bytes=placement.size_bytes,
        needs_gpu=subject.needs_gpu,
        seconds=dict(rules.budgets),
    )
    return Plan(
        subject=subject,
        placement=placement,
        agent=agent,
        start=agent.prepare(),
        budget=budget,
        environment=environment,
        packages=sandbox.packages_manifest(),
        mission=mission(kind=subject.ref.kind, facts=placement.facts, display=subject.display, seconds=budget.seconds),
        rules=rules,
        agent_digest=agent.digest(),
    )


def new_run_id() -> str:
    """A fresh run id: ``r-`` and twelve characters that are easy to read aloud (60 random bits)."""
    return "r-" + "".join(secrets.choice(_ALPHABET) for _ in range(12))
