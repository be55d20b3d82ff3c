"""``referee bakeoff run``: ask the models what has no row yet, and keep every answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.progress import Spoken
from referee.cli.terminal import columns, lay, out, plain
from referee.cli.wiring import Stores, check_host_disk, make_lane, make_workspace, open_bakeoff, open_stores
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_INTERRUPTED, EXIT_PASS
from referee.publish import words

if TYPE_CHECKING:
    from referee.runner.bakeoff.run import Interrupts, RunReport
    from referee.runner.bakeoff.target_run import Counts

SCHEMA = "referee.bakeoff-run/1"

_PLAIN_SECONDS = 15.0
_MINUTE = 60


def run(
    name: Annotated[str, typer.Argument(help="The protocol's name: its directory in protocols/.")],
    target: Annotated[
        list[str] | None, typer.Option(help="Only this target of the protocol; give it once for each.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="At most so many calls of a target at once; tightens, never loosens.")
    ] = None,
    per_minute: Annotated[
        float | None, typer.Option(min=0.001, help="At most so many calls of a target a minute; tightens.")
    ] = None,
    credit_floor: Annotated[
        float | None, typer.Option(help="Block metered calls below so many US dollars; 3.00 at least holds always.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Run what the frozen protocol NAME lacks: only missing (target, case, k), nothing again because of its result.

    Ctrl-C lets calls under way finish and closes the shards; once more gives them up at once. Nothing recorded is
    lost: run again to go on. Exit 0: every target has all its rows; 4: a target stopped before its end, or a check
    before the first call failed; 130: interrupted.
    """
    stores = open_stores(workspace)
    with Watch(Console(stderr=True), quiet=quiet) as watch:
        report = run_protocol(
            stores,
            name,
            targets=target or [],
            concurrency=concurrency,
            per_minute=per_minute,
            credit_floor=credit_floor,
            watch=watch,
        )
    document = {"schema": SCHEMA, **asdict(report)}
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201 — the document is the output
    else:
        _print(document, watch.labels)
    raise typer.Exit(exit_code(document))


def run_protocol(
    stores: Stores,
    name: str,
    *,
    targets: Sequence[str] = (),
    concurrency: int | None = None,
    per_minute: float | None = None,
    credit_floor: float | None = None,
    watch: Watch | None = None,
) -> RunReport:
    """Run a protocol of the workspace; the credentials are read from the environment by the targets' names for them.

    Raises:
        RefereeError: whatever stands against a start, in one sentence, before any call.
    """
    from referee.cli.bakeoff import load  # noqa: PLC0415 — for this command alone
    from referee.publish.bakeoff.who import label_of  # noqa: PLC0415
    from referee.runner.bakeoff.run import Desk, Interrupts, Tightened, run_bakeoff  # noqa: PLC0415

    loaded = load(stores, name)
    if watch is not None:
        watch.labels = {one.name: label_of(one) for one in loaded.targets.values()}
    make_workspace(stores)
    check_host_disk(stores.workspace)
    spool, bundle = stores.workspace.spool, stores.workspace.ca_bundle()
    desk = Desk(
        log=open_bakeoff(stores),
        evidence=stores.evidence,
        records=stores.workspace.records,
        answers=stores.workspace.answers,
        make_lane=lambda target: make_lane(target, spool=spool, environ=os.environ, ca_bundle=bundle),
        targets=stores.workspace.targets,
    )
    tightened = Tightened(concurrency, per_minute, credit_floor)

    async def main() -> RunReport:
        interrupts = Interrupts()
        with _heard(interrupts, watch):
            return await run_bakeoff(
                loaded,
                desk,
                names=targets,
                tightened=tightened,
                interrupts=interrupts,
                tick=watch.tick if watch is not None else lambda _: None,
                warn=watch.warn if watch is not None else lambda _: None,
            )

    return asyncio.run(main())


def exit_code(document: dict[str, Any]) -> int:
    """130 when a person stopped it, 4 when a target stopped before its end."""
    if document["interrupted"]:
        return EXIT_INTERRUPTED
    complete = all(one["ended"] == "complete" for one in document["targets"])
    return EXIT_PASS if complete else EXIT_COULD_NOT_VERIFY


@contextmanager
def _heard(interrupts: Interrupts, watch: Watch | None) -> Iterator[None]:
    """Ctrl-C, a polite kill and a terminal that is closed reach the loop instead of breaking it."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if watch is not None:
            again = interrupts.halt.asked
            watch.say("giving up calls under way" if again else "stopping: calls under way may finish; again gives up")
        interrupts.interrupt()

    asked = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    heeded = [one for one in asked if signal.getsignal(one) is not signal.SIG_IGN]  # nohup wants hang-ups ignored
    for one in heeded:
        loop.add_signal_handler(one, heard)
    try:
        yield
    finally:
        for one in heeded:
            loop.remove_signal_handler(one)


class Watch(Spoken):
    """Progress on stderr: rate, time left, spend and share of infrastructure errors for each target."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        super().__init__(console, quiet=quiet)
        self._began: dict[str, float] = {}
        self._ended: set[str] = set()
        self.labels: dict[str, str] = {}  # each target with its lane, once the protocol is read

    def tick(self, targets: Sequence[Counts]) -> None:
        """What is done so far; shown live on a terminal, as a line now and then elsewhere."""
        now = time.monotonic()
        lines = []
        for one in targets:
            began = self._began.setdefault(one.target, now)
            line = progress_line(one, now - began)
            if one.ended is None:
                lines.append(line)
            elif one.target not in self._ended and one.durable >= one.rows:
                self._ended.add(one.target)
                self.say(line)
        if self._status is not None:
            self._status.update("\n".join(words.visible(line).replace("[", "(") for line in lines))
        elif lines and now - self._shown >= _PLAIN_SECONDS:
            self._shown = now
            for line in lines:
                self.say(line)


def progress_line(one: Counts, seconds: float) -> str:
    """One target in a line: durable rows of those missing, rate, time left, spend, share of infrastructure errors."""
    if not one.missing:
        return f"{one.target}: nothing missing"
    rate = one.durable / seconds if seconds > 0 else 0.0
    parts = [f"{one.target}: {one.durable} of {one.missing}", f"{rate:.1f}/s" if rate else ""]
    if one.ended is None and rate:
        parts.append(f"{_duration((one.missing - one.durable) / rate)} left")
    if one.spent_usd:
        parts.append(f"{one.spent_usd:.4f} USD")
    if one.rows:
        parts.append(f"infrastructure errors {one.infra / one.rows:.0%}")
    if one.ended is not None and one.ended != "complete":
        parts.append(f"stopped ({one.ended}): {one.detail}")
    return ", ".join(part for part in parts if part)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _print(document: dict[str, Any], labels: Mapping[str, str]) -> None:
    console = out()
    if not document["targets"]:
        console.print(plain("interrupted before the first row"))
        return
    table = columns("target", "rows>", "passed>", "infrastructure>", "spent USD>", "ended", "shard")
    for one in document["targets"]:
        spent = f"{one['spent_usd']:.4f}" if one["spent_usd"] else ""
        ended = (one["ended"] or "") if one["missing"] else "nothing was missing"
        table.add_row(
            *(plain(labels.get(one["target"], one["target"])), str(one["rows"]), str(one["passed"]), str(one["infra"])),
            *(spent, ended, one["shard"]),
        )
    lay(console, table)
    for one in document["targets"]:
        if one["detail"]:
            console.print(plain(f"{labels.get(one['target'], one['target'])}: {one['detail']}"), soft_wrap=True)
    for sentence in document["warnings"]:
        console.print(plain(sentence), soft_wrap=True)
    console.print(plain(f"run {document['run']} under {document['protocol_digest']}"), soft_wrap=True)
