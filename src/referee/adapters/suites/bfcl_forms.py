"""The forms of BFCL's rows in ours: types of schemas, and lists of possible answers as golds.

Its schemas name types as Python does, and its possible answers give, for each argument, a list of values of which any
will do; an empty text in that list says that the argument may be left out. Objects inside are given in the same way,
member by member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}

#: Words of a schema that are kept; others (a non-standard ``optional``) say nothing that a standard reader knows.
_KEPT = ("description", "format", "minimum", "maximum", "minItems", "maxItems", "pattern", "required", "default")

#: A text shorter than this is compared strictly; written with ``eq`` so that a reader sees it.
_SHORTEST_LOOSE = 4


def schema_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in JSON Schema's words."""
    made: dict[str, Any] = {}
    kind = given.get("type")
    if isinstance(kind, str) and (name := _TYPES.get(kind, kind)) is not None:
        made["type"] = name
    made |= {word: given[word] for word in _KEPT if word in given}
    if "enum" in given:
        made["enum"] = given["enum"]
    properties, items = given.get("properties"), given.get("items")
    if isinstance(properties, Mapping):
        made["properties"] = {name: schema_of(one) for name, one in properties.items() if isinstance(one, Mapping)}
    if isinstance(items, Mapping):
        made["items"] = schema_of(items)
    more = given.get("additionalProperties")
    if isinstance(more, Mapping):
        made["additionalProperties"] = schema_of(more)
    elif isinstance(more, bool):
        made["additionalProperties"] = more
    if made.get("type") == "array" and "enum" in made and not any(isinstance(one, list) for one in made["enum"]):
        # The values of the elements, written one level too high.
        made["items"] = {**made.get("items", {}), "enum": made.pop("enum")}
    return made


def arguments_of(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The golds of a call's arguments, of the lists of possible values."""
    properties = schema.get("properties", {})
    return {name: _gold(values, properties.get(name, {})) for name, values in given.items()}


def _gold(values: Any, schema: Mapping[str, Any]) -> Any:
    alternatives = values if isinstance(values, list) else [values]
    optional = any(one == "" and isinstance(one, str) for one in alternatives)
    is_text = schema.get("type", "string") == "string"
    golds = [_value(one, schema) for one in alternatives if not (optional and one == "" and not is_text)]
    if optional:
        golds.append(None)
    return golds[0] if len(golds) == 1 and not optional else {"anyOf": golds}


def _value(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return arguments_of(value, schema)
    if isinstance(value, str):
        return {"eq": value} if len(value.strip()) < _SHORTEST_LOOSE else value
    if isinstance(value, Sequence):
        items = schema.get("items", {})
        return [_value(one, items) for one in value]
    return value
