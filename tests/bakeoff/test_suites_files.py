"""A suite's file: what is refused, in one sentence; and that it is written in one form only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.adapters.suites import bundled_subsets, bundled_suite, load_suite, suite_bytes, write_suite
from referee.adapters.suites.files import load_subsets
from referee.errors import ConfigError, NothingMatched, RefereeError, UsageError
from referee.scoring.lint import lint
from tests.bakeoff.suites import BOOK_ROOM, case_body, suite_body, suite_of


def refusal(tmp_path: Path, data: bytes) -> RefereeError:
    path = tmp_path / "cases.json"
    path.write_bytes(data)
    with pytest.raises(RefereeError) as caught:
        load_suite(path)
    assert "\n" not in caught.value.message
    assert "cases.json" in caught.value.message
    return caught.value


WHOLE = json.dumps(suite_body()).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (WHOLE[:-20], "not JSON"),
        (b"\xef\xbb\xbf" + WHOLE, "byte order mark"),
        (WHOLE.replace(b"for tests", b"f\xfcr Tests"), "not UTF-8"),
        (WHOLE.replace(b'"version"', b'"name": "again", "version"'), "stands twice"),
        (WHOLE.replace(b"12}", b"NaN}"), "NaN"),
        (WHOLE.replace(b"12}", b"1e999}"), "no canonical JSON form"),
        (WHOLE.replace(b"Book a room.", b"\\ud800"), "no canonical JSON form"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "dictionary"),
        (b'{"schema": "referee.cases/2"}', "schema"),
    ],
    ids=["empty", "cut", "bom", "latin-1", "doubled-key", "nan", "infinite", "surrogate", "deep", "a-list", "schema"],
)
def test_a_broken_file_is_refused_in_one_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refusal(tmp_path, data).message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (suite_body(case_body(), case_body()), "the case c1 stands twice"),
        (suite_body(case_body(toolset="kitchens")), "the case c1 names the toolset kitchens"),
        (suite_body(case_body(prompt="polite")), "the case c1 names the prompt polite"),
        (suite_body(case_body(arm="other")), "the case c1 names the arm other"),
        (suite_body(case_body(twin="c2")), "the case c1 names the twin c2"),
        (suite_body(toolsets={"rooms": [BOOK_ROOM, BOOK_ROOM]}), "the tool of rooms book_room stands twice"),
        (suite_body(cases=[]), "cases"),
        (suite_body(case_body(expected_call=...)), "exactly one of expected_call"),
        (suite_body(case_body(expected_calls=[])), "exactly one of expected_call"),
        (suite_body(case_body(colour="red")), "cases.0.colour"),
        (suite_body(case_body(id="../c1")), "cases.0.id"),
        (suite_body(case_body(policy={"arrayOrder": "loose"})), "cases.0.policy.arrayOrder"),
        (suite_body(grading=3), "grading"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path, body: dict[str, Any], said: str) -> None:
    assert said in refusal(tmp_path, json.dumps(body).encode()).message


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE)), st.integers(0, 30), st.binary(max_size=8))
def test_no_damage_to_a_file_is_more_than_a_refusal(tmp_path: Path, at: int, cut: int, put: bytes) -> None:
    path = tmp_path / "cases.json"
    path.write_bytes(WHOLE[:at] + put + WHOLE[at + cut :])
    try:
        suite = load_suite(path)
    except ConfigError:  # any other error fails the test
        return
    assert load_suite(path) == suite
    assert suite_bytes(suite)
    assert isinstance(lint(suite), tuple)


def test_what_is_no_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NothingMatched, match="there is no file"):
        load_suite(tmp_path / "absent.json")
    with pytest.raises(ConfigError, match="is a directory"):
        load_suite(tmp_path)
    with pytest.raises(NothingMatched, match="no suite named 's9' is bundled") as caught:
        bundled_suite("s9")
    assert "s1" in caught.value.todo


def test_writing_and_reading_give_the_same_bytes(tmp_path: Path) -> None:
    suite = suite_of(
        case_body(policy={"arrayOrder": "set", "exactlyOne": True}, source={"derived": "persons: a dozen"}),
        case_body(id="c2", category="abstain", expected_call=None),
        case_body(
            id="c3",
            category="multi-call-ordering",
            expected_call=...,
            expected_calls=[{"name": "free_room", "arguments": {"room": "blue"}}] * 2,
        ),
    )
    path = tmp_path / "new" / "cases.json"
    write_suite(suite, path)
    again = load_suite(path)
    assert again == suite
    assert suite_bytes(again) == path.read_bytes()
    assert path.read_bytes().endswith(b"}\n")
    assert [each.name for each in path.parent.iterdir()] == ["cases.json"]


def test_a_file_is_written_over_only_when_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text("kept")
    with pytest.raises(UsageError, match="is there already"):
        write_suite(suite_of(), path)
    assert path.read_text() == "kept"
    assert [each.name for each in tmp_path.iterdir()] == ["cases.json"]
    write_suite(suite_of(), path, replace=True)
    assert load_suite(path) == suite_of()


def test_a_place_that_takes_no_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "directory").mkdir()
    for place in ("file/cases.json", "directory", "x" * 300):
        with pytest.raises(UsageError, match="cannot be written: "):
            write_suite(suite_of(), tmp_path / place, replace=True)
    write_suite(suite_of(), tmp_path / ("x" * 250))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["directory", "file", "x" * 250]


def test_subsets_are_read_strictly(tmp_path: Path) -> None:
    assert {subset.name: len(subset.cases) for subset in bundled_subsets("s1")} == {
        "s1-20": 20,
        "s1-12": 12,
        "s1-39": 39,
    }
    path = tmp_path / "subsets.toml"
    for text, said in (
        ("[[subset]\n", "subsets.toml"),
        ("[[subsets]]\n", "unknown key subsets"),
        ('[[subset]]\nname = "x"\nwhy = "y"\nrepeats = 0\ncases = ["c1"]\n', "subset"),
        ('[[subset]]\nname = "x"\nwhy = "y"\nrepeats = 1\ncases = []\n', "cases"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            load_subsets(path)
