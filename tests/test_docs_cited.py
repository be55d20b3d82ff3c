"""What code and documents cite is there: sections of the rules, decisions, other documents, rooms on the map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PROSE = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md"))]
CODE = sorted((ROOT / "src" / "referee").rglob("*.py"))


def found(pattern: str, files: list[Path]) -> Iterator[tuple[str, str]]:
    """Where a pattern stands, and its first group."""
    for path in files:
        for match in re.finditer(pattern, path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), match[1]


@pytest.mark.parametrize(
    ("cited", "rules"),
    [(r"[Mm]ethodology,? §(\d+)", "methodology.md"), (r"(?<!\w)[Bb]ake-off,? §(\d+)", "bakeoff.md")],
)
def test_a_cited_section_is_one_of_the_rules(cited: str, rules: str) -> None:
    sections = set(re.findall(r"^## (\d+)\. ", (DOCS / rules).read_text(encoding="utf-8"), re.MULTILINE))
    where = [(file, number) for file, number in found(cited, [*CODE, *PROSE])]
    assert len(where) > 20
    assert [one for one in where if one[1] not in sections] == []


def test_a_cited_decision_was_written_down() -> None:
    written = {path.name[:4] for path in (DOCS / "decisions").glob("*.md")}
    where = [*found(r"decision[ /](0\d{3})\b", [*CODE, *PROSE]), *found(r"\(see (0\d{3})\)", PROSE)]
    assert len(where) > 3
    assert [one for one in where if one[1] not in written] == []


def test_no_number_of_a_decision_is_used_twice() -> None:
    numbers = [path.name[:4] for path in (DOCS / "decisions").glob("*.md")]
    assert sorted(set(numbers)) == sorted(numbers)


def test_a_linked_document_is_there() -> None:
    links = [
        (file, target)
        for file, target in found(r"\]\(([^)#\s]+)", PROSE)
        if not re.match(r"[a-z]+:", target) and not (ROOT / file).parent.joinpath(target).exists()
    ]
    assert links == []


def test_every_room_on_the_map_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"```\nsrc/referee/\n(.*?)```", text, re.DOTALL)
    names = re.findall(r"(?<![\w/])((?:\w+/)*(?:\w+\.py|\w+/))", drawn)
    assert len(names) > 40
    assert [name for name in names if not any((ROOT / "src" / "referee").rglob(name.rstrip("/")))] == []
