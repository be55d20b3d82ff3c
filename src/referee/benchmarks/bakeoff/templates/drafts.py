"""A drafted request with the calls that answer it, before it becomes a case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.core.cases import Call, Policy


@dataclass(frozen=True)
class Draft:
    """A request and its gold, both made of the same drawn parameters.

    Args:
        toolset: whose tools serve it.
        ask: the request, with every value that the calls need.
        calls: what it asks for, in order.
        policy: how strictly it is graded.
        derived: what the gold works out of the request, by path.
        lacking: the same request without a required value that no tool can look up, and the argument's name.
    """

    toolset: str
    ask: str
    calls: tuple[Call, ...]
    policy: Policy = field(default_factory=Policy)
    derived: dict[str, str] = field(default_factory=dict)
    lacking: tuple[tuple[str, str], ...] = ()


#: A template: draws its parameters and words them in a language.
Template = Callable[[Draw, Language], Draft]


def call(name: str, /, **arguments: Any) -> Call:
    """An expected call."""
    return Call(name=name, arguments=arguments)


def eq(value: object) -> dict[str, object]:
    """A value that is compared strictly."""
    return {"eq": value}
