"""Which lines of a frozen plan changed: named by file and line, with what stood there and what stands there now."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from referee.publish.words import visible

#: More lines than this between the first and the last change are not aligned one by one: the first says enough.
MOST_ALIGNED = 2_000

#: Characters of a line that a message shows, around the first that differs.
SHOWN = 120


@dataclass(frozen=True)
class Change:
    """One line that differs. ``before`` is None for a line that was added, ``after`` for one that was taken out.

    ``line`` counts from 1, in the file as it is now (for a line taken out: where it stood); None is the whole file.
    """

    file: str
    line: int | None
    before: str | None
    after: str | None

    @property
    def sentence(self) -> str:
        """The change as one phrase."""
        if self.line is None and self.before == self.after:
            return f"{self.file} has other bytes where it is no UTF-8"
        if self.line is None:
            return f"{self.file} was {'added' if self.before is None else 'taken away'}"
        where = f"{self.file}, line {self.line}"
        if self.before is None or self.after is None:
            what, text = ("added", self.after) if self.before is None else ("taken out", self.before)
            return f"{where}: {what} `{visible((text or '')[:SHOWN])}`"
        old, new = _around(self.before, self.after)
        return f"{where}: was `{visible(old)}`, is `{visible(new)}`"


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[Change]:
    """Every difference between two sets of files, in order of file name and line."""
    found: list[Change] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None:
            found.append(Change(name, None, None, ""))
        elif new is None:
            found.append(Change(name, None, "", None))
        elif old != new:
            found.extend([*_lines(name, _split(old), _split(new))] or [Change(name, None, "", "")])
    return found


def _lines(name: str, old: list[str], new: list[str]) -> Iterator[Change]:
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    most = min(len(old), len(new)) - head
    tail = 0
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(left), len(right)) > MOST_ALIGNED:
        yield Change(name, head + 1, left[0] if left else None, right[0] if right else None)
        return
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for step in range(max(i2 - i1, j2 - j1)):
            was = left[i1 + step] if i1 + step < i2 else None
            now = right[j1 + step] if j1 + step < j2 else None
            yield Change(name, head + (j1 if now is not None else i1) + step + 1, was, now)


def _split(data: bytes) -> list[str]:
    """Lines without their line feed; a carriage return or a missing last line feed stays to be seen."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += " (no line feed at its end)"
    return lines


def _around(old: str, new: str) -> tuple[str, str]:
    """Two long lines, cut to the place where they begin to differ."""
    if max(len(old), len(new)) <= SHOWN:
        return old, new
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, same - SHOWN // 3)

    def cut(text: str) -> str:
        piece = text[start : start + SHOWN]
        return ("…" if start else "") + piece + ("…" if start + SHOWN < len(text) else "")

    return cut(old), cut(new)
