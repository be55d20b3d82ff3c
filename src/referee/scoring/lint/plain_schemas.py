"""The plain part of JSON Schema, recognised at a glance. Pure.

Checking a schema against the meta-schema takes milliseconds, and a public suite has thousands of schemas that use a
dozen keywords. What is recognised here is valid; anything else is left to the meta-schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "integer", "string"})
_DEEPEST = 32

_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}

#: With these alone a value is checked at a glance; descriptions, titles and defaults forbid nothing.
_LOOKED_AT = frozenset({"type", "description", "title", "default", "enum", "properties", "required", "items"})


def plain_schema(schema: Any, deep: int = 0) -> bool:
    """Whether the schema uses plain keywords only, each with a value of its kind."""
    if not isinstance(schema, Mapping) or deep > _DEEPEST:
        return False
    for word, value in schema.items():
        if word in _BELOW:
            if not _BELOW[word](value, deep + 1):
                return False
        elif word not in _SHAPES or not _SHAPES[word](value):
            return False
    return True


def plainly_valid(value: Any, schema: Any, deep: int = 0) -> bool:
    """Whether a value is valid for certain, by plain keywords alone; False says only that a validator has to look."""
    if not isinstance(schema, Mapping) or deep > _DEEPEST or not schema.keys() <= _LOOKED_AT:
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items", {})
        return isinstance(value, list) and all(plainly_valid(one, items, deep + 1) for one in value)
    if kind == "object":
        properties = schema.get("properties", {})
        return (
            isinstance(value, dict)
            and value.keys() <= properties.keys()
            and value.keys() >= set(schema.get("required", ()))
            and all(plainly_valid(one, properties[name], deep + 1) for name, one in value.items())
        )
    types = _SCALARS.get(kind, ()) if isinstance(kind, str) else ()
    return isinstance(value, types) and (kind == "boolean" or not isinstance(value, bool))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value) and len(set(value)) == len(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _anything(value: Any) -> bool:  # noqa: ARG001 — a default may be any value
    return True


def _are_schemas(value: Any, deep: int) -> bool:
    return isinstance(value, Mapping) and all(plain_schema(one, deep) for one in value.values())


def _is_schema_or_truth(value: Any, deep: int) -> bool:
    return isinstance(value, bool) or plain_schema(value, deep)


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "description": _is_text,
    "title": _is_text,
    "format": _is_text,
    "required": _are_names,
    "enum": _is_list,
    "default": _anything,
    "const": _anything,
    "minimum": _is_number,
    "maximum": _is_number,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
}
_BELOW: dict[str, Callable[[Any, int], bool]] = {
    "properties": _are_schemas,
    "items": _is_schema_or_truth,
    "additionalProperties": _is_schema_or_truth,
}
