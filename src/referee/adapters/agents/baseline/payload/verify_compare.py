"""Compares what a README shows with what came: ``same``, ``alike`` (nothing can be said) or ``differs``.

What changes from machine to machine or from day to day (times, dates, paths, versions, sizes, addresses, long digests)
proves nothing either way: where only such things differ, or only an order, the outputs are alike. Everything else that
differs is a difference. Standard library only; it runs in any Python 3.
"""

from __future__ import annotations

import ast
import doctest
import itertools
import re
from collections import Counter
from typing import Any

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
#: What is of this machine or of this moment, by kind.
_VOLATILE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
        r"\b0x[0-9a-f]{5,}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{16,}\b",
        r"\bdatetime\.\w+\([^()]*(\([^()]*\))?[^()]*\)",
        rf"\b\d{{4}}[-/]\d{{2}}[-/]\d{{2}}([T ]{_CLOCK})?(Z|[+-]\d{{2}}:?\d{{2}})?",
        rf"\b(mon|tue|wed|thu|fri|sat|sun)\w*,? [^\n]{{0,30}}\d{{4}}\b|\b{_CLOCK}( ?[ap]m)?\b",
        r"\b\d+(\.\d+)? ?(ns|us|µs|ms|s|secs?|seconds?|minutes?|[kmgt]?i?b|bytes|kb/s|it/s)(?![\w])",
        r"\bv?\d+\.\d+\.\d+[\w.+-]*",
        r"(?<![\w.])(~|\.{1,2})?(/[\w.@+-]+){2,}/?|\b[a-z]:\\[^\s'\"]+",
        r"\b(localhost|127\.0\.0\.1|0\.0\.0\.0)(:\d+)?|\b(port|pid|process)\b[ :=]*\[?\d+\]?",
    )
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|\w+")
_MARK = re.compile(
    r"(?:=+>|-+>|→|==|>>>|>|(?:returns?|prints?|outputs?|result|gives|yields|will print|will output)\b:?)\s*",
    re.IGNORECASE,
)
#: A line of the interpreter's on its error stream.
_WARNS = re.compile(r"^\S*:?\d*:? ?\w*Warning: ")
_SIMPLE = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
#: An output of so many lines may be an extract of an older day, when most of its lines came.
_LONG = 6


def verdict(said: str, seen: str) -> str:
    """``same``, ``alike`` or ``differs`` for a documented output and what came."""
    said, seen = _plain(said), _plain(seen)
    bare = said.replace("…", "...").strip(" .\n")
    if not bare or (bare == "None" and not seen.strip()):  # a prompt does not show None
        return "alike"
    if _equal(said, seen):
        return "same"
    if "Traceback (most recent" in said and "Traceback (most recent" in seen:
        return "alike"  # both fail; the frames are the interpreter's
    lines, came = _lines(said), _lines(seen)
    if len(lines) > 1 and all(line in came for line in lines):
        return "same"
    if _mask(said) == _mask(seen) or Counter(_TOKEN.findall(_mask(said))) == Counter(_TOKEN.findall(_mask(seen))):
        return "alike"
    if len(lines) >= _LONG and sum(_mask(line) in {_mask(one) for one in came} for line in lines) * 5 >= len(lines) * 3:
        return "alike"
    return "differs"


def states_value(said: str, *, marked: bool) -> bool:
    """Whether a comment after code states a value: a literal of the language, or a short text behind a mark."""
    if literal(said) is not _NOTHING:
        return True
    words = re.findall(r"[a-z]{2,}", said)
    return marked and (len(words) < 3 or said[:1] in "'\"[{(<")


def comparable(said: str, value: object) -> bool:
    """Whether a stated literal is of the kind of the value that came; else it is a remark, not its output."""
    stated = literal(said)
    if stated is _NOTHING:
        return True
    kinds: tuple[Any, ...] = ((bool,), (int, float, complex), (str,), (bytes,), (list, tuple), (dict,), (set,))
    return any(isinstance(stated, kind) and isinstance(value, kind) for kind in kinds)


def stated(said: str, value: object, printed: str, *, marked: bool) -> tuple[str, str, str]:
    """(verdict, what a comment states, what came): ``alike`` where the comment is a remark."""
    seen = [text for text in (printed, repr(value), str(value)) if text and text != "None"]
    if not seen:
        return "alike", said, ""
    found = [verdict(said, text) for text in seen]
    if "same" in found:
        return "same", said, seen[0]
    first = said.splitlines()[0]
    if first != said and any(verdict(first, text) != "differs" for text in (*seen, seen[0].splitlines()[0])):
        return "alike", said, seen[0]  # a further comment follows
    simple = isinstance(value, _SIMPLE) and comparable(said, value)
    if "alike" in found or not states_value(said, marked=marked) or not (printed or simple):
        return "alike", said, seen[0]
    return "differs", said, seen[0]


def comment_after(lines: list[str], node: ast.stmt) -> tuple[str, bool]:
    """The comment that may state what comes of a statement, and whether a mark says that it does."""
    end = (node.end_lineno or node.lineno) - 1
    tail = lines[end].encode()[node.end_col_offset or 0 :].decode(errors="replace").strip()
    following = lines[end + 1].strip() if end + 1 < len(lines) else ""
    if not tail.startswith("#") and following.startswith("#"):
        prints = isinstance(node, ast.Expr) and "print" in lines[end]
        bare = states_value(following.lstrip("# "), marked=False)
        if _MARK.match(following.lstrip("#").strip()) or (prints and bare):
            block = itertools.takewhile(lambda line: line.strip().startswith("#"), lines[end + 1 :])
            tail = "\n".join(line.strip().lstrip("#").strip() for line in block)
            tail = f"#{tail}"
    if not tail.startswith("#"):
        return "", False
    text = tail.lstrip("#").strip()
    mark = _MARK.match(text)
    return (text[mark.end() :].strip(), True) if mark else (text, False)


_NOTHING = object()


def literal(text: str) -> object:
    """The value of a literal; ``_NOTHING`` where the text is none."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOTHING


def _plain(text: str) -> str:
    text = _ANSI.sub("", text).replace("\r", "\n").replace("<BLANKLINE>", "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(line for line in lines if not _WARNS.search(line))


def _equal(said: str, seen: str) -> bool:
    said = re.sub(r"\b[uU](?=['\"])", "", said.replace("…", "..."))
    one, two = ("".join(text.replace('"', "'").split()) for text in (said, seen))
    if two and one in {two, f"'{two}'"}:
        return True
    checker = doctest.OutputChecker()
    if checker.check_output(said + "\n", seen + "\n", _FLAGS):
        return True
    stated = literal(said)
    if stated is not _NOTHING and stated == literal(seen) and type(stated) is type(literal(seen)):
        return True
    return _rounded(said, seen)


def _rounded(said: str, seen: str) -> bool:
    """Whether the numbers are the same to the digits that are documented, and all else is equal."""
    if "".join(_NUMBER.sub("#", said).split()) != "".join(_NUMBER.sub("#", seen).split()):
        return False
    pairs = list(zip(_NUMBER.findall(said), _NUMBER.findall(seen)))
    for shown, came in pairs:
        digits = len(shown.partition(".")[2]) if "." in shown and "e" not in shown.lower() else None
        same = shown == came if digits is None else abs(float(shown) - float(came)) <= 0.51 * 10**-digits
        if not same and not ("e" in shown.lower() and abs(float(shown) - float(came)) <= 1e-6 * abs(float(came))):
            return False
    return bool(pairs)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _mask(text: str) -> str:
    for pattern in _VOLATILE:
        text = pattern.sub("\u00a4", text)
    return " ".join(text.split())
