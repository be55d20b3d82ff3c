"""How commands print tables: coloured on a terminal, plain and unwrapped elsewhere; NO_COLOR is honoured by rich."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from referee.publish import words

#: Width of what goes to a file or a pipe: nothing is folded to fit a screen that is not there.
PIPE_WIDTH = 100_000


def out() -> Console:
    """The console of a command's result."""
    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def plain(text: str) -> Text:
    """Text from anywhere: no markup in it is read, no control character reaches the terminal."""
    return Text(words.visible(text))


def columns(*heads: str, title: str | None = None) -> Table:
    """A table without lines; a head that ends in ``>`` is right-aligned. Print it with ``lay``."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", header_style="bold", show_edge=False)
    for head in heads:
        right = head.endswith(">")
        table.add_column(head.removesuffix(">"), justify="right" if right else "left", overflow="fold")
    return table


def lay(console: Console, table: Table) -> None:
    """Print a table; on a screen too narrow for it, each cell on a line of its own: nothing is cut in two."""
    asked = Measurement.get(console, console.options.update(width=PIPE_WIDTH), table).maximum
    if asked <= console.width:
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    wide = max(len(head) for head in heads)
    for number, cells in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if number:
            console.print()
        for head, cell in zip(heads, cells, strict=True):
            shown = cell if isinstance(cell, Text) else Text(str(cell))
            console.print(Text.assemble((f"{head:<{wide}}  ", "dim"), shown), soft_wrap=True)
