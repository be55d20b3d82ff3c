"""The one namespace in which a README's Python examples run, and what they take for granted there.

A part of ``verify_snippets.py``: a missing import, a name that stands for the reader's own input, a sample file.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import importlib
import inspect
import io
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

#: An error of a library's own that names a file it could not open.
_TOLD = re.compile(
    r"(?:missing|not found|no such file|does not exist|"
    r"(?:cannot|can't|unable to|could not|failed to|error) (?:open|read|load)(?:ing)?)"
    r"[^\n]{0,60}?([\w-]+\.[a-z0-9]{2,5})\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class Reader:
    """The one namespace in which the examples run, and what came of each."""

    def __init__(self, package: list[str], samples: Callable[[], Any]) -> None:
        self.package = package
        #: Loads the programs that make sample inputs, when one is first wanted.
        self.samples = samples
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        self.space: dict[str, Any] = self.module.__dict__
        self.space["__builtins__"] = builtins
        self.loop: asyncio.AbstractEventLoop | None = None
        self.quiet = False
        #: Names that come from the package, or from what was made with it.
        self.from_package: set[str] = set()
        #: Names to whose attributes the statement at hand assigns: any object will do.
        self.targets: set[str] = set()
        #: Whether an input of ours stood in for the reader's own: what is documented cannot come then.
        self.supplied = False
        #: Keeps what is known so far when the interpreter must be left.
        self.rescue: Callable[[], None] = lambda: None

    def uses(self, node: ast.stmt) -> bool:
        """Whether a statement that ran worked with the package: not an import alone, not a definition alone."""
        tops = {name.split(".")[0] for name in self.package}
        if isinstance(node, ast.Import):
            self.from_package |= {a.asname or a.name.split(".")[0] for a in node.names if a.name.split(".")[0] in tops}
            return False
        if isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in tops:
                listed = {a.asname or a.name for a in node.names}
                self.from_package |= set(self.space) if "*" in listed else listed
            return False
        named = {sub.id for sub in ast.walk(node) if isinstance(sub, ast.Name)}
        if not named & self.from_package:
            return False
        self.from_package |= {s.id for s in ast.walk(node) if isinstance(s, ast.Name) and isinstance(s.ctx, ast.Store)}
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.from_package.add(node.name)
            return bool(node.decorator_list)
        work = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.With, ast.AsyncWith, ast.For, ast.Await)
        return any(isinstance(sub, work) for sub in ast.walk(node))

    def show(self, text: str) -> None:
        """Print one line of what was seen, with addresses masked."""
        if not self.quiet:
            sys.stdout.write(_ADDRESS.sub("0x…", text)[:400] + "\n")
            sys.stdout.flush()

    def value(self, code: types.CodeType) -> Any:
        """Run code; wait for it where it awaits."""
        result = eval(code, self.space)  # noqa: S307 — running the example is the point
        if code.co_flags & inspect.CO_COROUTINE:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
            result = self.loop.run_until_complete(result)
        return result

    def supply(self, exc: BaseException, made: list[str]) -> bool:
        """Add what an example takes for granted: an import, a sample file. True when it is worth another try."""
        if isinstance(exc, NameError):
            found = re.search(r"name '(\w+)' is not defined", str(exc))
            return found is not None and self._name(found.group(1))
        homonym = (
            re.match(r"module '(\w+)' has no attribute '(\w+)'", str(exc)) if isinstance(exc, AttributeError) else None
        )
        if homonym:  # ``datetime`` of the module ``datetime``: which one an example means is told by what it asks of it
            name, inner = homonym.group(1), getattr(self.space.get(homonym.group(1)), homonym.group(1), None)
            if inspect.isclass(inner) and hasattr(inner, homonym.group(2)):
                self.space[name] = inner
                return True
        missing = getattr(exc, "filename", None) if isinstance(exc, FileNotFoundError) else None
        told = _TOLD.search(str(exc)) if missing is None else None
        missing = told.group(1) if told else missing
        if isinstance(missing, (str, bytes)):
            name = os.fsdecode(missing)
            here = os.getcwd() + os.sep
            name = name.removeprefix(here)
            if self.samples().make(name):
                self.supplied = True
                made.append(name)
                return True
        return False

    def input(self, name: str) -> Any:
        """A small input of ours for a name that by convention stands for the reader's own; of the package's kind."""
        promised = " ".join(self.package).lower()
        kind = next((k for k in ("yaml", "json", "toml", "xml", "html", "csv", "ini") if k in promised), "txt")
        samples = self.samples()
        text: str = samples.PLAIN.get(f".{kind}", samples.TEXT)
        if name in {"stream", "fp", "fh", "fileobj", "file_obj"}:
            return io.StringIO(text)
        if name in {
            "text",
            "string",
            "s",
            "content",
            "document",
            "doc",
            "source",
            f"{kind}_string",
            f"{kind}_str",
            kind,
        }:
            return text
        if name in {"data", "obj", "my_dict", "payload"}:
            return {"name": "sample", "values": [1, 2, 3]}
        return None

    def _name(self, name: str) -> bool:
        if name in self.targets:
            self.space[name] = types.SimpleNamespace()
            self.supplied = True
            return True
        for package in self.package:
            if name == package.split(".")[0]:
                self.space[name] = importlib.import_module(name)
                self.from_package.add(name)
                return True
            with contextlib.suppress(Exception):
                self.space[name] = getattr(importlib.import_module(package), name)
                self.from_package.add(name)
                return True
        given = self.input(name)
        if given is not None:
            self.space[name] = given
            self.supplied = True
            return True
        if name in {"options", "opts", "config", "settings", "kwargs"}:
            self.space[name] = {}
            self.supplied = True
            return True
        if name in sys.stdlib_module_names if hasattr(sys, "stdlib_module_names") else False:
            self.space[name] = importlib.import_module(name)
            return True
        return False
