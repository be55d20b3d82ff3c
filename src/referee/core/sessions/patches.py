"""Patches in the form ``*** Begin Patch … *** End Patch``, as steps; None where one cannot be carried out exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from referee.core.sessions.steps import Step

_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


@dataclass
class _File:
    verb: str
    path: str
    lines: list[str] = field(default_factory=list)


def patched(patch: str) -> list[Step] | None:
    """The steps of a patch; None where it moves files or is not of this form."""
    rows = patch.strip().split("\n")
    if len(rows) < 2 or rows[0].strip() != "*** Begin Patch" or rows[-1].strip() != "*** End Patch":  # noqa: PLR2004
        return None
    files: list[_File] = []
    for row in rows[1:-1]:
        head = _HEAD.fullmatch(row.rstrip())
        if head:
            files.append(_File(head[1], head[2]))
        elif row.startswith("*** End of File"):
            continue
        elif row.startswith("*** ") or not files:
            return None
        else:
            files[-1].lines.append(row)
    steps: list[Step] = []
    for file in files:
        made = _one(file)
        if made is None:
            return None
        steps += made
    return steps


def _one(file: _File) -> list[Step] | None:
    if file.verb == "Delete":
        return [Step(kind="remove", path=file.path)]
    if file.verb == "Add":
        if not all(row.startswith("+") for row in file.lines):
            return None
        return [Step(kind="write", path=file.path, text="".join(row[1:] + "\n" for row in file.lines))]
    steps = []
    for hunk in _hunks(file.lines):
        if not all(row[:1] in {"+", "-", " ", ""} for row in hunk):
            return None
        old = "".join(row[1:] + "\n" for row in hunk if row[:1] != "+")
        new = "".join(row[1:] + "\n" for row in hunk if row[:1] != "-")
        if not old:
            return None
        steps.append(Step(kind="replace", path=file.path, old=old, text=new))
    return steps or None


def _hunks(rows: list[str]) -> list[list[str]]:
    hunks: list[list[str]] = []
    for row in rows:
        if row.startswith("@@"):
            hunks.append([])
        elif hunks:
            hunks[-1].append(row)
        else:
            hunks.append([row])
    return [hunk for hunk in hunks if hunk]
