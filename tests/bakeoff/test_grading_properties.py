"""Properties of both generations: what replays the gold passes, what leaves it fails, whatever the values."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.answers import GivenCall
from referee.core.cases import Grading, Tool
from referee.scoring.toolcalls.answers import canonical_call
from tests.bakeoff.grading_cases import call, grade

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

names = st.text(alphabet="abcdefgh_", min_size=1, max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
arguments = st.dictionaries(names, values, max_size=4)
generations: st.SearchStrategy[Grading] = st.sampled_from([1, 2])
policies = st.fixed_dictionaries(
    {},
    optional={
        "allowExtraArgs": st.sampled_from([True, False, "schema"]),
        "exactlyOne": st.booleans(),
        "strictArgs": st.booleans(),
        "arrayOrder": st.sampled_from(["strict", "set"]),
    },
)
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def schema_of(value: Any) -> dict[str, Any]:
    """The schema that a value suggests."""
    if value is None:
        return {}
    found: dict[str, Any] = {"type": TYPES[type(value)]}
    if isinstance(value, dict):
        found["properties"] = {key: schema_of(one) for key, one in value.items()}
    return found


def tools_of(gold: dict[str, Any]) -> tuple[Tool, ...]:
    return (Tool(name="f", parameters=schema_of(gold)),)


@given(arguments, policies, generations)
@settings(max_examples=150)
def test_the_gold_replayed_as_an_answer_passes(gold: dict[str, Any], policy: dict[str, Any], grading: Grading) -> None:
    answer = GivenCall("f", copy.deepcopy(gold))
    for tools in ((), tools_of(gold)):
        got = grade(call("f", **gold), answer, grading=grading, tools=tools, **policy)
        assert got.passed, got.reason
        assert (got.well_formed, got.wrong, got.flags) == (True, None, ())


@given(arguments, generations)
def test_eq_and_a_single_alternative_replay_too(gold: dict[str, Any], grading: Grading) -> None:
    answer = GivenCall("f", copy.deepcopy(gold))
    for wrapped in ({k: {"eq": v} for k, v in gold.items()}, {k: {"anyOf": [v]} for k, v in gold.items()}):
        assert grade(call("f", **wrapped), answer, grading=grading, tools=tools_of(gold)).passed


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        return chance.sample([shuffled(one, chance) for one in value], len(value))
    if isinstance(value, dict):
        keys = chance.sample(list(value), len(value))
        return {key: shuffled(value[key], chance) for key in keys}
    return value


@given(arguments, generations, st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_the_order_of_sets_and_of_keys_is_free(gold: dict[str, Any], grading: Grading, chance: random.Random) -> None:
    answer = GivenCall("f", shuffled(gold, chance))
    got = grade(call("f", **gold), answer, grading=grading, tools=tools_of(gold), arrayOrder="set")
    assert got.passed, got.reason


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value that can be altered."""
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += places(one, (*path, key))
    return found


def altered(value: Any) -> Any:
    """Another value than this, by every rule."""
    if isinstance(value, bool) or value is None:
        return "no truth value, not null"
    if isinstance(value, int | float):
        return value * 2 + 1 if value >= 0 else 0
    if isinstance(value, str):
        return f"{value} other"
    return [*value, "more"] if isinstance(value, list) else ["no object"]


@given(arguments, generations, st.data())
@settings(max_examples=200)
def test_any_alteration_fails_under_strict_rules(gold: dict[str, Any], grading: Grading, data: st.DataObject) -> None:
    answer = copy.deepcopy(gold)
    where = data.draw(st.sampled_from([*places(gold), ()]))
    kind = data.draw(st.sampled_from(["alter", "drop", "add"]))
    place: Any = answer
    for step in where[:-1]:
        place = place[step]
    if not where:
        answer["invented"] = 1
    elif kind == "alter" or place[where[-1]] is None:
        place[where[-1]] = altered(place[where[-1]])
    elif kind == "drop":
        place.pop(where[-1])
    elif isinstance(place, list):
        place.insert(where[-1], "added")
    else:
        place["invented"] = None
    policy: dict[str, Any] = {"strictArgs": True, "allowExtraArgs": False, "exactlyOne": True}
    got = grade(call("f", **gold), GivenCall("f", answer), grading=grading, tools=tools_of(gold), **policy)
    assert got.passed is False, (gold, answer)
    assert "argument `" in got.reason
    assert got.wrong == canonical_call(GivenCall("f", answer))


calls = st.lists(st.tuples(st.sampled_from(["f", "g"]), arguments), min_size=1, max_size=4)


@given(calls, generations, st.randoms(use_true_random=False))
def test_calls_in_any_order(golds: list[tuple[str, dict[str, Any]]], grading: Grading, chance: random.Random) -> None:
    expected = [call(name, **gold) for name, gold in golds]
    answers = [GivenCall(name, copy.deepcopy(gold)) for name, gold in golds]
    assert grade(expected, *answers, grading=grading).passed
    mixed = chance.sample(answers, len(answers))
    assert grade(expected, *mixed, grading=grading, callOrder="any", exactlyOne=True).passed
    assert not grade(expected, *mixed[1:], grading=grading, callOrder="any").passed
    assert grade(expected, *mixed, mixed[0], grading=grading, callOrder="any").passed
    assert not grade(expected, *mixed, mixed[0], grading=grading, callOrder="any", exactlyOne=True).passed
    assert not grade(expected, *mixed, GivenCall("other", {}), grading=grading, callOrder="any").passed


@given(arguments, st.randoms(use_true_random=False))
def test_the_text_of_a_wrong_answer_does_not_depend_on_how_it_is_written(
    given_arguments: dict[str, Any], chance: random.Random
) -> None:
    def rewritten(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rewritten(value[key]) for key in chance.sample(list(value), len(value))}
        if isinstance(value, list):
            return [rewritten(one) for one in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return chance.choice([value, f"{value:,}", f" {value} "])
        return f" {value}\n" if isinstance(value, str) else value

    one, other = GivenCall("f", given_arguments), GivenCall("f", rewritten(given_arguments))
    assert canonical_call(one) == canonical_call(other)
    canonical_call(one).encode("utf-8")
