"""Shards: the rows of one target in one run, one file a writer, chained, durable before they are announced.

``records/results-<token>.jsonl`` is created exclusively and locked as long as its writer lives. Rows are committed in
groups by one thread: the answers first, with one sync, then the rows that point into them, with one sync a shard. So
a row never names an answer that is not there, whatever moment the process is killed at.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from referee.adapters.store.answers import AnswerLog
from referee.adapters.store.exclusive import create_exclusively, write_whole
from referee.core.bakeoff import ShardClosed, ShardOpened
from referee.core.canonical import canonical_bytes
from referee.core.chain import forge, genesis
from referee.core.redaction import Redactor
from referee.errors import CouldNotVerify

#: Longest time that a row waits for others before its group is written, seconds.
GATHER_SECONDS = 0.02
_FULL_DISK = "see that the disk of the workspace has room and can be written, then run again: it fills the gaps"

#: What of a line may quote an answer. All else is of the frozen plan, and a name that is like a credential is none.
_MAY_QUOTE = ("reason", "model_served", "detail", "environment")


class Shard:
    """One shard that is being written; made by ``Commits.open_shard``."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor = descriptor
        self.name = name
        self.seq = 0
        self.prev = genesis(name)
        self.durable = 0  # rows


@dataclass(slots=True)
class _Waiting:
    shard: Shard
    body: dict[str, Any]
    answer: bytes | None


class Commits:
    """Commits the rows of all shards of one run, in groups, on a thread of its own.

    Args:
        records: the directory of shards.
        answers: the directory of evidence logs.
        redactor: the last look at every line before it is written.
        on_error: called on the committing thread when the disk refused; nothing is written after that.
    """

    def __init__(self, records: Path, answers: Path, redactor: Redactor, on_error: Callable[[], None]) -> None:
        self._records = records
        self._redactor = redactor
        self._on_error = on_error
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._writing = 0
        self._refused: CouldNotVerify | None = None
        self._ending = False
        self._flushing = False
        self._shards: list[Shard] = []
        try:
            self._log = AnswerLog(answers)
        except OSError as exc:
            raise _refusal(exc) from exc
        self._thread = threading.Thread(target=self._work, name="commits", daemon=True)
        self._thread.start()

    @property
    def answers(self) -> str:
        """The name of this run's evidence log."""
        return self._log.name

    @property
    def backlog(self) -> int:
        """Rows that are not durable yet."""
        return len(self._waiting) + self._writing

    @property
    def refused(self) -> CouldNotVerify | None:
        """Why nothing is written any more; None while all is well."""
        return self._refused

    def open_shard(self, opened: ShardOpened) -> Shard:
        """Create a shard, with its first line durable.

        Raises:
            CouldNotVerify: the disk refused.
        """
        try:
            descriptor, name = create_exclusively(self._records, "results", ".jsonl")
            shard = Shard(descriptor, name)
            self._shards.append(shard)
            self._append(shard, [opened.model_dump(mode="json")])
        except OSError as exc:
            raise _refusal(exc) from exc
        return shard

    def put(self, shard: Shard, row: dict[str, Any], answer: bytes | None) -> None:
        """Hand over a row without its ``answer`` member, and its entry for the evidence log; returns at once."""
        with self._changed:
            self._waiting.append(_Waiting(shard, row, answer))
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until every row that was handed over is durable.

        Raises:
            CouldNotVerify: the disk refused.
        """
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._refused is not None or not self.backlog)
            self._flushing = False
            if self._refused is not None:
                raise self._refused

    def close_shard(self, shard: Shard, closed: ShardClosed) -> None:
        """Write a shard's last line; flush first. Raises ``CouldNotVerify``."""
        self.flush()
        try:
            self._append(shard, [closed.model_dump(mode="json")])
        except OSError as exc:
            raise _refusal(exc) from exc

    def close(self) -> None:
        """End the thread after what waits is written; let go of all files."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        for shard in self._shards:
            os.close(shard.descriptor)
        self._shards.clear()
        self._log.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                self._changed.wait_for(lambda: self._ending or self._flushing, timeout=GATHER_SECONDS)
                group, self._waiting = self._waiting, []
                self._writing = len(group)
            try:
                self._commit(group)
            except Exception as exc:  # noqa: BLE001 — whatever it was: nothing may follow a line that may be torn
                with self._changed:
                    self._refused = _refusal(exc)
                    self._changed.notify_all()
                self._on_error()
                return
            with self._changed:
                self._writing = 0
                self._changed.notify_all()

    def _commit(self, group: list[_Waiting]) -> None:
        by_shard: dict[str, tuple[Shard, list[dict[str, Any]]]] = {}
        for one in group:
            one.body["answer"] = None if one.answer is None else self._log.add(one.answer)
            by_shard.setdefault(one.shard.name, (one.shard, []))[1].append(one.body)
        self._log.sync()
        for shard, bodies in by_shard.values():
            self._append(shard, bodies)
            shard.durable += len(bodies)

    def _append(self, shard: Shard, bodies: list[dict[str, Any]]) -> None:
        first = shard.seq, shard.prev
        lines, last = self._forged(bodies, first)
        # All that may quote is looked into in one go; only where a credential stands in it, each is.
        if self._redactor.holds_any(list(_quotes(bodies))):
            lines, last = self._forged([self._without_credentials(body) for body in bodies], first)
        write_whole(shard.descriptor, b"".join(lines))
        os.fdatasync(shard.descriptor)
        shard.seq, shard.prev = last

    def _forged(self, bodies: list[dict[str, Any]], first: tuple[int, str]) -> tuple[list[bytes], tuple[int, str]]:
        """The lines of these bodies, and number and digest with which the chain goes on."""
        seq, prev = first
        lines = []
        for body in bodies:
            line, prev = forge(body, seq=seq, prev=prev)
            lines.append(line)
            seq += 1
        return lines, (seq, prev)

    def _without_credentials(self, body: dict[str, Any]) -> dict[str, Any]:
        said = {name: body[name] for name in _MAY_QUOTE if name in body}
        return {**body, **self._redactor.redact_value(said)}


def _quotes(bodies: list[dict[str, Any]]) -> Iterator[bytes]:
    """What of these lines may quote an answer, as bytes."""
    for body in bodies:
        for name in _MAY_QUOTE:
            said = body.get(name)
            if isinstance(said, str):
                yield said.encode("utf-8", "surrogatepass")
            elif said is not None:
                yield canonical_bytes(said)


def _refusal(exc: Exception) -> CouldNotVerify:
    why = exc.strerror if isinstance(exc, OSError) else f"{type(exc).__name__}: {exc}"
    return CouldNotVerify(f"a row could not be written: {why}", todo=_FULL_DISK)
