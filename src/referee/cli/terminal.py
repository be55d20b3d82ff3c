"""How commands print tables: coloured on a terminal, plain and unwrapped elsewhere; NO_COLOR is honoured by rich."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from referee.publish import words

#: Width of what goes to a file or a pipe: nothing is folded to fit a screen that is not there.
PIPE_WIDTH = 240


def out() -> Console:
    """The console of a command's result."""
    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def plain(text: str) -> Text:
    """Text from anywhere: no markup in it is read, no control character reaches the terminal."""
    return Text(words.visible(text))


def columns(*heads: str, title: str | None = None) -> Table:
    """A table without lines; a head that ends in ``>`` is right-aligned."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", header_style="bold", show_edge=False)
    for head in heads:
        right = head.endswith(">")
        table.add_column(head.removesuffix(">"), justify="right" if right else "left", overflow="fold")
    return table
