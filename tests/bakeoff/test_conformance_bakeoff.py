"""``referee conformance`` on the vectors of the bake-off: they agree, what differs is named, odd shapes are read."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from referee.cli.app import make_app
from referee.errors import UsageError
from referee.scoring.conformance import conform, same

VECTORS = Path(__file__).parent.parent / "vectors"
COUNTS = {
    "bakeoff-grading": {"cases": 64},
    "grading2": {"cases": 38},
    "bakeoff-statistics": {"wilson": 26, "mulberry32": 9, "cluster_bootstrap": 4, "pass_hat_k": 30, "power": 1},
}


def load(kind: str) -> Any:
    return json.loads((VECTORS / f"{kind}.json").read_text(encoding="utf-8"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(make_app(), ["conformance", *arguments])


@pytest.mark.parametrize("kind", COUNTS)
def test_every_vector_agrees(kind: str) -> None:
    found = conform(load(kind))
    assert [one.sentence for one in found.differences] == []
    assert dict(found.cases) == COUNTS[kind]


@pytest.mark.parametrize("kind", COUNTS)
def test_the_vectors_that_ship_are_those_of_the_tests(kind: str) -> None:
    shipped = resources.files("referee") / "bundled" / "vectors" / f"{kind}.json"
    assert shipped.read_bytes() == (VECTORS / f"{kind}.json").read_bytes()


def test_all_that_ship_are_run_without_a_file() -> None:
    done = run()
    assert done.exit_code == 0
    for kind, counts in COUNTS.items():
        assert f"{kind}.json (shipped): all {sum(counts.values())} cases agree" in done.output


# --- each expectation counts -----------------------------------------------------------------------------------------


def test_each_changed_grade_is_named_with_its_reason(tmp_path: Path) -> None:
    document = load("bakeoff-grading")
    for index, case in enumerate(document["cases"]):
        case["passed"] = not case["passed"]
        (one,) = conform(document).differences
        assert (one.member, one.index, one.field) == ("cases", index, "passed")
        assert one.note
        case["passed"] = not case["passed"]
    document["cases"][2]["passed"] = True
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    done = run(str(file))
    assert done.exit_code == 1
    assert "1 of 64 cases differ" in done.output
    assert "cases[2] passed: expected True, got False (argument `unit`: expected celsius, got cel)" in done.output


def _other(verdict: Any) -> Any:
    return {"PASS": "FAIL", "FAIL": "PASS", "EXCLUDE": "PASS"}.get(str(verdict), "TRUNCATED")


def test_each_changed_verdict_is_named_by_its_id() -> None:
    document = load("grading2")
    for index, case in enumerate(document["cases"]):
        before, case["verdict"] = case["verdict"], _other(case["verdict"])
        (one,) = conform(document).differences
        assert (one.index, one.field, one.got) == (index, "verdict", before)
        assert one.note.startswith(f"{case['id']}: ")
        case["verdict"] = before


@pytest.mark.parametrize(
    ("member", "path", "values"),
    [
        ("wilson", ("interval", 0), 1),
        ("wilson", ("interval", 1), 1),
        ("mulberry32", ("first", 5), 2),
        ("cluster_bootstrap", ("interval", 1), 1),
        ("pass_hat_k", ("value",), 1),
        ("power", ("n",), 1),
    ],
)
def test_each_changed_figure_is_named(member: str, path: tuple[Any, ...], values: int) -> None:
    document = load("bakeoff-statistics")
    for index in range(len(document[member])):
        changed = copy.deepcopy(document[member])
        place = changed[index]
        for step in path[:-1]:
            place = place[step]
        value = place[path[-1]]
        place[path[-1]] = 0.5 if value is None else value + (1 if isinstance(value, int) else 1e-9)
        found = conform({"kind": "bakeoff-statistics", member: changed}).differences
        assert [(one.member, one.index, one.field) for one in found] == [(member, index, str(path[0]))] * values


# --- shapes that other vectors of these kinds may have ---------------------------------------------------------------

F = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALL = {"name": "f", "arguments": {"a": 1}}
TEXT = json.dumps(CALL["arguments"])


def graded(gold: Any, output: Any, **more: Any) -> str:
    case = {
        "id": "x",
        "kind": "grade",
        "schema": F,
        "gold": gold,
        "output": output,
        "policy": {},
        "verdict": "?",
        **more,
    }
    (one,) = conform({"kind": "grading2", "cases": [case]}).differences
    return str(one.got)


@pytest.mark.parametrize(
    "output",
    [
        [CALL],
        [{"name": "f", "arguments": TEXT}],
        [{"id": "", "type": "function", "function": {"name": "f", "arguments": TEXT}}],
        CALL,
        {"tool_calls": [{"function": CALL}]},
        {"calls": [CALL], "text": "I call it."},
        {"function_call": {"name": "f", "arguments": TEXT}},
        {"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": TEXT}}]}}]},
        {"http": 200, "tool_calls": [{"function": CALL}]},
        {"output": [{"type": "function_call", "name": "f", "arguments": TEXT}]},
        {"message": {"role": "assistant", "tool_calls": [{"function": CALL}]}},
        [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}],
        {"deltas": [{"index": 0, "function": {"name": "f", "arguments": '{"a"'}}, {"function": {"arguments": ":1}"}}]},
    ],
)  # fmt: skip
def test_a_call_in_any_form_is_graded(output: Any) -> None:
    assert graded(CALL, output) == "PASS"
    assert graded({"name": "f", "arguments": {"a": 2}}, output) == "FAIL"
    assert graded(None, output) == "FAIL"
    assert graded([CALL], output, policy={"callOrder": "any"}) == "PASS"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ([], "PASS"),
        ("Which city do you mean?", "PASS"),
        ({"content": "Which city?", "finish_reason": "stop"}, "PASS"),
        ({"text": "Which city?", "calls": []}, "PASS"),
        ({"content": "Which", "finish_reason": "length"}, "FAIL"),
        ("", "FAIL"),
        (None, "FAIL"),
        ({"content": None, "finish_reason": "tool_calls", "tool_calls": []}, "FAIL"),
        ('{"name": "f", "arguments": {"a": 1}}', "FAIL"),
        ({"tool_calls": [{"function": None}]}, "FAIL"),
        ({"http": 400, "error": {"code": "content_filter", "message": "no"}}, "FAIL"),
        ({"http": 402}, "EXCLUDE"),
        ({"http": 503, "headers": {"retry-after": "3"}}, "EXCLUDE"),
        ({"http": 400, "body": "DEGRADED function cannot be invoked"}, "EXCLUDE"),
        ({"http": 401}, "EXCLUDE"),
        ({"http": 413}, "EXCLUDE"),
        ({"http": 200, "choices": None}, "EXCLUDE"),
        ({"error": {"code": 429, "message": "slow down"}}, "EXCLUDE"),
        ({"timeout": True}, "EXCLUDE"),
        ({"error": "timeout"}, "EXCLUDE"),
    ],
)
def test_an_answer_without_a_call_where_none_is_expected(output: Any, said: str) -> None:
    assert graded(None, output) == said


def test_schemas_of_any_form_and_names_as_sent() -> None:
    assert graded(CALL, [CALL], schema={"name": "f"}) == "PASS"
    assert graded(CALL, [CALL], schema=None) == "PASS"
    assert graded(CALL, [CALL], schema=[{"type": "function", "function": F}, {"name": "g"}]) == "PASS"
    dotted = {"name": "m.f", "arguments": {}}
    assert (
        graded(dotted, [{"name": "m_f", "arguments": {}}], schema={"name": "m.f"}, policy={"sentName": "m_f"}) == "PASS"
    )
    assert graded(dotted, [{"name": "m_f"}], schema={"name": "m.f"}, policy={"sentName": {"m_f": "m.f"}}) == "PASS"
    envelope = json.dumps({"tool_calls": [CALL]})
    assert graded(CALL, envelope) == "FAIL"
    assert graded(CALL, envelope, lane="inlined") == "PASS"
    assert graded(CALL, {"stdout": envelope, "exit_code": 0}, lane="cli") == "PASS"


def parsed(raw: Any, lane: str = "native") -> Any:
    case = {"id": "x", "kind": "parse", "raw": raw, "lane": lane, "verdict": "?"}
    (one,) = conform({"kind": "grading2", "cases": [case]}).differences
    return one.got


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"arguments": TEXT}, {"a": 1}),
        ({"arguments": {"a": 1}}, {"a": 1}),
        ({"input": {"a": 1}}, {"a": 1}),
        ({"type": "tool_use", "name": "f", "input": {"a": 1}}, {"a": 1}),
        ({"function_call": {"name": "f", "arguments": TEXT}}, {"a": 1}),
        ({"function": {"name": "f", "arguments": TEXT}}, {"a": 1}),
        ({"tool_calls": [{"function": {"name": "f", "arguments": TEXT}}], "finish_reason": "stop"}, {"a": 1}),
        ({"tool_calls": [{"function": CALL}, {"function": {"name": "g", "arguments": "{}"}}]}, [{"a": 1}, {}]),
        ({"arguments": '{"a":1}{"a":2}'}, "PARSE_ERROR"),
        ({"arguments": '{"a": NaN}'}, "PARSE_ERROR"),
        ({"arguments": f'{{"a": {"9" * 5000}}}'}, "PARSE_ERROR"),
        ({"arguments": '{"a": 1', "finish_reason": "length"}, "TRUNCATED"),
        ({"content": "no call"}, "NO_CALL"),
        ({"content": json.dumps(CALL)}, "NO_CALL"),
        ({"content": "", "finish_reason": "length"}, "TRUNCATED"),
        ({"content": None}, "NO_CALL"),
        ("no call", "NO_CALL"),
    ],
)
def test_raw_shapes_are_read(raw: Any, said: Any) -> None:
    assert same(said, parsed(raw))


def test_an_inlined_lane_reads_the_envelope() -> None:
    assert parsed({"content": json.dumps({"tool_calls": [CALL]})}, "inlined") == {"a": 1}
    assert parsed(json.dumps({"tool_calls": []}), "inlined") == "NO_CALL"


def test_oracles_of_the_first_generation_in_other_forms() -> None:
    def passed(case: Any, calls: Any) -> Any:
        vector = {"case": case, "calls": calls, "passed": True}
        return conform({"kind": "bakeoff-grading", "cases": [vector]}).differences == ()

    assert passed({"expected_call": None, "expected_calls": [CALL]}, [CALL])
    assert passed({"expected_calls": []}, [])
    assert passed({"expected_call": CALL, "policy": None}, [{"name": "g"}, CALL])
    assert passed({"expected_call": {"name": "g"}}, [{"name": "g", "arguments": None}])
    assert not passed({"expected_call": CALL, "grading": 2}, [{"name": "f", "arguments": {"a": 1, "zz": 1}}])


def test_figures_that_are_not_defined_are_null() -> None:
    document = {
        "kind": "bakeoff-statistics",
        "wilson": [{"rate": 0.5, "n": 0, "interval": None}],
        "cluster_bootstrap": [{"cases": [[], []], "seed": 1, "iterations": 10, "interval": None}],
        "pass_hat_k": [{"cases": [[1, 1]], "k": 2, "value": None}],
    }
    assert conform(document).differences == ()


@pytest.mark.parametrize(
    ("a", "b", "agrees"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, None]}, {"a": [1, None]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 1], False),
        ({"a": 10**17}, {"a": 10**17 + 1}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({}, [], False),
        ({}, "NO_CALL", False),
        ([0.1 + 0.2], [0.3], True),
        ([0.3], [0.300001], False),
    ],
)
def test_when_two_documents_agree(a: Any, b: Any, agrees: bool) -> None:
    assert same(a, b) is agrees
    assert same(b, a) is agrees


# --- broken files ----------------------------------------------------------------------------------------------------


def _change(file: str, member: str, **values: Any) -> Any:
    document = load(file)
    document[member][0] = {**document[member][0], **values}
    return document


GRADE, PARSE, FIGURES = "bakeoff-grading", "grading2", "bakeoff-statistics"
BROKEN: list[tuple[str, Callable[[], Any]]] = [
    ("cases[0] is not as it must be: passed is true or false", lambda: _change(GRADE, "cases", passed=1)),
    ("case is missing or no object", lambda: _change(GRADE, "cases", case=None)),
    ("calls is missing or no list", lambda: _change(GRADE, "cases", calls={})),
    ("a call is an object with a name", lambda: _change(GRADE, "cases", calls=[{"arguments": {}}])),
    ("exactly one of expected_call", lambda: _change(GRADE, "cases", case={})),
    ("policy.fuzzy: Extra", lambda: _change(GRADE, "cases", case={"expected_call": CALL, "policy": {"fuzzy": 1}})),
    ("no generation 3", lambda: _change(GRADE, "cases", case={"expected_call": None, "grading": 3})),
    ("have no member 'grade'", lambda: {"kind": PARSE, "grade": []}),
    ("there is no kind 'read' of case", lambda: _change(PARSE, "cases", kind="read")),
    ("output is missing", lambda: {"kind": PARSE, "cases": [{"kind": "grade", "gold": None}]}),
    ("a lane is native, inlined or cli", lambda: _change(PARSE, "cases", lane="wire")),
    ("http is a status", lambda: _change(PARSE, "cases", output={"http": "429"})),
    ("an answer is text, a list of calls or an object", lambda: _change(PARSE, "cases", output=5)),
    ("a schema is an object", lambda: _change(PARSE, "cases", schema="f")),
    ("schema: Field required", lambda: _change(PARSE, "cases", schema={})),
    ("wilson[0] is not as it must be: n is a whole number", lambda: _change(FIGURES, "wilson", n=1.5)),
    ("rate is a number", lambda: _change(FIGURES, "wilson", rate="1")),
    ("each 0 or 1", lambda: _change(FIGURES, "cluster_bootstrap", cases=[[2]])),
    ("pairs: passes and valid attempts", lambda: _change(FIGURES, "pass_hat_k", cases=[[1]])),
    ("the member power is no list", lambda: {"kind": FIGURES, "power": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "make"), BROKEN, ids=[said for said, _ in BROKEN])
def test_a_broken_file_gets_one_sentence(said: str, make: Callable[[], Any], tmp_path: Path) -> None:
    document = make()
    with pytest.raises(UsageError) as caught:
        conform(document)
    assert said in caught.value.message
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert run(str(file)).exit_code == 2


@pytest.mark.slow
def test_running_the_vectors_of_bring_up_needs_no_numpy() -> None:
    code = (
        "import json, sys; from pathlib import Path; from referee.scoring.conformance import conform; "
        "conform(json.loads(Path(sys.argv[1]).read_text())); "
        "print(sorted({'numpy', 'scipy', 'duckdb', 'aiohttp'} & set(sys.modules)))"
    )
    for name, needed in (("bringup", []), ("bakeoff-grading", []), ("bakeoff-statistics", ["numpy"])):
        done = subprocess.run(
            [sys.executable, "-c", code, str(VECTORS / f"{name}.json")], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(needed), name
