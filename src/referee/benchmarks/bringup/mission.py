"""The mission: what an agent is told, as the file ``/work/mission.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.benchmarks.bringup.instructions import instructions
from referee.core.canonical import digest_of
from referee.protocols import PROJECT, REPORT


def mission(*, kind: str, facts: Mapping[str, object], display: bool, seconds: int) -> dict[str, Any]:
    """The part of the mission that is the same for every attempt at a subject.

    Args:
        kind: the subject's source kind.
        facts: what the placement says of the subject.
        display: whether the subject needs a display.
        seconds: the time limit.
    """
    return {
        "schema": "referee.mission/1",
        "subject": {**facts, "kind": kind, "display": display},
        "project": PROJECT,
        "report": REPORT,
        "seconds": seconds,
        "instructions": instructions(kind),
    }


def mission_digest(stable: Mapping[str, Any]) -> str:
    """Digest of the mission without its deadline."""
    return digest_of("mission", dict(stable))
