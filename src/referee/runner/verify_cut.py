"""Ends that may have been cut off a record file: no chain shows it, the evidence that the run sealed tells of it.

An attempt writes ``facts.json``, seals its files with a manifest, and only then appends the record of its end. Whether
its harness died in between or that last line was cut off later looks the same: it is told, and is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable

from referee.core.records import AttemptFound
from referee.scoring.gather import RunRecords

_EITHER = "it died between the two, or the record of the end was cut off; an older copy of the records would show it"


def ends_cut_off(found: Iterable[RunRecords], manifests: Iterable[tuple[str, str]]) -> list[str]:
    """One sentence for each run that sealed its evidence and has no record of an end of its own.

    Args:
        found: what the records say of the runs that are looked at.
        manifests: digest and run of every manifest in the store; not asked for where every run has its own end.
    """
    without = {one.planned.run: one.end for one in found if one.end is None or isinstance(one.end, AttemptFound)}
    if not without:
        return []
    sealed: dict[str, str] = {}
    for digest, run in manifests:
        end = without.get(run)
        if run in without and (end is None or digest != end.evidence_digest):
            sealed[run] = f"its evidence was sealed with the manifest {digest}"
    for run, end in without.items():
        if end is not None and any(ref.name == "facts.json" for ref in end.evidence):
            sealed.setdefault(run, "its evidence has the facts of its end (facts.json)")
    return [f"run {run}: {what}, but {_recorded(without[run])}" for run, what in sorted(sealed.items())]


def _recorded(end: object) -> str:
    if end is None:
        return f"no record tells of an end: its harness is about to write it, {_EITHER}"
    return f"its record says that the harness died before: {_EITHER}"
