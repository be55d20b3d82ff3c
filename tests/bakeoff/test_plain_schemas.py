"""The plainest schemas, recognised at a glance: never otherwise than the validator says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from referee.adapters.suites import bundled_suite
from referee.scoring.lint.plain_schemas import plain_schema, plainly_valid

SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", "any", 3]),
            "enum": st.lists(st.sampled_from(["a", "b", 1, True]), max_size=3),
            "description": st.sampled_from(["said", 5]),
            "minimum": st.sampled_from([1, "1"]),
            "required": st.sampled_from([["a"], ["a", "a"], "a", []]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array"])},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "items": inner,
            "required": st.sampled_from([["a"], []]),
        },
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 1.0, 2.5, "a", "c"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=2),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(SCHEMAS, VALUES)
def test_what_is_recognised_at_a_glance_is_what_the_validator_says(schema: Any, value: Any) -> None:
    sound = True
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        sound = False
    if plain_schema(schema):
        assert sound
    if sound and plainly_valid(value, schema):
        assert Draft202012Validator(schema).is_valid(value)


def test_the_glance_recognises_every_schema_that_we_ship() -> None:
    suite = bundled_suite("s1")
    assert all(plain_schema(tool.parameters) for tools in suite.toolsets.values() for tool in tools)
    light = next(tool for tool in suite.toolsets["home"] if tool.name == "set_light").parameters
    assert plainly_valid({"room": "kitchen", "brightness": 0}, light)
    for wrong in ({"room": "attic", "brightness": 0}, {"room": "kitchen"}, {"room": "kitchen", "brightness": True}):
        assert not plainly_valid(wrong, light)
