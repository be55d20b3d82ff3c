"""Throughput of the recorder beside its peers, in one run: ``python bench/recorder.py [--megabytes 200] [--reps 5]``.

Each measurement runs ``cat FILE`` on a pseudo-terminal in a process of its own; the repetitions are interleaved, so
that what else the machine does hits all alike. Printed are medians; a ratio is the median of the ratios within each
round. Goals: raw and timing at 80 % or more
of the bare read loop, and faster than asciinema 2.4. Exit 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from referee.adapters.recorder import Caps, HostPtySession, RecordingFiles, derive, record
from referee.core.cast import cast
from referee.core.transcript import transcript

ASCIINEMA = "asciinema==2.4.0"
GOAL_OF_BARE = 0.80
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
BARE, OURS = "bare loop (read, discard)", "referee: raw + timing"
DERIVED = "referee: raw + timing, then cast + transcript"
PEER, SCRIPT = "asciinema 2.4 rec", "script, with timing"


def make_log(path: Path, megabytes: int) -> None:
    """A log like those of builds: short and long lines, colours, some text beyond ASCII."""
    lines = [
        f"\x1b[32m[{n:6d}]\x1b[0m building module_{n % 977} … {'x' * (n * 7 % 90)} done in {n % 61} ms ✓ 日本\n"
        for n in range(20_000)
    ]
    block = "".join(lines).encode()
    with path.open("wb") as stream:
        left = megabytes * 1_000_000
        while left > 0:
            left -= stream.write(block[:left])


def bare(source: Path) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat", str(source)])
    while True:
        try:
            if not os.read(master, 65_536):
                break
        except OSError:
            break
    os.waitpid(pid, 0)


def ours(source: Path, directory: Path, *, derived: bool) -> None:
    session = HostPtySession(["cat", str(source)], environment=ENVIRONMENT)
    recorded = record(
        session,
        directory=directory,
        columns=80,
        rows=24,
        caps=Caps(max_bytes=1 << 40, max_events=1 << 40),
        deadline=time.monotonic() + 3_600,
    )
    session.close()
    if recorded.end != "ended" or recorded.exit_status != 0:
        sys.exit(f"the recording ended as {recorded.end}: {recorded.detail}")
    if derived:
        derive(RecordingFiles.of(directory), directory)


def outside(argv: list[str], directory: Path) -> None:
    environment = {**ENVIRONMENT, "HOME": str(directory)}
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv[0]} ended with {done.returncode}")


def one(mode: str, source: Path, program: str) -> float:
    """Seconds of one measurement; its files are checked and removed."""
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        directory = Path(name)
        command = f"cat {source}"
        began = time.perf_counter()
        if mode == BARE:
            bare(source)
        elif mode in (OURS, DERIVED):
            ours(source, directory, derived=mode == DERIVED)
        elif mode == PEER:
            outside([program, "rec", "-q", "--overwrite", "-c", command, str(directory / "a.cast")], directory)
        else:
            outside([program, "-q", "-O", str(directory / "o"), "-T", str(directory / "t"), "-c", command], directory)
        took = time.perf_counter() - began
        written = sum(file.stat().st_size for file in directory.iterdir())
        if mode != BARE and written < source.stat().st_size:
            sys.exit(f"{mode} wrote {written} bytes of {source.stat().st_size}")
        return took


def measured(mode: str, source: Path, program: str) -> float:
    argv = [sys.executable, __file__, "--one", mode, "--source", str(source), "--program", program]
    return float(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)


def peers(work: Path, given: str | None) -> dict[str, str]:
    """The programs to compare with: asciinema in an environment of its own, and ``script`` where there is one."""
    if given is None:
        venv.create(work / "venv", with_pip=True)
        subprocess.run([work / "venv/bin/pip", "install", "-q", ASCIINEMA], check=True)
        given = str(work / "venv/bin/asciinema")
    if shutil.which(given) is None:
        sys.exit(f"{given} is no program")
    found = {PEER: given}
    script = shutil.which("script")
    if script:
        found[SCRIPT] = script
    return found


def derivations(source: Path) -> dict[str, float]:
    """MB/s of the pure derivations, from memory-sized chunks of a recording of ``source``."""
    rates = {}
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        directory = Path(name)
        ours(source, directory, derived=False)
        size = (directory / "session.raw").stat().st_size
        for label, made in (("cast", cast), ("transcript", transcript)):
            raw, timing = (directory / "session.raw").read_bytes(), (directory / "session.timing").read_bytes()
            began = time.perf_counter()
            for _ in made((raw[at : at + 262_144] for at in range(0, size, 262_144)), [timing]):
                pass
            rates[label] = size / 1e6 / (time.perf_counter() - began)
    return rates


def ratio(reference: list[float], taken: list[float]) -> float:
    """How fast against the reference: the median over the rounds."""
    return statistics.median(other / own for other, own in zip(reference, taken, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--asciinema", help="an installed asciinema 2.4 (default: installed into a temporary folder)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--program", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(one(asked.one, asked.source, asked.program))
        return 0
    with tempfile.TemporaryDirectory(prefix="referee-bench-") as name:
        work = Path(name)
        source = work / "log.txt"
        make_log(source, asked.megabytes)
        programs = {BARE: "", OURS: "", DERIVED: "", **peers(work, asked.asciinema)}
        times: dict[str, list[float]] = {mode: [] for mode in programs}
        for _ in range(asked.reps):
            for mode, program in programs.items():
                times[mode].append(measured(mode, source, program))
        rates = {mode: asked.megabytes / statistics.median(taken) for mode, taken in times.items()}
        extra = derivations(source)
    ratios = {mode: ratio(times[BARE], taken) for mode, taken in times.items()}
    goals = {
        f"raw + timing keeps {GOAL_OF_BARE:.0%} of the bare loop": ratios[OURS] >= GOAL_OF_BARE,
        "raw + timing beats asciinema 2.4": ratio(times[PEER], times[OURS]) > 1,
    }
    if asked.json:
        print(
            json.dumps(
                {
                    "schema": "referee.bench-recorder/1",
                    "mb_per_s": rates,
                    "of_bare": ratios,
                    "derive": extra,
                    "goals": goals,
                }
            )
        )
    else:
        print(f"cat of {asked.megabytes} MB through a PTY, median of {asked.reps}, interleaved")
        for mode, rate in rates.items():
            spread = " ".join(f"{asked.megabytes / taken:.0f}" for taken in times[mode])
            print(f"  {mode:46} {rate:7.1f} MB/s  {ratios[mode]:5.2f} of bare   ({spread})")
        for label, rate in extra.items():
            print(f"  deriving the {label:33} {rate:7.1f} MB/s")
        for goal, met in goals.items():
            print(f"  {'met   ' if met else 'MISSED'} {goal}")
    return 0 if all(goals.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
