"""Golden vectors against this installation: each case that differs is named. Pure.

A vector file is a JSON object that names its ``kind`` and holds lists of cases by member:

``bringup``
    ``score`` (report, timed_out, expect), ``rejected_reports``, ``spread`` (runs, spread, unstable), ``board``
    (results, board_score), ``verdict`` (attempts, verdict).
``bakeoff-grading``
    ``cases`` (case, calls, passed): the first generation of the grader.
``grading2``
    ``cases`` of the kind ``grade`` (schema, gold, output, policy, verdict) and ``parse`` (raw, lane, verdict): the
    second generation, and the reader of answers.
``bakeoff-statistics``
    ``wilson``, ``mulberry32``, ``cluster_bootstrap``, ``pass_hat_k``, ``power``.

What a kind needs is imported when a file of that kind is run: numpy only for statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from referee.errors import CouldNotVerify, UsageError
from referee.scoring.conformance_shapes import Conformance, Difference, Runner, ShapeError, same

__all__ = ["Conformance", "Difference", "conform", "same"]

#: The module that runs the vectors of a kind; it holds ``MEMBERS``.
_MODULES = {
    "bringup": "referee.scoring.conformance_bringup",
    "bakeoff-grading": "referee.scoring.conformance_grading",
    "grading2": "referee.scoring.conformance_grading2",
    "bakeoff-statistics": "referee.scoring.conformance_statistics",
}

#: Kinds of vectors that exist but that this installation does not implement.
NOT_IMPLEMENTED = ("hardware", "redaction")


def conform(document: Any) -> Conformance:
    """Run the cases of one vector document.

    Raises:
        UsageError: it is no vector document of a known kind and shape; the message names the first breach.
        CouldNotVerify: its kind is known but not implemented here.
    """
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise UsageError("a vector file is a JSON object that names its kind")
    kind = document["kind"]
    if kind in NOT_IMPLEMENTED:
        raise CouldNotVerify(f"vectors of the kind {kind} are not implemented in this installation")
    if kind not in _MODULES:
        raise UsageError(f"no vectors of the kind {kind!r} are known")
    runners: Mapping[str, Runner] = import_module(_MODULES[kind]).MEMBERS
    cases: dict[str, int] = {}
    differences: list[Difference] = []
    for member, value in document.items():
        if member not in runners:
            if isinstance(value, list):
                raise UsageError(f"vectors of the kind {kind} have no member {member!r}")
            continue
        if not isinstance(value, list):
            raise UsageError(f"the member {member} is no list of cases")
        cases[member] = len(value)
        for index, case in enumerate(value):
            differences += _case(runners[member], member, index, case)
    if not cases:
        raise UsageError("the vector file holds no member with cases")
    return Conformance(kind, cases, tuple(differences))


def _case(run: Runner, member: str, index: int, case: Any) -> list[Difference]:
    try:
        checks = run(case)
    except ShapeError as exc:
        raise UsageError(f"{member}[{index}] is not as it must be: {exc}") from exc
    return [
        Difference(member, index, field, expected, got, note)
        for field, expected, got, note in checks
        if not same(expected, got)
    ]
