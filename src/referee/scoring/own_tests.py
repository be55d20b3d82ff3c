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
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: Modules through which nothing of a project is reached.
_APART = {
    *("__future__", "typing", "pytest", "unittest", "math", "cmath", "re", "json", "string", "itertools", "functools"),
    *("collections", "operator", "dataclasses", "datetime", "decimal", "fractions", "random", "statistics", "copy"),
    *("enum", "textwrap", "time"),
}
_REACHES = {"open", "__import__", "exec", "eval", "compile", "globals", "getattr", "breakpoint", "input"}


def files_told(words: tuple[str, ...]) -> tuple[str, ...]:
    """The Python files that a run of tests is told to run, and nothing where it may run others too."""
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


def tests_nothing(words: tuple[str, ...], scripts: Mapping[str, str]) -> bool:
    """Whether all files that a run of tests is told to run are the agent's own and test nothing but themselves.

    Args:
        words: a step's words, without what wraps it.
        scripts: texts of the agent's own files, by the word that names each.
    """
    files = files_told(words)
    texts = [scripts.get(ALSO + name) for name in files]
    return bool(files) and all(text is not None and _by_itself(text) for text in texts)


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
        chosen = any("parametrize" in ast.dump(one) for one in node.decorator_list)
        return not given or chosen or not node.name.startswith("test")  # a fixture may come from anywhere
    return True


def _apart(names: Iterable[str]) -> bool:
    return all(name.split(".", 1)[0] in _APART for name in names)
