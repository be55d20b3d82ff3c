"""OPEN THIS FIRST: one run of a bake-off, end to end.

Frozen protocol -> exact list of what each target owes, less what has a row already -> start-up checks that fail
closed -> one shard a target -> calls, bounded, paced, guarded, retried -> every answer redacted, read, judged and
appended, with its raw redacted form in the evidence log -> shards closed. All targets run on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import platform
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import referee
from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shards import Commits, Shard
from referee.core.bakeoff import ShardOpened, Surface, Target
from referee.core.records import ShardAnnounced, ShardHead, ShardSealed
from referee.core.redaction import Redactor
from referee.errors import InternalError
from referee.protocols import Lane, LaneFacts
from referee.runner.bakeoff.attempt import Way
from referee.runner.bakeoff.beforehand import before_the_first_call, of_another_source
from referee.runner.bakeoff.budget import Purse
from referee.runner.bakeoff.freeze import require_frozen
from referee.runner.bakeoff.guards import Breaker, Halt, Pace
from referee.runner.bakeoff.keeping import without_credentials, without_secrets
from referee.runner.bakeoff.ledger import purses
from referee.runner.bakeoff.market import keep_market
from referee.runner.bakeoff.plan import (
    TargetPlan,
    alone_at,
    choose,
    earlier_shards,
    identities_digest,
    plan_target,
    shard_source,
    suite_digest,
    surface_digest,
    target_digest,
)
from referee.runner.bakeoff.target_run import Counts, TargetRun

#: So long calls under way may take to finish after an interrupt; then they are given up, seconds.
GRACE_SECONDS = 10.0
_TICK_SECONDS = 0.25
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True)
class Desk:
    """What a run works with. ``targets`` are the workspace's files of them: others may spend from the same account."""

    log: RecordFiles
    evidence: LocalEvidence
    records: Path
    answers: Path
    make_lane: Callable[[Target], Lane]
    targets: Path | None = None


@dataclass(frozen=True)
class Tightened:
    """What the caller tightens: a looser value than the protocol's has no effect."""

    concurrency: int | None = None
    per_minute: float | None = None
    credit_floor_usd: float | None = None


@dataclass
class RunReport:
    """What a run did. ``nothing_missing``: every target had all its rows before."""

    run: str
    protocol: str
    protocol_digest: str
    targets: list[Counts] = field(default_factory=list)
    interrupted: bool = False
    warnings: list[str] = field(default_factory=list)


Tick = Callable[[Sequence[Counts]], None]


async def run_bakeoff(
    loaded: LoadedProtocol,
    desk: Desk,
    *,
    names: Sequence[str] = (),
    tightened: Tightened | None = None,
    interrupts: Interrupts | None = None,
    tick: Tick = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> RunReport:
    """Run what the protocol's targets lack.

    Args:
        loaded: the protocol, with its suite, subsets and targets.
        desk: stores and lanes.
        names: only these targets; empty means all.
        tightened: guards that the caller tightens.
        interrupts: how a person stops the run.
        tick: called a few times a second with what is done so far.
        warn: called with a sentence before rows are written that will not rank, or were made before; the report has
            these sentences too.

    Raises:
        Finding: the protocol is not frozen, or a line of it changed since.
        NothingMatched: a named target is none of the protocol.
        UsageError: a credential is missing, or a metered target has no price or credit.
        CouldNotVerify: an endpoint does not have what its target pins; or the disk refused rows: what was written
            before is kept.
    """
    tightened = tightened or Tightened()
    interrupts = interrupts or Interrupts()
    # The linter looked at these very bytes when they were frozen: a plan with objections cannot be frozen.
    frozen = require_frozen(desk.log, desk.evidence, loaded)
    planned = choose(loaded.protocol, names)
    report = RunReport(
        f"b-{''.join(secrets.choice(_ALPHABET) for _ in range(12))}", loaded.protocol.name, frozen.digest
    )
    lanes: dict[str, Lane] = {}
    locks = contextlib.ExitStack()
    try:
        for one in planned:
            locks.enter_context(alone_at(desk.records, frozen.digest, one.target))
            lanes[one.target] = desk.make_lane(loaded.targets[one.target])
        redactor = Redactor({name: value for lane in lanes.values() for name, value in lane.secrets.items()})
        earlier = earlier_shards(desk.records)
        plans = [plan_target(loaded, one, protocol_digest=frozen.digest, earlier=earlier) for one in planned]
        for plan in plans:
            if not plan.missing:
                report.targets.append(Counts(plan.target.name, 0, ended="complete"))
        block = _Block(loaded, desk, report, redactor, tightened, interrupts, warn)
        log = desk.log.read_bakeoff()
        for plan in plans:
            for said in before_the_first_call(plan, log, protocol_digest=frozen.digest, records=desk.records):
                block.say(said)
        with without_secrets(redactor):
            await block.run([plan for plan in plans if plan.missing], lanes, tick)
    finally:
        locks.close()
        await asyncio.gather(*(lane.close() for lane in lanes.values()), return_exceptions=True)
    return report


class Interrupts:
    """A person's wish to stop: the first lets calls under way finish, the second gives them up at once."""

    def __init__(self) -> None:
        self.halt = Halt()
        self.again = Halt()

    def interrupt(self) -> None:
        """Ctrl-C, a polite kill, or a closed terminal."""
        if self.halt.asked:
            self.again.ask("interrupted twice")
        self.halt.ask("interrupted")


@dataclass
class _Block:
    """One block of runs: targets that run side by side, from checks to closed shards."""

    loaded: LoadedProtocol
    desk: Desk
    report: RunReport
    redactor: Redactor
    tightened: Tightened
    interrupts: Interrupts
    warn: Callable[[str], None]

    async def run(self, plans: Sequence[TargetPlan], lanes: Mapping[str, Lane], tick: Tick) -> None:
        if not plans:
            return
        targets = [plan.target for plan in plans]
        floor = max(self.loaded.protocol.guards.credit_floor_usd, self.tightened.credit_floor_usd or 0.0)
        desk = self.desk
        with purses(
            targets, lanes, records=desk.records, run=self.report.run, floor=floor, files=desk.targets
        ) as found:
            await self._run(plans, lanes, found, tick)

    async def _run(
        self, plans: Sequence[TargetPlan], lanes: Mapping[str, Lane], purses: Mapping[str, Purse], tick: Tick
    ) -> None:
        facts = await self._unless_interrupted(self._look(plans, lanes))
        if facts is None:
            self.report.interrupted = True
            return
        loop = asyncio.get_running_loop()
        disk = self.interrupts.halt.part()

        def refused() -> None:  # on the committing thread
            loop.call_soon_threadsafe(disk.ask, "the disk refused a row")

        commits = Commits(self.desk.records, self.desk.answers, self.redactor, refused)
        runs: list[TargetRun] = []
        try:
            for plan, found in zip(plans, facts, strict=True):
                lane = lanes[plan.target.name]
                runs.append(self._target(plan, lane, found, purses.get(plan.target.name), disk.part(), commits))
            self.report.targets += [one.counts for one in runs]
            with _settled_memory():
                await self._work(runs, disk, tick)
            for one in runs:
                one.close()
                self._seal(one)
            _durable(runs)
            tick(self.report.targets)
        finally:
            commits.close()
        self.report.interrupted = self.interrupts.halt.asked
        for one in runs:
            if one.failure is not None and not isinstance(one.failure, asyncio.CancelledError):
                raise InternalError(f"the run of {one.counts.target} failed: {one.counts.detail}") from None

    async def _look(self, plans: Sequence[TargetPlan], lanes: Mapping[str, Lane]) -> list[LaneFacts]:
        """Every target's start-up check, then what the market says of each."""
        facts = await _all_or_none([lanes[plan.target.name].check(self.loaded.protocol.retry) for plan in plans])
        for plan in plans:
            await keep_market(
                plan.target,
                lanes[plan.target.name],
                run=self.report.run,
                protocol=self.loaded.protocol.name,
                log=self.desk.log,
                evidence=self.desk.evidence,
                redactor=self.redactor,
            )
        return facts

    async def _unless_interrupted(self, looking: Coroutine[Any, Any, list[LaneFacts]]) -> list[LaneFacts] | None:
        """What comes of it; None as soon as a person stops the run."""
        task = asyncio.create_task(looking)
        stopped = asyncio.create_task(self.interrupts.halt.set())
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    async def _work(self, runs: Sequence[TargetRun], disk: Halt, tick: Tick) -> None:
        """All targets side by side, until they are done, or are halted and their grace is over."""
        working = asyncio.gather(*(asyncio.create_task(one.work()) for one in runs))
        grace: float | None = None
        loop = asyncio.get_running_loop()
        while True:
            done, _ = await asyncio.wait([working], timeout=_TICK_SECONDS)
            _durable(runs)
            tick(self.report.targets)
            if done:
                break
            if disk.asked and grace is None:
                grace = loop.time() + (GRACE_SECONDS if self.interrupts.halt.asked else 0.0)
            if self.interrupts.again.asked or (grace is not None and loop.time() >= grace):
                for one in runs:
                    one.abandon()
        working.result()

    def _target(
        self, plan: TargetPlan, lane: Lane, facts: LaneFacts, purse: Purse | None, halt: Halt, commits: Commits
    ) -> TargetRun:
        target, protocol = plan.target, self.loaded.protocol
        facts = without_credentials(facts, self.redactor)
        guards = protocol.guards
        deadline = guards.cli_deadline_seconds if target.lane == "cli" else guards.deadline_seconds
        deadline = min(deadline, target.deadline_seconds or deadline)
        asked = (guards.concurrency, target.concurrency, self.tightened.concurrency)
        concurrency = min(one for one in asked if one is not None)
        rates = [one for one in (target.per_minute, self.tightened.per_minute) if one is not None]
        way = Way(
            lane=lane,
            surface=lane.surface,
            suite=self.loaded.suite,
            retry=protocol.retry,
            deadline_seconds=deadline,
            redactor=self.redactor,
            purse=purse,
            pace=Pace(min(rates, default=None)),
            halt=halt,
            interrupted=self.interrupts.halt,
        )
        seen = [
            self.desk.evidence.keep(f"check-{target.name}-{name}", data) for name, data in sorted(facts.said.items())
        ]
        environment: dict[str, Any] = {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "deadline_seconds": deadline,
            "concurrency": concurrency,
            "per_minute": min(rates, default=None),
            "tries": protocol.retry.tries,
            "model": facts.model,
            "verified": facts.verified,
            "pins": facts.pins,
            "checked": [ref.model_dump() for ref in seen],
        }
        opened = self._opened(plan, lane.surface, environment)
        if mixed := of_another_source(plan, shard_source(opened)):
            self.say(mixed)
        shard = commits.open_shard(opened)
        self._announce(plan, shard, commits)
        counts = Counts(target.name, len(plan.missing), shard=shard.name)
        return TargetRun(
            way=way,
            sampling=protocol.sampling,
            missing=plan.missing,
            concurrency=concurrency,
            breaker=Breaker(guards.breaker),
            opened=opened,
            provenance=shard_source(opened),
            commits=commits,
            shard=shard,
            counts=counts,
            served=plan.served,
            warn=self.say,
        )

    def say(self, sentence: str) -> None:
        """Warn of something at once, and in the report."""
        self.report.warnings.append(sentence)
        self.warn(sentence)

    def _announce(self, plan: TargetPlan, shard: Shard, commits: Commits) -> None:
        """Say in the log that the shard is there, before its first row: it cannot be taken away unseen."""
        self.desk.log.append(
            ShardAnnounced(
                run=self.report.run,
                protocol=self.loaded.protocol.name,
                protocol_digest=self.report.protocol_digest,
                target=plan.target.name,
                at=_now(),
                shard=shard.name,
                answers=commits.answers,
                after=plan.after,
            )
        )

    def _seal(self, run: TargetRun) -> None:
        """Say in the log how far the closed shard reaches."""
        self.desk.log.append(
            ShardSealed(
                run=self.report.run,
                protocol=self.loaded.protocol.name,
                target=run.counts.target,
                at=_now(),
                end=ShardHead(shard=run.shard.name, rows=run.counts.rows, head=run.shard.prev),
            )
        )

    def _opened(self, plan: TargetPlan, surface: Surface, environment: dict[str, Any]) -> ShardOpened:
        return ShardOpened(
            run=self.report.run,
            at=_now(),
            protocol=self.loaded.protocol.name,
            protocol_digest=self.report.protocol_digest,
            suite=self.loaded.suite.name,
            suite_digest=suite_digest(self.loaded),
            grading=self.loaded.suite.grading,
            target=plan.target,
            target_digest=target_digest(plan.target),
            surface=surface,
            surface_digest=surface_digest(surface),
            subset=plan.subset,
            identities=plan.owed,
            identities_digest=identities_digest(plan.owed),
            harness_version=referee.__version__,
            environment=environment,
        )


async def _all_or_none(checks: Sequence[Awaitable[LaneFacts]]) -> list[LaneFacts]:
    """All checks; the first that fails, in the protocol's order, aborts the run before its first call."""
    found = await asyncio.gather(*checks, return_exceptions=True)
    facts = []
    for one in found:
        if isinstance(one, BaseException):
            raise one
        facts.append(one)
    return facts


@contextlib.contextmanager
def _settled_memory() -> Iterator[None]:
    """What was loaded stays for the whole run: the collector need not look at every case again and again."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _durable(runs: Sequence[TargetRun]) -> None:
    for one in runs:
        one.counts.durable = one.shard.durable


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
