"""Records, gathered by run: what was planned, how it ended, what was noted later. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, Correction, Record, Replayed
from referee.errors import Finding


@dataclass(frozen=True)
class RunRecords:
    """All records of one run; ``end`` None: it has neither ended nor been found."""

    planned: AttemptPlanned
    end: AttemptEnded | AttemptFound | None
    corrections: tuple[Correction, ...] = ()
    replays: tuple[Replayed, ...] = ()


def gather(records: Iterable[Record]) -> dict[str, RunRecords]:
    """The runs in the order in which they were planned in the files. Of a run that was found twice, the first counts.

    Raises:
        Finding: a run is planned twice, ends twice, or ends without having been planned.
    """
    planned: dict[str, AttemptPlanned] = {}
    ends: dict[str, AttemptEnded | AttemptFound] = {}
    notes: dict[str, list[Correction]] = {}
    replays: dict[str, list[Replayed]] = {}
    for record in records:
        if isinstance(record, AttemptPlanned):
            if record.run in planned:
                raise Finding(f"the run {record.run} is planned twice in the records")
            planned[record.run] = record
        elif isinstance(record, Correction):
            notes.setdefault(record.run, []).append(record)
        elif isinstance(record, Replayed):
            replays.setdefault(record.run, []).append(record)
        else:
            first = ends.setdefault(record.run, record)
            found_again = isinstance(first, AttemptFound) and isinstance(record, AttemptFound)
            if first is not record and not found_again:
                raise Finding(f"the run {record.run} ends twice in the records")
    for run in (*ends, *notes, *replays):
        if run not in planned:
            raise Finding(f"the records speak of a run {run} that none of them planned")
    return {
        run: RunRecords(plan, ends.get(run), tuple(notes.get(run, ())), tuple(replays.get(run, ())))
        for run, plan in planned.items()
    }
