"""The first generation of the grader, rule by rule, and the reasons that its verdicts carry."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.answers import Grade
from tests.bakeoff.grading_cases import call, given, grade, value_grade

WEATHER = call("get_weather", city="Berlin", unit={"eq": "celsius"})


def passes(got: Grade) -> bool:
    assert got.passed is not None
    assert got.reason
    assert (got.wrong is None) is got.passed
    return got.passed


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "got", "passed"),
    [
        # strings: loose, either way, never empty
        ("Berlin", "in Berlin, Mitte", True),
        ("Berlin, Mitte", "BERLIN", True),
        ("Berlin", "Berl", True),
        ("Berlin", "", False),
        ("Berlin", "   ", False),
        ("", "", True),
        ("", " \n", True),
        ("", "x", False),
        ("a  b", "A\u00a0\tB", True),
        ("Straße", "STRASSE", True),
        # strings and other types
        ("5", 5, True),
        ("5", 5.5, True),  # its text contains the gold
        ("6", 5.5, False),
        ("true", True, False),
        ("null", None, False),
        ("a", ["a"], False),
        ("a", {"a": "a"}, False),
        # eq
        ({"eq": "Celsius"}, " celsius", True),
        ({"eq": "celsius"}, "celsius degrees", False),
        ({"eq": 5}, "5.0", True),
        ({"eq": 5}, "5 EUR", False),
        ({"eq": True}, True, True),
        ({"eq": True}, 1, False),
        ({"eq": None}, None, True),
        ({"eq": ["Ab", "c"]}, ["ab", "C"], True),
        ({"eq": ["ab"]}, ["abc"], False),
        ({"eq": {"k": "ab"}}, {"k": "abc"}, False),
        ({"eq": "x", "other": 1}, {"eq": "x", "other": 1}, True),  # no operator: not the whole value
        ({"eq": "x", "other": 1}, "x", False),
        # anyOf
        ({"anyOf": ["NYC", "New York"]}, "in new york", True),
        ({"anyOf": ["NYC", None]}, None, True),
        ({"anyOf": [1, {"eq": "one"}]}, "1", True),
        ({"anyOf": [1, {"eq": "one"}]}, "one more", False),
        ({"anyOf": []}, "x", False),
        ({"anyOf": "x"}, {"anyOf": "x"}, True),  # no list, no operator
        ({"anyOf": 5}, 5, False),
        ([{"eq": "a"}, {"anyOf": ["b", "c"]}], ["a", "c"], True),
        ([{"eq": "a"}], ["ab"], False),
        # lists, objects, null
        ([], [], True),
        ([], {}, False),
        ([None], [None], True),
        ([None], [0], False),
        ([1, "a", [True]], ["1", "a", [True]], True),
        ([1, 2], [2, 1], False),
        ({"a": {"b": [1]}}, {"a": {"b": ["1"], "extra": 1}, "more": 2}, True),
        ({"a": None, "b": 1}, {"b": 1}, True),
        ({"a": 1}, [1], False),
        ({}, {"x": 1}, True),
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (False, False, True),
        (False, None, False),
        (False, "false", False),
    ],
)
def test_a_value_against_its_gold(gold: Any, got: Any, passed: bool) -> None:
    assert passes(value_grade(gold, got)) is passed


def test_a_gold_of_null_matches_an_absent_key_at_every_depth_but_not_in_a_list() -> None:
    assert passes(grade(call(x=None, y={"z": None, "w": 1}), given(y={"w": 1})))
    assert passes(grade(call(x={"anyOf": ["a", None]}), given()))
    assert not passes(grade(call(x=[None]), given(x=[])))


def test_arguments_are_never_an_operator_themselves() -> None:
    assert passes(grade(call(eq="x"), given(eq="x")))
    assert not passes(grade(call(anyOf=["x", "y"]), given(anyOf="x")))
    assert passes(grade(call(anyOf=["x", "y"]), given(anyOf=["x", "y"])))


@pytest.mark.parametrize("depth", [{"x": 1}, {"x": {"k": 1}}, {"x": [{"k": 1}]}])
def test_extra_arguments_are_allowed_or_not_at_every_depth(depth: dict[str, Any]) -> None:
    def more(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: more(one) for key, one in value.items()}, "invented": 1}
        return [more(one) for one in value] if isinstance(value, list) else value

    answer = given(**more(depth))
    assert passes(grade(call(**depth), answer))
    refused = grade(call(**depth), answer, allowExtraArgs=False)
    assert not passes(refused)
    assert "invented` was not expected" in refused.reason
    assert passes(grade(call(**depth), given(**depth), allowExtraArgs=False))


def test_strict_args_concern_golds_that_are_strings() -> None:
    assert not passes(value_grade("Berlin", "Berlin, Germany", strictArgs=True))
    assert passes(value_grade("Berlin", " BERLIN ", strictArgs=True))
    assert not passes(value_grade({"a": ["Berlin"]}, {"a": ["Berlin!"]}, strictArgs=True))
    assert passes(value_grade(1000, "1,000", strictArgs=True))


def test_a_set_needs_a_perfect_matching_at_every_depth() -> None:
    assert passes(value_grade([[1, 2], [3, 4]], [["4", "3"], [2, 1]], arrayOrder="set"))
    assert not passes(value_grade([["ab", "a"]], [["b", "b"]], arrayOrder="set"))  # both fit only the one gold
    assert passes(value_grade(["ab", "b"], ["ab", "a"], arrayOrder="set"))  # b must take ab, so that a takes ab
    assert not passes(value_grade(["a", "a"], ["a"], arrayOrder="set"))


# --- calls -----------------------------------------------------------------------------------------------------------


def test_one_expected_call_among_others_and_as_the_only_one() -> None:
    right, wrong = given("get_weather", city="Berlin", unit="celsius"), given("get_time")
    assert passes(grade(WEATHER, wrong, right))
    got = grade(WEATHER, wrong, right, exactlyOne=True)
    assert not passes(got)
    assert got.reason == "exactly one call was expected; 2 were given: get_time and get_weather"
    assert passes(grade(WEATHER, right, exactlyOne=True))


def test_ordered_calls_match_by_position_and_number() -> None:
    golds = [call("search", q="Rome"), call("book", id=7)]
    search, book = given("search", q="Rome"), given("book", id=7)
    assert passes(grade(golds, search, book))
    swapped = grade(golds, book, search)
    assert not passes(swapped)
    assert swapped.reason == "the calls came in another order: book then search; expected search then book"
    short = grade(golds, search)
    assert not passes(short)
    assert short.reason == "2 calls were expected: search then book; 1 was given: search"
    assert not passes(grade(golds, search, book, book))
    odd = grade(golds, search, given("book", id=8))
    assert not passes(odd)
    assert odd.reason == "call 2: argument `id`: expected 7, got 8"
    assert passes(grade([call("book", id=7)], book))
    assert not passes(grade([call("book", id=7)], book, book))


def test_abstaining_passes_without_a_call_and_only_so() -> None:
    assert grade(None).reason == "passed: no tool was called, as expected"
    assert passes(grade(None))
    called = grade(None, given("get_weather"), given("get_time"))
    assert not passes(called)
    assert called.reason == "no tool should have been called; get_weather and get_time were"


def test_calls_that_are_given_twice_are_tolerated_and_flagged() -> None:
    right = given("get_weather", city="Berlin", unit="celsius")
    again = given("get_weather", unit="CELSIUS", city=" berlin")
    assert grade(WEATHER, right, again).flags == ("duplicate-call",)
    assert grade(WEATHER, right, given("get_time")).flags == ("further-call",)
    assert grade(WEATHER, right).flags == ()


# --- reasons ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "got", "said"),
    [
        ({"eq": "2026-07-24"}, "24.07.2026", "argument `x`: expected 2026-07-24, got 24.07.2026"),
        (True, "true", 'argument `x`: expected true, got "true"'),
        ("Berlin", "", 'argument `x`: expected "Berlin", got ""'),
        ({"anyOf": ["NYC", "New York"]}, "LA", 'argument `x`: expected "NYC" or "New York", got "LA"'),
        (1000, "1.000", 'argument `x`: expected 1000, got "1.000", which is read as 1.0'),
        (5, "5 EUR", 'argument `x`: expected 5, got "5 EUR", which is no number'),
        ([1, 2], [1], "argument `x`: expected 2 elements, got 1: [1]"),
        ([1, 2], [1, 3], "argument `x[1]`: expected 2, got 3"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "argument `x.a.b`: expected 1, got 2"),
        ({"a": 1}, {}, "argument `x.a` is missing: expected 1"),
        ({"a": 1}, "text", 'argument `x`: expected {"a": 1}, got "text"'),
        ("a", "line\nbreak \x1b[31m\ud800", 'argument `x`: expected "a", got "line\\nbreak \\u001b[31m\\ud800"'),
    ],
)
def test_the_reason_names_the_argument_the_expected_and_the_given_value(gold: Any, got: Any, said: str) -> None:
    failed = value_grade(gold, got, strictArgs=True)
    assert not passes(failed)
    assert failed.reason == said


def test_the_reasons_of_whole_calls() -> None:
    assert grade(WEATHER).reason == "no tool was called; get_weather was expected"
    assert grade(WEATHER, given("get_forecast")).reason == "called get_forecast where get_weather was expected"
    passed = grade(WEATHER, given("get_weather", city="Berlin", unit="celsius"))
    assert passed.reason == "passed: get_weather with city and unit as expected"
    assert grade(call("now"), given("now")).reason == "passed: now as expected"


def test_the_reason_is_that_of_the_nearest_call_and_short() -> None:
    gold = call(**{f"a{at}": at for at in range(9)})
    far, near = given(a0=5), given(**{f"a{at}": at for at in range(8)}, a8="eight")
    assert grade(gold, far, near).reason == 'argument `a8`: expected 8, got "eight", which is no number'
    assert grade(gold, far).reason.endswith("; and 6 more")
    long = value_grade("x" * 500, "y" * 100_000)
    assert len(long.reason) < 250


def test_an_ambiguous_number_is_flagged_where_it_would_be_the_gold_in_another_locale() -> None:
    assert value_grade(1000, "1.000").flags == ("ambiguous-number",)
    assert value_grade(1.5, "1,5").flags == ("ambiguous-number",)
    assert value_grade({"anyOf": [7, 1000]}, "1.000").flags == ("ambiguous-number",)
    assert value_grade(1001, "1.000").flags == ()
    assert value_grade(1, "1.000").flags == ()


# --- the same wrong answer -------------------------------------------------------------------------------------------


def test_the_same_wrong_answer_has_the_same_text() -> None:
    gold = call(city="Rome", n=7, t=["a"])
    one = grade(gold, given(city="Paris", n=1000, t=["B", 2.0]))
    other = grade(gold, given(t=["b ", "2"], n="1,000", city=" PARIS"))
    assert one.wrong == other.wrong == '{"arguments":{"city":"paris","n":1000,"t":["b",2]},"name":"f"}'
    assert grade(gold, given(city="Paris", n=1001, t=["b", 2])).wrong != one.wrong
    assert grade(gold).wrong == "no call"
    assert grade(None, given("f", n=1.0)).wrong == '{"arguments":{"n":1},"name":"f"}'


def test_the_order_of_calls_counts_in_a_wrong_answer_only_where_it_is_asked_for() -> None:
    a, b = given("a"), given("b")
    assert grade(call("x"), a, b).wrong == grade(call("x"), b, a).wrong
    golds = [call("x"), call("y")]
    assert grade(golds, a, b).wrong != grade(golds, b, a).wrong
    assert grade(golds, a, b, callOrder="any").wrong == grade(golds, b, a, callOrder="any").wrong


def test_texts_with_a_leading_zero_are_no_numbers_in_a_wrong_answer() -> None:
    assert value_grade("x", "01234").wrong != value_grade("x", "1234").wrong
    assert value_grade("x", "0.5").wrong == value_grade("x", 0.5).wrong
