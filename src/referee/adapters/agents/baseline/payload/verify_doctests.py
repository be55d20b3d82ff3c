"""Runs the examples in the docstrings of installed modules and compares what they print; says how many passed."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import sys
from types import ModuleType

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class Checker(doctest.OutputChecker):
    """Doctest's own comparison, and equal literals whatever their order."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether what came is what is documented."""
        if super().check_output(want, got, optionflags):
            return True
        return bool(compare().verdict(want, got) == "same")


def compare() -> ModuleType:
    """The module beside this program that compares outputs."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(here)
    try:
        return importlib.import_module("verify_compare")
    finally:
        sys.path.remove(here)


def modules(name: str) -> list[ModuleType]:
    """The module and what lies below it; a part that cannot be imported is left out."""
    found = [importlib.import_module(name)]
    for entry in pkgutil.walk_packages(getattr(found[0], "__path__", []), name + ".", onerror=lambda _name: None):
        if any(part in {"tests", "test", "__main__", "testing"} for part in entry.name.split(".")):
            continue
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            found.append(importlib.import_module(entry.name))
        if len(found) > 60:
            break
    return found


def main(names: list[str]) -> int:
    """0 when at least one documented example printed what its docstring says, and no fewer than half did."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.argv = ["docstrings"]
    good = bad = 0
    itself = ""
    for name in names:
        for module in modules(name):
            for test in doctest.DocTestFinder(exclude_empty=True).find(module):
                if not any(example.want for example in test.examples):
                    continue
                runner = doctest.DocTestRunner(checker=Checker(), verbose=False, optionflags=_FLAGS)
                with contextlib.redirect_stdout(io.StringIO()):
                    result = runner.run(test, out=lambda _text: None, clear_globs=False)
                if result.failed:
                    bad += 1
                else:
                    good += 1
                    itself = itself or (test.name if test.name == f"{name}.{name}" else "")
                    sys.stdout.write(f"{test.name}: {result.attempted} examples as documented\n")
    among = f", that of {itself} itself among them" if itself else ""
    sys.stdout.write(f"{good} passed: documented examples in docstrings ({bad} differ){among}\n")
    return 0 if good and good >= bad else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
