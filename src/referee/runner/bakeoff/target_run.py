"""One target of a run: its workers, its guards, its shard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from referee.adapters.store.answers import Asked, frame
from referee.adapters.store.shards import Commits, Shard
from referee.benchmarks.bakeoff.asking import ask_of
from referee.core.bakeoff import Blame, Sampling, ShardClosed, ShardOpened
from referee.core.provenance import said_apart
from referee.errors import RefereeError
from referee.runner.bakeoff.attempt import Outcome, Question, Way, attempt
from referee.runner.bakeoff.guards import Breaker
from referee.runner.bakeoff.plan import Slot
from referee.runner.bakeoff.verdict import SUSPECT

#: A worker waits while more rows than this are not durable yet: memory stays flat on a slow disk.
MOST_WAITING = 4096
#: Questions that are kept made: repeats of a case are put in the same words anyway.
_KEPT_QUESTIONS = 4096
#: The first calls of a target's workers are spread over so many seconds: a server is not struck by all of them at one
#: moment, and answers do not come in waves for which each call then waits.
_SPREAD_SECONDS = 0.025

Ended = Literal["complete", "breaker", "account", "config", "budget", "interrupted", "internal"]


@dataclass
class Counts:
    """What a target has done so far in this run. ``durable`` rows are what may be announced."""

    target: str
    missing: int
    rows: int = 0
    passed: int = 0
    infra: int = 0
    spent_usd: float = 0.0
    ended: Ended | None = None
    detail: str = ""
    shard: str = ""
    durable: int = 0


@dataclass
class TargetRun:
    """Runs what one target lacks.

    ``served`` are the models that its rows so far name; ``warn`` is told when an answer names another.
    """

    way: Way
    sampling: Sampling
    missing: tuple[Slot, ...]
    concurrency: int
    breaker: Breaker
    opened: ShardOpened
    provenance: str
    commits: Commits
    shard: Shard
    counts: Counts
    served: tuple[str, ...] = ()
    warn: Callable[[str], None] = lambda _: None
    failure: BaseException | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _questions: dict[str, Question] = field(default_factory=dict)
    _failed_500: set[str] = field(default_factory=set)
    _answered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """What all rows have in common is written down once."""
        opened = self.opened
        self._constant: dict[str, Any] = {
            "kind": "row",
            "run": opened.run,
            "target": opened.target.name,
            "target_digest": opened.target_digest,
            "lane": opened.target.lane,
            "surface_digest": opened.surface_digest,
            "sovereignty": opened.target.sovereignty,
            "protocol_digest": opened.protocol_digest,
            "suite_digest": opened.suite_digest,
            "subset": opened.subset,
            "expected": len(opened.identities),
            "identities_digest": opened.identities_digest,
            "provenance": self.provenance,
            "harness_version": opened.harness_version,
        }

    async def work(self) -> None:
        """Run every missing slot, or until something stops the target. Never raises but when cancelled."""
        slots = iter(self.missing)
        workers = min(self.concurrency, len(self.missing))
        self._tasks = [
            asyncio.create_task(self._worker(slots, _SPREAD_SECONDS * number / workers)) for number in range(workers)
        ]
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.counts.ended is None:
            self.counts.ended = "interrupted" if self.way.halt.asked else "complete"
            self.counts.detail = self.way.halt.why

    def abandon(self) -> None:
        """Give up the calls that are under way: they leave no row, a later run makes them."""
        for task in self._tasks:
            task.cancel()

    def close(self) -> None:
        """Write the shard's last line. Raises ``CouldNotVerify``."""
        counts = self.counts
        self.commits.close_shard(
            self.shard,
            ShardClosed(
                run=self.opened.run,
                at=datetime.now(UTC).isoformat(timespec="microseconds"),
                rows=counts.rows,
                ended=counts.ended or "internal",
                detail=counts.detail,
            ),
        )

    async def _worker(self, slots: Iterator[Slot], begins_after: float) -> None:
        try:
            await asyncio.sleep(begins_after)
            for case_id, k in slots:
                if self.way.halt.asked:
                    return
                outcome = await attempt(self.way, self._question(case_id), k)
                self._take(case_id, outcome)
                # The committing thread knows no event of this loop.
                while self.commits.backlog > MOST_WAITING and not self.way.halt.asked:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            raise
        except BaseException as exc:
            said = exc.message if isinstance(exc, RefereeError) else f"{type(exc).__name__}: {exc}"
            self._stop("internal", self.way.redactor.redact_text(said))
            self.failure = exc
            raise

    def _question(self, case_id: str) -> Question:
        found = self._questions.get(case_id)
        if found is None:
            suite = self.way.suite
            case = suite.by_id[case_id]
            prompt = suite.prompts[case.prompt] if case.prompt is not None else None
            ask, sent = ask_of(case, suite.tools(case), prompt, self.way.surface, self.sampling)
            if len(self._questions) >= _KEPT_QUESTIONS:
                self._questions.clear()
            found = self._questions[case_id] = Question(case, ask, sent)
        return found

    def _take(self, case_id: str, outcome: Outcome) -> None:
        """Hand a row over, and see what follows from it for the target."""
        counts = self.counts
        counts.spent_usd += outcome.spent or 0.0
        row = outcome.row
        if row is not None:
            if outcome.all_failed_500 and self._only_this_case(case_id, len(outcome.tries)):
                row["flags"].append(SUSPECT)
            row.update(self._constant)
            asked = Asked(
                run=row["run"],
                target=row["target"],
                case_id=row["case_id"],
                k_idx=row["k_idx"],
                started_at=row["started_at"],
                spent_usd=row["spent_usd"],
            )
            self.commits.put(self.shard, row, frame(asked, outcome.tries))
            counts.rows += 1
            counts.passed += row["passed"] is True
            self._look_who_answers(row["model_served"])
            self._guard(case_id, outcome)
        if outcome.blocked is not None:
            self._stop("budget", outcome.blocked)

    def _look_who_answers(self, model: str | None) -> None:
        """Rows of several served models are never ranked (bake-off §11): say so once, with the first that differs."""
        if model is None or model in self.served:
            return
        if len(self.served) == 1:
            apart = said_apart([*self.served, model])
            self.warn(f"{self.counts.target}: another model answers than before, so it will not be ranked: {apart}")
        self.served = (*self.served, model)

    def _guard(self, case_id: str, outcome: Outcome) -> None:
        blame = outcome.blame
        infrastructure = blame in {Blame.INFRA, Blame.ACCOUNT, Blame.CONFIG}
        self.counts.infra += infrastructure
        if not infrastructure and len(self._answered) < 2:  # noqa: PLR2004 — one other case is enough to know
            self._answered.add(case_id)
        reason = outcome.row["reason"] if outcome.row is not None else ""
        if blame is Blame.ACCOUNT:
            self._stop("account", reason)
        elif blame is Blame.CONFIG:
            self._stop("config", reason)
        elif self.breaker.count(infrastructure=infrastructure):
            self._stop("breaker", f"{self.breaker.consecutive} infrastructure errors in a row, the last: {reason}")
        elif outcome.put_off is not None:
            wants = f"the server wants to be left alone for {outcome.put_off:.6g} s, which is not waited for"
            self._stop("interrupted", f"{wants}; run again after that: {reason}")

    def _only_this_case(self, case_id: str, tries: int) -> bool:
        """Whether the server failed again on this case alone while it answered others: then its answer is suspect."""
        again = tries > 1 or case_id in self._failed_500
        self._failed_500.add(case_id)
        return again and self._failed_500 == {case_id} and bool(self._answered - {case_id})

    def _stop(self, ended: Ended, detail: str) -> None:
        if self.counts.ended is None:
            self.counts.ended = ended
            self.counts.detail = self.way.redactor.redact_text(detail)
        self.way.halt.ask(self.counts.detail)
