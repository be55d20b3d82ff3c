"""Building the pages of a workspace, and reading them strictly."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from referee.publish import pages
from referee.publish.facts import Facts
from tests.publish_workspace import Written

VOID = {"meta", "link", "img", "br", "input", "rect", "path", "hr", "source"}


class Page(HTMLParser):
    """A page, read strictly enough to notice what is not closed; keeps its links, tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        assert len(given) == len(attrs), f"an attribute stands twice in <{tag}>"
        self.links += [given[name] or "" for name in ("href", "src", "srcset") if name in given]
        if given.get("id"):
            self.ids.append(given["id"] or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def build(written: Written, name: str = "site") -> Path:
    pages.build(Facts(written.records.read(), written.evidence), written.root / name)
    return written.root / name


def read(written: Written, name: str) -> Page:
    return Page((written.root / "site" / name).read_text(encoding="utf-8"))


def document(written: Written, name: str) -> Any:
    return json.loads((written.root / "site" / name).read_bytes())
