"""Code handed to an interpreter on its command line: does it do anything that could fail to work?

Python is read by its own grammar (``ast``); of JavaScript only the shortest forms of saying a constant are known.
"""

from __future__ import annotations

import ast
import re
import warnings

_SAYING = {"print", "exit", "quit", "str", "repr", "len", "sys.exit", "sys.stdout.write", "os._exit"}
_VERSION_CALLS = {"version", "metadata.version", "importlib.metadata.version", "pkg_resources.get_distribution"}
_VERSION_NAMES = {"__version__", "VERSION", "version", "__file__", "__name__", "__doc__", "__path__"}
#: Calls that only bring up what stands in a file, by name and by method.
_OPENING = {"open", "Path", "pathlib.Path"}
_READING = {"read", "readline", "readlines", "read_text", "read_bytes", "strip", "decode"}
_MOCKS = {"mock", "unittest.mock", "responses", "moto", "fakeredis", "mongomock", "httpretty", "requests_mock", "vcr"}
#: Parts of a dotted name that are read: no known one has so many.
_LONGEST_NAME = 5
_MADE_MODULES = {"ModuleType", "SimpleNamespace", "Mock", "MagicMock", "type"}
_HARMLESS = (
    ast.Module,
    ast.Expr,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Store,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Import,
    ast.ImportFrom,
    ast.alias,
    ast.Assign,
    ast.Assert,
    ast.Pass,
    ast.Tuple,
    ast.List,
    ast.keyword,
    ast.BinOp,
    ast.operator,
)
# The patterns below meet text without runs of white space: their repetitions cannot compete for it.
_NODE_SAYS = re.compile(
    r"""\s*(?:console\.log|process\.stdout\.write)\(\s*(?:"[^"]*"|'[^']*'|`[^`$]*`|\d+)\s*\)\s*;?\s*"""
    r"""|\s*(?:process\.exit\(0?\))?\s*;?\s*"""
)
_PRINTS = re.compile(
    r"""(?:BEGIN\s*\{)?\s*(?:print|puts|echo|say|p|printf|io\.write)\b[\s(]*"""
    r"""(?:"[^"]*"|'[^']*'|[\d.\s+*/-]+)[\s)]*;?\s*\}?\s*"""
)
_NODE_VERSION = re.compile(
    r"""\s*(?:console\.log\()?\s*(?:require\([^()]*\)\.version|process\.versions?(?:\.\w+)?)\s*\)?\s*;?\s*"""
)


def python_role(code: str) -> str:
    """What Python code is worth.

    ``says`` (constants, imports), ``shows`` (what a file holds), ``asks`` (a version), ``hides`` (swallows its own
    failure) or ``works``.
    """
    tree = _parse(code)
    if tree is None:
        return "works"
    if any(isinstance(node, ast.Try) and _swallows(node) for node in ast.walk(tree)):
        return "hides"
    kinds = {_kind(node) for node in ast.walk(tree)}
    return next((role for role in ("works", "asks", "shows") if role in kinds), "says")


def _kind(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _kind_of_call(node)
    if isinstance(node, ast.Attribute):
        if node.attr in _VERSION_NAMES:
            return "asks"
        known = node.attr in _READING or _dotted(node) in _SAYING | _OPENING | {"sys.stdout", "importlib.metadata"}
        return "says" if known else "works"
    return "says" if isinstance(node, _HARMLESS) else "works"


def _kind_of_call(node: ast.Call) -> str:
    name = _dotted(node.func)
    if name in {"exec", "eval", "compile"} and node.args and isinstance(node.args[0], ast.Constant):
        return python_role(str(node.args[0].value))
    if name in _OPENING or (isinstance(node.func, ast.Attribute) and node.func.attr in _READING):
        return "shows"
    return "asks" if name in _VERSION_CALLS else "says" if name in _SAYING else "works"


def python_mocks(code: str) -> bool:
    """Whether the code imports a library that stands in for the real thing."""
    tree = _parse(code)
    if tree is None:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name in _MOCKS for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module in _MOCKS or any(f"{module}.{alias.name}" in _MOCKS for alias in node.names):
                return True
    return False


def python_puts_modules(code: str) -> bool:
    """Whether the code puts a module of its own making where an import would look for the real one."""
    tree = _parse(code)
    if tree is None:
        return False
    made = any(isinstance(n, ast.Call) and _dotted(n.func).split(".")[-1] in _MADE_MODULES for n in ast.walk(tree))
    return made and any(
        isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Subscript) and _dotted(t.value) == "sys.modules" for t in node.targets)
        for node in ast.walk(tree)
    )


def node_role(code: str) -> str:
    """``says`` for a constant, ``asks`` for a version, else ``works``."""
    flat = " ".join(code.split())
    if _NODE_SAYS.fullmatch(flat):
        return "says"
    return "asks" if _NODE_VERSION.fullmatch(flat) else "works"


def one_liner_role(code: str) -> str:
    """A one-liner of Perl, Ruby, PHP, Lua or awk: ``says`` when it prints a constant, else ``works``."""
    return "says" if _PRINTS.fullmatch(" ".join(code.split())) else "works"


def _parse(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _swallows(node: ast.Try) -> bool:
    """An ``except`` for everything whose body raises nothing and ends with no failure."""
    for handler in node.handlers:
        everything = handler.type is None or _dotted(handler.type) in {"Exception", "BaseException"}
        speaks_up = any(
            isinstance(inner, ast.Raise)
            or (isinstance(inner, ast.Call) and _dotted(inner.func) in {"sys.exit", "exit"})
            for statement in handler.body
            for inner in ast.walk(statement)
        )
        if everything and not speaks_up:
            return True
    return False


def _dotted(node: ast.AST) -> str:
    """A name with its dots; of one that is longer than any that is known here, the end."""
    after: list[str] = []
    while isinstance(node, ast.Attribute) and len(after) < _LONGEST_NAME:
        after.append(node.attr)
        node = node.value
    return ".".join((node.id if isinstance(node, ast.Name) else "?", *reversed(after)))
