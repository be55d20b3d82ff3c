"""Mends the few slips of JSON that leave no doubt: a trailing comma, a raw line end in a string, a bad escape.

Quotes are never swapped, braces never closed, nothing is put in that could change what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from referee.scoring.answers.documents import UnusableError

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_OUTSIDE = re.compile(r'[^"{}\[\]]+')
_ESCAPE = re.compile(r'["\\/bfnrt]|u[0-9a-fA-F]{4}')
_NEEDLESS = "'`"
_MOST_STEPS = 100_000  # marks and pieces of strings: far beyond what a model writes, so that no text stalls the reader


@dataclass(frozen=True, slots=True)
class Mended:
    """The first JSON value of a text, from its opening bracket to its closing one.

    Args:
        text: as it can be parsed.
        end: offset behind it in the original.
        whole: its brackets and strings are all closed.
        changed: whether anything was mended.
    """

    text: str
    end: int
    whole: bool
    changed: bool


def mend(text: str, start: int) -> Mended:
    """Mend the object or list that begins at ``start``.

    Raises:
        UnusableError: there is too much of it.
    """
    out: list[str] = []
    depth, at, changed = 0, start, False
    while at < len(text):
        if len(out) > _MOST_STEPS:
            raise UnusableError("too-long", "there is too much of it to be mended")
        mark = text[at]
        if mark == '"':
            piece, at, closed, mended = _string(text, at)
            out.append(piece)
            changed = changed or mended
            if not closed:
                return Mended("".join(out), at, whole=False, changed=changed)
            continue
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if out and (before := out[-1].rstrip()).endswith(",") and not before.startswith('"'):
                out[-1] = before[:-1]
                changed = True
        else:
            run = _OUTSIDE.match(text, at)
            mark = run[0] if run else mark
        out.append(mark)
        at += len(mark)
        if depth <= 0:
            return Mended("".join(out), at, whole=True, changed=changed)
    return Mended("".join(out), at, whole=False, changed=changed)


def _string(text: str, at: int) -> tuple[str, int, bool, bool]:
    """One string from its opening quote: as it can be parsed, offset behind it, closed?, mended?"""
    out = ['"']
    changed = False
    at += 1
    while at < len(text):
        if len(out) > _MOST_STEPS:
            raise UnusableError("too-long", "a string has too much in it to be mended")
        if run := _PLAIN.match(text, at):
            out.append(run[0])
            at = run.end()
            continue
        mark = text[at]
        at += 1
        if mark == '"':
            out.append('"')
            return "".join(out), at, True, changed
        if mark != "\\":
            out.append(f"\\u{ord(mark):04x}")
            changed = True
        elif escape := _ESCAPE.match(text, at):
            out.append("\\" + escape[0])
            at = escape.end()
        elif at >= len(text):
            out.append("\\")
        elif text[at] in _NEEDLESS:
            changed = True
        else:
            out.append("\\\\")
            changed = True
    return "".join(out), at, False, changed
