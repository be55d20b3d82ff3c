"""What a tool's JSON Schema says about one place in the arguments: types, members, strictness, default. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

#: References and alternatives are followed at most this far: a schema that refers to itself is no trap.
_MOST_HOPS = 16
_MOST_PARTS = 64

#: Stands for a default that no schema names: null is one that can be named.
NONE_NAMED: Any = object()

_STRICT = frozenset({"enum", "format", "pattern", "const"})
_JOINTS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})


class Place:
    """One place of the arguments, as the schema describes it. Everything unknown is simply not said. Immutable."""

    __slots__ = ("_certain", "_laid_out", "_patterns", "_properties", "_required", "root", "schema")

    def __init__(self, root: Mapping[str, Any] | None = None, schema: Any = None) -> None:
        self.root = root or {}
        self.schema = schema
        self._laid_out: Sequence[Mapping[str, Any]] | None = None
        self._certain: Sequence[Mapping[str, Any]] = ()
        self._properties: Mapping[str, Any] | None = None
        self._required: Collection[str] | None = None
        self._patterns: Sequence[tuple[re.Pattern[str], Any]] | None = None

    @property
    def _parts(self) -> Sequence[Mapping[str, Any]]:
        """What may hold here: the schema, its references and ``allOf``, and the alternatives laid beside them."""
        if self._laid_out is None:
            if isinstance(self.schema, dict) and _JOINTS.isdisjoint(self.schema):
                self._laid_out = self._certain = (self.schema,)
            else:
                found = list(islice(_lay_out(self.root, self.schema, 0), _MOST_PARTS))
                self._laid_out = tuple(part for part, _ in found)
                self._certain = tuple(part for part, certain in found if certain)
        return self._laid_out

    @property
    def _parts_for_certain(self) -> Sequence[Mapping[str, Any]]:
        """What holds here in any case: without the alternatives."""
        return self._certain if self._parts else ()

    @property
    def types(self) -> set[str]:
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
        return found

    @property
    def strict(self) -> bool:
        """Whether a string here compares strictly: it has an enum, a format or a pattern."""
        for part in self._parts:  # noqa: SIM110 — read once for each gold: a generator costs more than it saves
            if not _STRICT.isdisjoint(part) and _may_be_string(part):
                return True
        return False

    @property
    def containers(self) -> tuple[type, ...]:
        """What a JSON string is decoded to: where the schema says array or object, never where it says string."""
        types = self.types
        if "string" in types:
            return ()
        return tuple(kind for name, kind in (("array", list), ("object", dict)) if name in types)

    @property
    def properties(self) -> Mapping[str, Any]:
        """The members that an object has here, by name."""
        if self._properties is None:
            said = [part["properties"] for part in self._parts if isinstance(part.get("properties"), Mapping)]
            self._properties = said[0] if len(said) == 1 else {key: one[key] for one in reversed(said) for key in one}
        return self._properties

    @property
    def patterns(self) -> Sequence[tuple[re.Pattern[str], Any]]:
        """The patterns of its members' names, with their schemas; a pattern that cannot be read is none."""
        if self._patterns is None:
            found: list[tuple[re.Pattern[str], Any]] = []
            for part in self._parts:
                said = part.get("patternProperties")
                for text, schema in said.items() if isinstance(said, Mapping) else ():
                    try:
                        found.append((re.compile(text), schema))
                    except re.error:
                        continue
            self._patterns = found
        return self._patterns

    @property
    def required(self) -> Collection[str]:
        """The members that may not be left out."""
        if self._required is None:
            said = [part["required"] for part in self._parts_for_certain if isinstance(part.get("required"), list)]
            self._required = said[0] if len(said) == 1 else [name for names in said for name in names]
        return self._required

    def knows(self, name: str) -> bool:
        """Whether the schema has a member of this name."""
        if name in self.properties:
            return True
        return bool(self.patterns) and any(pattern.search(name) for pattern, _ in self.patterns)

    def optional(self, name: str) -> bool:
        """Whether the schema has a member of this name that may be left out."""
        return name not in self.required and self.knows(name)

    def member(self, name: str) -> Place:
        """The place of a member."""
        if name in self.properties:
            return Place(self.root, self.properties[name])
        for pattern, schema in self.patterns:
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
    def default(self) -> Any:
        """The default that the schema names here; ``NONE_NAMED`` where it names none."""
        for part in self._parts:
            if "default" in part:
                return part["default"]
        return NONE_NAMED


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
