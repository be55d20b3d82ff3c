"""The protocol on the page: every metric, threshold and rule that was settled before there was a result (§1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from referee.core.bakeoff import Protocol
from referee.publish.bakeoff.blocks import Cell, Facts, Para, Section

#: What stands elsewhere in a report, whole.
_ELSEWHERE = frozenset({"name", "title", "question", "targets", "comparisons", "rules"})


def plan(protocol: Protocol) -> Section:
    """The protocol as it was last frozen, key by key; what its file leaves out stands with its default."""
    said = protocol.model_dump(mode="json", exclude=set(_ELSEWHERE))
    # By their files: a name of a target never stands without its lane, and here the file is meant.
    targets = [f"targets/{one.target}.toml ({one.subset or 'the whole suite'})" for one in protocol.targets]
    return Section(
        "protocol",
        "The protocol, as it is frozen",
        (
            Para("A run refuses a protocol of which a line differs. What a file leaves out stands with its default."),
            Facts((("targets", Cell(", ".join(targets))), *_keys(said))),
        ),
        "core.bakeoff.Protocol, runner.bakeoff.freeze",
    )


def _keys(said: dict[str, Any], above: str = "") -> Iterator[tuple[str, Cell]]:
    for key, value in said.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{key}", Cell(text, code=True)
