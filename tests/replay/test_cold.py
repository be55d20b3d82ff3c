"""What a replay says, from facts alone: reproducible, not reproducible, could not be replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.records import EnvironmentRef, NetworkFacts, Replayed, RerunFacts
from referee.core.report import Report, parse_report
from referee.core.sessions.steps import Step, StepDone, Told
from referee.scoring.cold import Cold, judge_replay
from tests.publish_workspace import report as report_of

COMMAND = "cd /work/project && python3 -m square 12"
ENVIRONMENT = EnvironmentRef(
    sandbox="docker", engine="e", image="i", image_digest="sha256:1", packages_digest=None, security_boundary=True,
    architecture="amd64",
)  # fmt: skip
MAKE = Told(steps=(Step(kind="command", text="make", status=0),))
NO_HOST = "curl: (6) Could not resolve host: x"
DONE = (StepDone(number=1, status=0, seconds=1.0, bytes=0),)
FAILED = (StepDone(number=1, status=1, seconds=1.0, bytes=9, tail="make: no rule"),)
RIGHT = b"12 squared is 144\n"


def report(**changes: Any) -> Report:
    return parse_report(json.dumps(report_of(**changes)).encode())


def rerun(status: int | None = 0, **changes: Any) -> RerunFacts:
    facts = {"command": COMMAND, "exit_status": status, "timed_out": False, "seconds": 0.2, "output": "rerun.txt"}
    return RerunFacts.model_validate(facts | changes)


def replayed(again: RerunFacts | None, **changes: Any) -> Replayed:
    facts: dict[str, Any] = {
        "run": "r-1", "replay": "p-1", "at": "2026-11-30T12:00:00.000Z", "environment": ENVIRONMENT, "commands": 1,
        "ran": 1, "stopped_at": None, "detail": "", "rerun": again, "evidence": (), "evidence_digest": "sha256:0",
    }  # fmt: skip
    return Replayed.model_validate(facts | changes)


def judged(
    again: RerunFacts | None, output: bytes | None = RIGHT, told: Told = MAKE, done: Any = DONE, **facts: Any
) -> Cold:
    return judge_replay(report(), replayed(again, **facts), output, told, done)


def test_the_reported_result_after_all_steps_is_reproducible() -> None:
    assert judged(rerun()).status == "reproducible"


@pytest.mark.parametrize("status", [1, 126, 127])
def test_a_command_that_fails_after_all_steps_is_not_reproducible(status: int) -> None:
    assert judged(rerun(status), b"sh: square: not found\n").status == "not_reproducible"


def test_another_result_after_all_steps_is_not_reproducible() -> None:
    assert judged(rerun(), b"12 squared is 145\n").status == "not_reproducible"


def test_the_first_command_that_parted_is_named() -> None:
    found = judged(rerun(1), b"no", done=FAILED)
    assert "command 1, which succeeded in the session, did not here" in found.reason


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("out of reach", {"network": NetworkFacts(asked="pip", reachable=False, said="no answer")}),
        ("what looks like the network", {"done": (FAILED[0].model_copy(update={"tail": NO_HOST}),)}),
        ("does not tell", {"told": MAKE.model_copy(update={"untold": ("the recording does not tell all",)})}),
    ],
)  # fmt: skip
def test_a_failure_of_ours_or_of_the_recording_is_never_not_reproducible(said: str, changes: dict[str, Any]) -> None:
    found = judged(rerun(1), b"no", **changes)
    assert found.status == "could_not_be_replayed"
    assert said in found.reason


def test_a_step_that_failed_in_the_session_too_excuses_nothing() -> None:
    told = Told(steps=(Step(kind="command", text="make", status=2),))
    done = (FAILED[0].model_copy(update={"tail": "Could not resolve host"}),)
    assert judged(rerun(1), b"no", told=told, done=done).status == "not_reproducible"


@pytest.mark.parametrize(
    ("said", "again", "facts"),
    [
        ("at step 1 of 2: it failed", None, {"commands": 2, "ran": 0, "stopped_at": 1, "detail": "it failed"}),
        ("it did not come to its end", None, {}),
        ("did not end within", rerun(None, timed_out=True), {}),
        ("could not be run again", rerun(None, could_not_run="the engine is gone", output=None), {}),
        ("not running any more", rerun(1), {}),
    ],
)  # fmt: skip
def test_what_did_not_come_to_a_result_says_nothing(said: str, again: RerunFacts | None, facts: dict[str, Any]) -> None:
    found = judged(again, b"connection refused\n", **facts)
    assert found.status == "could_not_be_replayed"
    assert said in found.reason


def test_a_silent_format_and_a_report_without_a_command_say_nothing() -> None:
    silent = Told(why_not="the agent does not tell its commands")
    assert judged(rerun(), told=silent) == Cold("could_not_be_replayed", "the agent does not tell its commands")
    none = judge_replay(report(verified_how="not verified"), replayed(None), None, MAKE, DONE)
    assert none.status == "could_not_be_replayed"
    assert judge_replay(None, replayed(None), None, MAKE, DONE).status == "could_not_be_replayed"


def test_a_trivial_command_is_no_result_here_either() -> None:
    trivial = report(verified_how={"command": "echo 12 squared is 144", "returned": "12 squared is 144"})
    again = rerun(command="echo 12 squared is 144")
    found = judge_replay(trivial, replayed(again), RIGHT, MAKE, DONE)
    assert found.status == "could_not_be_replayed"
    assert "proves too little" in found.reason
