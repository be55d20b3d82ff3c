"""The second generation of the grader: what the schema says, token boundaries, any order, clean abstention."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.answers import GivenCall, Reading
from referee.core.bakeoff import Blame, Fault
from referee.core.cases import Tool
from referee.scoring.toolcalls import judge
from tests.bakeoff.grading_cases import call, case_of, given, grade, tool, value_grade

TEXT = {"type": "string"}


# --- strings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "got", "passed"),
    [
        ("steak", "Indian steak", True),
        ("Indian steak", "steak", True),
        ("steak", "steaks", False),
        ("steak", "beefsteak", False),
        ("Berlin", "Berlin, Germany", True),
        ("Berlin", "(berlin)", True),
        ("Berlin", "", False),
        ("Berlin", "-", False),
        ("a - b", "-", False),
        ("1500", "1500 EUR", True),
        ("1500", "-1500", False),
        ("1500", "1500.50", False),
        ("1500", "3.1500", False),
        ("1500", "11500", False),
        ("1500", "room-1500", True),
        ("1500", "is 1500.", True),
        ("São Paulo", "Sa\u0303o Paulo", True),
        ("नमस्ते", "नमस", False),  # a mark belongs to its word
        ("snake", "snake_case", False),
        # three characters and fewer compare strictly
        ("NYC", "in NYC", False),
        ("NYC", " nyc ", True),
        ("5", "-5", False),
        ("  x ", "x y", False),
        ("5", 5, True),
        ("ﬀa", "ffa", True),
    ],
)
def test_loose_strings_contain_each_other_on_token_boundaries(gold: str, got: Any, passed: bool) -> None:
    assert value_grade(gold, got, grading=2, schema=TEXT).passed is passed
    assert value_grade({"anyOf": [gold]}, got, grading=2).passed is passed
    assert value_grade([gold], [got], grading=2, schema={"type": "array", "items": TEXT}).passed is passed


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["Annually", "Monthly"]},
        {"type": "string", "format": "date"},
        {"type": "string", "pattern": "^.*$"},
        {"const": "Annually"},
        {"type": ["string", "null"], "enum": ["Annually", None]},
        {"anyOf": [{"type": "string", "enum": ["Annually"]}, {"type": "null"}]},
        {"allOf": [{"type": "string"}, {"format": "x"}]},
        {"$ref": "#/$defs/how"},
    ],
)
def test_strings_with_an_enum_a_format_or_a_pattern_compare_strictly(schema: Any) -> None:
    parameters = {"type": "object", "properties": {"x": schema}, "$defs": {"how": {"enum": ["Annually"]}}}
    tools = (Tool(name="f", parameters=parameters),)
    assert grade(call(x="Annually"), given(x=" annually"), grading=2, tools=tools).passed
    assert not grade(call(x="Annually"), given(x="Annually, please"), grading=2, tools=tools).passed
    assert grade(call(x="Annually"), given(x="Annually, please"), grading=1, tools=tools).passed


def test_a_format_of_what_is_no_string_says_nothing_about_strings() -> None:
    schema = {"anyOf": [{"type": "string"}, {"type": "integer", "format": "int32"}]}
    assert value_grade("Annually", "Annually, please", grading=2, schema=schema).passed


@pytest.mark.parametrize("reference", ["#/$defs/a", "#/$defs/missing", "#", "https://example.org/x", "#/~2", "#x"])
def test_references_that_lead_nowhere_or_round_in_circles_say_nothing(reference: str) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": reference}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}] * 8}},
    }
    tools = (Tool(name="f", parameters=parameters),)
    assert grade(call(x="Berlin"), given(x="in Berlin"), grading=2, tools=tools).passed


# --- extra, default, null --------------------------------------------------------------------------------------------

ROOMS = tool(
    "rooms",
    ("city", "rooms"),
    city=TEXT,
    rooms={"type": "integer", "default": 1},
    nights={"type": "integer", "default": 1},
    breakfast={"type": "boolean"},
    guest={"type": "object", "properties": {"name": TEXT, "age": {"type": "integer", "default": 18}}},
)


@pytest.mark.parametrize(
    ("gold", "got", "passed", "passed_without_extra"),
    [
        ({"city": "Rome"}, {"city": "Rome", "breakfast": True}, True, False),  # in the schema
        ({"city": "Rome"}, {"city": "Rome", "zz": 1}, False, False),  # invented
        ({"city": "Rome"}, {"city": "Rome", "zz": None}, False, False),
        ({"city": "Rome"}, {"city": "Rome", "nights": 1}, True, True),  # the default
        ({"city": "Rome"}, {"city": "Rome", "nights": "1"}, True, True),
        ({"city": "Rome"}, {"city": "Rome", "nights": 2}, True, False),
        ({"city": "Rome"}, {"city": "Rome", "nights": None, "breakfast": None}, True, True),  # null is omission
        ({"city": "Rome", "nights": 1}, {"city": "Rome"}, True, True),
        ({"city": "Rome", "nights": 1}, {"city": "Rome", "nights": None}, True, True),
        ({"city": "Rome", "nights": 2}, {"city": "Rome"}, False, False),
        ({"city": "Rome", "nights": 2}, {"city": "Rome", "nights": None}, False, False),
        ({"city": "Rome", "breakfast": None}, {"city": "Rome"}, True, True),
        ({"city": "Rome", "nights": None}, {"city": "Rome", "nights": 1}, True, True),  # the default is omission
        ({"city": "Rome", "nights": {"anyOf": [3, None]}}, {"city": "Rome", "nights": 1}, True, True),
        ({"city": "Rome", "nights": {"anyOf": [3, None]}}, {"city": "Rome", "nights": 2}, False, False),
        ({"city": "Rome", "nights": 3}, {"city": "Rome", "nights": 1}, False, False),
        ({"city": "Rome"}, {"city": None}, False, False),  # required: null is no city
        ({"city": "Rome", "rooms": 1}, {"city": "Rome"}, False, False),  # required, whatever its default
        ({"city": "Rome", "rooms": 1}, {"city": "Rome", "rooms": None}, False, False),
        ({"city": "Rome", "rooms": 1}, {"city": "Rome", "rooms": 1}, True, True),
    ],
)
def test_extra_arguments_defaults_and_nulls(
    gold: dict[str, Any], got: dict[str, Any], passed: bool, passed_without_extra: bool
) -> None:
    one, answer = call("rooms", **gold), given("rooms", **got)
    assert grade(one, answer, grading=2, tools=(ROOMS,)).passed is passed
    assert grade(one, answer, grading=2, tools=(ROOMS,), allowExtraArgs="schema").passed is passed
    assert grade(one, answer, grading=2, tools=(ROOMS,), allowExtraArgs=False).passed is passed_without_extra


@pytest.mark.parametrize(
    ("gold", "got", "passed", "passed_without_extra"),
    [
        ({"name": "Anna"}, {"name": "Anna", "age": 18}, True, True),
        ({"name": "Anna"}, {"name": "Anna", "age": 9}, True, False),
        ({"name": "Anna"}, {"name": "Anna", "x": 9}, False, False),
        ({"name": "Anna", "age": 18}, {"name": "Anna"}, True, True),
        ({"name": "Anna", "age": 18}, {"name": "Anna", "age": None}, True, True),
    ],
)
def test_they_hold_at_every_depth(
    gold: dict[str, Any], got: dict[str, Any], passed: bool, passed_without_extra: bool
) -> None:
    one, answer = call("rooms", city="Rome", guest=gold), given("rooms", city="Rome", guest=got)
    assert grade(one, answer, grading=2, tools=(ROOMS,)).passed is passed
    assert grade(one, answer, grading=2, tools=(ROOMS,), allowExtraArgs=False).passed is passed_without_extra


def test_an_invented_argument_is_named_and_may_be_allowed() -> None:
    answer = given("rooms", city="Rome", zz=1)
    got = grade(call("rooms", city="Rome"), answer, grading=2, tools=(ROOMS,))
    assert got.reason == "argument `zz` does not exist in the schema"
    assert grade(call("rooms", city="Rome"), answer, grading=2, tools=(ROOMS,), allowExtraArgs=True).passed
    assert not grade(call("rooms", city="Rome"), answer, grading=1, tools=(ROOMS,), allowExtraArgs="schema").passed


def test_a_default_is_never_an_operator() -> None:
    schema = {"type": "object", "default": {"eq": "x"}}
    tools = (tool(x=schema),)
    assert grade(call(), given(x={"eq": "x"}), grading=2, tools=tools, allowExtraArgs=False).passed
    assert not grade(call(), given(x="x"), grading=2, tools=tools, allowExtraArgs=False).passed


def test_members_by_pattern_and_of_free_objects() -> None:
    parameters = {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {"type": "string", "enum": ["Abcd"]}}},
        "patternProperties": {"^x-": {"type": "string", "format": "x"}, "[": {}},
    }
    tools = (Tool(name="f", parameters=parameters),)
    assert grade(call(), given(**{"x-1": "any"}), grading=2, tools=tools).passed
    assert not grade(call(**{"x-1": "Abcd"}), given(**{"x-1": "Abcd e"}), grading=2, tools=tools).passed
    assert grade(call(m={"k": "Abcd"}), given(m={"k": "abcd"}), grading=2, tools=tools).passed
    assert not grade(call(m={"k": "Abcd"}), given(m={"k": "abcd e"}), grading=2, tools=tools).passed


# --- JSON in a string ------------------------------------------------------------------------------------------------

NUMBERS = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "gold", "got", "passed"),
    [
        (NUMBERS, [1, 2], "[1, 2]", True),
        (NUMBERS, [1, 2], "[2, 1]", False),
        (NUMBERS, [1, 2], '"[1, 2]"', False),  # once
        (NUMBERS, [1, 2], "[1, 2", False),
        (NUMBERS, [1, 2], '{"0": 1}', False),
        (NUMBERS, [1, 2], "[1, NaN]", False),
        (NUMBERS, {"anyOf": [[1], [1, 2]]}, "[1,2]", True),
        ({"type": "object"}, {"a": 1}, '{"a": 1}', True),
        ({"type": ["array", "null"]}, [1], "[1]", True),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, [1], "[1]", True),
        ({"properties": {"a": {}}}, {"a": 1}, '{"a": 1}', True),
        ({"items": {}}, [1], "[1]", True),
        ({"type": "array", "items": {"type": "array"}}, [[1]], ["[1]"], True),
        # where it says string, never; where it says nothing, neither
        (TEXT, [1, 2], "[1, 2]", False),
        ({"type": ["array", "string"]}, [1, 2], "[1, 2]", False),
        ({}, [1, 2], "[1, 2]", False),
        ({"type": "array"}, "[1, 2]", "[1, 2]", True),
    ],
)
def test_a_string_is_decoded_once_where_the_schema_says_array_or_object(
    schema: Any, gold: Any, got: Any, passed: bool
) -> None:
    found = value_grade(gold, got, grading=2, schema=schema)
    assert found.passed is passed
    decoded = passed and not isinstance(gold, str)
    assert ("repaired" in found.flags) is decoded or not passed
    if decoded:
        assert found.well_formed is False
        strict = value_grade(gold, got, grading=2, schema=schema, strictArgs=True)
        assert not strict.passed
        assert "strictArgs" in strict.reason
        assert not value_grade(gold, got, grading=1, schema=schema).passed


def test_a_number_as_text_fails_under_strict_args() -> None:
    assert value_grade(5, "5", grading=2).passed
    got = value_grade(5, "5", grading=2, strictArgs=True)
    assert not got.passed
    assert got.reason == 'argument `x`: expected 5, got "5", a number as text, which strictArgs does not take'
    assert value_grade(5, 5.0, grading=2, strictArgs=True).passed


# --- order -----------------------------------------------------------------------------------------------------------


def test_any_order_is_a_matching_in_which_each_call_is_used_once() -> None:
    golds = [call(q="Rome"), call(q={"anyOf": ["Rome", "Paris"]})]
    rome, paris = given(q="Rome"), given(q="Paris")
    assert grade(golds, paris, rome, grading=2, callOrder="any").passed
    assert grade(golds, rome, paris, grading=2, callOrder="any").passed
    assert grade(golds, rome, rome, grading=2, callOrder="any").passed
    assert not grade(golds, paris, paris, grading=2, callOrder="any").passed
    short = grade(golds, rome, grading=2, callOrder="any")
    assert (short.passed, short.reason) == (False, "f was expected in 2 calls; 1 was given")
    assert not grade(golds, paris, rome, grading=2).passed  # strict: by position


def test_any_order_tolerates_duplicates_only() -> None:
    golds = [call("a", n=1), call("b")]
    a, b, c = given("a", n=1), given("b"), given("c")
    got = grade(golds, b, a, given("a", n="1"), grading=2, callOrder="any")
    assert (got.passed, got.flags) == (True, ("duplicate-call",))
    once = grade(golds, b, a, a, grading=2, callOrder="any", exactlyOne=True)
    assert (once.passed, once.reason) == (False, "2 calls were expected; a was called beside them")
    other = grade(golds, b, a, c, grading=2, callOrder="any")
    assert (other.passed, other.reason) == (False, "2 calls were expected; c was called beside them")
    assert not grade(golds, a, b, b, grading=2).passed  # strict order: same number


def test_what_is_left_over_may_be_any_duplicate() -> None:
    golds = [call(), call(t="x")]  # a call with t fits both
    plain, full = given(), given(t="x")
    for answers in ([full, full, plain], [full, plain, full], [plain, full, full], [plain, plain, full]):
        assert grade(golds, *answers, callOrder="any").passed
    assert not grade(golds, full, full, given(t="x", u=1), given(t="x", u=2), callOrder="any").passed


def test_any_order_says_what_was_missed() -> None:
    golds = [call("a", n=1), call("b", q="x")]
    missed = grade(golds, given("a", n=1), given("c"), grading=2, callOrder="any")
    assert missed.reason == "b with q was expected and not called; a and c were called"
    wrong = grade(golds, given("b", q="y"), given("a", n=1), grading=2, callOrder="any")
    assert wrong.reason == "argument `q`: expected x, got y"


# --- whole answers ---------------------------------------------------------------------------------------------------

OFFERED = (tool("math.factorial", n={"type": "integer"}), tool("g"))
FACTORIAL = call("math.factorial", n=5)


def test_names_are_mapped_back_as_they_were_sent() -> None:
    reading = Reading(calls=(given("math_factorial", n=5),))
    got = judge(case_of(FACTORIAL), OFFERED, reading, grading=2, sent={"math_factorial": "math.factorial", "g": "g"})
    assert (got.passed, got.reason) == (True, "passed: math.factorial with n as expected")
    assert not judge(case_of(FACTORIAL), OFFERED, reading, grading=2, sent={}).passed


def test_a_leaked_template_is_the_wrong_tool_and_tagged() -> None:
    got = grade(FACTORIAL, given("math.factorial<|channel|>commentary", n=5), grading=2, tools=OFFERED)
    assert (got.passed, got.flags) == (False, ("template-leak",))
    assert got.reason.endswith("(the marks of the chat template leaked into the name)")
    unknown = grade(FACTORIAL, given("factorial", n=5), grading=2, tools=OFFERED)
    assert unknown.reason == "called factorial where math.factorial was expected (there is no such tool here)"
    assert unknown.flags == ()


@pytest.mark.parametrize("blame", [Blame.INFRA, Blame.ACCOUNT, Blame.CONFIG, Blame.CASE])
@pytest.mark.parametrize("gold", [None, FACTORIAL])
def test_what_is_not_the_models_fault_is_excluded(blame: Blame, gold: Any) -> None:
    fault = Fault(blame=blame, name="x", sentence="It was us.")
    got = judge(case_of(gold), OFFERED, Reading(fault=fault, flags=("a",)), grading=2, sent={})
    assert (got.passed, got.well_formed, got.wrong) == (None, None, None)
    assert (got.reason, got.fault, got.flags) == ("It was us.", fault, ("a",))


@pytest.mark.parametrize("gold", [None, FACTORIAL])
@pytest.mark.parametrize("grading", [1, 2])
def test_a_format_failure_fails_and_never_abstains(gold: Any, grading: Any) -> None:
    reading = Reading(well_formed=False, broken="truncated", broken_detail="the answer was cut off")
    got = judge(case_of(gold), OFFERED, reading, grading=grading, sent={})
    assert (got.passed, got.well_formed, got.wrong) == (False, False, None)
    assert got.reason == "no answer that can be read (truncated): the answer was cut off"


def test_a_refusal_abstains_by_the_letter_of_the_first_generation_only() -> None:
    fault = Fault(blame=Blame.MODEL, name="refusal", sentence="The model refused: no.")
    reading = Reading(fault=fault)
    assert judge(case_of(None), OFFERED, reading, grading=1, sent={}).passed
    second = judge(case_of(None), OFFERED, reading, grading=2, sent={})
    assert (second.passed, second.reason) == (False, "the model gave no answer: The model refused: no.")
    assert second.fault == fault
    assert not judge(case_of(FACTORIAL), OFFERED, reading, grading=1, sent={}).passed
    filtered = Fault(blame=Blame.MODEL, name="content_filter", sentence="Filtered.")
    assert not judge(case_of(None), OFFERED, Reading(fault=filtered), grading=1, sent={}).passed


def test_a_call_left_in_the_text_is_no_call_and_no_clean_abstention() -> None:
    reading = Reading(text='{"name": "g", "arguments": {}}', flags=("content_fallback",))
    abstained = judge(case_of(None), OFFERED, reading, grading=2, sent={})
    assert (abstained.passed, abstained.flags) == (False, ("content_fallback",))
    assert abstained.reason == "no tool should have been called; a call stands as text in the answer"
    assert judge(case_of(None), OFFERED, reading, grading=1, sent={}).passed
    expected = judge(case_of(call("g")), OFFERED, reading, grading=2, sent={})
    assert not expected.passed
    assert "a call stands as text" in expected.reason


def test_a_repaired_answer_counts_by_its_content_and_fails_under_strict_args() -> None:
    repaired = GivenCall("math.factorial", {"n": 5}, ("repaired",))
    reading = Reading(calls=(repaired,), well_formed=False, flags=("repaired",))
    got = judge(case_of(FACTORIAL), OFFERED, reading, grading=2, sent={})
    assert (got.passed, got.well_formed, got.flags) == (True, False, ("repaired",))
    strict = judge(case_of(FACTORIAL, strictArgs=True), OFFERED, reading, grading=2, sent={})
    assert (strict.passed, strict.well_formed, strict.wrong) == (False, False, None)
    assert "repaired, which strictArgs does not take" in strict.reason
    plain = judge(case_of(None, strictArgs=True), OFFERED, Reading(flags=("repaired",)), grading=2, sent={})
    assert plain.passed


def test_graders_are_kept_by_identity_and_never_mixed_up() -> None:
    for n in range(5000):
        case = case_of(call("g", n=n))
        assert judge(case, OFFERED, Reading(calls=(given("g", n=n),)), grading=1, sent={}).passed
    first, second = case_of(call("g", n=1)), case_of(call("g", n=2))
    reading = Reading(calls=(given("g", n=1, invented=1),))
    for _ in range(3):
        assert judge(first, OFFERED, reading, grading=1, sent={}).passed
        assert not judge(second, OFFERED, reading, grading=1, sent={}).passed
        assert not judge(first, OFFERED, reading, grading=2, sent={}).passed
