"""The importer of BFCL: the forms of its rows, a wheel made here, and the real wheel from the registry."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.suites import bfcl, load_suite
from referee.adapters.suites.bfcl_forms import arguments_of, schema_of
from referee.core.answers import GivenCall
from referee.core.cases import Suite
from referee.errors import DigestMismatch, NothingMatched, UsageError
from referee.scoring.lint import lint, without_refused
from referee.scoring.toolcalls import grade_calls

REFEREE = (sys.executable, "-m", "referee.cli.app")
KNOWN_BAD = {
    "live_simple_106-63-0": "unsatisfiable-gold",
    "live_simple_112-68-0": "unsatisfiable-gold",
    "live_multiple_862-181-3": "gold-not-in-schema",
    "live_multiple_964-207-0": "gold-not-in-schema",
    "live_multiple_87-38-4": "gold-outside-enum",
}


def function(name: str = "shop.find", **properties: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Finds.",
        "parameters": {"type": "dict", "properties": properties, "required": []},
    }


def row(name: str, ask: str, *functions: dict[str, Any], before: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    return {"id": name, "question": [[*before, {"role": "user", "content": ask}]], "function": list(functions)}


def wheel(tmp_path: Path, questions: dict[str, list[Any]], answers: dict[str, list[Any]]) -> Path:
    """A wheel with the files that the importer reads; those that are not given are empty."""
    names = [*bfcl._IMPORTED, "simple_java", "live_relevance"]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        for name in names:
            made.writestr(f"bfcl_eval/data/BFCL_v4_{name}.json", "\n".join(map(json.dumps, questions.get(name, []))))
            made.writestr(
                f"bfcl_eval/data/possible_answer/BFCL_v4_{name}.json", "\n".join(map(json.dumps, answers.get(name, [])))
            )
        made.writestr("bfcl_eval/data/unused/BFCL_v4_simple_python.json", "not looked at")
        made.writestr("bfcl_eval-1.2.dist-info/METADATA", "Name: bfcl-eval")
    path = tmp_path / "bfcl_eval-1.2-py3-none-any.whl"
    path.write_bytes(data.getvalue())
    return path


def test_types_become_json_schema() -> None:
    given = {
        "type": "dict",
        "required": ["a"],
        "properties": {
            "a": {"type": "float", "description": "A.", "optional": True, "default": 1.5},
            "b": {"type": "tuple", "items": {"type": "any"}},
            "c": {"type": "array", "items": {"type": "string"}, "enum": ["x", "y"]},
            "d": {"type": "dict", "properties": {"e": {"type": "integer"}}, "additionalProperties": {"type": "dict"}},
        },
    }
    assert schema_of(given) == {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "number", "description": "A.", "default": 1.5},
            "b": {"type": "array", "items": {}},
            "c": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
            "d": {
                "type": "object",
                "properties": {"e": {"type": "integer"}},
                "additionalProperties": {"type": "object"},
            },
        },
    }


@pytest.mark.parametrize(
    ("kind", "values", "gold"),
    [
        ({"type": "integer"}, [5], 5),
        ({"type": "integer"}, [5, 6], {"anyOf": [5, 6]}),
        ({"type": "integer"}, ["", 5], {"anyOf": [5, None]}),
        ({"type": "string"}, ["Berlin"], "Berlin"),
        ({"type": "string"}, ["kg"], {"eq": "kg"}),
        ({"type": "string"}, [""], {"anyOf": [{"eq": ""}, None]}),
        ({"type": "string"}, ["Berlin", ""], {"anyOf": ["Berlin", {"eq": ""}, None]}),
        ({"type": "boolean"}, [], {"anyOf": []}),
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, [["ab", "Berlin"]], [{"eq": "ab"}, "Berlin"]),
        (
            {"type": "object", "properties": {"size": {"type": "string"}, "hot": {"type": "boolean"}}},
            [{"size": ["large", "big"], "hot": [True, ""]}],
            {"size": {"anyOf": ["large", {"eq": "big"}]}, "hot": {"anyOf": [True, None]}},
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            [[{"n": [1]}, {"n": [2, 3]}]],
            [{"n": 1}, {"n": {"anyOf": [2, 3]}}],
        ),
    ],
)
def test_lists_of_possible_answers_become_golds(kind: dict[str, Any], values: list[Any], gold: Any) -> None:
    assert arguments_of({"a": values}, {"properties": {"a": kind}}) == {"a": gold}


def test_rows_become_cases_of_their_category(tmp_path: Path) -> None:
    find = function(city={"type": "string"}, unit={"type": "string"})
    rude = ({"role": "system", "content": "Be brief."},)
    imported = bfcl.import_wheel(
        wheel(
            tmp_path,
            {
                "simple_python": [row("simple_python_0", "Find Berlin in km.", find)],
                "live_multiple": [row("live_multiple_0-0-0", "找 Berlin", find, function("shop.sell"), before=rude)],
                "parallel": [row("parallel_0", "Find Berlin, then Paris.", find)],
                "irrelevance": [row("irrelevance_0", "Sing!", find)],
                "simple_java": [row("simple_java_0", "x", find)] * 3,
                "live_relevance": [row("live_relevance_0", "x", find)],
            },
            {
                "simple_python": [
                    {"id": "simple_python_0", "ground_truth": [{"shop.find": {"city": ["Berlin"], "unit": ["km", ""]}}]}
                ],
                "live_multiple": [{"id": "live_multiple_0-0-0", "ground_truth": [{"shop.find": {"city": ["Berlin"]}}]}],
                "parallel": [
                    {
                        "id": "parallel_0",
                        "ground_truth": [{"shop.find": {"city": ["Berlin"]}}, {"shop.find": {"city": ["Paris"]}}],
                    }
                ],
            },
        ),
        any_version=True,
    )
    suite = imported.suite
    assert lint(suite) == ()
    assert imported.unreadable == {}
    assert imported.skipped == {"simple_java": (3, "types of Java"), "live_relevance": (1, "no gold: any call will do")}
    assert suite.version == "1.2-1"
    assert [(case.id, case.category, case.language) for case in suite.cases] == [
        ("simple_python_0", "simple-call", "en"),
        ("live_multiple_0-0-0", "tool-selection", "zh"),
        ("parallel_0", "multi-call-ordering", "en"),
        ("irrelevance_0", "abstain", "en"),
    ]
    simple, multiple, parallel, abstain = suite.cases
    assert simple.policy.exactly_one
    assert suite.prompts[multiple.prompt or ""] == "Be brief."
    assert simple.toolset == parallel.toolset == abstain.toolset != multiple.toolset
    assert abstain.abstains

    calls = [GivenCall("shop.find", {"city": city}) for city in ("Paris", "Berlin")]
    assert grade_calls(parallel, suite.tools(parallel), calls, grading=2).passed
    assert not grade_calls(parallel, suite.tools(parallel), calls[:1] * 2, grading=2).passed
    for arguments, passed in (
        ({"city": "Berlin"}, True),
        ({"city": "Berlin", "unit": "km"}, True),
        ({"city": "Berlin", "unit": ""}, True),
        ({"city": "Berlin", "unit": "kmh"}, False),
        ({"unit": "km"}, False),
    ):
        assert grade_calls(simple, suite.tools(simple), [GivenCall("shop.find", arguments)], grading=2).passed is passed


def test_a_row_that_cannot_be_a_case_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    find = function(city={"type": "string"})
    rows = [
        row("simple_python_0", "Find Berlin.", find),
        row("simple_python_1", "no answer for it", find),
        row("bad id", "Find Berlin.", find),
        {"id": "simple_python_3", "question": [[], []], "function": []},
        {"id": "simple_python_4"},
    ]
    gold = [
        {"id": one["id"], "ground_truth": [{"shop.find": {"city": ["Berlin"]}}]}
        for one in rows
        if one["id"] != "simple_python_1"
    ]
    imported = bfcl.import_wheel(wheel(tmp_path, {"simple_python": rows}, {"simple_python": gold}), any_version=True)
    assert [case.id for case in imported.suite.cases] == ["simple_python_0"]
    assert set(imported.unreadable) == {"simple_python_1", "bad id", "simple_python_3", "simple_python_4"}
    assert all(imported.unreadable.values())


@pytest.mark.parametrize(
    ("questions", "answers", "said"),
    [
        ([[1]], [], "has a line that is no object"),
        ([row("simple_python_0", "x", function())], [["x"]], "has a line that is no object"),
        ([row("simple_python_0", "x", function())], [{"x": 1}], "no row that can be a case: simple_python_0: KeyError"),
        ([row("simple_python_0", "x", function())], [{"id": "simple_python_0", "ground_truth": []}], "IndexError"),
        ([row("simple_python_0", "x", function())], [{"id": "simple_python_0", "ground_truth": 5}], "TypeError"),
        ([], [], "the wheel has no row that can be a case"),
    ],
)
def test_another_wheel_whose_rows_are_none_is_refused_in_one_sentence(
    tmp_path: Path, questions: list[Any], answers: list[Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        bfcl.import_wheel(wheel(tmp_path, {"simple_python": questions}, {"simple_python": answers}), any_version=True)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_bytes_that_are_no_text_are_no_rows(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"simple_python": ["x"]}, {})
    with zipfile.ZipFile(path) as made:
        members = {name: made.read(name) for name in made.namelist()}
    with zipfile.ZipFile(path, "w") as made:
        for name, data in members.items():
            made.writestr(name, data.replace(b"x", b"\xff"))
    with pytest.raises(UsageError, match="is no JSONL"):
        bfcl.import_wheel(path, any_version=True)


def test_what_is_not_the_pinned_wheel_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {}, {})
    with pytest.raises(DigestMismatch, match="is not the pinned wheel") as caught:
        bfcl.import_wheel(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in caught.value.message
    with pytest.raises(NothingMatched, match="there is no file"):
        bfcl.import_wheel(tmp_path / "absent.whl")
    path.write_bytes(b"PK no zip")
    with pytest.raises(UsageError, match="is no wheel"):
        bfcl.import_wheel(path, any_version=True)
    with zipfile.ZipFile(path, "w") as empty:
        empty.writestr("other/data.json", "{}")
    with pytest.raises(UsageError, match="no file of questions"):
        bfcl.import_wheel(path, any_version=True)
    path = wheel(tmp_path, {"simple_python": ["x"]}, {})
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"x '))
    with pytest.raises(UsageError):
        bfcl.import_wheel(path, any_version=True)


@pytest.mark.registry
@pytest.mark.slow
def test_the_real_wheel_gives_a_gate_size_suite_and_its_bad_golds_are_refused_by_name(tmp_path: Path) -> None:
    command = [*REFEREE, "bakeoff", "cases", "import-bfcl", "--out", str(tmp_path / "bfcl.json"), "--json"]
    done = subprocess.run([*command, "--workspace", str(tmp_path / "ws")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert sum(said["rows"].values()) + sum(one["rows"] for one in said["skipped"].values()) == 3641
    assert said["unreadable"] == {}
    assert said["abstain"] == 1124
    assert said["with_gold"] == 1911
    refused = {one["case"]: [each["rule"] for each in one["objections"]] for one in said["refused"]}
    for case, rule in KNOWN_BAD.items():
        assert rule in refused[case]
    assert len(refused) + said["with_gold"] + said["abstain"] == sum(said["rows"].values())

    suite = load_suite(tmp_path / "bfcl.json")
    assert lint(suite) == ()
    assert not KNOWN_BAD.keys() & suite.by_id.keys()
    assert suite.provenance["wheel_sha256"] == bfcl.PIN["sha256"]
    assert set(Counter(case.category for case in suite.cases)) == {case.category for case in suite.cases}

    found = list((tmp_path / "ws").rglob("bfcl_eval-*.whl"))
    kept = load_suite_with_all_golds(tmp_path, found[0])
    assert sum(not case.abstains for case in kept.cases) == 2330
    assert kept.provenance["ungrounded"] == "kept"
    assert lint(kept) == ()


def load_suite_with_all_golds(tmp_path: Path, path: Path) -> Suite:
    """The wheel again, from its file, with the golds that requests do not fix."""
    out = tmp_path / "all.json"
    command = [
        *REFEREE,
        "bakeoff",
        "cases",
        "import-bfcl",
        "--wheel",
        str(path),
        "--out",
        str(out),
        "--keep-ungrounded",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for case in KNOWN_BAD:
        assert f"refused {case}: " in done.stdout
    imported = bfcl.import_wheel(path).suite
    strict, _ = without_refused(imported)
    assert strict is not None
    assert {case.id for case in strict.cases} < {case.id for case in load_suite(out).cases}
    return load_suite(out)
