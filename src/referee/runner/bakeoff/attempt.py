"""One attempt: tries until an answer or the end of patience, then redacted, read, judged, and handed over as a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from referee.adapters.store.answers import KeptAnswer
from referee.core.answers import Reading
from referee.core.bakeoff import Blame, Fault, Retry, Surface
from referee.core.cases import Case, Suite
from referee.core.redaction import Redactor
from referee.protocols import Ask, Lane
from referee.runner.bakeoff.budget import HALTED, Blocked, Purse
from referee.runner.bakeoff.guards import LONGEST_WAIT, Halt, Pace
from referee.runner.bakeoff.keeping import WITHHELD, keep
from referee.runner.bakeoff.verdict import verdict

_FAILED, _SERVER_FAILED = 400, 500
#: Ways to fail in which no question was sent: what never came to the server costs nothing.
_UNSENT = frozenset({"dns", "connect"})


@dataclass(frozen=True)
class Question:
    """A case as it is put to a lane: once for all its repeats."""

    case: Case
    ask: Ask
    sent: Mapping[str, str]

    def bytes(self) -> int:
        """About how long the request is, never less than its text."""
        tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in self.ask.tools]
        return len(json.dumps([self.ask.messages, tools])) + 1000


@dataclass(frozen=True)
class Way:
    """What the attempts at one target share."""

    lane: Lane
    surface: Surface
    suite: Suite
    retry: Retry
    deadline_seconds: float
    redactor: Redactor
    purse: Purse | None
    pace: Pace
    halt: Halt
    interrupted: Halt


@dataclass
class Outcome:
    """What came of an attempt: the members of its row that are its own, and its tries for the evidence log.

    ``row`` is None where there is none: the attempt was given up, or ``blocked`` by the budget gate before it began.
    ``put_off``: the server wants to be left alone for so many seconds, longer than is waited for.
    """

    row: dict[str, Any] | None = None
    blame: Blame | None = None
    blocked: str | None = None
    spent: float | None = None
    put_off: float | None = None
    all_failed_500: bool = False
    tries: list[KeptAnswer] = field(default_factory=list)


async def attempt(way: Way, question: Question, k: int) -> Outcome:
    """Make one attempt. Raises only for faults of our own.

    An infrastructure error is tried again after a wait, the server's ``Retry-After`` before ours; the last one stands.
    """
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    done = Outcome()
    reading: Reading | None = None
    wait: float | None = 0.0
    while wait is not None:
        # The first call waits for its turn; so does every retry.
        upper = await _turn(way, question, wait)
        if isinstance(upper, Blocked):
            if upper is HALTED and (reading is None or way.interrupted.asked or way.pace.left_alone):
                return Outcome(spent=done.spent)  # given up: no row, a later run makes it
            done.blocked = upper.sentence or None
            break
        reading = await _once(way, question, upper, done)
        wait = _wait(way, done, reading.fault)
    return done if reading is None else _settled(way, question, k, done, reading, started)


async def _turn(way: Way, question: Question, wait: float) -> float | Blocked:
    """Wait for the next call's turn and its money; return what is held for it, or why it does not begin.

    Where a server asks for time while a call waits for either, the call takes another turn after that time.
    """
    if not await way.halt.wait(wait):
        return HALTED
    upper = 0.0 if way.purse is None else way.purse.estimate(question.ask, question.bytes())
    while await way.halt.wait(way.pace.due()):
        if way.pace.held():
            continue
        if way.purse is None:
            return upper
        if (blocked := await way.purse.hold(upper, way.halt)) is not None:
            return blocked
        if not way.pace.held():
            return upper
        way.purse.give_back(upper)
    return HALTED


async def _once(way: Way, question: Question, upper: float, done: Outcome) -> Reading:
    """One try: asked, redacted, kept, read, and paid whatever comes."""
    reading, answered = None, True
    try:
        said = await way.lane.ask(question.ask, way.deadline_seconds)
        answered = said.broke not in _UNSENT if said.status is None else said.status < _FAILED
        kept, reading = keep(said, way.redactor, way.surface)
        done.tries.append(kept)
    finally:
        if way.purse is not None:
            done.spent = (done.spent or 0.0) + way.purse.settle(upper, reading, answered=answered)
    return reading


def _wait(way: Way, done: Outcome, fault: Fault | None) -> float | None:
    """Seconds until the next try; None where there is none: it is no infrastructure error, or patience is at its end.

    An answer that was withheld is not asked for again: a server that says credentials says them the next time too.
    A server's ``Retry-After`` holds all calls of the target; one that is too long to be waited for ends the attempt,
    and the target's run with it.
    """
    if fault is None or fault.blame is not Blame.INFRA or fault.name == WITHHELD:
        return None
    told, tries = fault.retry_after, len(done.tries)
    if told is not None:
        way.pace.hold(told)
        done.put_off = told if told > LONGEST_WAIT else None
    if tries >= way.retry.tries or done.put_off is not None:
        return None
    own = way.retry.first_seconds * way.retry.factor ** (tries - 1)
    return told if told is not None else float(min(way.retry.most_seconds, own))


def _settled(way: Way, question: Question, k: int, done: Outcome, reading: Reading, started: str) -> Outcome:
    case, suite = question.case, way.suite
    found = verdict(case, suite.tools(case), reading, grading=suite.grading, sent=question.sent)
    last = done.tries[-1]
    done.blame = None if reading.fault is None else reading.fault.blame
    done.all_failed_500 = all(one.status == _SERVER_FAILED for one in done.tries)
    done.row = {
        "started_at": started,
        "case_id": case.id,
        "category": case.category,
        "arm": case.arm,
        "language": case.language,
        "k_idx": k,
        "http_status": last.status if way.surface.shape != "cli-envelope" else None,
        "tries": len(done.tries),
        "latency_ms": last.latency_ms,
        "spent_usd": done.spent,
        **found,
    }
    return done
