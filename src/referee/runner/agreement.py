"""What a record says of its run must be what its evidence shows: the part of ``verify`` that reads one by the other.

A forger can chain a changed record anew. So what a record says is sealed as evidence too (``lock.json``,
``facts.json``), under the digest that results quote; and what other evidence tells as well is compared here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from referee.core.canonical import strict_loads
from referee.core.challenge_input import WAYS, challenge_input
from referee.core.failure import Cause
from referee.core.records import (
    AskedFacts,
    AttemptEnded,
    AttemptFound,
    AttemptPlanned,
    ChallengeFacts,
    EvidenceRef,
    RecordingFacts,
)
from referee.core.timing import Coverage, Playback
from referee.errors import Finding
from referee.protocols import Evidence
from referee.runner.rejudge import read_named
from referee.runner.seal import facts_bytes, lock_bytes
from referee.runner.spending_agreement import check_spending
from referee.scoring.challenges import RULES, challenges
from referee.scoring.gather import RunRecords

#: How a recording says that something else than the command's own end or the time limit ended it.
CUT_SHORT = frozenset({"watch", "size_cap", "event_cap", "write_error", "stream_lost"})
_PIECE = 1 << 20
_IN_PLACE = re.compile(r"\b(?:true|cat)\b")


def check_agreement(planned: AttemptPlanned, end: AttemptEnded | AttemptFound, evidence: Evidence) -> None:
    """Compare one run's records with its evidence, whose digests hold.

    Raises:
        Finding: the first thing that the record says and the evidence does not show.
    """
    _environment(planned)
    if isinstance(end, AttemptEnded):
        _told_by_other_evidence(planned, end, evidence)
        _observed(planned.run, end)
        _same(planned.run, "facts.json", facts_bytes(end), end, evidence)
    _same(planned.run, "lock.json", lock_bytes(planned), end, evidence)


def _told_by_other_evidence(planned: AttemptPlanned, end: AttemptEnded, evidence: Evidence) -> None:
    if end.cause in {None, Cause.DEADLINE}:
        _files_of_a_measurement(planned, end)
    _budget(planned, end, evidence)
    check_spending(planned, end, evidence)
    refs = {ref.name: ref for ref in end.evidence}
    if end.recording is not None and "session.raw" in refs and "session.timing" in refs:
        coverage = _coverage(planned.run, refs, evidence)
        _recording(planned.run, end.recording, coverage)
        _cause(planned.run, end.cause, coverage)


def _same(run: str, name: str, told: bytes, end: AttemptEnded | AttemptFound, evidence: Evidence) -> None:
    """The record says, to the byte, what was sealed with the evidence under the digest that results quote."""
    sealed = read_named(evidence, end.evidence, name)
    if sealed is None and isinstance(end, AttemptFound):
        return  # the harness died before it was written
    if sealed != told:
        raise Finding(
            f"run {run}: its record does not say what was sealed as {name} with its evidence",
            todo="compare both with a copy kept elsewhere: one of them was changed",
        )


def check_numbers(runs: Iterable[RunRecords]) -> None:
    """Attempts are numbered from 1 for each subject and agent, and every one counts (methodology §12): none may lack.

    Raises:
        Finding: a number is missing below another one, so records were taken away.
    """
    numbers: dict[tuple[str, str], set[int]] = {}
    for found in runs:
        lock = found.planned.lock
        numbers.setdefault((lock.subject.name, lock.agent.name), set()).add(lock.index)
    for (subject, agent), made in numbers.items():
        missing = next((number for number in range(1, max(made)) if number not in made), None)
        if missing is not None:
            raise Finding(
                f"attempt {missing} at {subject} by {agent} is not in the records, though attempt {max(made)} is",
                todo="restore the missing record file from a copy: every attempt counts",
            )


def _observed(run: str, end: AttemptEnded) -> None:
    """Inputs of challenges follow from the run's id and stand where others stood; what was printed is kept as named."""
    seen = end.observed
    if seen is None:
        return
    reported = None if end.rerun is None else end.rerun.command
    again = challenges(reported or "", run) if seen.challenges else ()
    chosen = {(one.original, one.replaced_by, one.command) for one in again}
    for one in seen.challenges or ():
        ways = {challenge_input(run, one.original, way) for way in range(WAYS)}
        same = (one.original, one.replaced_by, one.command) in chosen  # a variable gives way, not what it was set to
        if one.replaced_by not in ways or reported is None or not (same or _is_replaced(reported, one)):
            raise Finding(f"run {run}: the input {one.replaced_by!r} of a challenge does not follow from the run's id")
    if seen.control is not None and seen.control.command != reported:
        raise Finding(f"run {run}: its negative control ran another command than the report's")
    if seen.asked is not None:
        _all_asked(run, reported, seen.asked, len(seen.challenges or ()))
    names = {ref.name for ref in end.evidence}
    for fact in (seen.control, *(seen.challenges or ())):
        if fact is not None and fact.output is not None and fact.output not in names:
            raise Finding(f"run {run}: its evidence has no {fact.output}, which its record names")


def _all_asked(run: str, reported: str | None, asked: AskedFacts, made: int) -> None:
    """Every challenge that the rules ask for was made, or the record says why not."""
    if made > asked.number or (made < asked.number and asked.left is None):
        raise Finding(f"run {run}: of {asked.number} challenges its record tells {made}, and not why")
    if asked.rules == RULES and len(challenges(reported or "", run)) != asked.number:
        raise Finding(f"run {run}: its command does not get {asked.number} challenges, which its record tells")


def _is_replaced(reported: str, one: ChallengeFacts) -> bool:
    at = reported.find(one.original)
    while at >= 0:
        begin = reported[:at] + one.replaced_by
        if one.command.startswith(begin) and _left_out(reported[at + len(one.original) :], one.command[len(begin) :]):
            return True
        at = reported.find(one.original, at + 1)
    return False


def _left_out(reported: str, ran: str) -> bool:
    """Whether what ran is what was reported, but for commands in whose place ``true`` or ``cat`` stands."""
    rest = iter(reported)
    return ran == reported or all(character in rest for character in _IN_PLACE.sub("", ran))


def _environment(planned: AttemptPlanned) -> None:
    lock = planned.lock
    if lock.environment.sandbox == "overlay" and lock.environment.security_boundary:
        raise Finding(f"run {planned.run}: the record calls the overlay sandbox a security boundary, which it never is")
    if not lock.environment.security_boundary and not lock.not_publishable:
        raise Finding(f"run {planned.run}: it was made without a security boundary and is not marked unpublishable")


def _files_of_a_measurement(planned: AttemptPlanned, end: AttemptEnded) -> None:
    """A complete attempt always leaves what its lock can be checked by."""
    wanted = ["subject.toml", "mission.json"]
    if planned.lock.environment.packages_digest is not None:
        wanted.append("packages.json")
    names = {ref.name for ref in end.evidence}
    for name in wanted:
        if name not in names:
            raise Finding(f"run {planned.run}: its evidence has no {name}, which every complete attempt leaves")


def _budget(planned: AttemptPlanned, end: AttemptEnded, evidence: Evidence) -> None:
    """The agent was told the time limit that the record says it had."""
    data = read_named(evidence, end.evidence, "mission.json")
    told = strict_loads(data).get("seconds") if data is not None else None
    if told is not None and told != planned.lock.budget.seconds:
        raise Finding(
            f"run {planned.run}: the agent was told a limit of {told} s, the record says {planned.lock.budget.seconds}"
        )


def _coverage(run: str, refs: dict[str, EvidenceRef], evidence: Evidence) -> Coverage:
    with (
        evidence.open(refs["session.raw"].digest) as raw,
        evidence.open(refs["session.timing"].digest) as timing,
    ):
        try:
            playback = Playback(_pieces(raw), _pieces(timing))
            for _ in playback:
                pass
        except Finding as exc:
            raise Finding(f"run {run}: session.timing: {exc.message}") from exc
        return playback.coverage


def _recording(run: str, said: RecordingFacts, seen: Coverage) -> None:
    if not said.complete:
        return
    if not seen.whole:
        raise Finding(f"run {run}: the record calls its recording complete, raw bytes and times do not bear that out")
    if said.events != seen.events:
        raise Finding(f"run {run}: session.timing has {seen.events} events, its record says {said.events}")
    if said.exit_status != seen.exit_status:
        raise Finding(
            f"run {run}: session.timing tells the exit status {seen.exit_status}, its record {said.exit_status}"
        )


def _cause(run: str, said: Cause | None, seen: Coverage) -> None:
    """The time limit ended the recording exactly where the record says so; nothing else did where it names nothing."""
    if said is Cause.DEADLINE and seen.ended != "deadline":
        raise Finding(f"run {run}: the record says that the time limit ended it, its recording does not")
    if seen.ended == "deadline" and said is None:
        raise Finding(f"run {run}: its recording ended at the time limit, the record says that the agent ended")
    if seen.ended in CUT_SHORT and said in {None, Cause.DEADLINE}:
        raise Finding(f"run {run}: its recording was cut short ({seen.ended}), the record calls it a complete attempt")


def _pieces(blob: BinaryIO) -> Iterator[bytes]:
    while piece := blob.read(_PIECE):
        yield piece
