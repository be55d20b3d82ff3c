"""Runs of named agents, made of real recordings of real programs and of the real record types and stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from referee.adapters.recorder import RecordingFiles, derive
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.failure import Cause
from referee.core.records import (
    AttemptEnded,
    AttemptFound,
    AttemptPlanned,
    ListenerFacts,
    Lock,
    ObservedFacts,
    QuietFacts,
    RecordingFacts,
    RerunFacts,
)
from referee.core.spending import Price, SpendingFacts
from referee.publish.facts import Facts
from referee.publish.mapping import Mapping as Names
from referee.runner.seal import facts_bytes, lock_bytes, seal
from tests.publish_workspace import Try, lock_of, report

RECORDINGS = Path(__file__).parent / "replay" / "recordings"

#: A harness, and whose name, model and maker must be nowhere in the site.
PROGRAMS = ("codex", "opencode", "gemini-cli", "claude-code", "mini-swe-agent")
AGENT, MODEL = "zebra-fast", "scripted-1"
COMMAND = "python3 /opt/t/s.py 12"


class Branded:
    """A workspace with one run of each program, by an agent whose name tells it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.records = RecordFiles(root / "records")
        self.evidence = LocalEvidence(root / "evidence")

    def facts(self, mapping: Names | None) -> Facts:
        """What pages show of it."""
        return Facts(self.records.read(), self.evidence, mapping=mapping)

    def write(
        self,
        harness: str,
        *,
        run: str,
        at: str,
        raw: bytes | None = None,
        left: Mapping[str, str] = MappingProxyType({}),
        servers: tuple[ListenerFacts, ...] = (),
    ) -> AttemptPlanned:
        """One run with its recording, and with the agent's names in every place that could tell them.

        ``left``: more of its files; ``servers``: what else listened.
        """
        directory = self.root / "spool" / run
        directory.mkdir(parents=True)
        data = (RECORDINGS / f"{harness}.raw").read_bytes() if raw is None else raw
        (directory / "session.raw").write_bytes(data)
        head = "referee-timing 1 columns=100 rows=30 started_us=1796043397000000 term=xterm-256color\n"
        timing = f"{head}1500 o {len(data)}\n61000003 x 0\n61000010 e ended\n"
        (directory / "session.timing").write_text(timing)
        derive(RecordingFiles.of(directory), directory)
        planned = self._plan(harness, run=run, at=at)
        files: dict[str, Any] = {
            "report.json": json.dumps(report(verified_how={"command": COMMAND, "returned": "12 squared is 144"})),
            "rerun.txt": "12 squared is 144\n",
            "harness.jsonl": json.dumps({"phase": "agent", "began": 0.1, "error": f"{harness} asked {MODEL}"}) + "\n",
            "exchanges.jsonl": json.dumps({"model": MODEL, "path": "/v1/responses", "dialect": "openai-responses",
                                           "cost_usd": 0.1, "latency_ms": 12.5, "upper_usd": 0.3,
                                           "usage": {"input": 1000, "output": 50},
                                           "price": {"input": 1.75, "source": f"genai-prices: openai/{MODEL}"}}) + "\n",
        }  # fmt: skip
        for name, text in files.items():
            (directory / name).write_text(text)
        for name, text in left.items():
            (directory / name).write_text(text)
        (directory / "lock.json").write_bytes(lock_bytes(planned))
        ended = self._ended(harness, run, len(data), servers)
        (directory / "facts.json").write_bytes(facts_bytes(ended))
        refs, digest = seal(run, directory, self.evidence)
        self.records.append(ended.model_copy(update={"evidence": refs, "evidence_digest": digest}))
        return planned

    def write_found_dead(self, harness: str, *, run: str, at: str) -> AttemptFound:
        """One run whose harness died before there was a machine."""
        directory = self.root / "spool" / run
        directory.mkdir(parents=True)
        (directory / "lock.json").write_bytes(lock_bytes(self._plan(harness, run=run, at=at)))
        (directory / "harness.jsonl").write_text(json.dumps({"phase": "machine", "began": 0.1}) + "\n")
        refs, digest = seal(run, directory, self.evidence)
        found = AttemptFound(
            run=run, at="2026-11-30T12:59:00.000Z", cause=Cause.HARNESS_DIED, detail="it died", evidence=refs,
            evidence_digest=digest, reaped=(),
        )  # fmt: skip
        self.records.append(found)
        return found

    def write_keyless(self, harness: str, *, run: str, at: str, why: str) -> None:
        """One run that had no key, and so no machine and no session."""
        directory = self.root / "spool" / run
        directory.mkdir(parents=True)
        planned = self._plan(harness, run=run, at=at)
        (directory / "lock.json").write_bytes(lock_bytes(planned))
        line = {"phase": "key", "began": 0.1, "seconds": 0.1, "error": f"KeyUnavailable: {why}"}
        (directory / "harness.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n")
        ended = self._ended(harness, run, 0, ()).model_copy(
            update={
                "cause": Cause.KEY_UNAVAILABLE,
                "detail": why,
                "recording": None,
                "quiet": None,
                "rerun": None,
                "spent_usd": 0.0,
                "spending": None,
                "observed": None,
                "machine": {},
            }
        )
        (directory / "facts.json").write_bytes(facts_bytes(ended))
        refs, digest = seal(run, directory, self.evidence)
        self.records.append(ended.model_copy(update={"evidence": refs, "evidence_digest": digest}))

    def _plan(self, harness: str, *, run: str, at: str) -> AttemptPlanned:
        lock = lock_of(Try(run, "square")).model_dump(mode="json")
        lock["agent"] = {
            "name": f"{AGENT}-{harness}", "version": "0.169.0", "digest": f"agent:sha256:{'ab' * 32}",
            "harness": harness, "model": MODEL, "tree_digest": f"tree:sha256:{'d7' * 32}", "cap_usd": 3.0,
        }  # fmt: skip
        planned = AttemptPlanned(run=run, at=at, lock=Lock.model_validate(lock))
        self.records.append(planned)
        return planned

    def _ended(self, harness: str, run: str, size: int, servers: tuple[ListenerFacts, ...]) -> AttemptEnded:
        argv = (f"/opt/agent/bin/{harness}", "serve", f"--model={MODEL}")
        listening = ListenerFacts(port=4096, address="127.0.0.1", pid=7, executable=argv[0], argv=argv, cwd="/work")
        spending = SpendingFacts(
            broker="gateway", key=f"gateway-{AGENT}", model=MODEL, cap_usd=3.0, spent_usd=0.25, calls=3, refused=0,
            input_tokens=1000, cached_tokens=0, output_tokens=50, deleted=True,
            how=f"the token of {AGENT}-{harness} is off the list",
            price=Price(input=1.0, output=2.0, source=f"the price list for {MODEL}"),
        )  # fmt: skip
        return AttemptEnded(
            run=run,
            at="2026-11-30T12:59:00.000Z",
            cause=None,
            detail="",
            evidence=(),
            evidence_digest="",
            recording=RecordingFacts(complete=True, bytes=size, events=2, seconds=61.0, exit_status=0),
            quiet=QuietFacts(confirmed=True, how=f"{harness} and its children are dead", survivors_ended=1),
            report_rejected=None,
            rerun=RerunFacts(command=COMMAND, exit_status=0, timed_out=False, seconds=0.2, output="rerun.txt"),
            spent_usd=0.25,
            spending=spending,
            observed=ObservedFacts(listening=(listening, *servers)),
            phases={"agent": 61.0},
            machine={"container": "3f2a" * 16, "gateway": "172.18.0.1:35947", "used": {"cpu_seconds": 1.5}},
        )
