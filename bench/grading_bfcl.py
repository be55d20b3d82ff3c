"""The other side of ``grading.py``: BFCL's AST checker on BFCL's own data. Runs in the environment of ``bfcl-eval``.

Usage: ``PYTHON bench/grading_bfcl.py ITEMS.json SECONDS``, called by ``grading.py``. It writes the items that both
sides grade and prints one JSON line with its own time. The checker is BFCL's, unchanged; only the table of models,
which would import the SDK of every provider to look up one flag, is replaced by one model whose flag is off.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
)
MODEL = "bench"


def checker() -> tuple[Any, Any, Path]:
    table: Any = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {MODEL: SimpleNamespace(underscore_to_dot=False)}
    sys.modules[table.__name__] = table
    package = importlib.import_module("bfcl_eval")
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
    return check, python, Path(str(package.__file__)).parent / "data"


def first(allowed: Any) -> Any:
    """One allowed value of a possible answer: the first that is not "left out"."""
    if not isinstance(allowed, list) or not allowed:
        return allowed
    return inner(next((one for one in allowed if one != ""), allowed[0]))


def inner(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: first(one) for key, one in value.items() if one != [""]}
    return [inner(one) for one in value] if isinstance(value, list) else value


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def items(data: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for category in CATEGORIES:
        questions = {row["id"]: row for row in lines(data / f"BFCL_v4_{category}.json")}
        for answer in lines(data / "possible_answer" / f"BFCL_v4_{category}.json"):
            output = [
                {name: {key: first(one) for key, one in arguments.items() if one and one != [""]}}
                for call in answer["ground_truth"]
                for name, arguments in call.items()
            ]
            functions = questions[answer["id"]]["function"]
            found.append({"id": answer["id"], "category": category, "functions": functions, "output": output,
                          "truth": answer["ground_truth"]})  # fmt: skip
    return found


def main() -> None:
    target, seconds = Path(sys.argv[1]), float(sys.argv[2])
    check, python, data = checker()
    work = items(data)
    valid: dict[str, bool | None] = {}
    for one in work:
        try:
            said = check(one["functions"], one["output"], one["truth"], python, one["category"], MODEL)
            valid[one["id"]] = bool(said["valid"])
        except Exception:  # noqa: BLE001 — a case on which the checker itself breaks
            valid[one["id"]] = None
    target.write_text(json.dumps([{**one, "valid": valid[one["id"]]} for one in work]), encoding="utf-8")
    graded = [one for one in work if valid[one["id"]] is not None]
    best, rounds, began = float("inf"), 0, time.perf_counter()
    while rounds < 3 or time.perf_counter() - began < seconds:
        start = time.process_time()
        for one in graded:
            check(one["functions"], one["output"], one["truth"], python, one["category"], MODEL)
        best = min(best, (time.process_time() - start) / len(graded))
        rounds += 1
    print(json.dumps({"cases": len(graded), "rounds": rounds, "microseconds": best * 1e6}))


if __name__ == "__main__":
    main()
