"""A summary of 1,000,000 rows beside the bare DuckDB aggregation, in one run: ``python bench/summary.py [--rows N]``.

The bare aggregation reads the same shards through DuckDB with declared columns and gives passes and rows for each
target and category, of the oldest row of each slot; a naive one that counts every physical row, and so counts a
resumed run twice, is printed too and not judged. Ours counts everything that a report needs: each slot's oldest row,
coverage against the lists of identities, provenance, transport, tokens, latency, outcomes and reasons of each case. All
are taken in turns, in processes of their own; a ratio is the median of the ratios within each round. The goal is 2
times the bare aggregation for the counting itself. The check of the chains (SHA-256 of every line, in plain Python) is
timed **beside** it: it is no aggregation, and a bare DuckDB has none. Peak memory of each is printed; DuckDB's own
limit is 1 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bakeoff_shards import write_shards

GOAL = 2.0
READ = "read_json([{files}], format = 'newline_delimited', records = true, columns = {{body: 'STRUCT({columns})'}})"
COLUMNS = "kind VARCHAR, target VARCHAR, category VARCHAR, passed BOOLEAN"
NAIVE = """
select body.target, body.category, sum(body.passed::integer), count(*) from {source}
where body.kind = 'row' group by 1, 2
"""
BARE = """
select target, category, sum(passed::integer), count(*) from (
  select body.target as target, any_value(body.category) as category, arg_min(body.passed, body.started_at) as passed
  from {source} where body.kind = 'row' group by body.target, body.case_id, body.k_idx
) group by 1, 2
"""


def bare(paths: list[Path], query: str, columns: str) -> int:
    import duckdb  # noqa: PLC0415 — each worker loads its own

    con = duckdb.connect(config={"preserve_insertion_order": False})
    source = READ.format(files=", ".join(f"'{path}'" for path in paths), columns=columns)
    return sum(row[3] for row in con.execute(query.format(source=source)).fetchall())


def work(what: str, root: Path) -> None:
    """One measurement in this process; prints seconds, rows and peak memory."""
    from referee.adapters.store.aggregate import count  # noqa: PLC0415
    from referee.adapters.store.shard_files import scan_shard  # noqa: PLC0415

    paths = sorted(root.glob("results-*.jsonl"))
    scanned = [scan_shard(path) for path in paths] if what == "count" else []
    begun = time.perf_counter()
    if what == "naive":
        rows = bare(paths, NAIVE, COLUMNS)
    elif what == "bare":
        rows = bare(paths, BARE, f"{COLUMNS}, case_id VARCHAR, k_idx INTEGER, started_at VARCHAR")
    elif what == "check":
        rows = sum(scan_shard(path).fact.rows for path in paths)
    else:
        rows = sum(target.physical for target in count(scanned)[0])
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": seconds, "rows": rows, "peak_mb": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--worker", choices=["naive", "bare", "count", "check"])
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    if given.worker:
        work(given.worker, given.root)
        return
    root = Path(tempfile.mkdtemp(prefix="referee-summary-"))
    try:
        cases = given.rows // given.targets // given.repeats
        print(f"{given.targets} targets x {cases} cases x {given.repeats} repeats", flush=True)
        paths = write_shards(root, targets=given.targets, cases=cases, repeats=given.repeats)
        print(f"{sum(path.stat().st_size for path in paths) / 1e6:.0f} MB in {len(paths)} shards", flush=True)
        taken: dict[str, list[dict[str, float]]] = {"naive": [], "bare": [], "count": [], "check": []}
        for _ in range(given.reps):
            for what, rounds in taken.items():
                command = [sys.executable, __file__, "--worker", what, "--root", str(root)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rounds.append(json.loads(done.stdout))
    finally:
        shutil.rmtree(root)
    if {one["rows"] for rounds in taken.values() for one in rounds} != {given.targets * cases * given.repeats}:
        raise SystemExit(f"rows were lost or counted twice: {taken}")
    words = {
        "naive": "bare DuckDB, naive",
        "bare": "bare DuckDB",
        "count": "referee, counting",
        "check": "referee, chains, beside",
    }
    ratios = {}
    for what, rounds in taken.items():
        seconds = statistics.median(one["seconds"] for one in rounds)
        peak = max(one["peak_mb"] for one in rounds)
        pairs = zip(rounds, taken["bare"], strict=True)
        ratios[what] = statistics.median(mine["seconds"] / floor["seconds"] for mine, floor in pairs)
        rate = given.rows / seconds
        print(f"  {words[what]:24} {seconds:6.2f} s  {rate:10,.0f} rows/s  {peak:5.0f} MB  {ratios[what]:.2f} x")
    if ratios["count"] > GOAL:
        raise SystemExit(f"missed: counting takes {ratios['count']:.2f} x the bare aggregation, wanted {GOAL:g} x")


if __name__ == "__main__":
    main()
