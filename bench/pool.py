"""The whole bundled pool, measured with ``baseline``: which subjects end as *runs*, and where the others stop.

Usage: ``.venv/bin/python bench/pool.py [NAME…] [--workspace DIR] [--at-a-time N]``. Takes about an hour for all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from referee.adapters.catalog.subjects import BUNDLED


def measure(name: str, workspace: Path) -> tuple[str, float, dict[str, Any] | None, str]:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "referee.cli.app", "bringup", "run", name, "--until-verdict", "--json", "--quiet",
         "--workspace", str(workspace)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    document = json.loads(done.stdout) if done.stdout.strip() else None
    return name, time.monotonic() - began, document, done.stderr.strip()


def line(name: str, seconds: float, document: dict[str, Any] | None, said: str) -> str:
    if document is None:
        return f"{name:<26} no measurement  {seconds:6.0f} s  {said.splitlines()[0] if said else ''}"
    last = document["attempts"][-1]
    total = "-" if last["total"] is None else f"{last['total']:g}"
    status = last["corroboration"] or "-"
    return f"{name:<26} {document['verdict']:<17} {total:>5}  {status:<13} {seconds:6.0f} s  {last['reason'][:110]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="subjects (default: all that are bundled)")
    parser.add_argument("--workspace", type=Path, default=Path("build/pool"))
    parser.add_argument("--at-a-time", type=int, default=2)
    chosen = parser.parse_args()
    names = chosen.names or sorted(path.stem for path in BUNDLED.glob("*.toml"))
    runs = 0
    with ThreadPoolExecutor(chosen.at_a_time) as pool:
        for result in pool.map(lambda name: measure(name, chosen.workspace), names):
            print(line(*result), flush=True)
            runs += result[2] is not None and result[2]["verdict"] in {"runs", "runs_with_mocks"}
    print(f"{runs} of {len(names)} end as runs ({100 * runs / len(names):.0f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
