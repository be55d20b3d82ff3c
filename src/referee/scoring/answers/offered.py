"""Calls in text that name an offered tool: whatever their notation, once the tools' names are known. Pure.

Notations: ``name(argument="value")``; JSON with the tool's name as a value or as a key; the name with a JSON object
behind it; ``Action: name``; tags of the name. **What normal prose says of a tool is none of these**: its name, its
signature ``name(city)``, its schema, a form whose values are left open (``name(city="…")``). Only where the whole text
is a call do open values not matter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from referee.scoring.answers.documents import said_pairs, said_under
from referee.scoring.answers.intext import is_schema, placed_objects, unwrapped
from referee.scoring.answers.marks import Shown, closing

_SEARCHED = 50_000  # characters
_MOST = 32
_MOST_DEEP = 4
_SHORT = 200
_NAME_KEYS = ("name", "function", "tool", "tool_name", "action", "function_name", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "input", "args", "action_input", "tool_input", "params", "kwargs")
_PREFIX = r"(?:[A-Za-z_]\w*(?:\.|::|/))*"
_ARGUMENT = r"(?:arguments|parameters|input|args|action_input|tool_input|params|kwargs)"
#: Values that a form leaves open.
_OPEN = re.compile(
    r"\s*(?:|[<\[{(].*[>\]})]|\W*(?:\.\.|\u2026|\?)\W*|(?:your|dein\w*|ihr\w*)[ _-].*"
    r"|string|str|number|integer|int|float|boolean|bool|object|array|unknown|tbd|value|text)\s*",
    re.IGNORECASE | re.DOTALL,
)
_KEYWORD = re.compile(r"\s*[A-Za-z_]\w*\s*=(?!=)\s*")
_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|'((?:[^'\\]|\\.)*+)'", re.DOTALL)
_SCALAR = re.compile(r"-?\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?|true|false|null|none", re.IGNORECASE)
_LEFT_OUT = re.compile(r"\.\.\.|\u2026|<\w")
_PART = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\[\](){},]", re.DOTALL)
_LONGEST = 10_000  # characters of arguments in brackets
_MODULES = re.compile(rf"\A{_PREFIX}")
_LEADS = re.compile(rf"[ \t>*`\"'#{{\[]*{_PREFIX}")
_LEFT_OPEN = re.compile(r":\s*[\"']?(?:<|\.\.|\u2026)")
_ADDRESSED = re.compile(rf"\bto={_PREFIX}\Z")


class Offered:
    """The tools of a case, ready to be found in texts.

    Args:
        arguments: name of each tool -> the names of its arguments.
    """

    __slots__ = ("_arguments", "_called", "_labelled", "_named", "_tag_of", "_tag_with", "_then_json")

    def __init__(self, arguments: Mapping[str, frozenset[str]]) -> None:
        self._arguments = arguments
        names = "|".join(re.escape(name) for name in sorted(arguments, key=len, reverse=True))
        self._called = re.compile(rf"(?P<name>{names})\(")
        self._named = re.compile(
            rf"\\*[\"'](?:name|function|tool|tool_name|action)\\*[\"']\s*:\s*\\*[\"']{_PREFIX}(?P<name>{names})\\*[\"']"
            rf"[^{{}}]{{0,200}}?\\*[\"']{_ARGUMENT}\\*[\"']\s*:\s*+\\*+[\"']?+\{{?+(?!\s*(?:\.\.|\u2026|<))"
        )
        self._then_json = re.compile(
            rf"(?P<name>{names})(?::\d+)?[\"'`*]*"
            r"(?:\s*(?:json\b|:|->|=>|=|with|mit)"
            r"(?:\s+(?:the\s+)?(?:arguments?|args|parameters?|input|argumenten?|parametern?))?:?)?"
            r"\s*(?:```\w*\s*)?(?=\{\s*[\"'}])"
        )
        self._labelled = re.compile(
            r"[ \t>*_#-]*(?P<label>action|name|(?:tool|function)(?:[ _-]?(?:call|name))?)[*_]*\s*:[*_\s]*"
            rf"[\"'`]?{_PREFIX}(?P<name>{names})[\"'`*_]*[ \t]*(?=\n|$)"
            r"(?P<input>\s*\n[ \t>*_#-]*"
            r"(?P<how>(?:action[ _-]?)?input|arguments?|args|param(?:eter)?s?)[*_]*\s*:[*_\s]*)?",
            re.IGNORECASE,
        )
        self._tag_of = re.compile(rf"(?P<name>{names})\b(?P<said>[^<>]*)>\s*(?P<inner>\{{|<\w+|</)?")
        self._tag_with = re.compile(
            rf"<(?:tool|function|call|invoke|use|action)\w*\s[^<>]*\bname=[\"']?{_PREFIX}(?:{names})(?=[\"'\s>/])"
        )

    def shown(self, text: str) -> Shown:
        """Whether a text shows a call of an offered tool, or an attempt at one that cannot be read."""
        text = text[:_SEARCHED]
        places = list(self._places(text))
        if not places:
            return "none"
        found: Shown = "none"
        for shown in self._all_shown(text, places):
            if shown == "call":
                return shown
            found = shown if found == "none" else found
        return found

    def _places(self, text: str) -> Iterator[int]:
        """Where the tools' names stand as words of their own, the first few of each."""
        for name in self._arguments:
            at = text.find(name)
            for _ in range(_MOST):
                if at < 0:
                    break
                if at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "_-"):
                    yield at
                at = text.find(name, at + len(name))

    def _all_shown(self, text: str, places: Sequence[int]) -> Iterator[Shown]:
        if len(text) < _SHORT and text.strip(" \n`*\"'.[]") in self._arguments:
            yield "attempt"  # nothing but its name
        if not any(mark in text for mark in "({<:="):
            return
        whole = unwrapped(text)
        if _is_empty_envelope(whole):
            return  # what else stands in it was weighed where it was read
        if "(" in text:
            yield from self._in_brackets(text, whole, places)
        if "{" in text:
            yield from self._in_json(text, whole, places)
        if ":" in text:
            yield from self._by_label(text, places)
        if "<" in text:
            yield from self._in_tags(text, whole, places)
        if "to=" in text and any(_ADDRESSED.search(text, max(0, at - 40), at) for at in places):
            yield "call"

    # --- name(…) -----------------------------------------------------------------------------------------------------

    def _in_brackets(self, text: str, whole: str, places: Sequence[int]) -> Iterator[Shown]:
        bare = _bare_call(whole)
        if (begun := self._called.match(bare)) is not None:
            end = closing(bare, begun.end() - 1)
            behind = "" if end is None else bare[end + 1 :].strip(" \n,;)]")
            if end is None:
                yield "attempt"
            elif not behind or self._called.match(_bare_call(behind)):
                yield "attempt" if _given(bare[begun.end() : end], ()) is None else "call"
        for at in places:
            if (begun := self._called.match(text, at)) is None:
                continue
            end = closing(text, begun.end() - 1)
            given = None if end is None else _given(text[begun.end() : end], self._arguments[begun["name"]])
            if given and all(given):
                yield "call"

    # --- JSON --------------------------------------------------------------------------------------------------------

    def _in_json(self, text: str, whole: str, places: Sequence[int]) -> Iterator[Shown]:
        placed = list(placed_objects(text))
        alone = whole.startswith(("{", "[")) and whole.endswith(("}", "]"))
        if any(one.value is not None and self._calls(one.value, alone=alone) for one in placed):
            yield "call"
        if any(one.value is None for one in placed) and self._named.search(text):
            yield "attempt"
        values = {one.start: one.value for one in placed}
        for at in places:
            begun = self._then_json.match(text, at)
            if begun is None or begun.end() not in values:
                continue
            leads = _LEADS.fullmatch(text, text.rfind("\n", 0, at) + 1, at) is not None
            value = values[begun.end()]
            if value is not None and self._fits(begun["name"], value, alone=leads):
                yield "call"
            elif value is None and leads and not _LEFT_OPEN.search(text, begun.end(), begun.end() + 200):
                yield "attempt"

    def _calls(self, value: Any, *, alone: bool, deep: int = 0) -> bool:
        """Whether a JSON value is a call of an offered tool, or holds one."""
        if isinstance(value, dict):
            if self._is_call(value, alone=alone):
                return True
            inner = [one for _, one in said_pairs(value)]
        else:
            inner = value if isinstance(value, list) else []
        return deep < _MOST_DEEP and any(
            self._calls(one, alone=alone, deep=deep + 1) for one in inner if isinstance(one, dict | list)
        )

    def _is_call(self, value: dict[str, Any], *, alone: bool) -> bool:
        """Whether an object names a tool and what it takes: arguments, or the tool's arguments beside its name."""
        for key, one in said_pairs(value):
            if key in self._arguments and self._fits(key, one, alone=alone and len(value) == 1):
                return True
        names = (self._tool_in(one) for key in _NAME_KEYS for one in said_under(value, key))
        name = next((one for one in names if one), None)
        if name is None:
            return False
        given = [one for key in _ARGUMENT_KEYS for one in said_under(value, key)]
        if any(self._fits(name, one, alone=True) or isinstance(one, str) for one in given):
            return alone or not all(isinstance(one, dict) and one and _all_open(one) for one in given)
        flat = value.keys() & self._arguments[name]
        return any(not _is_open(value[key]) for key in flat) or (alone and value.keys() <= {*_NAME_KEYS, "id", "type"})

    def _tool_in(self, said: Any) -> str | None:
        if not isinstance(said, str):
            return None
        return (
            said
            if said in self._arguments
            else next((name for name in self._arguments if said.endswith((f".{name}", f"::{name}"))), None)
        )

    def _fits(self, name: str, given: Any, *, alone: bool) -> bool:
        """Whether an object is arguments of a tool: not its schema, and in prose with values for what it takes."""
        if not isinstance(given, dict) or is_schema(given):
            return False
        if alone or not given:
            return True
        return not given.keys().isdisjoint(self._arguments[name]) and not _all_open(given)

    # --- words and tags ----------------------------------------------------------------------------------------------

    def _by_label(self, text: str, places: Sequence[int]) -> Iterator[Shown]:
        for at in places:
            line = text.rfind("\n", 0, at) + 1
            if (found := self._labelled.match(text, line)) is None:
                continue
            opened = text[found.end() : found.end() + 12].lstrip("`json \n").startswith("{")
            if found["input"] and (opened or found["how"].casefold().startswith("action")):
                yield "call"
            elif found["label"].casefold() == "action":
                yield "attempt"

    def _in_tags(self, text: str, whole: str, places: Sequence[int]) -> Iterator[Shown]:
        if self._tag_with.search(text):
            yield "call"
        for at in places:
            found = self._tag_of.match(text, at) if text[at - 1 : at] == "<" else None
            if found is None:
                continue
            end, taken, inner = f"</{found['name']}>", self._arguments[found["name"]], found["inner"] or ""
            closed = found["said"].endswith("/") or text.find(end, found.end("said")) >= 0
            given = any(re.search(rf"\b{re.escape(one)}\s*=", found["said"]) for one in taken)
            alone = whole.startswith(f"<{found['name']}") and whole.endswith((end, "/>", f"<{found['name']}>"))
            if given or alone or inner == "{" or inner[1:] in taken:
                yield "call" if closed else "attempt"


@lru_cache(maxsize=1024)
def offered(tools: tuple[tuple[str, frozenset[str]], ...]) -> Offered:
    """The tools of a case, made ready once: name of each and the names of its arguments."""
    return Offered(dict(tools))


def _is_empty_envelope(whole: str) -> bool:
    """Whether a text is an envelope without calls."""
    if not whole.startswith("{") or '"tool_calls"' not in whole:
        return False
    first = next(placed_objects(whole), None)
    if first is None or first.end != len(whole) or not isinstance(first.value, dict):
        return False
    return "tool_calls" in first.value and not any(said_under(first.value, "tool_calls"))


def _bare_call(whole: str) -> str:
    """A text that is a call without the list around it, the printing, or the module before its name."""
    bare = whole.lstrip("[ \n")
    bare = bare[6:].lstrip() if bare.startswith("print(") else bare
    return _MODULES.sub("", bare, count=1)


def _given(inside: str, names: Collection[str]) -> list[bool] | None:
    """For each argument in brackets whether it has a value or is left open; None where one is no literal.

    A string that is the name of an argument, one of ``names``, leaves it open.
    """
    found: list[bool] = []
    if len(inside) > _LONGEST:
        return None
    for piece in _pieces(inside):
        keyed = _KEYWORD.match(piece)
        said = piece[keyed.end() :].strip() if keyed else piece.strip()
        if string := _STRING.fullmatch(said):
            value = string[1] if string[2] is None else string[2]
            found.append(value not in names and not _is_open(value))
        elif _SCALAR.fullmatch(said):
            found.append(True)
        elif said.startswith(("[", "{")) and said.endswith(("]", "}")):
            found.append(_LEFT_OUT.search(said) is None)
        else:
            return None
    return found


def _pieces(inside: str) -> Iterator[str]:
    """The arguments in brackets, parted at the commas that stand in no string and no inner bracket."""
    start, depth = 0, 0
    for match in _PART.finditer(inside):
        mark = match[0]
        if mark in "[({":
            depth += 1
        elif mark in "])}":
            depth -= 1
        elif mark == "," and depth == 0:
            yield inside[start : match.start()]
            start = match.end()
    if inside[start:].strip():
        yield inside[start:]


def _is_open(value: Any) -> bool:
    """Whether a value is left open: empty, ``<city>``, ``…``, a type's name."""
    return isinstance(value, str) and _OPEN.fullmatch(value) is not None


def _all_open(given: Mapping[str, Any]) -> bool:
    return all(map(_is_open, given.values()))
