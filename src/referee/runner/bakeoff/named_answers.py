"""Which entries of the evidence logs rows name: each at most once, and what no row names is told."""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from referee.adapters.store.answers import AnswerReader
from referee.core.bakeoff import AnswerRef
from referee.errors import Finding
from referee.runner.bakeoff.announced import SeenShard

#: So many entries without a row are named one by one; the rest are counted.
NAMED = 5


class NamedAnswers:
    """The entries that rows name, 16 bytes a row: a shard's rows name entries in the order of the log."""

    def __init__(self) -> None:
        self._by_log: dict[str, dict[str, tuple[array[int], array[int]]]] = defaultdict(dict)

    def add(self, shard: str, ref: AnswerRef) -> None:
        """Note one row's entry.

        Raises:
            Finding: an earlier row of the shard names it already, or one behind it.
        """
        offsets, lengths = self._by_log[ref.log].setdefault(shard, (array("Q"), array("Q")))
        if offsets and ref.offset < offsets[-1] + lengths[-1]:
            raise Finding(f"names the answer at byte {ref.offset} of {ref.log}, as a row before it does")
        offsets.append(ref.offset)
        lengths.append(ref.length)

    def loose(self, reader: AnswerReader, logs: Mapping[str, str], seen: Mapping[str, SeenShard]) -> list[str]:
        """A sentence for each log with answers that no row names: its runner was killed before their rows were written.

        Args:
            reader: reads the logs.
            logs: the log of each announced shard, by the shard's name.
            seen: every shard that was read, by name.

        Raises:
            Finding: two shards name one entry; or an answer has no row though all shards of its run were closed, and
                no interruption can have cost it its row.
        """
        shards: dict[str, list[str]] = defaultdict(list)
        for shard, log in logs.items():
            shards[log].append(shard)
        said = []
        for log in reader.logs():
            if reader.growing(log):
                continue
            entries = list(reader.unnamed(log, self._of(log)))
            if not entries:
                continue
            some = ", ".join(
                f"{length} bytes at {offset}"
                if asked is None
                else f"{asked.target}, {asked.case_id}, k = {asked.k_idx} at {offset}"
                for offset, length, asked in entries[:NAMED]
            )
            more = f" and {len(entries) - NAMED} more" if len(entries) > NAMED else ""
            sentence = f"{log}: no row names {len(entries)} of its answers: {some}{more}"
            if shards[log] and all(seen[shard].closed for shard in shards[log] if shard in seen):
                raise Finding(f"{sentence}, and all shards of its run were closed, so each had its row")
            said.append(f"{sentence}; its run was cut off before their rows were written, or the rows are gone")
        return said

    def _of(self, log: str) -> Iterator[tuple[int, int]]:
        parts: Iterable[tuple[array[int], array[int]]] = self._by_log.get(log, {}).values()
        return heapq.merge(*(zip(offsets, lengths, strict=True) for offsets, lengths in parts))
