"""Each rule of the table of arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from referee.scoring.answers import read_message
from referee.scoring.answers.arguments import read_arguments

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "grading2.json").read_text("utf-8"))

READ: list[tuple[str, Any, dict[str, Any], tuple[str, ...]]] = [
    ("empty string", "", {}, ()),
    ("white space", " \n", {}, ()),
    ("null", None, {}, ()),
    ("null as text", "null", {}, ()),
    ("object as text", '{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}, ()),
    ("object given", {"a": {"b": [True]}}, {"a": {"b": [True]}}, ()),
    ("fenced", '```json\n{"path": "a.txt"}\n```', {"path": "a.txt"}, ("repaired",)),
    ("fenced without language", '```\n{"a": 1}\n```', {"a": 1}, ("repaired",)),
    ("fenced in prose", 'Here you are:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}, ("repaired",)),
    ("fence never closed", '```json\n{"a": 1}', {"a": 1}, ("repaired",)),
    ("trailing prose", '{"a": 1} I hope this helps.', {"a": 1}, ("repaired",)),
    ("trailing token of a template", '{"a": 1}<|im_end|>', {"a": 1}, ("repaired",)),
    ("prose with braces", '{"a": 1} as in {braces}', {"a": 1}, ("repaired",)),
    ("trailing comma", '{"a":1,}', {"a": 1}, ("repaired",)),
    ("trailing commas inside", '{"a": [1, 2, ], "b": {"c": "x", }}', {"a": [1, 2], "b": {"c": "x"}}, ("repaired",)),
    ("comma in a string", '{"a": ",}", "b": [","],}', {"a": ",}", "b": [","]}, ("repaired",)),
    ("raw line end", '{"a": "x\ny"}', {"a": "x\ny"}, ("repaired",)),
    ("raw tab", '{"a": "x\ty"}', {"a": "x\ty"}, ("repaired",)),
    ("bad escape of a path", '{"a": "C:\\dir\\x"}', {"a": "C:\\dir\\x"}, ("repaired",)),
    ("bad escape of a regex", r'{"a": "\d+\.\d"}', {"a": r"\d+\.\d"}, ("repaired",)),
    ("needless escape of a quote", r"""{"a": "it\'s"}""", {"a": "it's"}, ("repaired",)),
    ("half a unicode escape", r'{"a": "\u12 x"}', {"a": r"\u12 x"}, ("repaired",)),
    ("lone surrogate", r'{"a": "\ud800"}', {"a": "\ufffd"}, ("repaired",)),
    ("surrogate pair", r'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}, ()),
    ("apostrophe", '{"q":"what\'s up"}', {"q": "what's up"}, ()),
    ("encoded twice", json.dumps(json.dumps({"a": 1})), {"a": 1}, ("unwrapped",)),
    ("encoded twice and damaged", json.dumps('{"a": 1,}'), {"a": 1}, ("repaired", "unwrapped")),
    ("doubled keys", '{"a": 1, "a": 2}', {"a": 2}, ("duplicate-keys",)),
    ("doubled keys further in", '{"x": [{"a": 1, "a": 2}]}', {"x": [{"a": 2}]}, ("duplicate-keys",)),
    ("big but sound number", '{"a": ' + "9" * 300 + "}", {"a": int("9" * 300)}, ()),
    ("a text that looks like code", '{"a": "__import__(\'os\')"}', {"a": "__import__('os')"}, ()),
]

BROKEN: list[tuple[str, Any, str]] = [
    ("two objects", '{"a":1}{"a":2}', "several-objects"),
    ("two objects alike", '{"a":1}\n{"a":1}', "several-objects"),
    ("two objects, the second in single quotes", """{"a":1}{'a':2}""", "several-objects"),
    ("two objects, the second cut", '{"a":1}{', "several-objects"),
    ("empty object before another", '{}{"a":1}', "several-objects"),
    ("two fenced blocks", '```\n{"a":1}\n```\n```\n{"a":2}\n```', "several-objects"),
    ("cut after a colon", '{"a":', "truncated"),
    ("cut after a value", '{"a": 1', "truncated"),
    ("cut in a string", '{"a": "x', "truncated"),
    ("cut after a backslash", '{"a": "x\\', "truncated"),
    ("cut in an escape", '{"a": "\\u12', "truncated"),
    ("cut in a key", '{"a": "b", "c', "truncated"),
    ("cut in a literal", '{"a": tr', "truncated"),
    ("cut in a number", '{"a": 1.', "truncated"),
    ("cut after a comma", '{"a": 1,', "truncated"),
    ("cut in a list", '{"a": [1, {"b": 2}', "truncated"),
    ("cut in a fence", '```json\n{"a": {"b": 1}', "truncated"),
    ("cut and encoded twice", '"{\\"a\\": 1', "truncated"),
    ("single quotes", "{'a': 1}", "arguments"),
    ("code", '{"a": dict(b=1)}', "arguments"),
    ("Python's literals", '{"a": True}', "arguments"),
    ("bare keys", "{a: 1}", "arguments"),
    ("quotes in a string", '{"a": "say "hi" now"}', "arguments"),
    ("prose", "I would call it with a = 1", "arguments"),
    ("leading prose without a fence", 'Sure: {"a": 1}', "arguments"),
    ("encoded three times", json.dumps(json.dumps(json.dumps({"a": 1}))), "arguments"),
    ("a list", "[1]", "arguments"),
    ("a list given", [1], "arguments"),
    ("a number", "5", "arguments"),
    ("a number given", 5, "arguments"),
    ("true given", True, "arguments"),
    ("thousands of digits", '{"a": ' + "9" * 6000 + "}", "number"),
    ("thousands of digits with a fraction", '{"a": 0.' + "9" * 6000 + "}", "number"),
    ("NaN", '{"a": NaN}', "number"),
    ("Infinity", '{"a": [-Infinity]}', "number"),
    ("beyond a double", '{"a": 1e999}', "number"),
    ("NaN given", {"a": [float("nan")]}, "number"),
    ("thousands of digits given", {"a": 10**5000}, "number"),
    ("NaN behind a slip", '{"a": NaN,}', "number"),
    ("more slips than can be mended", '{"a": "' + "\n" * 200_000 + '"}', "too-long"),
    ("deep lists", '{"a": ' + "[" * 100_000, "too-deep"),
    ("deep and closed", '{"a":' * 200 + "1" + "}" * 200, "too-deep"),
]


@pytest.mark.parametrize(("raw", "expected", "flags"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_what_can_be_read(raw: Any, expected: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert read_arguments(raw) == (expected, flags, None, "")


@pytest.mark.parametrize(("raw", "name"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_what_is_a_format_failure(raw: Any, name: str) -> None:
    found, flags, broken, detail = read_arguments(raw)
    assert (found, flags, broken) == (None, (), name)
    assert detail


def test_an_object_given_deeper_than_it_may_be() -> None:
    deep: dict[str, Any] = {}
    for _ in range(90):
        deep = {"a": deep}
    assert read_arguments(deep)[2] == "too-deep"


def test_depth_in_strings_does_not_count() -> None:
    text = json.dumps({"a": "[{" * 5000, "b": '\\"' * 100})
    assert read_arguments(text) == (json.loads(text), (), None, "")


@pytest.mark.parametrize(
    "vector", [case for case in VECTORS["cases"] if case["kind"] == "parse"], ids=lambda case: case["id"]
)
def test_golden_vectors(vector: dict[str, Any]) -> None:
    raw, verdict = vector["raw"], vector["verdict"]
    if "tool_calls" in raw:
        reading = read_message(raw, inlined=vector["lane"] != "native")
        found: Any = "PARSE_ERROR" if reading.broken else [call.arguments for call in reading.calls] or "NO_CALL"
    else:
        arguments, _, broken, _ = read_arguments(raw["arguments"])
        found = arguments if broken is None else "PARSE_ERROR"
    assert found == verdict, vector["why"]
