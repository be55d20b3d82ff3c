"""Grading, CPU time a case: our grader beside BFCL's AST checker, on BFCL's own data, in one run.

Usage: ``.venv/bin/python bench/grading.py [--install] [--peers DIR] [--seconds S]``. The peer lives in an environment
of its own under DIR (``$PEERS``, else ``build/peers``); ``--install`` makes it. Both sides grade the same answers, made
from the possible answers, and each side's best round counts. Ours is timed with the grader made once for each case, as
in a run (a case is graded for each target and repeat), through ``judge``, and with the grader made for each answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from referee.adapters.suites.bfcl import import_wheel
from referee.core.answers import GivenCall, Grade, Reading
from referee.core.cases import Case, Suite, Tool
from referee.scoring.toolcalls import Grader, judge

PEER = "bfcl-eval==2026.3.23"
NEEDS = ("tree_sitter==0.21.3", "tree-sitter-java==0.21.0", "tree-sitter-javascript==0.21.4")

WHEEL = "bfcl_eval-2026.3.23-py3-none-any.whl"


def work_of(item: dict[str, Any], suite: Suite) -> tuple[Case, tuple[Tool, ...], Reading]:
    """Our case, its tools, and the answer as it was read."""
    case = suite.by_id[item["id"]]
    given = tuple(GivenCall(name, arguments) for call in item["output"] for name, arguments in call.items())
    return case, suite.tools(case), Reading(calls=given)


def best_of(work: list[Any], grade: Callable[[Any], Grade], seconds: float) -> float:
    best, rounds, began = float("inf"), 0, time.perf_counter()
    while rounds < 3 or time.perf_counter() - began < seconds:
        start = time.process_time()
        for one in work:
            grade(one)
        best = min(best, (time.process_time() - start) / len(work))
        rounds += 1
    return best * 1e6


def install(python: Path, wheel: Path) -> None:
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    pip = [str(python), "-m", "pip"]
    subprocess.run([*pip, "download", "--quiet", "--no-deps", "--dest", str(wheel.parent), PEER], check=True)
    subprocess.run([*pip, "install", "--quiet", *NEEDS], check=True)
    subprocess.run([*pip, "install", "--quiet", "--no-deps", str(wheel)], check=True)


def peer(python: Path, items: Path, seconds: float) -> dict[str, Any] | None:
    script = Path(__file__).with_name("grading_bfcl.py")
    done = subprocess.run([python, script, items, str(seconds)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"BFCL's checker did not run: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help=f"install {PEER} in an environment of its own first")
    parser.add_argument("--peers", type=Path, default=Path(os.environ.get("PEERS", "build/peers")))
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each side is timed (default: 5)")
    chosen = parser.parse_args()
    python = chosen.peers.absolute() / "venv-bfcl" / "bin" / "python"
    wheel = chosen.peers.absolute() / WHEEL
    if chosen.install:
        install(python, wheel)
    if not (python.exists() and wheel.exists()):
        print(f"There is no {PEER} in {chosen.peers}: run this with --install, or name its folder with --peers.")
        return 4
    items = chosen.peers.absolute() / "grading-items.json"
    theirs = peer(python, items, chosen.seconds)
    if theirs is None:
        return 4
    given = [one for one in json.loads(items.read_text(encoding="utf-8")) if one["valid"] is not None]
    suite = import_wheel(wheel).suite
    work = [work_of(one, suite) for one in given]
    ready = [(Grader(case, tools, 2), reading) for case, tools, reading in work]
    warm = best_of(ready, lambda one: one[0].judge(one[1], {}), chosen.seconds)
    kept = best_of(work, lambda one: judge(one[0], one[1], one[2], grading=2, sent={}), chosen.seconds)
    cold = best_of(work, lambda one: Grader(one[0], one[1], 2).judge(one[2], {}), chosen.seconds)
    report(theirs, given, work, {"grader made once": warm, "judge()": kept, "grader made anew": cold})
    return 0


def report(theirs: dict[str, Any], given: list[Any], work: list[Any], ours: dict[str, float]) -> None:
    print(f"{theirs['cases']} cases of {PEER}, CPU time a case, best round")
    print(f"  BFCL's AST checker    {theirs['microseconds']:7.1f} µs")
    for name, micros in ours.items():
        print(f"  ours, {name:<16} {micros:7.1f} µs   {theirs['microseconds'] / micros:5.1f} x as fast")
    grades = [judge(case, tools, reading, grading=2, sent={}) for case, tools, reading in work]
    both = sum(bool(grade.passed) == one["valid"] for grade, one in zip(grades, given, strict=True))
    print(f"  the verdicts agree on {both} of {len(given)}")
    for grade, one in zip(grades, given, strict=True):
        if bool(grade.passed) != one["valid"]:
            print(f"    {one['id']}: BFCL {'valid' if one['valid'] else 'invalid'}, ours: {grade.reason[:120]}")


if __name__ == "__main__":
    sys.exit(main())
