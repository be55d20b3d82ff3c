"""The lines of a program that may ever run: a text padded with lines that cannot is told by the rest (methodology §5).

Python is read by its own grammar. Of other languages only the plainest forms of padding are known: comments, what
stands behind an exit, blocks that are never entered, texts handed to nothing, functions that nobody calls.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator

_ENDS = {"exit", "quit", "_exit", "abort", "serve_forever", "run_forever"}
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SAYS_NOTHING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Try)
_EXIT = re.compile(r"(?:exit|exec|return|die|__END__|__DATA__)\b.*|process\.exit\([^()]*\);?")
_NEVER = re.compile(r"\bif\s*\(\s*(?:false|0|null|!1)\s*\)\s*\{")
_FUNCTION = re.compile(r"(?m)^[ \t]*(?:export\s+)?(?:async\s+)?(?:function|class|def|sub)\s+(\w+)[^{\n]*\{")
_SHELL_FUNCTION = re.compile(r"(?m)^(\w+)\s*\(\)\s*\{")
# Only space of a line stands before what is looked for: a machine's file may hold a great many empty lines.
_HEREDOC = re.compile(
    r"(?m)^[ \t]*(?::|true|cat[ \t]*>[ \t]*/dev/null)[ \t]*<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n(?:[^\n]*\n)*?[ \t]*\2$"
)
_IF_FALSE = re.compile(r"(?ms)^[ \t]*if[ \t]+(?:false|!\s*true|\[\s*\])\s*;?\s*then\b.*?^[ \t]*fi\b")
_COMMENT = re.compile(r"/\*|(?m:^[ \t]*(?://|#)[^\n]*$)|<#|(?m:^=begin\b)")
_COMMENT_ENDS = {"/*": re.compile(r"\*/"), "<#": re.compile("#>"), "=begin": re.compile(r"(?m:^=(?:end|cut)\b)")}


def live_lines(text: str, name: str = "") -> list[str]:
    """The lines that may run, each without space around it.

    Args:
        text: a program.
        name: its file's name, which may tell its language.
    """
    suffix = name.rpartition(".")[2] if "." in name else ""
    tree = None if suffix not in {"", "py", "pyw"} else _parsed(text)
    try:
        kept = _of_python(text, tree) if tree is not None else _of_another(text)
    except RecursionError:  # nested more deeply than anybody writes: it tells nothing
        kept = []
    return [line for one in kept if (line := " ".join(one.split()))]


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def live_tree(text: str) -> ast.Module | None:
    """The statements of a Python program that may run; None where it is none."""
    tree = _parsed(text)
    try:
        return None if tree is None else ast.Module(body=_reachable(tree), type_ignores=[])
    except RecursionError:
        return tree


def _of_python(text: str, tree: ast.Module) -> list[str]:
    rows = text.splitlines()
    lines = {at for one in _reachable(tree) for at in _lines(one)}
    return [rows[at - 1] for at in sorted(lines) if at <= len(rows)]


def _reachable(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a module that may run, and the definitions that these name."""
    statements = list(_reached(tree.body))
    named: set[str] = set()
    waiting = [one for one in statements if not isinstance(one, _DEFINES)]
    left = [one for one in statements if isinstance(one, _DEFINES)]
    if all(isinstance(one, _SAYS_NOTHING) for one in waiting):
        waiting, left = statements, []  # a module that others use
    found: list[ast.stmt] = []
    while waiting:
        found += waiting
        named |= {name for one in waiting for name in _names(one)}
        waiting = [one for one in left if one.name in named or one.decorator_list]
        left = [one for one in left if one not in waiting]
    return found


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr


def _reached(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block that may run, up to what leaves it."""
    for one in body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            continue  # a text that is handed to nothing
        if isinstance(one, ast.If) and isinstance(one.test, ast.Constant) and not one.test.value:
            yield from _reached(one.orelse)
            continue
        yield one
        if isinstance(one, ast.Return | ast.Raise | ast.Continue | ast.Break) or _leaves(one):
            return


def _leaves(one: ast.stmt) -> bool:
    call = one.value if isinstance(one, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return isinstance(one, ast.While) and _forever(one)
    function = call.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    return name in _ENDS


def _forever(loop: ast.While) -> bool:
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return always and not any(isinstance(one, ast.Break) for one in ast.walk(loop))


def _lines(one: ast.stmt) -> Iterator[int]:
    """The lines of a statement, those of blocks in it that are not reached left out."""
    blocks = [block for name in ("body", "orelse", "finalbody") if (block := getattr(one, name, None))]
    blocks += [handler.body for handler in getattr(one, "handlers", ())]
    inner = [statement for block in blocks for statement in block]
    end = one.end_lineno or one.lineno
    whole = range(min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))]), end + 1)
    inside = {at for statement in inner for at in range(statement.lineno, (statement.end_lineno or 0) + 1)}
    yield from (at for at in whole if at not in inside)
    for block in blocks:
        for statement in _reached(block):
            yield from _lines(statement)


def _of_another(text: str) -> list[str]:
    bare = _HEREDOC.sub("\n", _IF_FALSE.sub("\n", _uncommented(text)))
    bare = _without(bare, ((match.start(), match.end() - 1) for match in _NEVER.finditer(bare)))
    for pattern in (_FUNCTION, _SHELL_FUNCTION):
        times = Counter(re.findall(r"\w+", bare))
        uncalled = [(match.start(), match.end() - 1) for match in pattern.finditer(bare) if times[match.group(1)] == 1]
        bare = _without(bare, uncalled)
    rows = bare.splitlines()
    end = next((at for at, row in enumerate(rows) if _EXIT.fullmatch(row)), len(rows))
    return rows[: end + 1]


def _uncommented(text: str) -> str:
    """A text without comments; one that is opened and not closed again is none."""
    out: list[str] = []
    at, looked = 0, 0
    never: set[str] = set()
    while (begun := _COMMENT.search(text, looked)) is not None:
        looked = begun.end()
        kind = begun.group()
        closes = _COMMENT_ENDS.get(kind)
        closed = closes.search(text, looked) if closes is not None and kind not in never else None
        if closes is not None and closed is None:
            never.add(kind)
            continue
        out += [text[at : begun.start()], "\n"]
        at = looked = begun.end() if closed is None else closed.end()
    return "".join([*out, text[at:]])


def _without(text: str, blocks: Iterable[tuple[int, int]]) -> str:
    """The text without blocks, each told by where it begins and where its brace stands."""
    out: list[str] = []
    at = 0
    for begin, brace in blocks:
        if begin >= at:
            out.append(text[at:begin])
            at = _closed(text, brace)
    return "".join([*out, text[at:]])


def _closed(text: str, brace: int) -> int:
    depth = 0
    for at in range(brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)
