"""Answers made to harm: nothing of them stops the grader, keeps it busy, or gets unprintable into a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from referee.core.answers import GivenCall, Reading
from referee.core.canonical import digest_of
from referee.core.cases import Grading
from referee.scoring.toolcalls import judge
from tests.bakeoff.grading_cases import call, case_of, given, grade, tool, value_grade

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]  # a guard against hanging, no measurement


def nested(depth: int, *, lists: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if lists else {"k": value}
    return value


HOSTILE: dict[str, Any] = {
    "deep lists": nested(50_000, lists=True),
    "deep objects": nested(50_000, lists=False),
    "deep JSON in a string": "[" * 100_000 + "]" * 100_000,
    "an open string of brackets": '{"k":' * 100_000,
    "digits in a string": "9" * 100_000,
    "groups in a string": "1" + ",000" * 30_000,
    "underscores": "1_" * 30_000 + "1",
    "a huge integer": 10**20_000,
    "a negative one": -(10**20_000),
    "infinity": float("inf"),
    "nan": float("nan"),
    "a huge exponent": "1e" + "9" * 3000,
    "lone surrogates": "\ud800\udfff\ud800",
    "a key of surrogates": {"\ud800": "\udc00"},
    "control characters": "\x00\x1b[2J\u202e\u2066",
    "combining marks": "a" + "\u0301\u0316" * 30_000,
    "what NFKC blows up": "\ufdfa" * 10_000,
    "white space": " " * 100_000,
    "many words": "a " * 50_000,
    "a wide list": list(range(20_000)),
    "a wide object": {str(n): n for n in range(20_000)},
    "strange types": [None, True, {}, [], "", 0, -0.0],
}


def printable(text: str) -> None:
    assert text.isprintable()
    text.encode("utf-8")


GOLDS: list[tuple[Any, Any]] = [
    ("Berlin", {}), (5, {}), (None, {}), (True, {}), (["a", "b"], {"type": "array"}), ({"a": 1}, {"type": "object"}),
    ({"anyOf": ["xyzw", 7, [1], None]}, {"type": ["array", "object"]}),
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("grading", [1, 2])
def test_a_hostile_value_gets_a_verdict(name: str, grading: Grading) -> None:
    for gold, schema in GOLDS:
        got = value_grade(gold, HOSTILE[name], grading=grading, schema=schema, arrayOrder="set")
        assert got.passed is False
        assert len(got.reason) < 1000
        printable(got.reason)
        assert got.wrong is not None
        assert digest_of("wrong", got.wrong).startswith("wrong:sha256:")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_extra_argument_does_not_matter_where_extra_is_allowed(name: str) -> None:
    assert grade(call(x=1), given(x=1, more=HOSTILE[name])).passed
    assert not grade(call(x=1), given(x=1, more=HOSTILE[name]), allowExtraArgs=False).passed


@pytest.mark.slow
def test_many_calls() -> None:
    calls = [given("f", n=n) for n in range(50_000)]
    assert grade(call(n=49_999), *calls).passed
    golds = [call(n=n) for n in range(5)]
    for order in ("strict", "any"):
        assert not grade(golds, *calls, callOrder=order, grading=2).passed
    same = [given("f", n=n % 5) for n in range(50_000)]
    assert grade(golds, *same, callOrder="any", grading=2).passed
    everything = [given("f", n=n % 5, more=n) for n in range(50_000)]
    got = grade(golds, *everything, callOrder="any", grading=1)
    assert not got.passed
    assert len(got.reason) < 1000
    assert not grade(call("g"), *calls, exactlyOne=True).passed


def test_long_lists_that_match_loosely() -> None:
    size = 400
    golds = ["a" * (1 + n % 7) for n in range(size)]
    answers = ["a" * (1 + n % 5) for n in reversed(range(size))]
    assert value_grade(golds, answers, arrayOrder="set").passed
    assert not value_grade([*golds, "b"], [*answers, "c"], arrayOrder="set").passed


def test_deep_sets_are_compared_once_each() -> None:
    def tower(top: Any) -> Any:
        value = top
        for _ in range(60):
            value = ["x", value]
        return value

    got = value_grade(tower("end"), tower("other"), arrayOrder="set")
    assert not got.passed
    assert value_grade(tower("end"), tower("end"), arrayOrder="set").passed


def test_a_name_made_to_harm() -> None:
    for name in ("\ud800", "x" * 1_000_000, "", "a\nb\x1b[0m", "<|" * 100_000, "\u202egnihton"):
        got = grade(call("f"), GivenCall(name, {}), grading=2, tools=(tool("f"),))
        assert got.passed is False
        assert len(got.reason) < 500
        printable(got.reason)
        assert got.wrong is not None
        got.wrong.encode("utf-8")


def test_arguments_that_are_no_object_fail_with_a_reason() -> None:
    odd: Any = ["no", "object"]
    got = grade(call(x=1), GivenCall("f", odd))
    assert got.passed is False
    assert got.reason


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["eq", "anyOf", "a", "b"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
WORDS = (
    *("type", "properties", "items", "anyOf", "allOf", "oneOf", "$ref", "enum", "default", "required", "format"),
    *("prefixItems", "patternProperties", "additionalProperties", "a", "x"),
)
schemas: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner | st.sampled_from(["object", "array", "string", "#", "#/properties/a"]),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@examples(anything, anything, st.dictionaries(st.text(max_size=3), schemas, max_size=3), st.sampled_from([1, 2]))
@settings(max_examples=150)
def test_no_oracle_answer_or_schema_breaks_the_grader(gold: Any, got: Any, parameters: Any, grading: Grading) -> None:
    tools = (tool("f").model_copy(update={"parameters": {"type": "object", **parameters}}),)
    reading = Reading(calls=(given("f", x=got, y={"x": got}),))
    for policy in ({}, {"allowExtraArgs": False, "strictArgs": True, "arrayOrder": "set"}):
        found = judge(case_of(call(x=gold), **policy), tools, reading, grading=grading, sent={})
        assert found.passed in {True, False}
        printable(found.reason)
        assert (found.wrong is None) is (found.passed or "repaired" in found.flags)
        if found.wrong is not None:
            json.dumps(found.wrong).encode()
            found.wrong.encode("utf-8")
