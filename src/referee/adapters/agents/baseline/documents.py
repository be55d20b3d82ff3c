"""README -> blocks, by real parsers: markdown-it for Markdown, docutils for reStructuredText."""

from __future__ import annotations

import html.parser
import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Block:
    """One literal block: its text, its label, the headings it stands under, the prose right before it.

    ``titled``: the first of its headings is the document's first, which names the project and no section.
    """

    text: str
    language: str
    headings: tuple[str, ...]
    before: str
    order: int
    titled: bool = True


@dataclass
class Document:
    """A README: blocks in order, all prose, the spans set as code within the prose, and its links."""

    blocks: list[Block] = field(default_factory=list)
    prose: str = ""
    spans: list[str] = field(default_factory=list)


class _Collector:
    """Builds a document while a parser walks."""

    def __init__(self) -> None:
        self.document = Document()
        self.headings: list[tuple[int, str]] = []
        self.at_the_top = 0
        self.before = ""

    def heading(self, level: int, text: str) -> None:
        above = [entry for entry in self.headings if entry[0] < level]
        self.headings = [*above, (level, text)]
        self.at_the_top += not above
        self.before = ""
        self.document.prose += text + "\n"

    def prose(self, text: str) -> None:
        self.before = text
        self.document.prose += text + "\n"

    def block(self, text: str, language: str) -> None:
        if text.strip():
            titles = tuple(title for _, title in self.headings)
            blocks = self.document.blocks
            plain, titled = text.expandtabs(4).rstrip() + "\n", self.at_the_top <= 1
            blocks.append(Block(plain, language.lower(), titles, self.before, len(blocks), titled))
        self.before = ""


def read_document(path: Path) -> Document:
    """Parse a README by its kind; an unreadable one is empty."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Document()
    return parse_document(text, path.suffix.lower())


def parse_document(text: str, suffix: str) -> Document:
    """Parse README text; ``suffix`` ``.rst`` or ``.md`` (without a suffix it is told by its marks)."""
    if suffix == ".rst" or (suffix not in {".md", ".markdown"} and _looks_rst(text)):
        return _rst(text)
    return _markdown(text)


def _looks_rst(text: str) -> bool:
    lines = text.splitlines()
    rules = sum(1 for line in lines if re.fullmatch(r"([=\-~^\"'`#*+])\1{3,}", line.strip()))
    marks = sum(1 for line in lines if line.startswith(".. ") or line.rstrip().endswith("::"))
    hashes = sum(1 for line in lines if re.match(r"#{1,4} \S|```", line))
    return rules + 2 * marks > 2 * hashes and marks > 0


def _markdown(text: str) -> Document:
    from markdown_it import MarkdownIt  # noqa: PLC0415 — the first line of output must not wait for it

    collector = _Collector()
    tokens = MarkdownIt("commonmark").parse(text)
    for number, token in enumerate(tokens):
        if token.type == "inline":
            words = "".join(
                child.content if child.type in {"text", "code_inline"} else " " for child in token.children or []
            )
            collector.document.spans += [c.content for c in token.children or [] if c.type == "code_inline"]
            links = [str(c.attrs.get("href", "")) for c in token.children or [] if c.type == "link_open"]
            collector.document.prose += "".join(
                f"{link}\n" for link in links if "localhost" in link or "127.0.0.1" in link
            )
            opener = tokens[number - 1]
            if opener.type == "heading_open":
                collector.heading(int(opener.tag[1:]), words)
            else:
                collector.prose(words)
        elif token.type == "fence":
            info = token.info.strip().split()
            collector.block(token.content, info[0].strip("{}.").split(",")[0] if info else "")
        elif token.type == "code_block":
            collector.block(token.content, "")
        elif token.type == "html_block":
            _html(token.content, collector)
    return collector.document


class _Html(html.parser.HTMLParser):
    def __init__(self, collector: _Collector) -> None:
        super().__init__()
        self.collector = collector
        self.kind = ""
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 — the parser's signature
        if tag in {"h1", "h2", "h3", "h4", "pre", "summary", "p"} and self.kind != "pre":
            self.kind, self.text = tag, ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag != self.kind:
            return
        if tag == "pre":
            self.collector.block(self.text, "")
        elif tag == "p":
            self.collector.prose(self.text)
        else:
            self.collector.heading(int(tag[1:]) if tag[1:].isdigit() else 4, " ".join(self.text.split()))
        self.kind = ""


def _html(text: str, collector: _Collector) -> None:
    parser = _Html(collector)
    parser.feed(text)


def _rst(text: str) -> Document:
    import docutils.core  # noqa: PLC0415 — slow to import
    import docutils.nodes as n  # noqa: PLC0415

    quiet = {
        "report_level": 5, "halt_level": 6, "file_insertion_enabled": False, "raw_enabled": False,
        "syntax_highlight": "none", "doctitle_xform": False, "sectsubtitle_xform": False, "input_encoding": "unicode",
        "_disable_config": True, "warning_stream": False,
    }  # fmt: skip
    try:
        tree = docutils.core.publish_doctree(text, settings_overrides=quiet)
    except Exception:  # noqa: BLE001 — a README that docutils cannot read is read as Markdown, which never fails
        return _markdown(text)
    collector = _Collector()
    _walk(tree, collector, 0, n)
    return collector.document


def _walk(node: object, collector: _Collector, depth: int, n: object) -> None:
    for child in getattr(node, "children", []):
        name = type(child).__name__
        if name == "section":
            _walk(child, collector, depth + 1, n)
        elif name == "title":
            collector.heading(depth, child.astext())
        elif name == "literal_block":
            classes = [entry for entry in child.get("classes", []) if entry != "code"]
            collector.block(child.astext(), classes[0] if classes else str(child.get("language", "")))
        elif name == "doctest_block":
            collector.block(child.astext(), "pycon")
        elif name == "paragraph":
            collector.document.spans += [s.astext() for s in child.children if type(s).__name__ == "literal"]
            collector.prose(child.astext())
        elif name == "system_message":
            _unknown_directive(child, collector)
        elif name not in {"comment", "Text", "target", "substitution_definition"}:
            _walk(child, collector, depth, n)


def _unknown_directive(message: object, collector: _Collector) -> None:
    """A directive that docutils does not know (Sphinx has many) keeps its source in the message."""
    for child in getattr(message, "children", []):
        if type(child).__name__ != "literal_block":
            continue
        lines = child.astext().splitlines()
        if re.match(
            r"\.\. (testcode|doctest|ipython|prompt|code-block|sourcecode|highlight)::", lines[0] if lines else ""
        ):
            label = lines[0].split("::", 1)[1].strip() or ("python" if "test" in lines[0] else "")
            body = [line for line in lines[1:] if not re.match(r"\s+:\w+:", line)]
            indent = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
            collector.block("\n".join(line[indent:] for line in body).strip("\n"), label.split()[0] if label else "")
