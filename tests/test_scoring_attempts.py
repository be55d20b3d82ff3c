"""Judging an attempt: what makes it no measurement, and what it is worth under both editions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.failure import CLAIMS_NOTHING, FAILURES, RETIRED, Cause
from referee.core.records import (
    AttemptEnded,
    AttemptFound,
    EvidenceRef,
    QuietFacts,
    RecordingFacts,
    RerunFacts,
)
from referee.core.spending import SpendingFacts
from referee.errors import UsageError
from referee.scoring.attempts import REQUIRED_EVIDENCE, Judgement, judge
from tests.test_store_records import LOCK, planned

COMMAND = "python quickstart.py"
REPORT: dict[str, Any] = {
    "installed": True,
    "started": True,
    "errors": [],
    "test_depth": "tier1_real",
    "verified_how": {"command": COMMAND, "returned": "5"},
    "final_state": "It ran.",
}
RECORDING = RecordingFacts(complete=True, bytes=1, events=1, seconds=1.0, exit_status=0)
RERUN = RerunFacts(command=COMMAND, exit_status=0, timed_out=False, seconds=0.1, output="rerun.txt")


def ended(**changed: Any) -> AttemptEnded:
    values: dict[str, Any] = {
        "run": "r1",
        "at": "2026-11-30T00:00:00Z",
        "cause": None,
        "detail": "",
        "evidence": tuple(EvidenceRef(name=name, digest="sha256:00", bytes=1) for name in REQUIRED_EVIDENCE),
        "evidence_digest": "sha256:11",
        "recording": RECORDING,
        "quiet": QuietFacts(confirmed=True, how="", survivors_ended=0),
        "report_rejected": None,
        "rerun": RERUN,
        "spent_usd": 0.25,
        "phases": {},
        "machine": {},
        **changed,
    }
    return AttemptEnded(**values)


def judged(report: dict[str, Any] | bytes | None = None, printed: bytes | None = b"5\n", **changed: Any) -> Judgement:
    data = json.dumps(REPORT if report is None else report).encode() if not isinstance(report, bytes) else report
    return judge(planned("r1"), ended(**changed), report_bytes=data, rerun_output=printed)


def test_a_corroborated_attempt_passes_under_both_editions() -> None:
    found = judged()
    assert (found.valid, found.outcome, found.total, found.reason, found.flagged) == (True, "pass_full", 100, "", False)
    assert [found.by_edition[edition].total for edition in (1, 2)] == [100, 100]
    assert found.sentence() == "pass_full, 100 of 100, corroborated"
    document = found.document()
    assert document["rows"] == {"install": 30, "start": 30, "fixes": 20, "depth": 20}
    assert (document["corroboration"], document["spent"], document["evidence"]) == ("corroborated", 0.25, "sha256:11")
    assert json.loads(json.dumps(document)) == document


def test_a_contradicted_attempt_is_scored_by_each_edition_and_flagged() -> None:
    found = judged(printed=b"6\n")
    assert (found.outcome, found.total, found.flagged) == ("fail", 80, True)
    assert found.by_edition[1].outcome == "pass_full"
    assert "did not print the reported line: 5" in found.reason


def test_the_edition_of_the_plan_decides() -> None:
    plan = planned("r1").model_copy(update={"lock": LOCK.model_copy(update={"edition": 1})})
    found = judge(plan, ended(), report_bytes=json.dumps(REPORT).encode(), rerun_output=b"6\n")
    assert (found.edition, found.outcome, found.total) == (1, "pass_full", 100)
    unknown = planned("r1").model_copy(update={"lock": LOCK.model_copy(update={"edition": 9})})
    with pytest.raises(UsageError, match="edition 9"):
        judge(unknown, ended())


def test_an_agent_that_ends_without_a_report_claims_nothing() -> None:
    found = judge(planned("r1"), ended(rerun=None))
    assert (found.valid, found.outcome, found.total) == (True, "fail", 0)
    assert found.reason == "the agent ended without a report, which claims nothing"


def test_an_agent_whose_key_reached_its_cap_is_said_to_have_been_stopped_by_it() -> None:
    spending = SpendingFacts(
        broker="gateway", key="k", model="m", cap_usd=0.01, spent_usd=0.009, capped=True, deleted=True, how="so"
    )
    found = judge(planned("r1"), ended(rerun=None, spending=spending))
    assert (found.outcome, found.total) == ("fail", 0)
    assert found.reason == (
        "its key's cap of 0.01 USD stopped its calls, and the agent ended without a report, which claims nothing"
    )


def test_a_reason_is_said_once_where_the_record_says_the_whole_of_it() -> None:
    sentence = FAILURES[Cause.MODEL_UNAVAILABLE].sentence
    for detail in (f"{sentence}: its upstream failed", "its upstream failed"):
        found = judge(planned("r1"), ended(cause=Cause.MODEL_UNAVAILABLE, detail=detail))
        assert found.reason == f"{sentence}: its upstream failed"


def test_a_timeout_earns_nothing_whatever_the_report_says() -> None:
    for report in (None, b"not a report"):
        found = judged(report, cause=Cause.DEADLINE)
        assert (found.valid, found.outcome, found.total) == (True, "timeout", 0)
        assert found.reason == "the time limit ended the agent's work"


def test_a_rejected_report_made_an_attempt_of_before_invalid() -> None:
    for found in (
        judged(b"{}"),
        judged(b"{}", cause=Cause.REPORT_REJECTED, report_rejected="the report's field 'installed': Field required"),
        judged(b"", report_rejected="the report is a symlink"),
    ):
        assert (found.valid, found.cause, found.retry) == (False, Cause.REPORT_REJECTED, False)
        assert found.reason.startswith("the report was rejected: the report")
        assert (found.outcome, found.total, found.rows, found.corroboration) == (None, None, None, None)
        assert found.document()["total"] is None


@pytest.mark.parametrize("cause", sorted(CLAIMS_NOTHING))
def test_what_the_agent_brought_about_itself_is_a_fail_and_never_repeated(cause: Cause) -> None:
    capped = RECORDING.model_copy(update={"complete": False, "caps_reached": ("size",)})
    recording = capped if cause is Cause.RECORDING_LIMIT else RECORDING
    for report in (None, b"not a report"):  # a report that would pass, and one that is none
        found = judged(report, cause=cause, detail="how it was", recording=recording, rerun=None)
        assert (found.valid, found.outcome, found.total, found.retry) == (True, "fail", 0, False)
        assert found.cause is cause
        assert found.reason == f"{FAILURES[cause].sentence}: how it was"
        assert [one.total for one in found.by_edition.values()] == [0, 0]


def test_only_the_cap_itself_excuses_a_recording_that_ends_at_it() -> None:
    capped = RECORDING.model_copy(update={"complete": False, "caps_reached": ("events",)})
    broken = capped.model_copy(update={"write_error": "no space"})
    unmarked = capped.model_copy(update={"caps_reached": ()})
    assert judged(cause=Cause.RECORDING_LIMIT, recording=capped).valid
    for cause in (None, Cause.DEADLINE, Cause.DISK_LIMIT):
        assert judged(cause=cause, recording=capped).cause is Cause.RECORDING_INCOMPLETE
    for recording in (broken, unmarked, None):
        assert judged(cause=Cause.RECORDING_LIMIT, recording=recording).cause is Cause.RECORDING_INCOMPLETE


def test_records_of_before_keep_their_rule() -> None:
    for cause in RETIRED:
        assert not judged(cause=cause).valid
        assert not FAILURES[cause].retry


@pytest.mark.parametrize("cause", [cause for cause in Cause if not FAILURES[cause].counts])
def test_no_fault_of_ours_is_ever_scored(cause: Cause) -> None:
    found = judged(cause=cause, detail="details")
    assert (found.valid, found.outcome, found.cause, found.retry) == (False, None, cause, FAILURES[cause].retry)
    assert found.reason.startswith(FAILURES[cause].sentence)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"recording": None}, Cause.RECORDING_INCOMPLETE),
        ({"recording": RECORDING.model_copy(update={"complete": False})}, Cause.RECORDING_INCOMPLETE),
        ({"recording": RECORDING.model_copy(update={"write_error": "disk full"})}, Cause.RECORDING_INCOMPLETE),
        ({"recording": RECORDING.model_copy(update={"caps_reached": ("size",)})}, Cause.RECORDING_INCOMPLETE),
        ({"quiet": None}, Cause.SURVIVORS),
        ({"quiet": QuietFacts(confirmed=False, how="", survivors_ended=1)}, Cause.SURVIVORS),
        ({"evidence": ()}, Cause.RECORDING_INCOMPLETE),
    ],
)
@pytest.mark.parametrize("end", [None, Cause.DEADLINE])
def test_an_attempt_without_complete_evidence_is_no_measurement(
    changed: dict[str, Any], cause: Cause, end: Cause | None
) -> None:
    found = judged(cause=end, **changed)
    assert (found.valid, found.cause, found.total) == (False, cause, None)


@pytest.mark.parametrize("cap", ["duration", "resize"])
def test_a_cap_that_cuts_nothing_off_leaves_a_measurement(cap: str) -> None:
    assert judged(recording=RECORDING.model_copy(update={"caps_reached": (cap,)})).valid


def test_a_found_attempt_is_invalid() -> None:
    end = AttemptFound(
        run="r1",
        at="2026-11-30T00:00:00Z",
        cause=Cause.HARNESS_DIED,
        detail="",
        evidence=(),
        evidence_digest="sha256:11",
        reaped=(),
    )
    found = judge(planned("r1"), end)
    assert (found.valid, found.retry, found.spent_usd) == (False, True, None)


def test_records_of_two_runs_are_refused() -> None:
    with pytest.raises(UsageError, match="of two runs"):
        judge(planned("r2"), ended())


@pytest.mark.parametrize(
    ("changed", "total", "reason"),
    [
        ({"installed": False, "started": False, "test_depth": "tier3_none"}, 0, "does not claim that it installed"),
        ({"started": False, "test_depth": "tier3_none"}, 30, "does not claim that it started"),
        ({"test_depth": "tier3_none", "verified_how": "not verified"}, 80, "did not verify it"),
        ({"verified_how": "I saw it"}, 80, "names no command"),
        ({"verified_how": {"command": "echo 5", "returned": "5"}}, 80, "another command"),
    ],
)
def test_the_reason_says_what_kept_it_from_a_pass(changed: dict[str, Any], total: float, reason: str) -> None:
    found = judged({**REPORT, **changed})
    assert (found.outcome, found.total) == ("fail", total)
    assert reason in found.reason


NULL = {**REPORT, "installed": False, "started": False, "test_depth": "tier3_none", "verified_how": "not verified"}
LIES = [
    ({"command": "echo 5", "returned": "5"}, 0, b"5\n"),
    ({"command": "true", "returned": ""}, 0, b""),
    ({"command": "cat /work/proof.txt", "returned": "5"}, 0, b"5\n"),
    ({"command": "python quickstart.py", "returned": "5"}, 2, b"can't open file"),
    ({"command": "quickstart", "returned": "5"}, 127, b"command not found"),
    ({"command": "python -c 'print(5)'", "returned": "5"}, 0, b"5\n"),
    (
        {"command": "python -m http.server 8000 & sleep 1; curl -sf localhost:8000", "returned": "<html>"},
        0,
        b"<html>\n",
    ),
    ({"command": "curl -sf localhost:8000", "returned": "<html>"}, 7, b""),
    ({"command": "python quickstart.py || true", "returned": ""}, 0, b""),
]


@pytest.mark.parametrize(("claim", "status", "printed"), LIES, ids=[claim["command"] for claim, _, _ in LIES])
def test_no_liar_and_no_stub_passes_under_edition_2(claim: dict[str, str], status: int, printed: bytes) -> None:
    rerun = RERUN.model_copy(update={"command": claim["command"], "exit_status": status})
    found = judged({**REPORT, "verified_how": claim}, printed, rerun=rerun)
    assert found.outcome == "fail"
    assert found.by_edition[1].outcome == "pass_full"


def test_the_null_agent_earns_nothing() -> None:
    assert judged(NULL, rerun=None, printed=None).total == 0
