"""What a tool's JSON Schema says about one place in the arguments: types, members, strictness, default. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

#: References and alternatives are followed at most this far: a schema that refers to itself is no trap.
_MOST_HOPS = 16
_MOST_PARTS = 64

_STRICT = ("enum", "format", "pattern", "const")


@dataclass(frozen=True)
class Place:
    """One place of the arguments, as the schema describes it. Everything unknown is simply not said."""

    root: Mapping[str, Any] = field(default_factory=dict)
    schema: Any = None

    @cached_property
    def _certain(self) -> tuple[Mapping[str, Any], ...]:
        """What holds here in any case: the schema, its local references, its ``allOf``."""
        return tuple(part for part, certain in islice(_lay_out(self.root, self.schema, 0), _MOST_PARTS) if certain)

    @cached_property
    def _parts(self) -> tuple[Mapping[str, Any], ...]:
        """What may hold here: that, and the alternatives of ``anyOf`` and ``oneOf``."""
        return tuple(part for part, _ in islice(_lay_out(self.root, self.schema, 0), _MOST_PARTS))

    @cached_property
    def types(self) -> frozenset[str]:
        """The types that may stand here; empty where none is said."""
        found: set[str] = set()
        for part in self._parts:
            said = part.get("type")
            if isinstance(said, str):
                found.add(said)
            elif isinstance(said, list):
                found.update(one for one in said if isinstance(one, str))
            elif "properties" in part:
                found.add("object")
            elif "items" in part or "prefixItems" in part:
                found.add("array")
        return frozenset(found)

    @property
    def strict(self) -> bool:
        """Whether a string here compares strictly: it has an enum, a format or a pattern."""
        return any(name in part for part in self._parts if _may_be_string(part) for name in _STRICT)

    @property
    def containers(self) -> tuple[type, ...]:
        """What a JSON string is decoded to: where the schema says array or object, never where it says string."""
        if "string" in self.types:
            return ()
        return tuple(kind for name, kind in (("array", list), ("object", dict)) if name in self.types)

    @cached_property
    def properties(self) -> dict[str, Any]:
        """The members that an object has here, by name."""
        found: dict[str, Any] = {}
        for part in reversed(self._parts):
            said = part.get("properties")
            if isinstance(said, Mapping):
                found.update(said)
        return found

    @cached_property
    def _patterns(self) -> tuple[tuple[re.Pattern[str], Any], ...]:
        found: list[tuple[re.Pattern[str], Any]] = []
        for part in self._parts:
            said = part.get("patternProperties")
            for text, schema in said.items() if isinstance(said, Mapping) else ():
                try:
                    found.append((re.compile(text), schema))
                except re.error:
                    continue
        return tuple(found)

    @cached_property
    def required(self) -> frozenset[str]:
        """The members that may not be left out."""
        found: set[str] = set()
        for part in self._certain:
            said = part.get("required")
            if isinstance(said, list):
                found.update(one for one in said if isinstance(one, str))
        return frozenset(found)

    def knows(self, name: str) -> bool:
        """Whether the schema has a member of this name."""
        return name in self.properties or any(pattern.search(name) for pattern, _ in self._patterns)

    def optional(self, name: str) -> bool:
        """Whether the schema has a member of this name that may be left out."""
        return name not in self.required and self.knows(name)

    def member(self, name: str) -> Place:
        """The place of a member."""
        if name in self.properties:
            return Place(self.root, self.properties[name])
        for pattern, schema in self._patterns:
            if pattern.search(name):
                return Place(self.root, schema)
        for part in self._parts:
            if isinstance(part.get("additionalProperties"), Mapping):
                return Place(self.root, part["additionalProperties"])
        return Place(self.root)

    def element(self, index: int) -> Place:
        """The place of an element."""
        for part in self._parts:
            first = part.get("prefixItems")
            if isinstance(first, list) and index < len(first):
                return Place(self.root, first[index])
            items = part.get("items")
            if isinstance(items, list) and index < len(items):
                return Place(self.root, items[index])
            if isinstance(items, Mapping):
                return Place(self.root, items)
        return Place(self.root)

    @property
    def has_default(self) -> bool:
        """Whether the schema names a default here."""
        return any("default" in part for part in self._parts)

    @property
    def default(self) -> Any:
        """The default that the schema names here; None where it names none."""
        return next((part["default"] for part in self._parts if "default" in part), None)


def place_of(parameters: Mapping[str, Any]) -> Place:
    """The place of a tool's arguments object."""
    return Place(parameters, parameters)


def _lay_out(
    root: Mapping[str, Any], schema: Any, hops: int, *, certain: bool = True
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    if not isinstance(schema, Mapping) or hops > _MOST_HOPS:
        return
    yield schema, certain
    if isinstance(schema.get("$ref"), str):
        yield from _lay_out(root, _referred(root, schema["$ref"]), hops + 1, certain=certain)
    for word in ("allOf", "anyOf", "oneOf"):
        said = schema.get(word)
        for part in said if isinstance(said, list) else ():
            yield from _lay_out(root, part, hops + 1, certain=certain and word == "allOf")


def _may_be_string(part: Mapping[str, Any]) -> bool:
    said = part.get("type", "string")
    return said == "string" or (isinstance(said, list) and "string" in said)


def _referred(root: Mapping[str, Any], reference: str) -> Any:
    """The part of the schema that a local reference (``#/…``) names; None for any other."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
