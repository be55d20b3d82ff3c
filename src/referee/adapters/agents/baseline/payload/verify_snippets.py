"""Runs the Python examples of a README one after the other, as a reader would at a prompt (``verify_reader.py``).

Usage: ``verify_snippets.py LIST.json [--trial OUT.json] [--serve ID]``. Without ``--trial`` every statement that is not
marked as skipped must run, and every documented output that matched must match again; else the status is 1.
With ``--trial`` what failed is written to OUT.json and the status is 1 when anything failed.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import linecache
import os
import re
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .verify_reader import Reader

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
sys.path.insert(0, os.getcwd())
SECONDS = int(os.environ.get("VERIFY_SNIPPET_SECONDS", "20"))
#: A statement that runs for so long while it shows a window of its own waits for a person.
WINDOW_SECONDS = 4
_SIMPLE = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
_PLACEHOLDER = re.compile(
    r"<[\w ]*(?:your|path|replace|insert|token|key|name)[\w ]*>|['\"]/?path/to\b|['\"]YOUR[_ -]|['\"]your[-_ ]",
    re.IGNORECASE,
)


class Blocked(BaseException):
    """A statement did not come back in time; ``ports`` are what this process listened on by then."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(f"still running after {SECONDS} s")
        self.ports = ports


def _alarm(_signal: int, _frame: object) -> None:
    raise Blocked(_watch().listening())


def _beside(name: str) -> Any:
    """A module that stands beside this program, without leaving its directory on the path."""
    sys.path.append(HERE)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(HERE)


def _watch() -> Any:
    return _beside("verify_watch")


def _compare() -> Any:
    return _beside("verify_compare")


def plural(count: int, one: str) -> str:
    """A count with its noun."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def run_statements(reader: Reader, snippet: dict[str, Any], trial: dict[str, Any]) -> None:
    """Run a plain block statement by statement; results, and comments that state them, are shown."""
    text = snippet["text"]
    path = f"<example {snippet['id']}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    lines = text.splitlines()
    tree = ast.parse(text, path)
    whole = io.StringIO()
    reader.space["__doc__"] = ast.get_docstring(tree, clean=False) or reader.space.get("__doc__")
    for number, node in enumerate(tree.body):
        if number in snippet.get("skip", []):
            continue
        if _PLACEHOLDER.search(ast.get_source_segment(text, node) or ""):
            trial["failed"][str(number)] = {"kind": "SyntaxError", "text": "it holds a placeholder for the reader"}
            continue
        printed = io.StringIO()

        def step(node: ast.stmt = node, printed: io.StringIO = printed) -> Any:
            kind = "eval" if isinstance(node, ast.Expr) else "exec"
            body: Any = ast.Expression(node.value) if isinstance(node, ast.Expr) else ast.Module([node], [])
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if _awaits(node) else 0
            code = compile(body, path, kind, flags)
            with contextlib.redirect_stdout(_watch().Tee(printed, reader.quiet)):
                return reader.value(code)

        left = node.targets if isinstance(node, ast.Assign) else []
        reader.targets = {t.value.id for t in left if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name)}
        value, failed = attempt(reader, step, trial, number)
        if failed:
            continue
        trial["ran"].append(number)
        if reader.uses(node) and not inspect.iscoroutine(value):  # what nobody awaits did nothing
            trial["used"].append(number)
        source = ast.get_source_segment(text, node) or ""
        first = source.splitlines()[0][:120] if source else ""
        if isinstance(node, ast.Expr) and value is not None:
            reader.show(f"{first}  ->  {value!r}")
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            bound = reader.space.get(name)
            reader.show(f"{name} = {bound!r}" if isinstance(bound, _SIMPLE) else f"{name} is a {type(bound).__name__}")
        whole.write(printed.getvalue())
        said, marked = _compare().comment_after(lines, node)
        if said and isinstance(node, (ast.Expr, ast.Assign)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = reader.space.get(node.targets[0].id)
            told = _compare().stated(said, value, printed.getvalue().strip(), marked=marked)
            _judge(reader, trial, number, told)
    if snippet.get("expected") and whole.getvalue().strip() and not trial["failed"]:
        told = (_compare().verdict(snippet["expected"], whole.getvalue()), snippet["expected"].strip(),
                whole.getvalue().strip())  # fmt: skip
        _judge(reader, trial, len(tree.body), told)


def _judge(reader: Reader, trial: dict[str, Any], number: int, told: tuple[str, str, str]) -> None:
    """Write down what came of one documented output; with inputs of ours, or after a failure, nothing can be said."""
    verdict, said, seen = told
    if verdict == "same":
        trial["matched"].append(number)
        reader.show(f"as documented: {said}")
    elif verdict == "differs" and not reader.supplied and not trial["failed"]:
        trial["differs"].append([number, said[:160], seen[:160]])
        if number in trial["used"]:  # a use, if it turns out to be another output each time
            trial["used"].remove(number)
            trial["doubted"].append(number)
        reader.show(f"NOT as documented: {said}")


def _awaits(node: ast.AST) -> bool:
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, waits):
            return True
        if not isinstance(current, inner):
            todo.extend(ast.iter_child_nodes(current))
    return False


def _leave(reader: Reader, trial: dict[str, Any], number: int, why: str) -> NoReturn:
    """Leave the interpreter, which an example holds; what is known stays."""
    trial["failed"][str(number)] = {"kind": "Blocked", "text": why}
    trial["stuck"] = True
    reader.rescue()
    os._exit(70)


def attempt(reader: Reader, step: Any, trial: dict[str, Any], number: int) -> tuple[Any, bool]:
    """Run one step under the clock, supplying what is taken for granted; (value, failed)."""
    before = _watch().windows()

    def stuck() -> None:  # native code (a window's main loop) that no alarm reaches
        _leave(reader, trial, number, f"still running after {SECONDS} s")

    def shown() -> None:  # a window of its own, and the statement does not come back: it waits for a person
        if _watch().windows() > before:
            _leave(reader, trial, number, "it shows a window and waits for a person")

    for _ in range(6):
        watch = threading.Timer(SECONDS + 5, stuck)
        look = threading.Timer(WINDOW_SECONDS, shown)
        watch.daemon = look.daemon = True
        try:
            signal.alarm(SECONDS)
            watch.start()
            look.start()
            try:
                return step(), False
            finally:
                signal.alarm(0)
                watch.cancel()
                look.cancel()
        except Blocked as exc:
            trial["failed"][str(number)] = {"kind": "Blocked", "text": str(exc), "ports": exc.ports}
            trial["blocked"] = True
            return None, True
        except SystemExit as exc:
            if exc.code in (None, 0):
                return None, False
            trial["failed"][str(number)] = {"kind": "SystemExit", "text": str(exc.code)}
            return None, True
        except (KeyboardInterrupt, Exception) as exc:
            if reader.supply(exc, trial["samples"]):
                continue
            where = traceback.extract_tb(exc.__traceback__)
            inside = bool(where) and not where[-1].filename.startswith("<example")
            inside = inside and not reader.supplied and not _watch().names_absent(str(exc))
            said = f"{type(exc).__name__}: {exc}"
            trial["failed"][str(number)] = {
                "kind": type(exc).__name__,
                "text": said[:500],
                "inside": inside and not reader.supplied,
            }
            frames = traceback.format_exception(type(exc), exc, exc.__traceback__)
            sys.stdout.write("".join(frames)[-3000:])
            sys.stdout.flush()
            return None, True
    return None, True


def run_doctest(reader: Reader, snippet: dict[str, Any], trial: dict[str, Any]) -> None:
    """Run a block of ``>>>`` examples and compare what is printed with what is documented."""
    examples = doctest.DocTestParser().get_examples(snippet["text"])
    checker = doctest.OutputChecker()
    for number, example in enumerate(examples):
        if number in snippet.get("skip", []):
            continue
        printed = io.StringIO()

        def step(example: doctest.Example = example, printed: io.StringIO = printed) -> Any:
            tree = ast.parse(example.source)
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if any(_awaits(node) for node in tree.body) else 0
            code = compile(example.source, f"<example {snippet['id']}>", "single", flags)
            printed.truncate(0)
            printed.seek(0)
            with contextlib.redirect_stdout(printed):
                try:
                    reader.value(code)
                except Exception as exc:
                    if not example.exc_msg:
                        raise
                    printed.write(f"Traceback (most recent call last):\n{type(exc).__name__}: {exc}\n")
            return printed.getvalue()

        got, failed = attempt(reader, step, trial, number)
        if failed:
            continue
        trial["ran"].append(number)
        uses = [reader.uses(node) for node in ast.parse(example.source).body]
        if any(uses):
            trial["used"].append(number)
        reader.show(f">>> {example.source.splitlines()[0][:120]}")
        if got.strip():
            reader.show(got.strip()[:300])
        want = example.want
        same = checker.check_output(want, got, _FLAGS) or (example.exc_msg and example.exc_msg.split(":")[0] in got)
        if want.strip():
            verdict = "same" if same else _compare().verdict(want, got)
            _judge(reader, trial, number, (verdict, want.strip(), got.strip() or "nothing"))


def run_list(snippets: list[dict[str, Any]], package: list[str], *, trial_file: str | None, serve: str | None) -> int:
    """Run all examples in order; 0 when nothing that should run failed."""
    reader: Reader = _beside("verify_reader").Reader(package, lambda: _beside("verify_samples"))
    trials: dict[str, dict[str, Any]] = {}
    signal.signal(signal.SIGALRM, _alarm)
    broken = 0
    for snippet in snippets:
        if serve == snippet["id"]:
            return _serve(reader, snippet)
        if snippet.get("drop"):
            continue
        reader.quiet = bool(serve) or bool(snippet.get("quiet"))
        trial: dict[str, Any] = {"ran": [], "failed": {}, "matched": [], "differs": [], "samples": [], "used": [],
                                 "doubted": []}  # fmt: skip
        trials[snippet["id"]] = trial
        reader.rescue = (lambda: _save(trial_file, trials)) if trial_file else (lambda: None)
        if trial_file:  # a crash of the interpreter leaves this behind
            _save(trial_file, trials)
        if not serve:
            sys.stdout.write(f"[example {snippet['id']}] {snippet['title']}\n")
        try:
            (run_doctest if snippet["kind"] == "pycon" else run_statements)(reader, snippet, trial)
        except (SyntaxError, ValueError) as exc:
            trial["failed"]["-1"] = {"kind": "SyntaxError", "text": str(exc)}
        trial["done"] = True
        broken += len(trial["failed"])
        lost = [number for number in snippet.get("matched", []) if number not in trial["matched"]]
        if lost:
            broken += 1
            sys.stdout.write(f"[example {snippet['id']}] documented outputs that no longer match: {len(lost)}\n")
        if not serve:
            documented = f", {plural(len(trial['matched']), 'output')} as documented" if trial["matched"] else ""
            documented += f", {len(trial['differs'])} NOT as documented" if trial["differs"] else ""
            sys.stdout.write(f"[example {snippet['id']}] {plural(len(trial['ran']), 'statement')} ran{documented}\n")
            sys.stdout.flush()
    if trial_file:
        _save(trial_file, trials)
    return 1 if broken else 0


def _serve(reader: Reader, snippet: dict[str, Any]) -> int:
    code = compile(snippet["text"], f"<example {snippet['id']}>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    signal.alarm(0)
    reader.value(code)
    return 0


def _save(path: str, trials: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(trials, stream)


def main(words: list[str]) -> NoReturn:
    """Read the list and run it."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets must not change between two runs
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    with open(words[0], encoding="utf-8") as stream:
        listed = json.load(stream)
    options = dict(zip(words[1::2], words[2::2]))
    sys.argv = ["example.py"]
    code = run_list(
        listed["snippets"], listed["package"], trial_file=options.get("--trial"), serve=options.get("--serve")
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads and servers that an example left behind must not keep us


if __name__ == "__main__":
    main(sys.argv[1:])
