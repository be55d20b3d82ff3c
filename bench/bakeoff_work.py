"""The work of the bake-off's benchmarks: a workspace of so many cases, one run of it, and the bare loop beside it.

``python bench/bakeoff_work.py referee|aiohttp --url URL --cases N --concurrency C --directory DIR`` does one of them in
this process and prints one line of JSON: cases a second, CPU milliseconds a case, peak memory.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import resource
import time
from pathlib import Path
from typing import Any

import aiohttp

import referee.adapters.lanes.make  # noqa: F401 — importing a library is timed for none
from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol, load_protocol
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.wiring import make_lane
from referee.core.cases import Arm, Call, Case, Message, Suite, Tool
from referee.runner.bakeoff.freeze import freeze
from referee.runner.bakeoff.run import Desk, RunReport, run_bakeoff

#: As random as a real one: a key that holds a word of every answer would be looked for in vain again and again.
KEY_NAME, KEY = "LOOPBACK_API_KEY", "sk-" + hashlib.sha256(b"a credential of the benchmark").hexdigest()[:40]
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "City name"},
        "unit": {"type": "string", "enum": ["C", "F"]},
    },
    "required": ["city"],
}
WORDS = ("What is the weather in {}? Use Celsius.", "Wie ist das Wetter in {}? In Celsius bitte.")


def suite_of(cases: int) -> Suite:
    """As the peers' data: one tool, one city a case; every other case in German."""
    made = tuple(
        Case(
            id=f"case-{number:06d}",
            category="simple-call",
            language=("en", "de")[number % 2],
            messages=(Message(role="user", content=WORDS[number % 2].format(f"City{number}")),),
            toolset="weather",
            expected_call=Call(name="get_weather", arguments={"city": {"eq": f"City{number}"}}),
        )
        for number in range(cases)
    )
    tool = Tool(name="get_weather", description="Get the weather for a city.", parameters=PARAMETERS)
    return Suite(
        name="loopback",
        version="1",
        grading=2,
        about="cases for benchmarks",
        provenance={"source": "generated"},
        prompts={},
        toolsets={"weather": (tool,)},
        arms=(Arm(name="suite", headline=True, ranked=True, about="all"),),
        cases=made,
    )


def make_workspace(root: Path, url: str, *, cases: int, repeats: int, concurrency: int) -> None:
    """A workspace with a frozen protocol of one target."""
    directory = root / "protocols" / "loopback"
    directory.mkdir(parents=True)
    (root / "targets").mkdir()
    (root / "targets" / "loopback.toml").write_text(
        f'schema = "referee.target/1"\nmodel = "loopback"\nlane = "openai-chat"\nchannel = "own-infrastructure"\n'
        f'sovereignty = "eu-origin"\nbase_url = "{url}/v1"\nkey_env = "{KEY_NAME}"\n'
    )
    (directory / "protocol.toml").write_text(
        f'name = "loopback"\ntitle = "t"\nquestion = "q"\nsuite = "loopback"\nrepeats = {repeats}\n'
        f'[[targets]]\ntarget = "loopback"\n[guards]\nconcurrency = {concurrency}\n'
    )
    (directory / "cases.json").write_text(json.dumps(suite_of(cases).document()))
    freeze(log_of(root), LocalEvidence(root / "evidence"), load(root), by="bench")


def log_of(root: Path) -> RecordFiles:
    return RecordFiles(root / "records", kind="bakeoff")


def load(root: Path) -> LoadedProtocol:
    return load_protocol(root / "protocols" / "loopback")


def run_workspace(root: Path, loaded: LoadedProtocol) -> RunReport:
    """One whole run: checks, calls, parsing, grading, redaction, durable rows. Reading the cases is no part of it."""
    desk = Desk(
        log=log_of(root),
        evidence=LocalEvidence(root / "evidence"),
        records=root / "records",
        answers=root / "answers",
        make_lane=lambda target: make_lane(target, spool=root / "spool", environ={KEY_NAME: KEY}),
    )
    return asyncio.run(run_bakeoff(loaded, desk))


async def bare_aiohttp(url: str, *, cases: int, concurrency: int, log: Path) -> int:
    """The floor: ask, parse, compare, write a line; nothing is redacted, chained or synced."""
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
    passed = 0
    numbers = iter(range(cases))
    connector = aiohttp.TCPConnector(limit=concurrency)
    with log.open("w") as lines:
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                nonlocal passed
                for number in numbers:
                    words = WORDS[number % 2].format(f"City{number}")
                    body = {"model": "loopback", "messages": [{"role": "user", "content": words}], "tools": tools}
                    begun = time.perf_counter()
                    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                        said = await response.json()
                    call = said["choices"][0]["message"]["tool_calls"][0]["function"]
                    right = call["name"] == "get_weather" and json.loads(call["arguments"])["city"] == f"City{number}"
                    passed += right
                    lines.write(
                        json.dumps({"case": number, "passed": right, "ms": (time.perf_counter() - begun) * 1000}) + "\n"
                    )

            await asyncio.gather(*(worker() for _ in range(concurrency)))
    return passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["referee", "aiohttp"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    total = given.cases * given.repeats
    if given.what == "referee":
        make_workspace(
            given.directory, given.url, cases=given.cases, repeats=given.repeats, concurrency=given.concurrency
        )
    loaded = load(given.directory) if given.what == "referee" else None
    before = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    if loaded is not None:
        report = _run(given.directory, loaded, given.profile)
        passed, done = report.targets[0].passed, report.targets[0].durable
    else:
        passed = done = asyncio.run(
            bare_aiohttp(
                given.url, cases=given.cases, concurrency=given.concurrency, log=given.directory / "bare.jsonl"
            )
        )
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    if passed != total or done != total:
        raise SystemExit(f"{given.what}: {passed} passed and {done} durable of {total}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {
        "cases_a_second": round(total / seconds, 1),
        "cpu_ms_a_case": round(cpu / total * 1000, 3),
        "peak_mb": after.ru_maxrss // 1024,
    }
    print(json.dumps(figures))


def _run(root: Path, loaded: LoadedProtocol, profile: Path | None) -> RunReport:
    if profile is None:
        return run_workspace(root, loaded)
    import cProfile  # noqa: PLC0415 — only when asked for

    with cProfile.Profile() as taken:
        report = run_workspace(root, loaded)
    taken.dump_stats(profile)
    return report


if __name__ == "__main__":
    main()
