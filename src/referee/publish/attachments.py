"""What pages read of a run's evidence: bounded, tolerant of anything an agent may have left in it.

A blob that is missing or cannot be read makes the page say so; it never stops the build.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from referee.core import toml_text
from referee.core.canonical import digest_of_bytes, strict_loads
from referee.core.records import AttemptEnded, AttemptFound, EvidenceRef, Replayed
from referee.core.report import MAX_REPORT_BYTES, Report, parse_report
from referee.core.transcript import PlainText
from referee.errors import Finding, ReportRejected, UsageError
from referee.protocols import KeptEvidence
from referee.publish.views import FileView, LogView, PackageView, StepView
from referee.publish.words import PHASES

#: Bytes of a log that a page shows from its beginning and from its end.
LOG_HEAD = 12_000
LOG_TAIL = 48_000

#: Small files are read up to this many bytes; a larger one is only linked.
MAX_SMALL = 4_000_000

WHAT = {
    "session.raw": "the terminal's bytes as they came",
    "session.timing": "when each of them came",
    "session.cast": "recording (asciicast v2), derived from the two above",
    "transcript.txt": "log of the session as plain text",
    "report.json": "the agent's report as it was left",
    "rerun.txt": "what the reported command printed when the harness ran it again",
    "exchanges.jsonl": "the calls to the agent's model: when, tokens, cost; no words",
    "scripts.json": "the agent's own scripts that the reported command ran",
    "control.txt": "what the reported command printed on a fresh machine without the project",
    **{f"challenge-{n}.txt": f"what it printed with chosen input {n}" for n in range(1, 5)},
    "harness.jsonl": "the harness's own log: phases and their times",
    "mission.json": "the mission, with the instructions given to the agent",
    "subject.toml": "the subject as it was pinned",
    "packages.json": "packages of the environment",
    "lock.json": "what was fixed before the attempt: subject, agent, budget, environment, limits, each with its digest",
    "facts.json": "what the harness saw of the attempt: how it ended, recording, processes, the command run again",
    "commands.json": "what the recording tells that the agent did",
    "replay.txt": "log of the replay: each command, its output and status",
    "replay.json": "status and length of each step of the replay",
    "masked.json": "the log of what was masked in the served copy: rule, place, length",
    "manifest.json": "the manifest: names, sizes and digests of all files",
}


class Attachments:
    """The evidence of one run, by file name."""

    def __init__(self, ended: AttemptEnded | AttemptFound | Replayed | None, evidence: KeptEvidence) -> None:
        self._ended = ended
        self._evidence = evidence
        self._refs: Mapping[str, EvidenceRef] = {ref.name: ref for ref in ended.evidence} if ended else {}

    def files(self) -> tuple[FileView, ...]:
        """Every file of the record, in the record's order."""
        return tuple(self._file(ref.name, ref.digest, ref.bytes) for ref in self._refs.values())

    def manifest(self) -> FileView | None:
        """The manifest: its digest stands beside the numbers."""
        if self._ended is None:
            return None
        return self._file("manifest.json", self._ended.evidence_digest, None)

    def read(self, name: str, limit: int = MAX_SMALL) -> bytes | None:
        """A file's bytes, checked against their digest; None where it is absent, lost, or larger than ``limit``."""
        ref = self._refs.get(name)
        if ref is None or ref.bytes > limit:
            return None
        try:
            with self._evidence.open(ref.digest) as file:
                data = file.read(limit + 1)
        except (OSError, Finding, UsageError):
            return None
        return data if digest_of_bytes(data) == ref.digest else None

    def lost(self, name: str) -> bool:
        """Whether the record names this file and the store does not give its bytes."""
        return name in self._refs and self.read(name) is None

    def report(self) -> tuple[Report | None, str | None]:
        """The agent's report, or why it is none."""
        data = self.read("report.json", MAX_REPORT_BYTES)
        if data is None:
            return None, None
        try:
            return parse_report(data), None
        except ReportRejected as exc:
            return None, exc.message

    def steps(self) -> tuple[StepView, ...]:
        """The phases that took place, by the harness's own log; without it by the record, in the order they come in.

        Logs of earlier harnesses also have phases that were entered and found nothing to do: those are left out.
        """
        lines = (self.read("harness.jsonl") or b"").splitlines()
        steps = [step for line in lines if (step := _step(line)) is not None]
        if not steps and isinstance(self._ended, AttemptEnded):
            done = self._ended.phases
            names = sorted(done, key=lambda name: (list(PHASES).index(name) if name in PHASES else len(PHASES), name))
            steps = [(name, StepView(PHASES.get(name, name), took=done[name])) for name in names]
        return tuple(step for name, step in steps if step.fault is not None or self._took_place(name))

    def _took_place(self, phase: str) -> bool:
        """Whether record or evidence know of what a phase is for; the others do not depend on the report."""
        end = self._ended if isinstance(self._ended, AttemptEnded) else None
        observed = None if end is None else end.observed
        if phase == "listening":
            return observed is None or observed.listening is not None
        if phase == "rerun":
            return "rerun.txt" in self._refs or (end is not None and end.rerun is not None)
        if phase == "challenge":
            asked = observed is not None and bool(observed.challenges or observed.asked)
            return asked or any(name.startswith("challenge-") for name in self._refs)
        if phase == "control":
            return "control.txt" in self._refs or (observed is not None and observed.control is not None)
        return True

    def log(self, name: str) -> LogView | None:
        """The beginning and the end of a log in whole lines, as plain text; the bytes left out between are counted."""
        ref = self._refs.get(name)
        if ref is None:
            return None
        try:
            with self._evidence.open(ref.digest) as file:
                if ref.bytes <= LOG_HEAD + LOG_TAIL:
                    return LogView(_plain(file.read(ref.bytes)), "", 0)
                head = file.read(LOG_HEAD)
                file.seek(-LOG_TAIL, os.SEEK_END)
                tail = file.read(LOG_TAIL)
        except (OSError, Finding, UsageError):
            return None
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n") + 1 :]
        return LogView(_plain(head), _plain(tail), ref.bytes - len(head) - len(tail))

    def instructions(self) -> str | None:
        """The words the agent was given."""
        value = self._json("mission.json")
        words = value.get("instructions") if isinstance(value, dict) else None
        return words if isinstance(words, str) else None

    def packages(self) -> tuple[PackageView, ...]:
        """The environment's packages, as its manifest lists them: tools, Debian's, Python's."""
        manifest = self._json("packages.json")
        if not isinstance(manifest, dict):
            return ()
        tools, debian, python = (manifest.get(key) for key in ("tools", "debian", "python"))
        found = [PackageView(name, said) for name, said in sorted(_table(tools).items()) if isinstance(said, str)]
        for row in debian if isinstance(debian, list) else []:
            name, version = _table(row).get("name"), _table(row).get("version")
            if isinstance(name, str) and isinstance(version, str):
                found.append(PackageView(name, version))
        for line in python if isinstance(python, list) else []:
            name, _, version = str(line).partition("==")
            found.append(PackageView(name, version))
        return tuple(found)

    def subject(self) -> Mapping[str, Any]:
        """The subject's file as it was pinned; empty where there is none to read."""
        data = self.read("subject.toml")
        try:
            return {} if data is None else toml_text.loads(data.decode())
        except (UnicodeDecodeError, tomllib.TOMLDecodeError):
            return {}

    def _json(self, name: str) -> Any:
        data = self.read(name)
        try:
            return None if data is None else strict_loads(data)
        except UsageError:
            return None

    def _file(self, name: str, digest: str, size: int | None) -> FileView:
        try:
            path = self._evidence.path(digest)
            there = path.is_file()
            actual = path.stat().st_size if there else None
        except (OSError, UsageError):
            there, actual = False, None
        return FileView(name, WHAT.get(name, "file of the attempt"), digest, actual if size is None else size, there)


def _step(line: bytes) -> tuple[str, StepView] | None:
    """A line's phase by its name in the log and as readers see it."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    phase = value.get("phase") if isinstance(value, dict) else None
    if not isinstance(phase, str):
        return None
    began, took, fault = value.get("began"), value.get("seconds"), value.get("error")
    return phase, StepView(
        PHASES.get(phase, phase),
        began=float(began) if isinstance(began, int | float) else None,
        took=float(took) if isinstance(took, int | float) else None,
        fault=fault if isinstance(fault, str) else None,
    )


def _plain(data: bytes) -> str:
    """Terminal output as plain text: no colour, no cursor movement; a log that is plain already stays as it is."""
    text = PlainText()
    return text.feed(data) + text.finish()


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
