"""The agent's own files that a verification runs, kept as evidence (``scripts.json``): the audit reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from referee.core.canonical import canonical_bytes, strict_loads
from referee.errors import UsageError

SCRIPTS_NAME = "scripts.json"
_SCHEMA = "referee.scripts/1"
#: A promised line, with the one before it and the one behind it.
_LINES = 3


@dataclass(frozen=True)
class Scripts:
    """Texts of scripts that are neither the pinned project's nor an installed package's.

    ``named`` are those that the reported command runs, by the word that names each in it; ``behind`` those of
    processes behind listening ports, by absolute path. ``known`` gives, for each of the latter, which of the names that
    it brings in the pinned project has as a module; ``promised`` lines of the project's documentation that hold a line
    of the reported result, each with the lines around it. Both are missing where a harness did not look.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    promised: tuple[tuple[str, str, str], ...] = ()


def scripts_bytes(scripts: Scripts) -> bytes:
    """The evidence file."""
    document: dict[str, Any] = {"schema": _SCHEMA, "named": dict(scripts.named), "behind": dict(scripts.behind)}
    if scripts.known:
        document["known"] = {place: list(names) for place, names in scripts.known.items()}
    if scripts.promised:
        document["promised"] = [list(lines) for lines in scripts.promised]
    return canonical_bytes(document)


def read_scripts(data: bytes | None) -> Scripts:
    """What an evidence file holds; nothing where there is none or it is none."""
    if data is None:
        return Scripts()
    try:
        found = strict_loads(data)
    except UsageError:
        return Scripts()
    return Scripts(
        named=_texts(found, "named"), behind=_texts(found, "behind"), known=_known(found), promised=_promised(found)
    )


def _texts(found: object, name: str) -> dict[str, str]:
    part = found.get(name) if isinstance(found, dict) else None
    return {str(word): text for word, text in part.items() if isinstance(text, str)} if isinstance(part, dict) else {}


def _known(found: object) -> dict[str, tuple[str, ...]]:
    part = found.get("known") if isinstance(found, dict) else None
    every = part.items() if isinstance(part, dict) else ()
    return {str(place): tuple(map(str, names)) for place, names in every if isinstance(names, list)}


def _promised(found: object) -> tuple[tuple[str, str, str], ...]:
    part = found.get("promised") if isinstance(found, dict) else None
    every = [one for one in part if isinstance(one, list)] if isinstance(part, list) else []
    return tuple((str(one[0]), str(one[1]), str(one[2])) for one in every if len(one) == _LINES)
