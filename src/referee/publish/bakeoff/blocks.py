"""What a report is made of: sections of plain values, built once and shown twice, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

#: Characters of a cell that stand beside its head on a narrow screen.
SHORT = 28


@dataclass(frozen=True)
class Cell:
    """One cell: its text, whether it is set as code, where it leads, and what stands in a second line below it.

    X
    """

    text: str
    code: bool = False
    href: str | None = None
    below: str | None = None
    several: tuple[str, ...] = ()
    verbatim: bool = False

    @property
    def long(self) -> bool:
        """Whether it is to be read rather than compared: on a narrow screen it takes the whole width."""
        return bool(self.several) or len(self.text) > SHORT or len(self.below or "") > SHORT


@dataclass(frozen=True)
class Row:
    """One row; ``aside`` sets it back: it is shown and does not rank."""

    cells: tuple[Cell, ...]
    aside: bool = False


@dataclass(frozen=True)
class Table:
    """A table. A head that ends in ``>`` is a column of figures. ``fold`` hides the table behind its caption."""

    kind: ClassVar[str] = "table"
    caption: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    fold: bool = False

    @property
    def columns(self) -> tuple[tuple[str, bool], ...]:
        """Each head and whether its column holds figures."""
        return tuple((head.removesuffix(">"), head.endswith(">")) for head in self.heads)

    @property
    def long(self) -> tuple[bool, ...]:
        """Of each column whether one of its cells is long."""
        return tuple(any(row.cells[at].long for row in self.rows) for at in range(len(self.heads)))


@dataclass(frozen=True)
class Para:
    """One paragraph. ``note`` sets it smaller."""

    kind: ClassVar[str] = "para"
    text: str
    note: bool = False


@dataclass(frozen=True)
class Items:
    """A list; ``lead`` stands before it."""

    kind: ClassVar[str] = "items"
    lead: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Notice:
    """What a reader must not overlook."""

    kind: ClassVar[str] = "notice"
    items: tuple[str, ...]
    lead: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and values, one below the other. ``fold`` hides them behind these words."""

    kind: ClassVar[str] = "facts"
    pairs: tuple[tuple[str, Cell], ...]
    fold: str = ""


@dataclass(frozen=True)
class Bar:
    """One line of a plot: a label, a rate and its intervals (0 to 1), the same in words, and its tie cluster."""

    label: str
    value: float
    low: float
    high: float
    second: tuple[float, float] | None
    words: str
    group: int


@dataclass(frozen=True)
class Plot:
    """Intervals, one below the other, on a scale of 0 to 100 %."""

    kind: ClassVar[str] = "plot"
    caption: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    kind: ClassVar[str] = "heading"
    text: str


Block = Table | Para | Items | Notice | Facts | Plot | Heading


@dataclass(frozen=True)
class Section:
    """One section; ``backed`` says where in the harness its claims come from (bake-off §1)."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    backed: str


@dataclass(frozen=True)
class Document:
    """A whole page."""

    title: str
    lede: str
    sections: tuple[Section, ...]


def cells(*values: str | Cell) -> Row:
    """A row of cells; a string is a plain one."""
    return Row(tuple(value if isinstance(value, Cell) else Cell(value) for value in values))


def several(parts: Sequence[str]) -> Cell:
    """A cell of several sentences."""
    return Cell("; ".join(parts), several=tuple(parts) if len(parts) > 1 else ())


def coded(text: str) -> list[tuple[str, bool]]:
    """Text in parts, each with whether it stood between backticks, and so is code. A lone backtick is itself."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    found: list[tuple[str, bool]] = []
    for at, part in enumerate(parts):
        if at % 2 and part.strip():
            found.append((part, True))
        elif at % 2:
            found.append((f"`{part}`", False))
        elif part:
            found.append((part, False))
    return found


def table(caption: str, heads: Sequence[str], rows: Sequence[Row], *, fold: bool = False) -> Table:
    """A table, each row as wide as its heads.

    Raises:
        ValueError: a row has another number of cells than there are heads.
    """
    for row in rows:
        if len(row.cells) != len(heads):
            raise ValueError(f"{caption}: a row has {len(row.cells)} cells, there are {len(heads)} heads")
    return Table(caption, tuple(heads), tuple(rows), fold)
