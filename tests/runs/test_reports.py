"""From a report to a verdict, in a real container."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from referee.publish.words import PHASES
from tests.runs.conftest import GOOD_REPORT, Measured, containers, leaves_report, referee

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Measure = Callable[..., Measured]


def phases(run: Measured) -> set[str]:
    """The phases that ``show`` tells, which are those that were said while they lasted."""
    shown = referee("show", "last", "--workspace", str(run.workspace)).stdout
    told = {name for name, words in PHASES.items() if words in shown}
    lines = {line.strip() for line in run.stderr.splitlines()}
    assert told == {name for name, words in PHASES.items() if words in lines}
    return told


def test_a_corroborated_report_passes(measure: Measure) -> None:
    run = measure(leaves_report(GOOD_REPORT, before="python3 square.py 12"))
    assert run.code == 0, run.stderr
    assert run.document["verdict"] == "runs"
    assert run.document["subject"] == "square"
    attempt = run.attempt
    assert attempt["valid"] is True
    assert attempt["outcome"] == "pass_full"
    assert attempt["total"] == 100
    assert attempt["rows"] == {"install": 30, "start": 30, "fixes": 20, "depth": 20}
    assert attempt["corroboration"] == "corroborated"
    assert attempt["evidence"].startswith("sha256:")
    assert {"rerun", "challenge", "control"} <= phases(run)
    assert not containers(run.workspace)


def test_a_report_that_tells_another_result_is_contradicted(measure: Measure) -> None:
    lie = {**GOOD_REPORT, "verified_how": {"command": "python3 /work/project/square.py 12", "returned": "is 145"}}
    run = measure(leaves_report(lie))
    assert run.code == 4
    assert run.attempt["corroboration"] == "contradicted"
    assert run.attempt["outcome"] == "fail"
    assert run.attempt["total"] == 80
    assert {"rerun"} == phases(run) & {"rerun", "challenge", "control"}


def test_an_agent_that_leaves_no_report_claims_nothing(measure: Measure) -> None:
    run = measure("true")
    assert run.code == 4
    assert run.attempt["valid"] is True
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert phases(run) == {"machine", "place", "agent", "listening", "quiet", "report", "destroy", "network", "seal"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (leaves_report("{ this is no JSON"), "JSON"),
        (leaves_report({**GOOD_REPORT, "errors_encountered": 1, "errors_fixed": 2}), "2 errors claimed fixed"),
        ("head -c 200000000 /dev/zero > /work/report.json", "200000000"),
        ("ln -s /etc/passwd /work/report.json", "no regular file"),
        ("mkfifo /work/report.json", "no regular file"),
        ("mkdir /work/report.json", "no regular file"),
        ("printf '\\xff\\xfe{}' > /work/report.json", "UTF-8"),
    ],
    ids=["no-json", "more-fixes-than-errors", "200-MB", "symlink", "fifo", "directory", "invalid-utf-8"],
)
def test_a_rejected_report_claims_nothing_and_is_not_repeated(measure: Measure, command: str, said: str) -> None:
    run = measure(command)
    assert run.code == 4
    assert run.document["verdict"] == "not_yet_verified"
    assert (run.attempt["valid"], run.attempt["cause"]) == (True, "report_broken")
    assert said in run.attempt["reason"]
    assert (run.attempt["outcome"], run.attempt["total"]) == ("fail", 0)
    assert len(run.document["attempts"]) == 1
    assert not containers(run.workspace)


def test_invalid_utf_8_on_the_terminal_is_kept_byte_for_byte(measure: Measure) -> None:
    run = measure(leaves_report(GOOD_REPORT, before="printf 'a\\xffb\\xc3'"))
    assert run.attempt["outcome"] == "pass_full"
    raws = [path for path in (run.workspace / "evidence").rglob("*") if path.is_file()]
    assert any(b"a\xffb\xc3" in path.read_bytes() for path in raws)


def test_what_the_agent_set_in_its_shell_is_gone_when_its_claim_is_checked(measure: Measure) -> None:
    claim = {**GOOD_REPORT, "verified_how": {"command": "square 12", "returned": "12 squared is 144"}}
    sets = "echo 'square() { echo 12 squared is 144; }' | tee /root/.bashrc /root/.bash_profile >> /etc/profile"
    run = measure(leaves_report(claim, before=sets))
    assert run.attempt["corroboration"] == "not_observed"
    assert run.attempt["outcome"] == "fail"
