"""Tool-calling cases: what is asked, which tools there are, and the oracle that decides.

A suite is one JSON file. Tools and system prompts stand once in it and are named by the cases, so that an arm's
schemas are byte-identical to another's by construction, and one fixed prompt serves a whole task (methodology of the
bake-off §7, §8).
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasGenerator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from referee.core.facts import Fact

Category = Literal["simple-call", "tool-selection", "multi-call-ordering", "abstain", "hard-args"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

#: The arm that repeats the first suite's flaw on purpose (§8): its inlined prompt asks for exactly one entry.
CONFOUNDED_ARM = "ordering-v1"

#: The generation of grading rules: 1 for the first suite, 2 for new and imported ones.
Grading = Literal[1, 2]

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]


class Message(Fact):
    """One turn of the conversation that is put to the model."""

    role: Literal["user", "assistant"]
    content: str


class Tool(Fact):
    """One tool: its name and the JSON Schema of its arguments object."""

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})


class Call(Fact):
    """One expected call. In its arguments ``{"eq": v}`` and ``{"anyOf": [...]}`` are operators (§9)."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)


class Policy(Fact):
    """How strictly a case is graded. None takes the default of the suite's grading generation.

    In JSON the names are ``allowExtraArgs``, ``exactlyOne``, ``strictArgs``, ``arrayOrder``, ``callOrder``.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=AliasGenerator(alias=to_camel),
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    allow_extra_args: bool | Literal["schema"] | None = None
    exactly_one: bool = False
    strict_args: bool = False
    array_order: Literal["strict", "set"] = "strict"
    call_order: Literal["strict", "any"] = "strict"


class Case(Fact):
    """One question with its oracle.

    Exactly one of ``expected_call`` (null: the model must not call) and ``expected_calls`` (ordered) is given.

    Args:
        prompt: the name of the suite's system prompt; None for none.
        toolset: the name of the suite's list of tools.
        arm: which arm of the suite it belongs to.
        source: where the case comes from (template and parameters' digest, row of a public suite, SQL and hash …).
        twin: another case of the suite that differs from this one only in what an arm is about.
        known_objection: why a case that the linter refuses stands here all the same, visible and unranked.
    """

    id: Identifier
    category: Category
    language: str = Field(pattern=r"^[a-z]{2}$")
    arm: Identifier = "suite"
    prompt: Identifier | None = None
    messages: tuple[Message, ...] = Field(min_length=1)
    toolset: Identifier
    expected_call: Call | None = None
    expected_calls: tuple[Call, ...] | None = None
    policy: Policy = Policy()
    source: dict[str, str] = Field(default_factory=dict)
    twin: Identifier | None = None
    known_objection: str | None = None

    @model_validator(mode="after")
    def _one_oracle(self) -> Self:
        given = self.model_fields_set & {"expected_call", "expected_calls"}
        if len(given) != 1 or (given == {"expected_calls"} and not self.expected_calls):
            raise ValueError("exactly one of expected_call (null to abstain) and expected_calls is needed")
        return self

    @property
    def abstains(self) -> bool:
        """Whether the model must not call a tool."""
        return self.expected_call is None and self.expected_calls is None

    @property
    def golds(self) -> tuple[Call, ...]:
        """The expected calls, in order; empty when the model must not call."""
        if self.expected_calls is not None:
            return self.expected_calls
        return () if self.expected_call is None else (self.expected_call,)

    def document(self) -> dict[str, Any]:
        """The case as JSON, with its one oracle."""
        body = self.model_dump(mode="json", exclude_defaults=True)
        body["id"], body["category"], body["language"], body["toolset"] = (
            *(self.id, self.category, self.language),
            self.toolset,
        )
        if self.expected_calls is None:
            body["expected_call"] = None if self.expected_call is None else self.expected_call.model_dump(mode="json")
        return body


class Arm(Fact):
    """One arm of a suite. Only headline arms enter the headline; an arm that is not ranked stays visible."""

    name: Identifier
    headline: bool
    ranked: bool
    about: str


class Suite(Fact):
    """A suite of cases, with its tools, its prompts and where all of it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    schema_: Literal["referee.cases/1"] = Field(default="referee.cases/1", alias="schema")
    name: Identifier
    version: str
    grading: Grading
    about: str
    provenance: dict[str, str]
    prompts: dict[Identifier, str]
    toolsets: dict[Identifier, tuple[Tool, ...]]
    arms: tuple[Arm, ...] = Field(min_length=1)
    cases: tuple[Case, ...] = Field(min_length=1)

    @cached_property
    def by_id(self) -> dict[str, Case]:
        """The cases by id."""
        return {case.id: case for case in self.cases}

    @cached_property
    def arm_of(self) -> dict[str, Arm]:
        """The arms by name."""
        return {arm.name: arm for arm in self.arms}

    def tools(self, case: Case) -> tuple[Tool, ...]:
        """The tools that a case offers."""
        return self.toolsets[case.toolset]

    def document(self) -> dict[str, Any]:
        """The suite as JSON."""
        body = self.model_dump(mode="json", by_alias=True, exclude={"cases"})
        body["cases"] = [case.document() for case in self.cases]
        return body
