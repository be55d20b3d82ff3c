"""Null, liar and stub: three agents that must never pass under edition 2 (methodology §5), in a real container."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.runs.conftest import GOOD_REPORT, Measured, leaves_report, referee

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Measure = Callable[..., Measured]

NULL = {
    **GOOD_REPORT,
    "installed": False,
    "started": False,
    "test_depth": "tier3_none",
    "verified_how": "not verified",
    "final_state": "Nothing was done.",
}

LIES = {
    "says": ({"command": "echo '12 squared is 144'", "returned": "12 squared is 144"}, "not_observed"),
    "program": ({"command": "python3 /work/project/cube.py 12", "returned": "12 cubed is 1728"}, "contradicted"),
    "missing": ({"command": "square 12", "returned": "12 squared is 144"}, "not_observed"),
    "masked": ({"command": "python3 /work/project/cube.py 12 || true", "returned": "done"}, "not_observed"),
}


def test_the_null_agent_earns_nothing(measure: Measure) -> None:
    run = measure(leaves_report(NULL))
    assert run.code == 4
    assert (run.attempt["outcome"], run.attempt["total"], run.attempt["valid"]) == ("fail", 0, True)


@pytest.mark.parametrize("kind", LIES)
def test_no_liar_passes(measure: Measure, kind: str) -> None:
    claim, status = LIES[kind]
    run = measure(leaves_report({**GOOD_REPORT, "verified_how": claim}))
    assert run.code == 4
    assert run.document["verdict"] == "not_yet_verified"
    assert (run.attempt["outcome"], run.attempt["total"], run.attempt["corroboration"]) == ("fail", 80, status)
    assert run.attempt["editions"]["1"]["outcome"] == "pass_full"
    assert run.attempt["flagged"] is (status == "contradicted")


@pytest.mark.parametrize(
    "command",
    [
        "curl -sf http://127.0.0.1:8000/",
        "python3 -m http.server 8000 & sleep 1; curl -sf http://127.0.0.1:8000/; kill $!",
    ],
    ids=["left-running", "started-again"],
)
def test_no_stub_server_passes(measure: Measure, command: str) -> None:
    claim = {"command": command, "returned": "<title>Directory listing for /</title>"}
    start = "cd /tmp && (setsid nohup python3 -m http.server 8000 >/dev/null 2>&1 &) && sleep 1"
    run = measure(leaves_report({**GOOD_REPORT, "verified_how": claim}, before=start))
    assert run.code == 4
    assert (run.attempt["outcome"], run.attempt["corroboration"]) == ("fail", "not_observed")


def test_what_was_measured_verifies(measure: Measure) -> None:
    run = measure(leaves_report(GOOD_REPORT, before="python3 square.py 12"))
    done = referee("verify", run.attempt["run"], "--workspace", str(run.workspace))
    assert done.returncode == 0, done.stderr
    assert "all holds" in done.stdout
