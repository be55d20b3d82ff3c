"""Golden vectors of the kind ``bakeoff-grading``: calls against an oracle, by the first generation of rules. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from referee.core.answers import GivenCall
from referee.core.cases import Case, Grading
from referee.scoring.conformance_shapes import Checks, Runner, ShapeError, a_boolean, a_list, an_object
from referee.scoring.toolcalls import Grader


def _graded_case(case: Any) -> Checks:
    passed = a_boolean(case if isinstance(case, dict) else {}, "passed")
    oracle = an_object(case, "case")
    grade = Grader(case_of(oracle), (), grading_of(oracle)).grade([_given(one) for one in a_list(case, "calls")])
    return [("passed", passed, grade.passed, grade.reason)]


def grading_of(oracle: dict[str, Any]) -> Grading:
    """The generation that a case names; the first where it names none."""
    said = oracle.get("grading", 1)
    if said == 1:
        return 1
    if said == 2:  # noqa: PLR2004 — the second generation
        return 2
    raise ShapeError(f"there is no generation {said!r} of grading")


def case_of(oracle: dict[str, Any]) -> Case:
    """A case with this oracle and policy; what it asks does not matter here."""
    body: dict[str, Any] = {
        "id": "vector",
        "category": "simple-call",
        "language": "en",
        "messages": [{"role": "user", "content": "-"}],
        "toolset": "vector",
    }
    listed = oracle.get("expected_calls")
    if listed:
        body["expected_calls"] = listed
    elif "expected_call" in oracle or listed == []:
        body["expected_call"] = oracle.get("expected_call")
    if oracle.get("policy") is not None:
        body["policy"] = oracle["policy"]
    try:
        return Case.model_validate(body)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ShapeError(f"{place or 'the case'}: {first['msg']}") from exc


def _given(call: Any) -> GivenCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ShapeError("a call is an object with a name")
    arguments = call.get("arguments")
    return GivenCall(call["name"], {} if arguments is None else an_object(call, "arguments"))


MEMBERS: dict[str, Runner] = {"cases": _graded_case}
