"""What of a call stands behind a mark in text: a template's tag or token, or a fence for calls. Pure.

A mark says that a call is meant. What it opens decides whether the call can be read: JSON, ``name(…)``, or tags that
are closed. What cannot be read is an attempt. A tag that prose only speaks of opens nothing, stands within a line and
is not closed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from referee.scoring.answers.documents import UnusableError, load_strictly
from referee.scoring.answers.mending import mend

Shown = Literal["none", "call", "attempt"]

_MOST_MARKS = 16
_NEAR = 300  # characters in which a mark opens what it opens
_LONGEST = 20_000  # characters of arguments in brackets

_TAG = re.compile(r"<(?P<space>\w+:)?(?P<tag>(?i:tool_?calls?|function_?calls?|tool_use|tool_code))>")
_MARK = re.compile(
    r"<(?:\|(?i:tool_?(?:call|use|code)|function_?call|python_tag)\w*\|?>|(?P<function>function=\w[\w.:-]*>)"
    r"|(?P<invoke>(?:\w+:)?invoke name=)|\uff5c(?:tool|DSML)|\|channel\|>commentary to="
    r"|start_function_call>)"
    r"|\[TOOL_CALLS?\](?=\s*(?:[{\[]|[\w.:-]+\s*[{\[]))|functools(?=\[\{)"
    r"|```(?i:tool_?(?:code|calls?|use)|function_?calls?)\b[^\n`]*(?:\n|$)"
)
_BEGINS = re.compile(r"\s*\[TOOL_CALLS?\]")
_OPENED = re.compile(r"\{|\[\s*\{|(?P<call>[A-Za-z_][\w.]*\()")
_NAMED_JSON = re.compile(r"[\w.:-]+\s*(?=\{\s*[\"'}])")
_CALL = re.compile(r"\[?\s*[A-Za-z_][\w.]*\(")
_KEYED = re.compile(r"[\w.:-]+\s*<arg_key>")
_NOTHING = re.compile(r"[\s.\u2026]*")


def marked(text: str) -> Shown:
    """Whether the marks in a text show a call, or an attempt at one that cannot be read."""
    found: Shown = "none"
    if "<" in text:
        for tag in islice(_TAG.finditer(text), _MOST_MARKS):
            shown = _tagged(text, tag)
            if shown == "call":
                return shown
            found = shown if found == "none" else found
    if found == "none" and _BEGINS.match(text):
        found = "attempt"
    for mark in islice(_MARK.finditer(text), _MOST_MARKS):
        if _readable(text, mark):
            return "call"
        found = "attempt"
    return found


def json_at(text: str, start: int) -> bool:
    """Whether the object or list that begins there is whole and can be parsed."""
    try:
        mended = mend(text, start)
        load_strictly(mended.text)
    except (UnusableError, json.JSONDecodeError):
        return False
    return mended.whole


def closing(text: str, opening: int) -> int | None:
    """The offset of the round bracket that closes the one at ``opening``; what stands in quotes does not count."""
    depth = 0
    for at, mark in _brackets(text, opening):
        depth += 1 if mark == "(" else -1
        if depth == 0:
            return at
    return None


_QUOTED_OR_BRACKET = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|(?<!\w)'(?:[^'\\\n]|\\.)*+'|[()]")


def _brackets(text: str, start: int) -> Iterator[tuple[int, str]]:
    for match in _QUOTED_OR_BRACKET.finditer(text, start, start + _LONGEST):
        if match[0] in "()":
            yield match.start(), match[0]


def _tagged(text: str, tag: re.Match[str]) -> Shown:
    """What a tag for calls shows: nothing where prose only names it."""
    end = text.find(f"</{tag['space'] or ''}{tag['tag']}>", tag.end())
    inside = text[tag.end() : end if end >= 0 else None]
    bare = inside.lstrip()
    start = tag.end() + len(inside) - len(bare)
    if bare.startswith("{") or (bare.startswith("[") and not _CALL.match(bare)):
        return "call" if json_at(text, start) else "attempt"
    if _KEYED.match(bare) or (bare.startswith("<") and not bare.startswith("</")):
        return "call" if end >= 0 else "attempt"
    line = text.rfind("\n", 0, tag.start()) + 1
    leads = not text[line : tag.start()].strip(" \t>*-")
    if _NOTHING.fullmatch(inside):
        return "attempt" if leads and not inside.strip() else "none"
    if end < 0 and not leads:
        return "none"
    if named := _NAMED_JSON.match(bare):
        return "call" if json_at(text, start + named.end()) else "attempt"
    called = _CALL.match(bare)
    return "call" if called and closing(text, start + called.end() - 1) is not None else "attempt"


def _readable(text: str, mark: re.Match[str]) -> bool:
    """Whether what a mark opens can be read as a call."""
    if mark["function"] and "</function>" in text[mark.end() :]:
        return True
    if mark["invoke"]:
        return "</" in text[mark.end() :]
    opened = _OPENED.search(text, mark.end(), mark.end() + _NEAR)
    if opened is None:
        return False
    if opened["call"]:
        return closing(text, opened.end() - 1) is not None
    return json_at(text, opened.start())
