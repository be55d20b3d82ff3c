"""Small suites, targets and tallies, made by hand for the tests of the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from referee.core.bakeoff import Planned, Protocol, Surface, Target
from referee.core.cases import Arm, Call, Case, Category, Message, Suite, Tool
from referee.core.records import DecisionLogged, GoldReviewed
from referee.core.tallies import CaseTally, TargetTally

SUITE_ARM = Arm(name="suite", headline=True, ranked=True, about="the headline")
TRAPS = Arm(name="traps", headline=False, ranked=True, about="abstain traps")
ORDERING_V2 = Arm(name="ordering-v2", headline=False, ranked=True, about="ordering, right prompt")
ORDERING_V1 = Arm(name="ordering-v1", headline=False, ranked=False, about="ordering, confounded prompt")

NATIVE = Surface(
    channel="own-infrastructure",
    shape="openai-chat",
    tool_channel="native",
    uncontrolled=(),
    readable_as="capability and latency",
    latency_admissible=True,
    pins_sampling=True,
)
CLI = Surface(
    channel="agent-cli",
    shape="cli-envelope",
    tool_channel="inlined",
    uncontrolled=("the host's user configuration", "cached context tokens"),
    readable_as="model plus harness",
    latency_admissible=False,
    pins_sampling=False,
)


def case(case_id: str, category: Category = "simple-call", *, language: str = "en", **more: Any) -> Case:
    """One case; abstain cases expect no call."""
    oracle: dict[str, Any] = {"expected_call": None if category == "abstain" else Call(name="go")}
    return Case(
        id=case_id, category=category, language=language, messages=(Message(role="user", content="go"),),
        toolset="tools", **oracle, **more,
    )  # fmt: skip


def suite(cases: Sequence[Case], *arms: Arm, **provenance: str) -> Suite:
    """A suite with these cases; its first arm is the headline."""
    return Suite(
        name="small", version="1", grading=2, about="for a test", provenance=provenance, prompts={},
        toolsets={"tools": (Tool(name="go"),)}, arms=(SUITE_ARM, *arms), cases=tuple(cases),
    )  # fmt: skip


def protocol(targets: Sequence[str | Planned], **more: Any) -> Protocol:
    """A protocol over these targets; k = 3, and few iterations to be quick."""
    planned = tuple(Planned(target=one) if isinstance(one, str) else one for one in targets)
    settings: dict[str, Any] = {"repeats": 3, "bootstrap": {"iterations": 200}} | more
    return Protocol(name="p", title="A test", question="which?", suite="small", targets=planned, **settings)


def target(name: str, **more: Any) -> Target:
    """A target; by default on own infrastructure, of European origin."""
    settings: dict[str, Any] = {
        "model": name, "lane": "openai-chat", "channel": "own-infrastructure", "sovereignty": "eu-origin",
    } | more  # fmt: skip
    return Target(name=name, **settings)


class Rows:
    """The tallies of one target, filled case by case."""

    def __init__(self, name: str, surface: Surface = NATIVE, *, subset: str | None = None, **more: Any) -> None:
        self.target = target(name, **more)
        self.surface = surface
        self.subset = subset
        self.cases: list[CaseTally] = []

    def add(
        self,
        one: Case,
        outcomes: Sequence[int],
        *,
        infra: int = 0,
        refused: int = 0,
        wrong: str | None = None,
        broken: int = 0,
    ) -> Rows:
        """One case: the outcomes of its valid attempts, and how many were excluded."""
        self.cases.append(
            CaseTally(
                target=self.target.name,
                case=one.id,
                category=one.category,
                arm=one.arm,
                language=one.language,
                valid=len(outcomes),
                passes=sum(outcomes),
                well_formed=len(outcomes) - broken,
                infra=infra,
                refused=refused,
                outcomes=tuple(outcomes),
                wrong=wrong,
                broken=broken,
            )
        )
        return self

    def fill(self, cases: Sequence[Case], outcomes: Mapping[str, Sequence[int]] | Sequence[int]) -> Rows:
        """Many cases with the same outcomes, or each with its own."""
        for one in cases:
            self.add(one, outcomes[one.id] if isinstance(outcomes, Mapping) else outcomes)
        return self

    def tally(self, **more: Any) -> TargetTally:
        """The target's tally, complete unless told otherwise."""
        usable = sum(one.valid + one.infra + one.refused for one in self.cases)
        infra, refused = sum(one.infra for one in self.cases), sum(one.refused for one in self.cases)
        settings: dict[str, Any] = {
            "expected": usable, "physical": usable, "usable": usable, "missing": (), "unexpected": (),
            "infra": {"timeout": infra} if infra else {}, "refused": {"too_long": refused} if refused else {},
            "flags": {}, "protocols": ("protocol:sha256:1",), "suites": ("suite:sha256:1",),
            "targets": (f"target:sha256:{self.target.name}",), "surfaces": ("surface:sha256:1",),
            "provenances": ("own",), "models_served": (self.target.model,), "harness_versions": ("1",),
            "runs": ("r1",), "ended": ("complete",), "stopped": None, "latency": None, "input_tokens": None,
            "output_tokens": None, "spent_usd": None, "over_deadline": 0,
        } | more  # fmt: skip
        return TargetTally(target=self.target, surface=self.surface, subset=self.subset, **settings)


def review(case_id: str, *, stands: bool, at: str = "2026-01-02T00:00:00+00:00") -> GoldReviewed:
    """A person's review of a gold."""
    return GoldReviewed(protocol="p", case=case_id, at=at, stands=stands, note="looked", by="a person")


def decision(number: int, **more: Any) -> DecisionLogged:
    """An entry of the decision log."""
    settings: dict[str, Any] = {"late": False, "amends": False} | more
    return DecisionLogged(
        protocol="p", number=number, at="2026-01-01T00:00:00+00:00", decided_on="2026-01-01", text="do it",
        reason="because", by="a person", **settings,
    )  # fmt: skip
