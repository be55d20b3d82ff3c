"""Judging one attempt from its records and the bytes of its evidence (methodology §5 to §7). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from referee.core.failure import CLAIMS_NOTHING, FAILURES, Cause
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, SubjectRef
from referee.core.report import Report, parse_report
from referee.core.spending import usd
from referee.errors import ReportRejected, UsageError
from referee.scoring.beside import Beside
from referee.scoring.bringup import EDITIONS, Edition, Outcome, Rows, Score, claims_of, score
from referee.scoring.corroboration import Corroboration, corroborate
from referee.scoring.render import points
from referee.scoring.verdicts import AgentTier

#: Evidence without which an attempt is no measurement: a complete recording and a complete log (methodology §6).
REQUIRED_EVIDENCE = ("session.raw", "session.timing", "harness.jsonl")

#: Caps whose reaching leaves a recording incomplete; the time limit ("duration") and a cut "resize" do not.
CUTTING_CAPS = frozenset({"size", "events"})


@dataclass(frozen=True)
class Judgement:
    """What follows from one attempt's records and evidence. Derived: it can be deleted and computed again.

    ``reason`` is empty, or one sentence: why the attempt is invalid, or what kept it from a pass. ``by_edition`` holds
    the score under every edition; ``edition`` is the one that the attempt was planned under and is judged by. Of an
    invalid attempt, which is no measurement, there is no score.
    """

    run: str
    subject: str
    agent: str
    agent_tier: AgentTier
    index: int
    edition: Edition
    at: str
    valid: bool
    retry: bool
    cause: Cause | None
    reason: str
    by_edition: Mapping[Edition, Score]
    corroboration: Corroboration | None
    spent_usd: float | None
    evidence: str
    not_publishable: tuple[str, ...]

    @property
    def score(self) -> Score | None:
        """The score under the attempt's own edition; None when it is invalid."""
        return self.by_edition.get(self.edition)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome under the attempt's own edition; None when it is invalid."""
        return None if self.score is None else self.score.outcome

    @property
    def rows(self) -> Rows | None:
        """The rows under the attempt's own edition; None when it is invalid."""
        return None if self.score is None else self.score.rows

    @property
    def total(self) -> float | None:
        """Points under the attempt's own edition; None when it is invalid."""
        return None if self.score is None else self.score.total

    @property
    def flagged(self) -> bool:
        """Whether a person must look at the attempt (edition 2: its claim was contradicted)."""
        return any(one.flagged for one in self.by_edition.values())

    def sentence(self) -> str:
        """The judgement in one line of text."""
        if self.score is None:
            return f"invalid: {self.reason}"
        status = "" if self.corroboration is None else f", {self.corroboration.status.replace('_', ' ')}"
        said = f"{self.score.outcome}, {points(self.score.total)} of 100{status}"
        return f"{said}: {self.reason}" if self.reason else said

    def document(self) -> dict[str, Any]:
        """The judgement as JSON, as commands print it and ``scores/<run>.json`` keeps it."""
        found = self.corroboration
        return {
            "run": self.run,
            "subject": self.subject,
            "agent": self.agent,
            "agent_tier": self.agent_tier,
            "index": self.index,
            "edition": self.edition,
            "at": self.at,
            "valid": self.valid,
            "retry": self.retry,
            "cause": None if self.cause is None else self.cause.value,
            "reason": self.reason,
            **_score_document(self.score),
            "flagged": self.flagged,
            "corroboration": None if found is None else found.status,
            "corroboration_reason": None if found is None else found.reason,
            "audit": [] if found is None else [{"flag": flag.name, "sentence": flag.sentence} for flag in found.flags],
            **_notes_document(found),
            "editions": {str(edition): _score_document(one) for edition, one in self.by_edition.items()},
            "spent": self.spent_usd,
            "evidence": self.evidence,
            "not_publishable": list(self.not_publishable),
        }


def judge(
    planned: AttemptPlanned,
    end: AttemptEnded | AttemptFound,
    *,
    report_bytes: bytes | None = None,
    rerun_output: bytes | None = None,
    read: Callable[[str, int], bytes | None] | None = None,
) -> Judgement:
    """Judge one attempt.

    Args:
        planned: the record made before the machine.
        end: the record that the attempt ended, or that it was found after its harness had died.
        report_bytes: the bytes of the evidence file ``report.json``, or None where there is none.
        rerun_output: the bytes that the re-run printed, or None where there are none.
        read: gives the checked bytes of any evidence file that has at most so many bytes; without it, what was
            observed beside the re-run is not judged.

    Raises:
        UsageError: the records are of two different runs, or of an edition that this installation does not know.
    """
    if planned.run != end.run:
        raise UsageError(f"the records are of two runs, {planned.run} and {end.run}")
    edition = _edition(planned)
    report, rejected = _read(report_bytes)
    cause, detail = _invalid(end, rejected)
    if cause is not None:
        return _judgement(planned, end, edition, cause=cause, reason=detail, scores={}, found=None)
    timed_out = isinstance(end, AttemptEnded) and end.cause is Cause.DEADLINE
    if end.cause in CLAIMS_NOTHING:
        report = None
    rerun = end.rerun if isinstance(end, AttemptEnded) else None
    found = corroborate(report, rerun, rerun_output, _beside(planned, end, read))
    claims = claims_of(report)
    scores = {one: score(claims, timed_out=timed_out, edition=one, corroboration=found.status) for one in EDITIONS}
    if isinstance(end, AttemptEnded) and end.cause is not None and end.cause in CLAIMS_NOTHING:
        reason = _said(end.cause, _detail(end))
    else:
        reason = _why_no_pass(report, scores[edition], found, end, timed_out=timed_out)
    return _judgement(planned, end, edition, cause=end.cause, reason=reason, scores=scores, found=found)


def _beside(
    planned: AttemptPlanned, end: AttemptEnded | AttemptFound, read: Callable[[str, int], bytes | None] | None
) -> Beside | None:
    """What was observed beside the re-run; None where the harness of the attempt did not look."""
    if not isinstance(end, AttemptEnded) or end.observed is None or read is None:
        return None
    subject = planned.lock.subject
    return Beside(
        run=planned.run,
        project=project_names(subject),
        facts=end.observed,
        read=read,
        version=pinned_version(subject),
        commit=pinned_commit(subject),
    )


def project_names(subject: SubjectRef) -> tuple[str, ...]:
    """What a project is called where something fetches it: its subject's name, its registry name, its address."""
    pinned = subject.pin.split(":", 1)[-1]
    named = pinned.removesuffix("/").rsplit("/", 1)[-1]
    registry = re.split(r"(?<=.)@|==|#", pinned)[0]
    return tuple(dict.fromkeys((subject.name, registry, re.split(r"[@#]", named)[0].removesuffix(".git"))))


def pinned_version(subject: SubjectRef) -> str | None:
    """The version of a pinned package; None for a repository."""
    found = re.search(r"(?:==|(?<=.)@)([^=@]+)$", subject.pin.split(":", 1)[-1].split(" ", 1)[0])
    return found.group(1) if found and subject.kind == "package" else None


def pinned_commit(subject: SubjectRef) -> str | None:
    """The commit of a pinned repository; None for a package, and for a directory."""
    found = re.search(r"@([0-9a-f]{40,64})$", subject.pin.split(" ", 1)[0])
    return found.group(1) if found and subject.kind == "repository" else None


def _judgement(
    planned: AttemptPlanned,
    end: AttemptEnded | AttemptFound,
    edition: Edition,
    *,
    cause: Cause | None,
    reason: str,
    scores: Mapping[Edition, Score],
    found: Corroboration | None,
) -> Judgement:
    lock = planned.lock
    return Judgement(
        run=planned.run,
        subject=lock.subject.name,
        agent=lock.agent.name,
        agent_tier=lock.agent.tier,
        index=lock.index,
        edition=edition,
        at=planned.at,
        valid=bool(scores),
        retry=not scores and cause is not None and FAILURES[cause].retry,
        cause=cause,
        reason=reason,
        by_edition=scores,
        corroboration=found,
        spent_usd=end.spent_usd if isinstance(end, AttemptEnded) else None,
        evidence=end.evidence_digest,
        not_publishable=lock.not_publishable,
    )


def _edition(planned: AttemptPlanned) -> Edition:
    for edition in EDITIONS:
        if edition == planned.lock.edition:
            return edition
    raise UsageError(
        f"run {planned.run} was planned under edition {planned.lock.edition}, which this installation does not know",
        todo="judge it with the version of referee that made it",
    )


def _read(data: bytes | None) -> tuple[Report | None, str | None]:
    """The report, and why it is rejected."""
    if data is None:
        return None, None
    try:
        return parse_report(data), None
    except ReportRejected as exc:
        return None, exc.message


def _invalid(end: AttemptEnded | AttemptFound, rejected: str | None) -> tuple[Cause | None, str]:
    """The cause that makes the attempt no measurement, with its sentence; None for a complete one (methodology §7)."""
    if isinstance(end, AttemptFound):
        return end.cause, _said(end.cause, end.detail)
    if end.cause is not None and not FAILURES[end.cause].counts:
        return end.cause, _said(end.cause, _detail(end))
    incomplete = _incomplete(end)
    if incomplete is not None:
        return incomplete
    why_rejected = rejected or end.report_rejected
    if why_rejected is not None and end.cause is None:
        return Cause.REPORT_REJECTED, _said(Cause.REPORT_REJECTED, why_rejected)
    return None, ""


def _detail(end: AttemptEnded) -> str:
    """What the record says of its cause beyond the cause's own sentence."""
    rejected = end.cause in {Cause.REPORT_REJECTED, Cause.REPORT_BROKEN}
    return (end.report_rejected if rejected else None) or end.detail


def _incomplete(end: AttemptEnded) -> tuple[Cause, str] | None:
    """What a complete attempt must have and this one lacks, whatever its record says of its cause."""
    names = {ref.name for ref in end.evidence}
    missing = [name for name in REQUIRED_EVIDENCE if name not in names]
    if missing:
        return Cause.RECORDING_INCOMPLETE, f"the evidence file {missing[0]} is missing"
    recording = end.recording
    capped = recording is not None and bool(CUTTING_CAPS.intersection(recording.caps_reached))
    whole = recording is not None and recording.complete and not capped
    # A cap ends the attempt as the time limit does: all up to it is there, and nothing of the agent lived on.
    to_its_cap = capped and end.cause is Cause.RECORDING_LIMIT
    if recording is None or recording.write_error or not (whole or to_its_cap):
        return Cause.RECORDING_INCOMPLETE, FAILURES[Cause.RECORDING_INCOMPLETE].sentence
    if end.quiet is None or not end.quiet.confirmed:
        return Cause.SURVIVORS, FAILURES[Cause.SURVIVORS].sentence
    return None


def _said(cause: Cause, detail: str) -> str:
    sentence = FAILURES[cause].sentence
    if not detail or detail.startswith(sentence):  # a record may say the whole of it
        return detail or sentence
    return f"{sentence}: {detail}"


def _why_no_pass(
    report: Report | None, earned: Score, found: Corroboration, end: AttemptEnded | AttemptFound, *, timed_out: bool
) -> str:
    """One sentence on what kept the attempt from a pass; empty when it passed."""
    if earned.passed:
        return ""
    if timed_out:
        return FAILURES[Cause.DEADLINE].sentence
    if report is None:
        spending = end.spending if isinstance(end, AttemptEnded) else None
        if spending is not None and spending.capped:
            return (
                f"its key's cap of {usd(spending.cap_usd)} stopped its calls, and the agent ended without a report, "
                "which claims nothing"
            )
        return "the agent ended without a report, which claims nothing"
    unclaimed = (
        (report.installed, "the report does not claim that it installed"),
        (report.started, "the report does not claim that it started"),
        (report.test_depth != "tier3_none", "it started, and the agent did not verify it"),
    )
    return next((sentence for claimed, sentence in unclaimed if not claimed), found.reason)


def _notes_document(found: Corroboration | None) -> dict[str, Any]:
    """Notes stand in a judgement only where there are some: an earlier attempt's score keeps its bytes."""
    if found is None or not found.notes:
        return {}
    return {"notes": [{"note": note.name, "sentence": note.sentence} for note in found.notes]}


def _score_document(earned: Score | None) -> dict[str, Any]:
    if earned is None:
        return {"outcome": None, "total": None, "rows": None}
    rows = earned.rows
    return {
        "outcome": earned.outcome,
        "total": earned.total,
        "rows": {"install": rows.install, "start": rows.start, "fixes": rows.fixes, "depth": rows.depth},
    }
