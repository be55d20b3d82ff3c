# ruff: noqa: RUF001 — characters that look alike are what this is about
"""The value grammar: normal form of strings, the written forms of numbers, when two of them agree, token boundaries."""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.scoring.toolcalls import values
from referee.scoring.toolcalls.matching import pair
from referee.scoring.toolcalls.values import ambiguous, contains, normal, number, same_number


@pytest.mark.parametrize(
    ("text", "read"),
    [
        # plain decimals
        ("12", 12), ("+12", 12), ("-12", -12), ("12.", 12.0), (".5", 0.5), ("-.5e2", -50.0), ("1e3", 1000.0),
        ("1E-3", 0.001), ("007", 7), (" 250\n", 250), ("\u00a0250", 250), ("１０", 10), ("1.5", 1.5), ("1.000", 1.0),
        ("9007199254740993", 9007199254740993), ("0", 0), ("-0.0", 0.0),
        # groups
        ("1,000", 1000), ("1,000,000.25", 1000000.25), ("-1,000", -1000), ("1,000.", 1000.0), ("1.000.000", 1000000),
        ("12.345.678", 12345678), ("1_000", 1000), ("1_0_0", 100),
        # everything else is no number
        ("", None), (" ", None), ("1,5", None), ("1 000", None), ("5 EUR", None), ("0x10", None), ("NaN", None),
        ("Infinity", None), ("inf", None), ("1,00", None), ("1,0000", None), ("1000,000", None), ("1.000,5", None),
        ("1.000.00", None), ("1.00.000", None), ("1__000", None), ("_1", None), ("1_", None), ("1_000.5", None),
        ("1e", None), ("e5", None), (".", None), ("-", None), ("--1", None), ("1.5.5", None), ("½", None), ("٥", None),
        ("1e400", None), ("1e-400", None), ("−5", None), ("1,000e3", None), ("12a", None), ("9" * 5000, None),
        ("true", None), ("\ud800", None),
    ],
)  # fmt: skip
def test_only_the_written_forms_are_numbers(text: str, read: float | None) -> None:
    got = number(text)
    assert got == read
    assert type(got) is type(read)


@pytest.mark.parametrize("value", [True, False, None, [1], {"a": 1}, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_not_read_as_one(value: Any) -> None:
    assert number(value) is None


@given(st.integers(), st.sampled_from(["{}", "{:,}", "{:_}", " {} ", "{}.", "{}e0", "+{}"]))
def test_an_integer_is_the_same_in_every_written_form(value: int, form: str) -> None:
    if form == "+{}" and value < 0:
        return
    read = number(form.format(value))
    if read is None:  # beyond a double
        assert "e" in form or "." in form
        assert abs(value) > 10**300
        return
    assert same_number(value, read)


@given(st.integers(min_value=10**6, max_value=10**30))
def test_groups_by_dots(value: int) -> None:
    assert number(f"{value:,}".replace(",", ".")) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_from_its_text(value: float) -> None:
    read = number(repr(value))
    assert read is not None
    assert same_number(value, read)


@given(st.text(alphabet="0123456789.,_eE+- \u00a0１", max_size=12))
@settings(max_examples=300)
def test_what_is_read_is_what_the_digits_say(text: str) -> None:
    read = number(text)
    if read is None:
        return
    plain = unicodedata.normalize("NFKC", text).strip().replace(",", "").replace("_", "")
    if plain.count(".") > 1:
        plain = plain.replace(".", "")
    assert same_number(read, float(plain))
    assert re.search("[0-9]", plain)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (9007199254740992, 9007199254740993, False),
        (10**400, 10**400, True),
        (10**400, 1.5, False),
        (1.5, 10**400, False),
        (0.3, 0.30000000000000004, True),
        (10**12, 10.0**12 + 100, True),
        (10**12, 10.0**12 + 10_000, False),
        (0, 0.0, True),
        (0, 1e-300, False),
        (5, 5.0, True),
    ],
)
def test_integers_agree_exactly_and_anything_else_within_a_billionth(one: float, other: float, same: bool) -> None:
    assert same_number(one, other) is same
    assert same_number(other, one) is same


@pytest.mark.parametrize(
    ("gold", "text", "said"),
    [
        (1000, "1.000", True), (-12345, "-12.345", True), (1, "1.000", False), (1000, "1000", False),
        (1.5, "1,5", True), (1.25, "1,25", True), (15, "1,5", False), (1000, "1,000", False), (1, "1,000", True),
        (1000, 1.0, False), (1000, "x", False), (1000, "１.０００", True), (1000, "1." + "0" * 5000, False),
    ],
)  # fmt: skip
def test_a_text_is_ambiguous_where_another_locale_reads_the_gold_in_it(gold: float, text: Any, said: bool) -> None:
    assert ambiguous(gold, text) is said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  A \t B\n", "a b"),
        ("Straße", "strasse"),
        ("ﬁt", "fit"),
        ("A\u0301", "á"),
        ("\u3000全角ＡＢＣ\u3000", "全角abc"),
        ("\ud800X", "\ud800x"),
        ("", ""),
    ],
)
def test_the_normal_form_of_a_string(text: str, said: str) -> None:
    assert normal(text) == said


@given(st.text())
def test_the_normal_form_has_single_spaces_and_no_case(text: str) -> None:
    said = normal(text)
    assert said == " ".join(said.split())
    assert said == " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@pytest.mark.timeout(60)
def test_an_endless_run_of_marks_is_left_as_it_is() -> None:
    marks = "a" + "\u0301\u0316" * 500_000
    assert normal(marks) == marks
    word = "a" + "\u0316\u0301" * 20
    assert normal(f"{word} " * 500) == " ".join([unicodedata.normalize("NFKC", word)] * 500)


words = st.lists(st.text(alphabet="abcß12", min_size=1, max_size=4), min_size=1, max_size=4)


@given(words, words, words)
def test_whole_words_are_contained_and_parts_of_words_are_not(
    before: list[str], part: list[str], after: list[str]
) -> None:
    inner = " ".join(part)
    assert contains(" ".join([*before, *part, *after]), inner)
    assert contains(f"({inner})", inner)
    for glued in (f"x{inner}", f"{inner}x", f"_{inner}", f"x{inner}x"):
        assert not contains(glued, inner)


def test_a_later_place_counts_too() -> None:
    assert contains("steaks and steak", "steak")
    assert not contains("steaks and beefsteak", "steak")


@pytest.mark.timeout(60)
def test_a_place_behind_many_within_words_is_found() -> None:
    for many in ("ha" * 500_000, "-1500 " * 200_000, "hahaha " * 200_000, "_haha" * 200_000):
        for part in ("haha", "1500", "(haha", "haha)"):
            assert not contains(many, part)
            assert contains(f"{many} ({part})", part)
            assert contains(f"({part}) {many}", part)


@given(st.text(alphabet="a -.1_\u0301", max_size=40), st.text(alphabet="a -.1_\u0301", min_size=1, max_size=3))
@settings(max_examples=300)
def test_both_ways_to_search_say_the_same(text: str, part: str) -> None:
    said = contains(text, part)
    with mock.patch.object(values, "_FEW", 0):
        assert contains(text, part) is said
    assert said is False or part in text


@given(st.lists(st.lists(st.integers(0, 4), max_size=5, unique=True), max_size=5))
@settings(max_examples=150)
def test_the_largest_pairing_is_found(fits: list[list[int]]) -> None:
    partners = pair(fits, 5)
    taken = [other for other in partners if other >= 0]
    assert len(taken) == len(set(taken))
    assert all(other in candidates for other, candidates in zip(partners, fits, strict=True) if other >= 0)
    choices = itertools.product(*[[*candidates, None] for candidates in fits])
    best = max(
        sum(one is not None for one in choice)
        for choice in choices
        if len({one for one in choice if one is not None}) == sum(one is not None for one in choice)
    )
    assert len(taken) == best
