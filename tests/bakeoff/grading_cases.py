"""Cases, calls and grades for the tests of the grader, made from what matters in each."""

from __future__ import annotations

from typing import Any

from referee.core.answers import GivenCall, Grade
from referee.core.cases import Case, Grading, Tool
from referee.scoring.toolcalls import grade_calls


def case_of(gold: Any, **policy: Any) -> Case:
    """A case with one expected call, a list of them, or None; the policy by its names in JSON."""
    return Case.model_validate(
        {
            "id": "c-1",
            "category": "simple-call",
            "language": "en",
            "messages": [{"role": "user", "content": "-"}],
            "toolset": "t",
            "expected_calls" if isinstance(gold, list) else "expected_call": gold,
            "policy": policy,
        }
    )


def call(name: str = "f", /, **arguments: Any) -> dict[str, Any]:
    """An expected call."""
    return {"name": name, "arguments": arguments}


def given(name: str = "f", /, *flags: str, **arguments: Any) -> GivenCall:
    """A call that a model gave."""
    return GivenCall(name, arguments, flags)


def tool(name: str = "f", /, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    """A tool with these arguments."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name=name, parameters=schema)


def grade(gold: Any, *calls: GivenCall, grading: Grading = 1, tools: tuple[Tool, ...] = (), **policy: Any) -> Grade:
    """The grade of calls against an oracle."""
    return grade_calls(case_of(gold, **policy), tools, calls, grading=grading)


def value_grade(gold: Any, got: Any, *, grading: Grading = 1, schema: Any = None, **policy: Any) -> Grade:
    """The grade of one value ``x`` against its gold."""
    tools = (tool(x=schema),) if schema is not None else ()
    return grade(call(x=gold), given(x=got), grading=grading, tools=tools, **policy)
