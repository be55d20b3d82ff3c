"""Writes shards as a run writes them, as fast as it goes: for the benchmarks of what reads them."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from referee.core.bakeoff import ShardClosed, ShardOpened, Surface, Target
from referee.core.canonical import digest_of
from referee.core.cases import CATEGORIES
from referee.core.chain import forge, genesis

SURFACE = Surface(
    channel="own-infrastructure",
    shape="openai-chat",
    tool_channel="native",
    uncontrolled=(),
    readable_as="capability and latency",
    latency_admissible=True,
    pins_sampling=True,
)
REASONS = ("argument `date`: expected 2026-07-24, got 24.07.2026", "no call of get_weather was given")


def write_shards(root: Path, *, targets: int, cases: int, repeats: int) -> list[Path]:
    """One shard a target, with a row for each of its slots; about 70 % pass, 2 % are infrastructure errors."""
    root.mkdir(parents=True, exist_ok=True)
    chance = random.Random(20260101)
    slots = tuple((f"case-{case:05d}", k) for case in range(cases) for k in range(repeats))
    listed = digest_of("identities", [list(slot) for slot in slots])
    paths = []
    for number in range(targets):
        path = root / f"results-20261130T000000Z-{number:016x}.jsonl"
        opened = _opened(f"target-{number:03d}", slots, listed)
        constant = _constant(opened)
        seq, prev = 0, genesis(path.name)
        with path.open("wb") as file:
            line, prev = forge(opened.model_dump(mode="json"), seq=seq, prev=prev)
            file.write(line)
            for case, k in slots:
                seq += 1
                line, prev = forge({**constant, **_own(case, k, seq, chance)}, seq=seq, prev=prev)
                file.write(line)
            closed = ShardClosed(run=opened.run, at=opened.at, rows=len(slots), ended="complete", detail="")
            file.write(forge(closed.model_dump(mode="json"), seq=seq + 1, prev=prev)[0])
        paths.append(path)
    return paths


def _opened(name: str, slots: tuple[tuple[str, int], ...], listed: str) -> ShardOpened:
    target = Target(name=name, model="m", lane="openai-chat", channel="own-infrastructure", sovereignty="eu-origin")
    return ShardOpened(
        run="b-benchmark",
        at="2026-11-30T00:00:00.000000+00:00",
        protocol="p",
        protocol_digest=digest_of("protocol", "p"),
        suite="s",
        suite_digest=digest_of("suite", "s"),
        grading=2,
        target=target,
        target_digest=digest_of("target", name),
        surface=SURFACE,
        surface_digest=digest_of("surface", "s"),
        subset=None,
        identities=slots,
        identities_digest=listed,
        harness_version="0.2.0",
        environment={"deadline_seconds": 120.0},
    )


def _constant(opened: ShardOpened) -> dict[str, Any]:
    names = ("run", "target_digest", "surface_digest", "protocol_digest", "suite_digest", "subset")
    return {
        **{name: getattr(opened, name) for name in (*names, "identities_digest", "harness_version")},
        "kind": "row",
        "target": opened.target.name,
        "lane": opened.target.lane,
        "sovereignty": opened.target.sovereignty,
        "expected": len(opened.identities),
        "arm": "suite",
        "provenance": "endpoint=127.0.0.1:8000/v1; model=m",
        "model_served": "m",
        "http_status": 200,
        "tries": 1,
        "spent_usd": None,
    }


def _own(case: str, k: int, seq: int, chance: random.Random) -> dict[str, Any]:
    infra, passed = chance.random() < 0.02, chance.random() < 0.7
    number = int(case[5:])
    wrong = None if passed or infra else digest_of("wrong", f"{case} {chance.randrange(3)}")
    return {
        "started_at": f"2026-11-30T{seq // 3600 % 24:02}:{seq // 60 % 60:02}:{seq % 60:02}.000000+00:00",
        "case_id": case,
        "category": CATEGORIES[number % len(CATEGORIES)],
        "language": ("de", "en")[number % 2],
        "k_idx": k,
        "passed": None if infra else passed,
        "well_formed": None if infra else True,
        "blame": "infra" if infra else None,
        "infra_class": "timeout" if infra else None,
        "reason": "the one call matches" if passed else REASONS[number % 2],
        "flags": ["repaired"] if chance.random() < 0.05 else [],
        "wrong": wrong,
        "latency_ms": round(chance.random() * 900, 3),
        "input_tokens": 100 + number % 50,
        "output_tokens": 20,
        "answer": {
            "log": "answers-20261130T000000Z-0000000000000000.log",
            "offset": seq * 700,
            "length": 700,
            "digest": f"sha256:{hashlib.sha256(str(seq).encode()).hexdigest()}",
        },
    }
