"""A workspace in every state that pages must show, made of the real record types, stores and recorder."""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.adapters.recorder import Caps, HostPtySession, RecordingFiles, derive, record
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.core.canonical import canonical_bytes
from referee.core.failure import FAILURES, Cause
from referee.core.records import (
    AttemptEnded,
    AttemptFound,
    AttemptPlanned,
    ChallengeFacts,
    ControlFacts,
    Correction,
    EvidenceRef,
    ListenerFacts,
    Lock,
    ObservedFacts,
    QuietFacts,
    RecordingFacts,
    RerunFacts,
    RestoredFacts,
)
from referee.core.spending import SpendingFacts

#: Would run, steer or hide something wherever it is not shown as text.
HOSTILE = (
    '</script><script>document.title="owned"</script>'
    "<img src=x onerror=\"document.title='owned'\">\x1b]0;owned\x07\u202e{{7*7}}"
)

COMMAND = "cd /work/project && python3 -m square 12"
RETURNED = "12 squared is 144"


def report(**changes: Any) -> dict[str, Any]:
    """A report of a real verification, with changes."""
    return {
        "installed": True,
        "started": True,
        "errors": [],
        "test_depth": "tier1_real",
        "verified_how": {"command": COMMAND, "returned": RETURNED},
        "final_state": "square printed 144 for 12 — the quickstart works.",
        **changes,
    }


MOCKED = report(test_depth="tier2_mock", final_state="It answered against a stand-in of its service.")
FAILED = report(
    installed=True,
    started=False,
    errors=[{"what": "no module named graphviz", "fixed": False, "how": "the header is not packaged"}],
    test_depth="tier3_none",
    verified_how="not verified",
    final_state="It was installed but did not start.",
)
FIXED = report(
    errors=[
        {
            "what": "fatal error: graphviz/cgraph.h: No such file or directory",
            "fixed": True,
            "how": "apt-get install libgraphviz-dev",
        },
        {"what": "dot: command not found", "fixed": True, "how": "apt-get install graphviz"},
        {"what": "a warning of the linker", "fixed": False, "how": ""},
    ]
)


@dataclass(frozen=True)
class Try:
    """One attempt to write down."""

    run: str
    subject: str
    report: dict[str, Any] | bytes | None = field(default_factory=report)
    cause: Cause | None = None
    printed: bytes = b"12 squared is 144\n"
    rerun_status: int | None = 0
    agent: str = "baseline"
    tier: str = "standard"
    sandbox: str = "docker"
    index: int = 1
    edition: int = 2
    seconds: int = 5400
    pin: str = "pypi:square==1.2.0 sha256:" + "ab" * 32
    complete: bool = True
    end: str = "ended"
    harness: str = "0.2.0"
    cast: bytes | None = None
    observed: ObservedFacts | None = None
    cap_usd: float | None = None
    spending: SpendingFacts | None = None
    raw_more: bytes = b""


#: What was seen beside a re-run, the words of a process and of files hostile.
OBSERVED = ObservedFacts(
    listening=(),
    listening_in_rerun=(
        ListenerFacts(port=8123, address="::1", pid=7, executable=None, argv=("python3", HOSTILE), cwd=HOSTILE),
    ),
    restored=RestoredFacts(restored=("tests/test_a.py",), removed=(HOSTILE,)),
    control=ControlFacts(kind="no-project", command=COMMAND, exit_status=1, timed_out=False, output=None),
    challenges=(
        ChallengeFacts(
            original="12", replaced_by=HOSTILE, command=COMMAND, exit_status=None, timed_out=True, output=None
        ),
    ),
)

TRIES = (
    Try("r-000000000pass", "square", FIXED),
    Try("r-000000000mock", "mailer", MOCKED),
    Try("r-0000000fail01", "pygraphviz", FAILED, rerun_status=None),
    Try("r-0000000fail02", "pygraphviz", FAILED, rerun_status=None, index=2),
    Try("r-000000timeout", "slowbuild", None, cause=Cause.DEADLINE),
    Try("r-000000invalid", "slowbuild", None, cause=Cause.RECORDING_SIZE_CAP, index=2, complete=False),
    Try("r-00000unstab01", "wobbly"),
    Try("r-00000unstab02", "wobbly", None, cause=Cause.DEADLINE, index=2),
    Try("r-00000unstab03", "wobbly", index=3),
    Try("r-00000overlay1", "square", sandbox="overlay", index=2, seconds=60),
    Try("r-0000contradic", "liar-target", printed=b"Traceback: no such module\n", rerun_status=1),
    Try(
        "r-000000hostile",
        "hostile",
        report(
            final_state=HOSTILE,
            errors=[{"what": HOSTILE, "fixed": True, "how": HOSTILE}],
            verified_how={"command": f"echo '{HOSTILE}'", "returned": HOSTILE},
        ),
        printed=HOSTILE.encode(),
        observed=OBSERVED,
    ),
    Try("r-000000vendor1", "square", agent="acme-coder-9000", index=1),
    Try("r-000000vendor2", "pygraphviz", FAILED, rerun_status=None, agent="acme-coder-9000"),
    Try("r-0000000found1", "segno", None, cause=Cause.HARNESS_DIED, end="found"),
    Try("r-00000000open1", "segno", None, index=2, end="open"),
    Try("r-0000rejected1", "segno", b'{"installed": 1}', cause=Cause.REPORT_REJECTED, index=3),
)


class Written:
    """The stores of a made workspace, and the recording that its attempts share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.records = RecordFiles(root / "records")
        self.evidence = LocalEvidence(root / "evidence")
        self._minute = 0

    def write(self, tries: tuple[Try, ...] = TRIES) -> None:
        """Append every attempt with its evidence."""
        for one in tries:
            self._attempt(one)
        if any(one.run == "r-0000000fail01" for one in tries):
            note = f"checked by a person: the header is missing in this environment {HOSTILE}"
            self.records.append(Correction(run="r-0000000fail01", at=self._at(), note=note))

    def _at(self) -> str:
        self._minute += 1
        return f"2026-11-30T{6 + self._minute // 60:02}:{self._minute % 60:02}:09.125Z"

    def _attempt(self, one: Try) -> None:
        self.records.append(AttemptPlanned(run=one.run, at=self._at(), lock=lock_of(one)))
        if one.end == "open":
            return
        evidence, digest = self._seal(one)
        if one.end == "found":
            self.records.append(
                AttemptFound(
                    run=one.run,
                    at=self._at(),
                    cause=one.cause or Cause.HARNESS_DIED,
                    detail="the harness died during the attempt",
                    evidence=evidence,
                    evidence_digest=digest,
                    reaped=("container referee-x",),
                )
            )
            return
        _, facts = recording_of_square()
        rerun = None
        if (
            isinstance(one.report, dict)
            and isinstance(one.report["verified_how"], dict)
            and one.rerun_status is not None
        ):
            rerun = RerunFacts(
                command=one.report["verified_how"]["command"],
                exit_status=one.rerun_status,
                timed_out=False,
                seconds=0.214,
                output="rerun.txt",
            )
        self.records.append(
            AttemptEnded(
                run=one.run,
                at=self._at(),
                cause=one.cause,
                detail="" if one.cause is None else FAILURES[one.cause].sentence,
                evidence=evidence,
                evidence_digest=digest,
                recording=facts
                if one.complete
                else facts.model_copy(update={"complete": False, "caps_reached": ("size",)}),
                quiet=QuietFacts(confirmed=True, how="the machine's process table was empty", survivors_ended=2),
                report_rejected="the report's field 'started': Field required"
                if isinstance(one.report, bytes)
                else None,
                rerun=rerun,
                observed=one.observed,
                spending=one.spending,
                spent_usd=0.0,
                phases={"machine": 0.41, "agent": 12.5},
                machine={"container": "3f2a"},
            )
        )

    def _seal(self, one: Try) -> tuple[tuple[EvidenceRef, ...], str]:
        files = dict(recording_of_square()[0])
        files["session.raw"] += one.raw_more
        if one.cast is not None:
            files["session.cast"] = one.cast
        if one.report is not None:
            files["report.json"] = one.report if isinstance(one.report, bytes) else json.dumps(one.report).encode()
            files["rerun.txt"] = one.printed
        files["harness.jsonl"] = (
            b'{"phase": "machine", "began": 0.0, "seconds": 0.41}\n'
            b'{"phase": "agent", "began": 0.42, "seconds": 12.5, "error": "MachineFault: <b>x</b>"}\nnonsense\n'
        )
        files["mission.json"] = json.dumps(
            {"schema": "referee.mission/1", "instructions": "Make it run. <i>Be honest.</i>", "run": one.run}
        ).encode()
        files["subject.toml"] = (
            f'schema = "referee.subject/1"\nname = "{one.subject}"\nkind = "package"\n'
            'summary = "Squares a number — exactly. <script>alert(1)</script>"\n[facts]\nlicence = "BSD-3-Clause"\n'
        ).encode()
        files["packages.json"] = json.dumps(
            {
                "schema": "referee.packages/1",
                "debian": [{"name": "bash", "architecture": "amd64", "version": "5.2.15-2+b7"}],
                "python": ["pip==23.0.1"],
                "tools": {"node": "v20.18.0"},
            }
        ).encode()
        refs = tuple(self.evidence.keep(name, data) for name, data in files.items())
        listing = [
            {"bytes": ref.bytes, "digest": ref.digest, "name": ref.name} for ref in sorted(refs, key=lambda r: r.name)
        ]
        manifest = canonical_bytes({"schema": "referee.evidence/1", "run": one.run, "files": listing})
        return refs, self.evidence.keep("manifest.json", manifest).digest


@functools.cache
def recording_of_square() -> tuple[Mapping[str, bytes], RecordingFacts]:
    """A real recording of a short command on a real terminal, title and clipboard strings included: files and facts."""
    script = """
        printf '\033]0;owned title\007\033]52;c;b3duZWQ=\007'
        printf '\033[1;32m$ pip install square\033[0m\r\n'; sleep 0.2
        printf 'Collecting square==1.2.0\r\nSuccessfully installed square-1.2.0\r\n'; sleep 0.2
        printf '\033[1;32m$ python3 -m square 12\033[0m\r\n12 squared is 144\r\n'; sleep 0.3
        printf '</script>\r\n'
    """
    session = HostPtySession(["/bin/sh", "-c", script], environment={"PATH": "/usr/bin:/bin"}, columns=80, rows=20)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        try:
            recorded = record(
                session, directory=directory, columns=80, rows=20, caps=Caps(), deadline=time.monotonic() + 30
            )
        finally:
            session.close()
        derive(RecordingFiles.of(directory), directory)
        kept = ("session.raw", "session.timing", "session.cast", "transcript.txt")
        return {name: (directory / name).read_bytes() for name in kept}, recorded.facts()


def lock_of(one: Try) -> Lock:
    return Lock.model_validate(
        {
            "edition": one.edition,
            "subject": {
                "name": one.subject,
                "kind": "package",
                "pin": one.pin,
                "file_digest": "subject:sha256:" + "cd" * 32,
            },
            "agent": {
                "name": one.agent,
                "version": "0.1.0",
                "digest": "agent:sha256:" + "ef" * 32,
                "tier": one.tier,
                "cap_usd": one.cap_usd,
            },
            "index": one.index,
            "budget": {"tier": "standard", "seconds": one.seconds, "why": "no rule for another tier applies"},
            "environment": {
                "sandbox": one.sandbox,
                "engine": "Docker Engine 20.10" if one.sandbox == "docker" else "namespaces of the host",
                "image": "referee-env:default" if one.sandbox == "docker" else "the host's root",
                "image_digest": "sha256:" + "12" * 32,
                "packages_digest": "sha256:" + "34" * 32,
                "security_boundary": one.sandbox == "docker",
                "architecture": "x86_64",
            },
            "limits": {
                "memory_bytes": 4 * 1024**3,
                "cpus": 2.0,
                "pids": 1024,
                "disk_bytes": 20 * 1024**3,
                "nofile": 65536,
            },
            "instructions_digest": "instructions:sha256:" + "56" * 32,
            "mission_digest": "mission:sha256:" + "78" * 32,
            "harness_version": one.harness,
        }
    )
