"""Golden vectors against this installation: each case that differs is named. Pure.

A file of kind ``bringup`` holds lists of cases by member: ``score`` (report, timed_out, expect), ``rejected_reports``,
``spread`` (runs, spread, unstable), ``board`` (results, board_score) and ``verdict`` (attempts, verdict).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from referee.core.canonical import canonical_bytes
from referee.core.report import Report, parse_report
from referee.errors import CouldNotVerify, ReportRejected, UsageError
from referee.scoring.boards import SubjectResult, board_score, spread
from referee.scoring.bringup import DEPTH_POINTS, Claims, claims_of, score
from referee.scoring.verdicts import Attempt, verdict

#: Kinds of vectors that exist but that this installation does not implement.
NOT_IMPLEMENTED = ("bakeoff-grading", "grading2", "bakeoff-statistics", "hardware", "redaction")

#: What a vector says of a report that is rejected.
REJECTED = "rejected"

_OUTCOMES = {"pass_full", "pass_mock", "fail", "timeout"}
_TIERS = {"standard", "stronger"}
_SCORE_FIELDS = ("install", "start", "fixes", "depth", "total", "outcome")


@dataclass(frozen=True)
class Difference:
    """One value of one case that this installation computes otherwise."""

    member: str
    index: int
    field: str
    expected: Any
    got: Any

    @property
    def sentence(self) -> str:
        """The difference in one line."""
        return f"{self.member}[{self.index}] {self.field}: expected {self.expected!r}, got {self.got!r}"


@dataclass(frozen=True)
class Conformance:
    """What came of one vector file: cases run by member, and the differences."""

    kind: str
    cases: Mapping[str, int]
    differences: tuple[Difference, ...]


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
    if kind != "bringup":
        raise UsageError(f"no vectors of the kind {kind!r} are known")
    cases: dict[str, int] = {}
    differences: list[Difference] = []
    for member, value in document.items():
        if member not in _MEMBERS:
            if isinstance(value, list):
                raise UsageError(f"vectors of the kind bringup have no member {member!r}")
            continue
        if not isinstance(value, list):
            raise UsageError(f"the member {member} is no list of cases")
        cases[member] = len(value)
        for index, case in enumerate(value):
            differences += _case(member, index, case)
    if not cases:
        raise UsageError("the vector file holds no member with cases")
    return Conformance(kind, cases, tuple(differences))


def _case(member: str, index: int, case: Any) -> list[Difference]:
    try:
        pairs = _MEMBERS[member](case)
    except _ShapeError as exc:
        raise UsageError(f"{member}[{index}] is not as it must be: {exc}") from exc
    return [
        Difference(member, index, field, expected, got) for field, expected, got in pairs if not same(expected, got)
    ]


def same(expected: Any, got: Any) -> bool:
    """Whether two values agree.

    Numbers agree when they are the same number up to the last bits of a double; a vector that was rounded to six
    decimals agrees with the number that rounds to it. A truth value is no number, and null agrees only with null.
    """
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or got is None:
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        if math.isclose(expected, got, rel_tol=1e-12, abs_tol=1e-12):
            return True
        return round(expected, 6) == expected and round(got, 6) == expected
    return bool(expected == got)


Pairs = list[tuple[str, Any, Any]]


class _ShapeError(Exception):
    """A case does not have the shape of its member."""


def _score_case(case: Any) -> Pairs:
    report, expect = _object(case, "report"), _object(case, "expect")
    unknown = set(expect) - set(_SCORE_FIELDS)
    if unknown or not expect:
        raise _ShapeError(f"expect has an unknown field {min(unknown)!r}" if unknown else "expect is empty")
    timed_out = _boolean(case, "timed_out", default=False)
    try:
        earned = score(_claims(report), timed_out=timed_out, edition=1)
    except ReportRejected:
        return [(field, expected, REJECTED) for field, expected in expect.items()]
    rows = earned.rows
    got = {
        "install": rows.install,
        "start": rows.start,
        "fixes": rows.fixes,
        "depth": rows.depth,
        "total": earned.total,
        "outcome": earned.outcome,
    }
    return [(field, expect[field], got[field]) for field in _SCORE_FIELDS if field in expect]


def _rejected_case(case: Any) -> Pairs:
    if not isinstance(case, dict):
        raise _ShapeError("a report is an object")
    report = case.get("report", case)
    if not isinstance(report, dict):
        raise _ShapeError("a report is an object")
    try:
        if set(Report.model_fields) - {"errors_encountered", "errors_fixed"} <= set(report):
            parse_report(canonical_bytes(report))
        else:
            _claims({"installed": True, "started": True, "test_depth": "tier3_none", **report})
    except ReportRejected:
        return [("report", REJECTED, REJECTED)]
    return [("report", REJECTED, "accepted")]


def _spread_case(case: Any) -> Pairs:
    found = spread(_runs(case))
    pairs: Pairs = []
    if "spread" in case:
        pairs.append(("spread", case["spread"], found.percent))
    if "unstable" in case:
        pairs.append(("unstable", case["unstable"], found.unstable))
    if not pairs:
        raise _ShapeError("neither spread nor unstable is there")
    return pairs


def _board_case(case: Any) -> Pairs:
    results = _object(case, "results")
    if "board_score" not in case:
        raise _ShapeError("board_score is missing")
    sets = {
        name: SubjectResult(_runs(result), under_review=_boolean(result, "under_review", default=False))
        for name, result in results.items()
    }
    return [("board_score", case["board_score"], board_score(sets))]


def _verdict_case(case: Any) -> Pairs:
    if not isinstance(case, dict) or not isinstance(case.get("attempts"), list) or "verdict" not in case:
        raise _ShapeError("attempts and verdict are expected")
    return [("verdict", case["verdict"], verdict([_attempt(one) for one in case["attempts"]]).value)]


def _attempt(one: Any) -> Attempt:
    if not isinstance(one, dict):
        raise _ShapeError("an attempt is an object")
    outcome, agent = one.get("outcome"), one.get("agent", "standard")
    if outcome is not None and outcome not in _OUTCOMES:
        raise _ShapeError(f"there is no outcome {outcome!r}")
    if agent not in _TIERS:
        raise _ShapeError(f"an attempt's agent is standard or stronger, not {agent!r}")
    return Attempt(outcome, agent, valid=_boolean(one, "valid", default=True))


def _claims(report: Mapping[str, Any]) -> Claims:
    """The claims of a report in full, or of one that gives counts or a bare list of errors."""
    depth = report.get("test_depth")
    if set(Report.model_fields) - {"errors_encountered", "errors_fixed"} <= set(report):
        return claims_of(parse_report(canonical_bytes(dict(report))))
    if depth not in DEPTH_POINTS:
        raise ReportRejected(f"there is no test_depth {depth!r}")
    errors = report.get("errors", [])
    if not isinstance(errors, list):
        raise _ShapeError("errors is a list")
    listed = (len(errors), sum(1 for error in errors if isinstance(error, dict) and error.get("fixed") is True))
    encountered = _count(report, "errors_encountered", listed[0])
    fixed = _count(report, "errors_fixed", listed[1])
    if "errors" in report and (encountered, fixed) != listed:
        raise ReportRejected("the counts are not those of the list of errors")
    return Claims(
        installed=_boolean(report, "installed", default=False),
        started=_boolean(report, "started", default=False),
        encountered=encountered,
        fixed=fixed,
        depth=depth,
    )


def _runs(case: Any) -> tuple[float, ...]:
    runs = case.get("runs") if isinstance(case, dict) else None
    if not isinstance(runs, list) or not all(
        isinstance(run, int | float) and not isinstance(run, bool) for run in runs
    ):
        raise _ShapeError("runs is a list of numbers")
    return tuple(runs)


def _object(case: Any, key: str) -> dict[str, Any]:
    value = case.get(key) if isinstance(case, dict) else None
    if not isinstance(value, dict):
        raise _ShapeError(f"{key} is missing or no object")
    return value


def _boolean(case: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = case.get(key, default)
    if not isinstance(value, bool):
        raise _ShapeError(f"{key} is true or false, not {value!r}")
    return value


def _count(report: Mapping[str, Any], key: str, default: int) -> int:
    value = report.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _ShapeError(f"{key} is a whole number, not {value!r}")
    return value


_MEMBERS: dict[str, Callable[[Any], Pairs]] = {
    "score": _score_case,
    "rejected_reports": _rejected_case,
    "spread": _spread_case,
    "board": _board_case,
    "verdict": _verdict_case,
}
