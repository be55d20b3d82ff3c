"""How a report names a target: never without its lane (bake-off §4: a verdict without its lane is incomplete)."""

from __future__ import annotations

from collections.abc import Iterable

from referee.core.bakeoff import Target
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Cell
from referee.scoring.bakeoff.figures import About
from referee.scoring.bakeoff.summary import Summary


def target(about: About) -> Cell:
    """A target, with the model and the lane that its name stands for, and its subset: no row stands without (§8)."""
    lane = f"{about.lane}, {figures.say(figures.CHANNELS, about.channel)}"
    subset = "" if about.subset is None else f"; subset {about.subset}"
    return Cell(about.target, code=True, below=f"{about.model} through {lane}{subset}")


def label(about: About) -> str:
    """A target and its lane in few words: ``own-strong · own infrastructure``."""
    return _label(about.target, about.channel, about.cli)


def label_of(one: Target) -> str:
    """The same of a target that has no rows yet."""
    return _label(one.name, one.channel, f"{one.cli.program} {one.cli.version}" if one.cli else None)


def _label(name: str, channel: str, cli: str | None) -> str:
    return f"{name} · {figures.say(figures.CHANNELS, channel)}{f' {cli}' if cli else ''}"


class Names:
    """The labels of a report's targets."""

    def __init__(self, summary: Summary) -> None:
        self._labels = {about.target: label(about) for about in every_about(summary)}

    def __call__(self, name: str) -> str:
        """A target's label; a target without a row has no lane to name."""
        return self._labels.get(name, name)

    def all(self, names: Iterable[str]) -> str:
        """Several, in the order in which they are given."""
        return ", ".join(self(name) for name in names)


def every_about(summary: Summary) -> list[About]:
    """Every target of the report, ranked or not, by name."""
    found = {row.about.target: row.about for board in summary.boards for row in board.rows}
    found |= {row.about.target: row.about for row in summary.lane_limited}
    return [found[name] for name in sorted(found)]
