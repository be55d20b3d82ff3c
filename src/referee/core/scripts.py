"""The agent's own files that a verification runs, kept as evidence (``scripts.json``): the audit reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from referee.core.canonical import canonical_bytes, strict_loads
from referee.errors import UsageError

SCRIPTS_NAME = "scripts.json"
_SCHEMA = "referee.scripts/1"


@dataclass(frozen=True)
class Scripts:
    """Texts of scripts that are neither the pinned project's nor an installed package's.

    ``named`` are those that the reported command runs, by the word that names each in it; ``behind`` those of
    processes behind listening ports, by absolute path.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)


def scripts_bytes(scripts: Scripts) -> bytes:
    """The evidence file."""
    return canonical_bytes({"schema": _SCHEMA, "named": dict(scripts.named), "behind": dict(scripts.behind)})


def read_scripts(data: bytes | None) -> Scripts:
    """What an evidence file holds; nothing where there is none or it is none."""
    if data is None:
        return Scripts()
    try:
        found = strict_loads(data)
    except UsageError:
        return Scripts()
    return Scripts(named=_texts(found, "named"), behind=_texts(found, "behind"))


def _texts(found: object, name: str) -> dict[str, str]:
    part = found.get(name) if isinstance(found, dict) else None
    return {str(word): text for word, text in part.items() if isinstance(text, str)} if isinstance(part, dict) else {}
