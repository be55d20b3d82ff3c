"""A report as Markdown (GitHub's dialect). Text from models, servers and people cannot become markup or a link."""

from __future__ import annotations

import re
from collections.abc import Iterator

from referee.publish.bakeoff.blocks import (
    Block,
    Cell,
    Document,
    Facts,
    Heading,
    Items,
    Notice,
    Para,
    Plot,
    Table,
    cells,
    coded,
)
from referee.publish.words import visible

#: Everything that could open emphasis, code, a link, an image, raw HTML, an entity, a cell or a strike-through.
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~#@!])")
#: What is taken for a link without any markup.
_BARE_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(:)|\b(www)(\.)")
#: What begins a list, a quotation or a rule at the start of a line.
_OPENER = re.compile(r"^(\d+(?=[.)])|)([-+=.)])")


#: What between backticks may stand as code: nothing in it could end the code, a cell, or be taken for a link.
_CODE = re.compile(r"[\w .,;$(){}\[\]=+/…'\"-]{1,200}")


def text(value: str) -> str:
    """Text as itself: on one line, nothing in it is read as markup."""
    return _OPENER.sub(r"\1\\\2", _escaped(" ".join(visible(value).split())))


def prose(value: str) -> str:
    """Text as itself, but for what stands between backticks: that is code."""
    line = " ".join(visible(value).split())
    parts = [
        f"`{part}`" if code and _CODE.fullmatch(part) else _escaped(f"`{part}`" if code else part)
        for part, code in coded(line)
    ]
    return _OPENER.sub(r"\1\\\2", "".join(parts))


def _escaped(line: str) -> str:
    line = _MARKUP.sub(r"\\\1", line)
    return _BARE_LINK.sub(lambda match: f"{match[1] or match[3]}\\{match[2] or match[4]}", line)


def render(document: Document) -> str:
    """The document, whole; lines end in one line feed."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {text(document.title)}"
    yield ""
    yield text(document.lede)
    for section in document.sections:
        yield from ("", f"## {text(section.title)}")
        for block in section.blocks:
            yield ""
            yield from _block(block)
        yield from ("", f"_Backed by {text(section.backed)}._")


def _block(block: Block) -> Iterator[str]:
    match block:
        case Table():
            yield from _table(block)
        case Heading():
            yield f"### {text(block.text)}"
        case Para():
            yield prose(block.text)
        case Items() | Notice():
            if block.lead:
                yield from (prose(block.lead), "")
            yield from (f"- {prose(item)}" for item in block.items)
        case Facts():
            if block.fold:
                yield from (text(block.fold), "")
            yield from (f"- {text(name)}: {_cell(value)}" for name, value in block.pairs)
        case Plot():
            yield from _table(_as_table(block))


def _as_table(plot: Plot) -> Table:
    return Table(plot.caption, ("target", "rate and interval"), tuple(cells(bar.label, bar.words) for bar in plot.bars))


def _table(table: Table) -> Iterator[str]:
    yield from (f"{text(table.caption)}", "")
    yield "| " + " | ".join(text(head) for head, _ in table.columns) + " |"
    yield "|" + "|".join("---:" if figures else "---" for _, figures in table.columns) + "|"
    yield from ("| " + " | ".join(_cell(cell) for cell in row.cells) + " |" for row in table.rows)


def _cell(cell: Cell) -> str:
    shown = text(cell.text) if cell.verbatim else prose(cell.text)
    if cell.code and not set(cell.text) & set("`|\\") and cell.text:
        shown = f"`{' '.join(visible(cell.text).split())}`"
    if cell.href is not None:
        shown = f"[{shown}]({cell.href})"
    return f"{shown} ({prose(cell.below)})" if cell.below else shown
