"""From tallies to a summary: intervals, ties, pairs, gold trust, coverage. Pure. Open ``assemble`` first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from referee.scoring.bakeoff.summary import Summary

if TYPE_CHECKING:
    from referee.scoring.bakeoff.assemble import summarise

__all__ = ["Summary", "summarise"]


def __getattr__(name: str) -> Any:
    """Load ``summarise`` when it is first asked for: whoever only renders a summary needs no numpy."""
    if name != "summarise":
        raise AttributeError(name)
    from referee.scoring.bakeoff.assemble import summarise  # noqa: PLC0415 - see above

    return summarise
