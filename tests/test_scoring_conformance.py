"""``referee conformance``: the golden vectors agree, and each way to differ or to be broken is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.scoring.conformance import conform, same

VECTORS = Path(__file__).parent / "vectors" / "bringup.json"


@pytest.fixture
def vectors() -> Any:
    return json.loads(VECTORS.read_text(encoding="utf-8"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(make_app(), ["conformance", *arguments])


def test_every_golden_vector_agrees(vectors: Any) -> None:
    found = conform(vectors)
    assert found.differences == ()
    assert dict(found.cases) == {"score": 40, "rejected_reports": 3, "spread": 31, "board": 11, "verdict": 40}


def test_the_vectors_that_ship_are_those_of_the_tests() -> None:
    shipped = resources.files("referee") / "bundled" / "vectors" / "bringup.json"
    assert shipped.read_bytes() == VECTORS.read_bytes()
    done = run()
    assert done.exit_code == 0
    assert "all 125 cases agree" in done.output


def _bump(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 0.01
    return "runs" if value is None or value != "runs" else "could_not_verify"


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("score", ("expect", "install")),
        ("score", ("expect", "start")),
        ("score", ("expect", "fixes")),
        ("score", ("expect", "depth")),
        ("score", ("expect", "total")),
        ("score", ("expect", "outcome")),
        ("spread", ("spread",)),
        ("spread", ("unstable",)),
        ("board", ("board_score",)),
        ("verdict", ("verdict",)),
    ],
)
def test_each_changed_expectation_is_named(vectors: Any, tmp_path: Path, member: str, path: tuple[str, ...]) -> None:
    for index, case in enumerate(vectors[member]):
        place = case
        for key in path[:-1]:
            place = place[key]
        before = place[path[-1]]
        place[path[-1]] = _bump(before)
        (one,) = conform({"kind": "bringup", member: vectors[member]}).differences
        assert (one.member, one.index, one.field) == (member, index, path[-1])
        assert one.sentence.startswith(f"{member}[{index}] {path[-1]}: expected ")
        place[path[-1]] = before
    place[path[-1]] = _bump(before)
    changed = vectors
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    done = run(str(file))
    assert done.exit_code == 1
    assert f"{member}[{index}]" in done.output
    assert "1 of 125 cases differ" in done.output


def test_a_report_that_should_be_rejected_but_is_not_is_named(vectors: Any) -> None:
    vectors["rejected_reports"][1] = {"errors_encountered": 2, "errors_fixed": 2}
    (one,) = conform(vectors).differences
    assert one.sentence == "rejected_reports[1] report: expected 'rejected', got 'accepted'"


def test_reports_may_give_a_list_of_errors() -> None:
    error = {"what": "x", "fixed": True, "how": ""}
    report = {
        "installed": True,
        "started": True,
        "test_depth": "tier1_real",
        "errors": [error, {**error, "fixed": False}],
    }
    full = {**report, "verified_how": "not verified", "final_state": "It ran."}
    expect = {"install": 30, "start": 30, "fixes": 10.0, "depth": 20, "total": 90.0, "outcome": "pass_full"}
    cases = [{"report": one, "timed_out": False, "expect": expect} for one in (report, full)]
    assert conform({"kind": "bringup", "score": cases}).differences == ()
    bad = {"kind": "bringup", "rejected_reports": [{**report, "errors_fixed": 3}, {**full, "errors_fixed": 3}]}
    assert conform(bad).differences == ()


@pytest.mark.parametrize(
    ("runs", "spread", "unstable"),
    [
        ([], 0.0, False),
        ([5], 0.0, False),
        ([0, 0], 0.0, False),
        ([40, 60], 40.0, True),
        ([30, 30, 30, 39], 30.0, False),
    ],
)
def test_sets_of_other_sizes(runs: list[float], spread: float, unstable: bool) -> None:
    case = {"runs": runs, "spread": spread, "unstable": unstable}
    assert conform({"kind": "bringup", "spread": [case]}).differences == ()


def test_boards_at_their_edges() -> None:
    cases = [
        {"results": {}, "board_score": None},
        {"results": {"a": {"runs": [0, 0, 0], "under_review": False}}, "board_score": 0},
        {"results": {"a": {"runs": [0, 0, 0], "under_review": True}}, "board_score": None},
        {"results": {"a": {"runs": [100, 100, 70]}, "b": {"runs": [80]}}, "board_score": 90.0},
        {"results": {"a": {"runs": []}}, "board_score": None},
    ]
    assert conform({"kind": "bringup", "board": cases}).differences == ()


@pytest.mark.parametrize(
    ("expected", "got", "agrees"),
    [
        (90, 90.0, True),
        (86.666667, 86 + 2 / 3, True),
        (86.666668, 86 + 2 / 3, False),
        (30.099999999999994, 30.1, True),
        (30.0, 30.0001, False),
        (1, True, False),
        (0, False, False),
        (None, 0, False),
        (0, None, False),
        (None, None, True),
        ("runs", "runs", True),
        ("90", 90, False),
    ],
)
def test_when_two_values_agree(expected: Any, got: Any, agrees: bool) -> None:
    assert same(expected, got) is agrees


def _without(member: str, key: str) -> Callable[[Any], Any]:
    def change(vectors: Any) -> Any:
        del vectors[member][0][key]
        return vectors

    return change


BROKEN: list[tuple[str, Any]] = [
    ("names its kind", lambda _: []),
    ("names its kind", lambda _: {"score": []}),
    ("no vectors of the kind 'bringup2'", lambda v: {**v, "kind": "bringup2"}),
    ("no member with cases", lambda _: {"kind": "bringup"}),
    ("have no member 'scores'", lambda v: {**v, "scores": []}),
    ("score is no list", lambda v: {**v, "score": {}}),
    ("score[0] is not as it must be: expect is missing", _without("score", "expect")),
    ("score[0] is not as it must be: report is missing", _without("score", "report")),
    ("spread[0] is not as it must be: runs is a list of numbers", _without("spread", "runs")),
    ("board[0] is not as it must be: results is missing", _without("board", "results")),
    ("board[0] is not as it must be: board_score is missing", _without("board", "board_score")),
    ("verdict[0] is not as it must be", _without("verdict", "attempts")),
    ("an attempt's agent", lambda v: {**v, "verdict": [{"attempts": [{"agent": "x"}], "verdict": "runs"}]}),
    ("there is no outcome 'won'", lambda v: {**v, "verdict": [{"attempts": [{"outcome": "won"}], "verdict": "runs"}]}),
    ("timed_out is true or false", lambda v: {**v, "score": [{**v["score"][0], "timed_out": 1}]}),
    ("unknown field 'bonus'", lambda v: {**v, "score": [{**v["score"][0], "expect": {"bonus": 1}}]}),
    ("a report is an object", lambda v: {**v, "rejected_reports": [3]}),
]


@pytest.mark.parametrize(("said", "change"), BROKEN, ids=[said for said, _ in BROKEN])
def test_a_broken_vector_file_gets_one_sentence(
    vectors: Any, tmp_path: Path, said: str, change: Callable[[Any], Any]
) -> None:
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(change(vectors)), encoding="utf-8")
    done = run(str(file))
    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"kind": NaN}', b'{"kind": 1, "kind": 2}', b"[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    assert run(str(file)).exit_code == 2


def test_a_kind_that_is_not_implemented_could_not_be_verified(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"kind": "hardware", "classes": []}', encoding="utf-8")
    done = run(str(file))
    assert done.exit_code == 4
    assert "not implemented" in done.output


def test_a_missing_file_matches_nothing(tmp_path: Path) -> None:
    done = run(str(tmp_path / "absent.json"))
    assert getattr(done.exception, "exit_code", None) == 5


def test_the_json_document_tells_every_file(vectors: Any, tmp_path: Path) -> None:
    vectors["verdict"][8]["verdict"] = "runs"
    changed, other = tmp_path / "changed.json", tmp_path / "other.json"
    changed.write_text(json.dumps(vectors), encoding="utf-8")
    other.write_text('{"kind": "redaction"}', encoding="utf-8")
    done = run("--json", str(VECTORS), str(changed), str(other))
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["schema"] == "referee.conformance/1"
    assert [one["status"] for one in document["files"]] == ["agrees", "differs", "not_implemented"]
    (one,) = document["files"][1]["differences"]
    assert (one["member"], one["index"], one["expected"], one["got"]) == ("verdict", 8, "runs", "not_yet_verified")
