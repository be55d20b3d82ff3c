"""200,000 cases through a loopback server, killed at random and resumed: ``python bench/bakeoff_endurance.py``.

A real process runs ``run_bakeoff``; so many times it is killed with SIGKILL at a random moment, then it goes on until
nothing is missing. Checked is that no row that any reader saw is ever gone, and that at the end every identity is there
exactly once and usable. The memory of the process is sampled; printed is how much it grew from the first rows of its
longest leg to that leg's end. Exit 1 when a row is lost or doubled, or memory grew by more than ``--grow-mb``.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bakeoff_throughput import loopback
from bakeoff_work import load, make_workspace, run_workspace

from referee.adapters.store.aggregate import count
from referee.adapters.store.shard_files import every_shard, first_line, scan_shard

_RSS = re.compile(r"VmRSS:\s+(\d+) kB")


def memory_mb(process: int) -> float:
    """What the process holds in memory now."""
    try:
        found = _RSS.search(Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0.0
    return int(found.group(1)) / 1024 if found else 0.0


def lines(root: Path) -> int:
    """Whole rows that stand there, as a reader sees them."""
    return sum(scan_shard(path).fact.rows for path in every_shard(root / "records") if first_line(path) is not None)


def leg(root: Path, stop_after: float | None) -> tuple[int, list[float]]:
    """One process, killed so long after its first row; its exit status and its memory from the first row on."""
    known = set(every_shard(root / "records"))
    process = subprocess.Popen([sys.executable, __file__, "--worker", str(root)])
    sampled: list[float] = []
    first: float | None = None
    while process.poll() is None:
        time.sleep(0.25)
        fresh = [path for path in every_shard(root / "records") if path not in known]
        if first is None and fresh and first_line(fresh[0]) is not None:
            first = time.monotonic()
        if first is not None:
            sampled += [held for held in [memory_mb(process.pid)] if held]  # nothing is held by one that just ended
            if stop_after is not None and time.monotonic() - first > stop_after:
                process.send_signal(signal.SIGKILL)
                process.wait()
    return process.returncode, sampled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--grow-mb", type=float, default=40.0)
    parser.add_argument("--worker", type=Path)
    given = parser.parse_args()
    if given.worker:
        run_workspace(given.worker, load(given.worker))
        return
    chance = random.Random()
    room = Path(tempfile.mkdtemp(prefix="referee-endurance-"))
    try:
        with loopback(1.0) as url:
            make_workspace(room / "w", url, cases=given.cases, repeats=1, concurrency=64)
            seen = kills = 0
            longest: list[float] = []
            begun = time.monotonic()
            status = -1
            while status != 0:
                status, sampled = leg(room / "w", chance.uniform(0.5, 12.0) if kills < given.kills else None)
                kills += status == -signal.SIGKILL
                now = lines(room / "w")
                print(f"  {time.monotonic() - begun:6.1f} s: exit {status}, {now} rows", flush=True)
                if now < seen:
                    raise SystemExit(f"rows were lost: {seen} stood there, now {now}")
                if status not in {0, -signal.SIGKILL}:
                    raise SystemExit(f"the run ended with {status}")
                seen = now
                longest = max(longest, sampled, key=len)
        report(room / "w", given, kills, longest)
    finally:
        shutil.rmtree(room)


def report(root: Path, given: argparse.Namespace, kills: int, sampled: list[float]) -> None:
    """Every identity exactly once usable, and how memory went."""
    shards = [scan_shard(path) for path in every_shard(root / "records") if first_line(path) is not None]
    (target,), cases = count(shards)
    torn = sum(shard.fact.torn_bytes > 0 for shard in shards)
    print(f"{target.usable} usable of {target.expected}, {target.physical} physical, {kills} kills, {torn} torn lines")
    whole = (given.cases, given.cases, given.cases, (), ())
    if (target.expected, target.usable, target.physical, target.missing, target.unexpected) != whole:
        raise SystemExit("an identity is not there exactly once")
    if any(case.valid != 1 for case in cases):
        raise SystemExit("a case was not graded exactly once")
    settled = sampled[min(len(sampled) - 1, 8) :] or [0.0]  # two seconds to fill its caches
    grew = settled[-1] - settled[0]
    print(
        f"memory over the longest leg: {settled[0]:.0f} MB at its start, {max(settled):.0f} MB at most, {grew:+.0f} MB"
    )
    if grew > given.grow_mb:
        raise SystemExit(f"memory grew by {grew:.0f} MB")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
