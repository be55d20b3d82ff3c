"""The same facts as JSON documents, each with its schema's version: beside the pages, and for ``--json``.

Numbers are exact here; pages round them for reading only.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import referee
from referee.core.records import AttemptEnded
from referee.publish.spent import spent_document
from referee.publish.views import (
    AgentView,
    DetailView,
    FileView,
    ReplayView,
    RunView,
    SiteView,
    StandingView,
    SubjectView,
    VerdictView,
)

RUN_SCHEMA = "referee.run/1"
SUBJECT_SCHEMA = "referee.subject-results/1"
BOARD_SCHEMA = "referee.board/1"
VERDICT_SCHEMA = "referee.verdict/1"
INDEX_SCHEMA = "referee.index/1"


def run_document(run: RunView, detail: DetailView) -> dict[str, Any]:
    """One run, whole: what was planned, what was seen, what follows from it."""
    lock = run.planned.lock.model_dump(mode="json")
    ended = run.ended.model_dump(mode="json") if run.ended is not None else None
    lock["agent"] = _agent(run.agent)
    return {
        "schema": RUN_SCHEMA,
        **run_summary(run),
        "planned_at": run.planned.at,
        "lock": lock,
        "end": ended,
        "scores": [
            {
                "edition": score.edition,
                "counts": score.counting,
                "outcome": score.outcome,
                "total": score.total,
                "rows": [{"row": row.name, "points": row.points, "of": row.out_of} for row in score.rows],
            }
            for score in run.scores
        ],
        "corroboration_reasons": list(run.corroboration_why),
        "report": None if detail.report is None else detail.report.model_dump(mode="json"),
        "report_rejected": detail.report_rejected,
        "phases": [
            {"phase": step.text, "began": step.began, "seconds": step.took, "error": step.fault}
            for step in detail.steps
        ],
        "files": [_file(file) for file in run.files],
        "withheld": [{"name": file.name, "original": file.digest} for file in run.withheld],
        "masked": [mask.model_dump(mode="json") for mask in run.masks],
        "replays": [_replay(one) for one in run.replays],
        "corrections": [{"at": note.at, "note": note.note} for note in run.corrections],
    }


def run_summary(run: RunView) -> dict[str, Any]:
    """One run in a list."""
    counting = next((score for score in run.scores if score.counting), None)
    return {
        "run": run.run,
        "subject": run.subject,
        "agent": run.agent.label,
        "agent_on_pages": run.agent.neutral,
        "agent_digest": run.agent.digest,
        "index": run.planned.lock.index,
        "edition": run.edition,
        "state": run.state,
        "current_pin": run.current,
        "valid": run.valid,
        "reason": run.reason,
        "outcome": run.outcome,
        "total": run.total,
        "rows": None if counting is None else {row.name: row.points for row in counting.rows},
        "corroboration": run.corroboration,
        "flagged": run.flagged,
        "cold": None if run.cold is None else run.cold.status,
        "notes": len(run.corrections),
        "replays_made": len(run.replays),
        "spent": run.ended.spent_usd if isinstance(run.ended, AttemptEnded) else None,
        "spending": spent_document(run.ended),
        "evidence": None if run.manifest is None else run.manifest.digest,
        "never_publishable": list(run.never),
        "not_publishable": list(run.objections),
    }


def subject_document(subject: SubjectView) -> dict[str, Any]:
    """One subject with every attempt at it."""
    return {
        "schema": SUBJECT_SCHEMA,
        **_subject(subject),
        "licence": subject.licence,
        "attempts": [run_summary(run) for run in subject.runs],
    }


def verdict_document(subject: SubjectView) -> dict[str, Any]:
    """The verdict on one subject."""
    return {**subject_document(subject), "schema": VERDICT_SCHEMA}


def board_document(site: SiteView) -> dict[str, Any]:
    """The newest edition's board: one line for each agent, every set behind it; other editions' boards beside it."""
    boards: list[dict[str, Any]] = [
        {"edition": board.edition, "standings": [_standing(line) for line in board.standings]} for board in site.boards
    ]
    newest, *others = boards or [{"edition": None, "standings": []}]
    return {"schema": BOARD_SCHEMA, **newest, "other_editions": others}


def index_document(site: SiteView) -> dict[str, Any]:
    """All subjects and runs, by name."""
    return {
        "schema": INDEX_SCHEMA,
        "built_by": referee.__version__,
        "names": site.names_digest,
        "subjects": [_subject(subject) for subject in site.subjects],
        "runs": [run_summary(run) for run in site.runs],
    }


def _subject(subject: SubjectView) -> dict[str, Any]:
    return {
        "subject": subject.name,
        "kind": subject.kind,
        "pin": subject.pin,
        **_verdict(subject),
        "attempts_at_earlier_pins": subject.earlier,
        "other_editions": [_verdict(one) for one in subject.others],
    }


def _verdict(said: VerdictView) -> dict[str, Any]:
    return {
        "edition": said.edition,
        "verdict": said.verdict,
        "decided_by": None if said.by is None else said.by.run,
        "attempts_counted": said.counted,
        "attempts_invalid": said.invalid,
        "attempts_never_publishable": len(said.aside),
        "rests_on_never_publishable": said.rests_on_aside,
        "under_review": said.under_review,
        "unstable_for": list(said.unstable),
    }


def _standing(line: StandingView) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "regression_agent": line.regression,
        "agent": _agent(line.agent),
        "score": line.score,
        "subjects_counted": line.subjects_counted,
        "passed": line.passed,
        "attempts_counted": line.attempts,
        "attempts_invalid": line.invalid,
        "attempts_never_publishable": len(line.aside),
        "pass_rate": line.pass_rate,
        "spent": None if line.spent is None else asdict(line.spent),
        "subjects": [
            {
                "subject": one.subject,
                "totals": [{"run": run.run, "total": total} for run, total in one.totals],
                "never_publishable": [
                    {"run": run.run, "total": total, "why": list(run.never)} for run, total in one.aside
                ],
                "median": one.median,
                "spread": one.spread,
                "unstable": one.unstable,
                "excluded": one.excluded,
            }
            for one in line.sets
        ],
    }


def _agent(agent: AgentView) -> dict[str, Any]:
    return {
        "label": agent.label,
        "on_pages": agent.neutral,
        "version": agent.version,
        "digest": agent.digest,
        "tier": agent.tier,
    }


def _replay(one: ReplayView) -> dict[str, Any]:
    return {
        "replay": one.replay,
        "at": one.at,
        "status": one.status,
        "reason": one.reason,
        "commands": one.commands,
        "ran": one.ran,
        "command": one.command,
        "image_digest": one.image_digest,
        "evidence": None if one.manifest is None else one.manifest.digest,
        "files": [_file(file) for file in one.files],
    }


def _file(file: FileView) -> dict[str, Any]:
    return {
        "name": file.name,
        "digest": file.digest,
        "bytes": file.bytes,
        "there": file.there,
        "original": file.original,
    }
