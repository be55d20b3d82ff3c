"""The decision log of a protocol: append-only, numbered in order of assignment, dated, each with its reason (§1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from referee.adapters.store.records import RecordFiles
from referee.core.cases import Suite
from referee.core.records import BakeoffRecord, DecisionLogged, GoldReviewed
from referee.errors import NothingMatched, UsageError
from referee.runner.bakeoff.freeze import freezes_of
from referee.scoring.bakeoff.gold import reviewed_digest

#: Most characters of a decision, its reason, or a review's note: reports show them whole.
LONGEST = 2_000


def decide(
    log: RecordFiles,
    protocol: str,
    text: str,
    *,
    reason: str,
    by: str,
    amends: bool = False,
    decided_on: date | None = None,
) -> DecisionLogged:
    """Append one entry under the next number.

    Args:
        log: the workspace's bake-off records.
        protocol: name of the protocol.
        text: what was decided.
        reason: why.
        by: who decided.
        amends: whether it changes the frozen protocol.
        decided_on: the day of the decision (UTC); None for today. An entry of an earlier day is marked late.

    Raises:
        UsageError: an empty text or reason, a day to come, or an amendment of what is not frozen.
    """
    if not text.strip():
        raise UsageError("a decision needs a text that says what was decided", todo="give it after the protocol's name")
    if not reason.strip():
        raise UsageError("a decision needs its reason", todo="give it with --reason")
    _fits("decision", text)
    _fits("reason", reason)
    with log.numbering():
        records = log.read_bakeoff()
        if amends and not freezes_of(records, protocol):
            raise UsageError(
                f"the protocol {protocol} is not frozen, so there is nothing to amend",
                todo="edit it and freeze it; a decision on the way there goes without --amends",
            )
        now = datetime.now(UTC)
        day = decided_on or now.date()
        if day > now.date():
            raise UsageError(f"{day} is still to come: a decision is logged on its day or later")
        record = DecisionLogged(
            protocol=protocol,
            number=max((one.number for one in decisions_of(records, protocol)), default=0) + 1,
            at=now.isoformat(),
            decided_on=day.isoformat(),
            late=day < now.date(),
            amends=amends,
            text=text,
            reason=reason,
            by=by,
        )
        log.append(record)
    return record


def _fits(what: str, text: str) -> None:
    """Raise ``UsageError`` for words that every reader of every report would have to scroll past."""
    if len(text) > LONGEST:
        raise UsageError(
            f"the {what} has {len(text)} characters, more than {LONGEST}",
            todo="say it in short, and name where the rest is kept",
        )


def decisions_of(records: Sequence[BakeoffRecord], protocol: str) -> list[DecisionLogged]:
    """The entries of a protocol's log, by number."""
    found = [one for one in records if isinstance(one, DecisionLogged) and one.protocol == protocol]
    return sorted(found, key=lambda one: one.number)


def review(
    log: RecordFiles, protocol: str, case: str, *, stands: bool, note: str, by: str, suite: Suite
) -> GoldReviewed:
    """Append a person's review of a case whose gold is suspect; a later review of the same case counts.

    Args:
        log: the workspace's bake-off records.
        protocol: name of the protocol.
        case: the case's id.
        stands: whether the gold stands.
        note: what was found.
        by: who reviewed it.
        suite: where the case stands as it was reviewed: the review says nothing of it once it is amended.

    Raises:
        UsageError: the note is empty.
        NothingMatched: the suite has no such case.
    """
    if case not in suite.by_id:
        raise NothingMatched(f"the suite {suite.name} has no case {case!r}")
    if not note.strip():
        raise UsageError("a review needs a note that says what was found", todo="give it with --note")
    _fits("note", note)
    with log.numbering():
        record = GoldReviewed(
            protocol=protocol,
            case=case,
            at=datetime.now(UTC).isoformat(),
            stands=stands,
            note=note,
            by=by,
            case_digest=reviewed_digest(suite, suite.by_id[case]),
        )
        log.append(record)
    return record


def reviews_of(records: Sequence[BakeoffRecord], protocol: str) -> list[GoldReviewed]:
    """The reviews of a protocol's cases, in the order in which they were made."""
    found = [one for one in records if isinstance(one, GoldReviewed) and one.protocol == protocol]
    return sorted(found, key=lambda one: one.at)
