"""Test files of the agent's own that a command runs: do they test anything but themselves?

Only what a text surely says counts: a file that imports, opens, starts and is handed nothing from elsewhere tests
nothing of a project (methodology §5).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping

from referee.scoring.by_itself import ALSO
from referee.scoring.shell_words import UNKNOWN

_RUNNERS = ("pytest", "py.test", "unittest")
#: Runners of tests in JavaScript, and what starts them.
_NODE_RUNNERS = {"jest", "vitest", "mocha", "ava", "tap", "jasmine", "tape"}
_NODE_STARTERS = {"npx", "bunx", "yarn", "pnpm", "npm", "bun"}
_NODE_FILE = re.compile(r"[\w./@-]+\.(?:[cm]?js|jsx|[cm]?ts|tsx)")
_NODE_IMPORT = re.compile(r"""(?:\brequire\(\s*|\bfrom\s*|\bimport\s*|\bimport\(\s*)["'`]([^"'`]+)["'`]""")
_NODE_APART = {
    *("test", "assert", "assert/strict", "jest", "@jest/globals", "vitest", "mocha", "chai", "ava", "tap", "tape"),
    *("util", "path", "url", "timers", "timers/promises", "events", "buffer", "expect", "should", "sinon"),
}
#: Ways in which JavaScript reaches what it does not name.
_NODE_REACHES = re.compile(
    r"\b(?:require|import)\s*\(\s*(?![\"'`])|\brequire\s*(?![\s(])|\b(?:fetch|eval|Function|globalThis|global|process|Deno|Bun)\b"
    r"|\brequireActual\b|\bimport\.meta\b|\bWebAssembly\b|\bcreateRequire\b"
)
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: Modules through which nothing of a project is reached.
_APART = {
    *("__future__", "typing", "pytest", "unittest", "math", "cmath", "re", "json", "string", "itertools", "functools"),
    *("collections", "operator", "dataclasses", "datetime", "decimal", "fractions", "random", "statistics", "copy"),
    *("enum", "textwrap", "time"),
}
_REACHES = {"open", "__import__", "exec", "eval", "compile", "globals", "getattr", "breakpoint", "input"}


def files_told(words: tuple[str, ...]) -> tuple[str, ...]:
    """The files of Python or JavaScript that a run of tests is told to run, and nothing where it may run others too."""
    of_node = _of_node(words)
    if of_node is not None:
        return of_node
    at = next((i for i, word in enumerate(words) if word.rsplit("/", 1)[-1] in _RUNNERS), None)
    if at is None or (at > 0 and not words[0].rsplit("/", 1)[-1].startswith(("python", "pypy"))):
        return ()
    modules = words[at] == "unittest"
    files: list[str] = []
    for before, word in zip(words[at:], words[at + 1 :], strict=False):
        place = word.split("::", 1)[0]
        if word.startswith("-") or UNKNOWN in word:
            continue
        if place.endswith(".py"):
            files.append(place)
        elif modules and _MODULE.fullmatch(word) and word != "discover":
            files.append(word.replace(".", "/") + ".py")
        elif not before.startswith("-"):
            return ()
    return tuple(dict.fromkeys(files))


def _of_node(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """The files of JavaScript that a runner is told; None where no runner of JavaScript is started."""
    names = [word.rsplit("/", 1)[-1] for word in words]
    if names[:1] in (["node"], ["nodejs"]) and "--test" in words:
        at = words.index("--test")
    else:
        at = next((i for i, name in enumerate(names) if name in _NODE_RUNNERS), -1)
        if at < 0 or (at > 0 and names[0] not in {*_NODE_STARTERS, "node", "nodejs"}):
            return None
    files: list[str] = []
    for before, word in zip(words[at:], words[at + 1 :], strict=False):
        if word.startswith("-") or UNKNOWN in word or word in {"run", "watch"}:
            continue
        if _NODE_FILE.fullmatch(word):
            files.append(word)
        elif not before.startswith("-") or before == "--test":
            return ()
    return tuple(dict.fromkeys(files))


def tests_nothing(words: tuple[str, ...], scripts: Mapping[str, str]) -> bool:
    """Whether all files that a run of tests is told to run are the agent's own and test nothing but themselves.

    Args:
        words: a step's words, without what wraps it.
        scripts: texts of the agent's own files, by the word that names each.
    """
    files = files_told(words)
    texts = [scripts.get(ALSO + name) for name in files]
    return bool(files) and all(
        text is not None and (_by_itself(text) if name.endswith(".py") else _node_by_itself(text))
        for name, text in zip(files, texts, strict=True)
    )


def _node_by_itself(text: str) -> bool:
    """Whether a test in JavaScript brings in nothing but what tests are written with, and reaches nothing else."""
    used = {name.removeprefix("node:") for name in _NODE_IMPORT.findall(text)}
    return used <= _NODE_APART and _NODE_REACHES.search(text) is None


def _by_itself(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_stays(node) for node in nodes)


def _stays(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return _apart(alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and _apart([node.module or "?"])
    if isinstance(node, ast.Name):
        return node.id not in _REACHES
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
        chosen = any("parametrize" in word for one in node.decorator_list for word in _words(one))
        return not given or chosen or not node.name.startswith("test")  # a fixture may come from anywhere
    return True


def _words(expression: ast.expr) -> Iterable[str]:
    """The names and texts in an expression, however deeply it is nested."""
    for node in ast.walk(expression):
        yield from (value for _, value in ast.iter_fields(node) if isinstance(value, str))


def _apart(names: Iterable[str]) -> bool:
    return all(name.split(".", 1)[0] in _APART for name in names)
