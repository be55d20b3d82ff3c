"""A workspace with everything that a report must show, its shards forged line by line from the real row types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from referee.adapters.catalog.bakeoff_protocols import load_protocol
from referee.adapters.lanes.surfaces import surface_of
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.bakeoff_init import write_protocol
from referee.core.bakeoff import AnswerRef, Blame, Row, ShardClosed, ShardOpened, Surface
from referee.core.canonical import digest_of
from referee.core.cases import Case
from referee.core.chain import forge, genesis
from referee.core.records import MarketSnapshot, ProtocolFrozen
from referee.runner.bakeoff.decide import decide, review
from referee.runner.bakeoff.freeze import freeze

#: Would run, link, calculate or hide something wherever it is not shown as text.
HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">'
    "\x1b]0;owned\x07\u202e{{7*7}} | [click](javascript:alert(1)) `code` ![x](https://evil.example/x.png) "
    "https://evil.example **bold**\n# heading\n- item"
)
FORMULA = "=HYPERLINK(0)"

_COMMON = 'schema = "referee.target/1"\nmodel = "tiny-{0}"\n'
TARGETS = {
    "own-strong": 'lane = "openai-chat"\nchannel = "own-infrastructure"\nsovereignty = "eu-hostable-open-weight"\n'
    'self_host = "feasible"\nprecision = "bf16"\ncontext = 32768\nrevision = "r1"\n'
    'base_url = "http://127.0.0.1:9/v1"\n',
    "free-tier": 'lane = "openai-chat"\nchannel = "hosted-free-tier"\nsovereignty = "chinese-open-weight"\n'
    'base_url = "https://free.example/v1"\nkey_env = "FREE_API_KEY"\n',
    "weak-one": 'lane = "ollama"\nchannel = "local"\nsovereignty = "eu-origin"\nbase_url = "http://127.0.0.1:9"\n'
    'quantisation = "Q4_K_M"\n',
    "cli-agent": 'lane = "cli"\nchannel = "agent-cli"\nsovereignty = "us-closed"\n'
    '[cli]\nprogram = "claude"\nversion = "2.1.0"\n',
    "out-of-funds": 'lane = "openai-chat"\nchannel = "router"\nsovereignty = "us-closed"\n'
    'base_url = "https://router.example/v1"\nkey_env = "ROUTER_API_KEY"\nmetered = true\ncredit = "openrouter"\n',
}

#: What OpenRouter publishes of a model, by its documentation: one provider says everything, one nothing.
MARKET = {
    "data": {
        "id": "tiny/free",
        "endpoints": [
            {
                "name": "Fast: tiny",
                "provider_name": "Fast",
                "quantization": "fp8",
                "pricing": {"prompt": "0.00000015", "completion": "0.0000006", "request": "0"},
                "uptime_last_30m": 99.5,
                "throughput_last_30m": {"p50": 45.2, "p75": 38.5, "p90": 28.3, "p99": 15.1},
            },
            {
                "provider_name": HOSTILE,
                "quantization": "unknown",
                "pricing": {"prompt": "-1", "completion": None},
                "uptime_last_30m": None,
                "throughput_last_30m": None,
            },
        ],
    }
}


@dataclass(frozen=True)
class Verdict:
    """What one attempt came to."""

    passed: bool | None = True
    well_formed: bool | None = True
    reason: str = "the one call matches"
    wrong: str | None = None
    infra: str | None = None
    blame: Blame | None = None
    flags: tuple[str, ...] = ()


def failed(reason: str, wrong: str, *, flags: tuple[str, ...] = ()) -> Verdict:
    return Verdict(passed=False, reason=reason, wrong=digest_of("wrong", wrong), flags=flags)


def strong(case: Case, k: int) -> Verdict:
    if case.id.endswith("03"):
        return failed("argument `date`: expected 2026-07-24, got 24.07.2026", "same")
    return Verdict() if _draw(case.id, k) > 0.05 else failed("argument `name`: expected Anna, got Hanna", f"{k}")


def weak(case: Case, k: int) -> Verdict:
    if case.id.endswith("03"):
        return failed("argument `date`: expected 2026-07-24, got 24.07.2026", "same")
    if _draw(case.id, 0) < 0.04:
        return Verdict(passed=None, well_formed=None, reason="HTTP 503", infra="http-503", blame=Blame.INFRA)
    if _draw(case.id, k) > 0.6:
        return Verdict(flags=("repaired",), well_formed=False)
    return failed(f"called x: {HOSTILE}", f"{case.id}{k}", flags=("template-leak",))


def broke(case: Case, k: int) -> Verdict:
    if case.id.endswith("1"):
        return Verdict()
    return Verdict(passed=None, well_formed=None, reason="HTTP 402", infra="http-402", blame=Blame.ACCOUNT)


def _draw(case: str, k: int) -> float:
    return hashlib.sha256(f"{case}{k}".encode()).digest()[0] / 255


class World:
    """One workspace: protocol ``board`` on suite s1, frozen, with five targets and their shards."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.records = root / "records"
        (root / "targets").mkdir(parents=True)
        for name, text in TARGETS.items():
            (root / "targets" / f"{name}.toml").write_text(_COMMON.format(name) + text)
        directory = root / "protocols" / "board"
        write_protocol(directory, "board", suite="s1", targets=list(TARGETS))
        plan = (directory / "protocol.toml").read_text()
        plan = plan.replace('target = "cli-agent"', 'target = "cli-agent"\nsubset = "s1-20"').replace(
            "= 10000", "= 500"
        )
        plan += (
            '\n[[comparisons]]\na = "own-strong"\nb = "free-tier"\nwhy = "one model, two lanes"\nmatched_lanes = true\n'
        )
        (directory / "protocol.toml").write_text(plan)
        self.evidence = LocalEvidence(root / "evidence")
        self.log = RecordFiles(self.records, kind="bakeoff")
        self.loaded = load_protocol(directory)
        self.frozen: ProtocolFrozen = freeze(self.log, self.evidence, self.loaded, by="me")
        self.shards: list[str] = []

    def write(self) -> World:
        for name, told in (
            ("own-strong", strong),
            ("free-tier", strong),
            ("weak-one", weak),
            ("cli-agent", strong),
            ("out-of-funds", broke),
        ):
            self.shard(name, told, model_served=HOSTILE if name == "weak-one" else f"tiny-{name}")
        late = "20261128T090000Z-bbbb"
        self.shard("own-strong", weak, token=late, model_served="tiny-own-strong")  # fills no slot
        decide(self.log, "board", f"Log {HOSTILE}", reason=f"because {HOSTILE}", by=HOSTILE)
        decide(
            self.log, "board", "Amend", reason="x", by="me", amends=True, decided_on=_DAY.date() - timedelta(days=900)
        )
        review(self.log, "board", self.case_ending("03"), stands=False, note=HOSTILE, by="me", suite=self.loaded.suite)
        self.log.append(
            MarketSnapshot(
                run="r-own-strong-20261127T090000Z-aaaa",
                protocol="board",
                target="own-strong",
                at="2026-11-27T09:00:00+00:00",
                source="openrouter",
                said=self.evidence.keep("market.json", b'{"price": 1}'),
                detail=HOSTILE,
            )
        )
        self.log.append(
            MarketSnapshot(
                run="r-free-tier-20261127T090000Z-aaaa",
                protocol="board",
                target="free-tier",
                at="2026-11-27T09:00:00+00:00",
                source="openrouter-endpoints",
                said=self.evidence.keep("market.json", json.dumps(MARKET).encode()),
                detail="",
            )
        )
        return self

    def case_ending(self, end: str) -> str:
        return next(case.id for case in self.loaded.suite.cases if case.id.endswith(end) and case.arm == "suite")

    def identities(self, target: str) -> Sequence[tuple[str, int]]:
        planned = next(one for one in self.loaded.protocol.targets if one.target == target)
        repeats = self.loaded.protocol.repeats
        if planned.subset is None:
            return [(case.id, k) for case in self.loaded.suite.cases for k in range(repeats)]
        subset = self.loaded.subsets[planned.subset]
        return [(case, k) for case in subset.cases for k in range(subset.repeats)]

    def shard(
        self,
        target: str,
        told: Callable[[Case, int], Verdict],
        *,
        token: str = "20261127T090000Z-aaaa",
        model_served: str = "tiny",
        run: str | None = None,
        torn: bytes = b"",
    ) -> str:
        name = f"results-{target}-{token}.jsonl"
        bodies = self._bodies(target, told, run or f"r-{target}-{token}", model_served, token)
        lines, prev = [], genesis(name)
        for seq, body in enumerate(bodies):
            line, prev = forge(body, seq=seq, prev=prev)
            lines.append(line)
        (self.records / name).write_bytes(b"".join(lines) + torn)
        self.shards.append(name)
        return name

    def _bodies(
        self, target: str, told: Callable[[Case, int], Verdict], run: str, served: str, token: str
    ) -> list[dict[str, Any]]:
        pinned = self.loaded.targets[target]
        surface = CLI if pinned.lane == "cli" else surface_of(pinned)
        identities = self.identities(target)
        began = datetime.strptime(token[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        shared: dict[str, Any] = {
            "run": run,
            "protocol_digest": self.frozen.digest,
            "suite_digest": digest_of("suite", self.loaded.suite.document()),
            "target_digest": digest_of("target", pinned.model_dump(mode="json")),
            "surface_digest": digest_of("surface", surface.model_dump(mode="json")),
            "identities_digest": digest_of("identities", [list(one) for one in identities]),
            "harness_version": "0.2.0",
        }
        subset = next(one.subset for one in self.loaded.protocol.targets if one.target == target)
        opened = ShardOpened(
            at=began.isoformat(),
            protocol="board",
            suite=self.loaded.suite.name,
            grading=self.loaded.suite.grading,
            target=pinned,
            surface=surface,
            subset=subset,
            identities=tuple(identities),
            environment={},
            **shared,
        )
        rows = []
        for at, (case_id, k) in enumerate(identities):
            case = self.loaded.suite.by_id[case_id]
            verdict = told(case, k)
            rows.append(
                Row(
                    started_at=(began + timedelta(seconds=at)).isoformat(),
                    target=target,
                    lane=pinned.lane,
                    sovereignty=pinned.sovereignty,
                    subset=subset,
                    expected=len(identities),
                    case_id=case_id,
                    category=case.category,
                    arm=case.arm,
                    language=case.language,
                    k_idx=k,
                    passed=verdict.passed,
                    well_formed=verdict.well_formed,
                    blame=verdict.blame,
                    infra_class=verdict.infra,
                    reason=verdict.reason,
                    flags=verdict.flags,
                    wrong=verdict.wrong,
                    http_status=200,
                    tries=1,
                    latency_ms=100 + at / 7,
                    model_served=served,
                    provenance=f"fp_{target}",
                    input_tokens=500,
                    output_tokens=20,
                    spent_usd=0.1 if target == "free-tier" else None,
                    answer=AnswerRef(
                        log=f"answers-{token}.log", offset=at * 10, length=10, digest="sha256:" + "ab" * 32
                    ),
                    **shared,
                ).model_dump(mode="json")
            )
        closed = ShardClosed(run=run, at=began.isoformat(), rows=len(rows), ended="complete", detail="")
        return [opened.model_dump(mode="json"), *rows, closed.model_dump(mode="json")]


_DAY = datetime.now(UTC)
CLI = Surface(
    channel="agent-cli",
    shape="cli-envelope",
    tool_channel="inlined",
    uncontrolled=("the host's user configuration", "tens of thousands of cached context tokens"),
    readable_as="model plus harness; tokens/s not measurable",
    latency_admissible=False,
    pins_sampling=False,
)
