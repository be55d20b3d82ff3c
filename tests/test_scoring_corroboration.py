"""Corroboration: what the re-run makes of a claim, and what counts as the same result."""

from __future__ import annotations

from typing import Any

import pytest

from referee.benchmarks.bringup.rerun import MAX_OUTPUT
from referee.core.records import RerunFacts
from referee.core.report import Report, Verification
from referee.scoring.corroboration import KEPT_OUTPUT_BYTES, corroborate
from referee.scoring.likeness import compare, normal_lines

COMMAND = "python /work/project/quickstart.py"


def report(command: str = COMMAND, returned: str = "2 + 3 = 5", **fields: Any) -> Report:
    values: dict[str, Any] = {
        "installed": True,
        "started": True,
        "errors": (),
        "test_depth": "tier1_real",
        "verified_how": Verification(command=command, returned=returned),
        "final_state": "It ran.",
        **fields,
    }
    return Report(**values)


def rerun(command: str = COMMAND, **fields: Any) -> RerunFacts:
    values: dict[str, Any] = {
        "command": command,
        "exit_status": 0,
        "timed_out": False,
        "seconds": 1.0,
        "output": "rerun.txt",
        **fields,
    }
    return RerunFacts(**values)


def test_a_command_that_gives_the_reported_result_corroborates() -> None:
    found = corroborate(report(), rerun(), b"starting\r\n\x1b[32m2 + 3 = 5\x1b[0m\r\n")
    assert (found.status, found.flags) == ("corroborated", ())


@pytest.mark.parametrize(
    ("facts", "output", "status", "said"),
    [
        ({"exit_status": 1}, b"Traceback", "contradicted", "exit status 1"),
        ({"exit_status": 137}, b"", "contradicted", "exit status 137"),
        ({"exit_status": 127}, b"bash: python: command not found", "not_observed", "did not find"),
        ({"exit_status": 126}, b"", "not_observed", "could not execute"),
        ({"exit_status": 7}, b"curl: (7) Failed to connect to localhost", "not_observed", "not running any more"),
        ({"exit_status": None, "timed_out": True, "seconds": 600.0}, b"", "not_observed", "within 600 s"),
        ({"exit_status": None, "output": None, "could_not_run": "no machine"}, None, "not_observed", "no machine"),
        ({"exit_status": None}, b"", "not_observed", "nothing was kept"),
        ({}, None, "not_observed", "nothing was kept"),
        ({}, b"2 + 3 = 6\n", "contradicted", "reported line: 2 + 3 = 5"),
        ({}, b"", "contradicted", "reported line: 2 + 3 = 5"),
        ({"command": "echo 2 + 3 = 5"}, b"2 + 3 = 5\n", "not_observed", "another command"),
        ({}, b"x" * KEPT_OUTPUT_BYTES, "not_observed", "longer than what is kept"),
    ],
)
def test_each_way_in_which_it_does_not(facts: dict[str, Any], output: bytes | None, status: str, said: str) -> None:
    found = corroborate(report(), rerun(**facts), output)
    assert found.status == status
    assert said in found.reason


def test_no_report_no_command_no_rerun() -> None:
    assert corroborate(None, None, None).status == "not_observed"
    assert "nothing was verified" in corroborate(report(verified_how="not verified"), None, None).reason
    assert "names no command" in corroborate(report(verified_how="I looked at it"), None, None).reason
    assert "was not run again" in corroborate(report(), None, None).reason


@pytest.mark.parametrize("command", ["echo '2 + 3 = 5'", "true", "calc --version", "python calc.py || true"])
def test_a_trivial_command_corroborates_nothing(command: str) -> None:
    found = corroborate(report(command), rerun(command), b"2 + 3 = 5\n")
    assert found.status == "not_observed"
    assert found.flags[0].sentence in found.reason


def test_a_silent_client_of_a_service_that_is_gone_contradicts_nothing() -> None:
    command = "cd /work/project && curl -sf localhost:8000"
    assert corroborate(report(command), rerun(command, exit_status=7), b"").status == "not_observed"
    assert corroborate(report(command), rerun(command, exit_status=22), b"").status == "contradicted"


def test_what_is_kept_of_a_rerun_is_what_the_judge_expects() -> None:
    assert KEPT_OUTPUT_BYTES == MAX_OUTPUT


SAME = [
    ("2+3=5", "2+3=5"),
    ("2+3=5", "noise\n2+3=5\nnoise"),
    ("b\na", "a\nb"),
    ("  spaced\tout ", "spaced  out"),
    ("5 passed in 0.12s", "===== 5 passed in 3.4s ====="),
    ("built in 1m30s", "built in 1m 02.5s"),
    ("at 2026-11-30T05:54:49Z", "at 2026-12-01 00:00:00.123"),
    ("Mon Nov 30 05:54:49 UTC 2026 ok", "Tue Dec  1 15:04:09 UTC 2026 ok"),
    ("Date: Mon, 30 Nov 2026 05:58:18 GMT", "Date: Tue, 01 Dec 2026 15:58:18 GMT"),
    ("<Foo object at 0x7f3a2b4c5d6e>", "<Foo object at 0x55d0c0ffee00>"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-4000-8000-00000000abcd"),
    ("wrote /tmp/tmpa8x/out.png", "wrote /tmp/tmpq9z/out.png"),
    ("listening on http://127.0.0.1:43817/", "listening on http://127.0.0.1:5000/"),
    ("listening on http://localhost:43817/", "listening on http://localhost:5000/"),
    ("server pid 4711 on port 8080", "server pid 99 on port 18080"),
    ("start\n[... truncated ...]\nend", "start\nmiddle\nend"),
    ("f the first line was cut\nlast line", "head of the first line was cut\nlast line"),
    ("first line\nthe last line was c", "first line\nthe last line was cut"),
    ("one\ntwo\nth", "one\ntwo\nthree"),
    ("ne\ntwo\nthree", "one\ntwo\nthree"),
    ("done\nexit code: 0", "done"),
    ("", ""),
    ("exit 0", ""),
    ("\x1b[1mbold\x1b[0m", "bold"),
    ("größe 5 µm", "größe 5 µm"),
]

DIFFERENT = [
    ("2+3=5", "2+3=6"),
    ("5 passed", "15 passed"),
    ("5", "57"),
    ("ok", "not ok"),
    ("ok\nok", "ok"),
    ("81 frames decoded", ""),
    ("version 1.2.3", "version 1.2.4"),
    ("one\ntw", "one\ntwo"),
    ("one\ntwo\nree", "one\ntwo\nthree"),
    ("on\ntwo\nthree", "one\ntwo\nthree"),
    ("port is open", "port is closed"),
    ("first\nthe middle was c\nlast", "first\nthe middle was cut\nlast"),
]


@pytest.mark.parametrize(("said", "printed"), SAME)
def test_the_same_result_in_other_clothes(said: str, printed: str) -> None:
    assert compare(said, printed.encode()).likeness == "same"


@pytest.mark.parametrize(("said", "printed"), DIFFERENT)
def test_another_result(said: str, printed: str) -> None:
    found = compare(said, printed.encode())
    assert found.likeness == "different"
    assert found.missing


@pytest.mark.parametrize(
    ("said", "printed", "likeness"),
    [
        ("", "something", "nothing_to_compare"),
        ("...", "something", "nothing_to_compare"),
        ("2026-11-30 05:54:49", "2026-11-30 05:54:50", "nothing_to_compare"),
        ("exit status 0", "something", "only_a_status"),
    ],
)
def test_what_cannot_be_compared(said: str, printed: str, likeness: str) -> None:
    assert compare(said, printed.encode()).likeness == likeness


def test_invalid_utf_8_is_compared_too() -> None:
    assert compare("abc \ufffd def", b"abc \xff def\n").likeness == "same"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("." * 400_000 + "x", "y\n" * 100_000),
        ("\n".join(f"line {n} of it" for n in range(40_000)), "\n".join(f"a line {n} of it" for n in range(40_000))),
        ("1" * 400_000, "0x" + "f" * 400_000),
        ("x " + "/tmp/" * 80_000, "/tmp/" * 90_000),
        ("12:" * 130_000, "12:" * 140_000),
    ],
)
def test_hostile_text_is_compared_without_quadratic_work(said: str, printed: str) -> None:
    assert compare(said, printed.encode()).likeness == "different"


def test_the_placeholders_are_what_the_rules_say() -> None:
    assert normal_lines("at 05:54:49 pid 12 took 3.5 s in /tmp/x") == [
        "at <time> pid <pid> took <duration> in <temporary>"
    ]
