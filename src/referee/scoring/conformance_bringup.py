"""Golden vectors of the kind ``bringup``: scores, rejected reports, spread, boards and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.core.canonical import canonical_bytes
from referee.core.report import Report, parse_report
from referee.errors import ReportRejected
from referee.scoring.boards import SubjectResult, board_score, spread
from referee.scoring.bringup import DEPTH_POINTS, Claims, claims_of, score
from referee.scoring.conformance_shapes import Checks, Runner, ShapeError, a_boolean, a_count, an_object
from referee.scoring.verdicts import Attempt, verdict

#: What a vector says of a report that is rejected.
REJECTED = "rejected"

_OUTCOMES = {"pass_full", "pass_mock", "fail", "timeout"}
_TIERS = {"standard", "stronger"}
_SCORE_FIELDS = ("install", "start", "fixes", "depth", "total", "outcome")


def _score_case(case: Any) -> Checks:
    report, expect = an_object(case, "report"), an_object(case, "expect")
    unknown = set(expect) - set(_SCORE_FIELDS)
    if unknown or not expect:
        raise ShapeError(f"expect has an unknown field {min(unknown)!r}" if unknown else "expect is empty")
    timed_out = a_boolean(case, "timed_out", default=False)
    try:
        earned = score(_claims(report), timed_out=timed_out, edition=1)
    except ReportRejected:
        return [(field, expected, REJECTED, "") for field, expected in expect.items()]
    rows = earned.rows
    got = {
        "install": rows.install,
        "start": rows.start,
        "fixes": rows.fixes,
        "depth": rows.depth,
        "total": earned.total,
        "outcome": earned.outcome,
    }
    return [(field, expect[field], got[field], "") for field in _SCORE_FIELDS if field in expect]


def _rejected_case(case: Any) -> Checks:
    if not isinstance(case, dict):
        raise ShapeError("a report is an object")
    report = case.get("report", case)
    if not isinstance(report, dict):
        raise ShapeError("a report is an object")
    try:
        if set(Report.model_fields) - {"errors_encountered", "errors_fixed"} <= set(report):
            parse_report(canonical_bytes(report))
        else:
            _claims({"installed": True, "started": True, "test_depth": "tier3_none", **report})
    except ReportRejected:
        return [("report", REJECTED, REJECTED, "")]
    return [("report", REJECTED, "accepted", "")]


def _spread_case(case: Any) -> Checks:
    found = spread(_runs(case))
    pairs: Checks = []
    if "spread" in case:
        pairs.append(("spread", case["spread"], found.percent, ""))
    if "unstable" in case:
        pairs.append(("unstable", case["unstable"], found.unstable, ""))
    if not pairs:
        raise ShapeError("neither spread nor unstable is there")
    return pairs


def _board_case(case: Any) -> Checks:
    results = an_object(case, "results")
    if "board_score" not in case:
        raise ShapeError("board_score is missing")
    sets = {
        name: SubjectResult(_runs(result), under_review=a_boolean(result, "under_review", default=False))
        for name, result in results.items()
    }
    return [("board_score", case["board_score"], board_score(sets), "")]


def _verdict_case(case: Any) -> Checks:
    if not isinstance(case, dict) or not isinstance(case.get("attempts"), list) or "verdict" not in case:
        raise ShapeError("attempts and verdict are expected")
    return [("verdict", case["verdict"], verdict([_attempt(one) for one in case["attempts"]]).value, "")]


def _attempt(one: Any) -> Attempt:
    if not isinstance(one, dict):
        raise ShapeError("an attempt is an object")
    outcome, agent = one.get("outcome"), one.get("agent", "standard")
    if outcome is not None and outcome not in _OUTCOMES:
        raise ShapeError(f"there is no outcome {outcome!r}")
    if agent not in _TIERS:
        raise ShapeError(f"an attempt's agent is standard or stronger, not {agent!r}")
    return Attempt(outcome, agent, valid=a_boolean(one, "valid", default=True))


def _claims(report: Mapping[str, Any]) -> Claims:
    """The claims of a report in full, or of one that gives counts or a bare list of errors."""
    depth = report.get("test_depth")
    if set(Report.model_fields) - {"errors_encountered", "errors_fixed"} <= set(report):
        return claims_of(parse_report(canonical_bytes(dict(report))))
    if depth not in DEPTH_POINTS:
        raise ReportRejected(f"there is no test_depth {depth!r}")
    errors = report.get("errors", [])
    if not isinstance(errors, list):
        raise ShapeError("errors is a list")
    listed = (len(errors), sum(1 for error in errors if isinstance(error, dict) and error.get("fixed") is True))
    encountered = a_count(report, "errors_encountered", listed[0])
    fixed = a_count(report, "errors_fixed", listed[1])
    if "errors" in report and (encountered, fixed) != listed:
        raise ReportRejected("the counts are not those of the list of errors")
    return Claims(
        installed=a_boolean(report, "installed", default=False),
        started=a_boolean(report, "started", default=False),
        encountered=encountered,
        fixed=fixed,
        depth=depth,
    )


def _runs(case: Any) -> tuple[float, ...]:
    runs = case.get("runs") if isinstance(case, dict) else None
    if not isinstance(runs, list) or not all(
        isinstance(run, int | float) and not isinstance(run, bool) for run in runs
    ):
        raise ShapeError("runs is a list of numbers")
    return tuple(runs)


MEMBERS: dict[str, Runner] = {
    "score": _score_case,
    "rejected_reports": _rejected_case,
    "spread": _spread_case,
    "board": _board_case,
    "verdict": _verdict_case,
}
