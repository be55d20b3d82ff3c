"""The agent's report: what is accepted, and one sentence for each way to be rejected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from referee.cli.app import make_app
from referee.core.report import MAX_REPORT_BYTES, Report, Verification, parse_report
from referee.errors import RefereeError, ReportRejected

ERROR = {"what": "no compiler", "fixed": True, "how": "apt-get install gcc"}
GOOD: dict[str, Any] = {
    "installed": True,
    "started": True,
    "errors": [ERROR, {"what": "port 3000 was taken", "fixed": False}],
    "test_depth": "tier1_real",
    "verified_how": {"command": "python app.py", "returned": "2 + 3 = 5"},
    "final_state": "It ran.",
}


def encoded(**changed: Any) -> bytes:
    return json.dumps({**GOOD, **changed}).encode()


def test_a_whole_report_is_read() -> None:
    report = parse_report(encoded())
    assert (report.encountered, report.fixed) == (2, 1)
    assert report.verified_how == Verification(command="python app.py", returned="2 + 3 = 5")


@pytest.mark.parametrize(
    "changed",
    [
        {"verified_how": "not verified"},
        {"verified_how": "I looked at the screen"},
        {"errors": []},
        {"errors_encountered": 2, "errors_fixed": 1},
        {"an_agent's_own_field": {"may": "stand here"}},
        {"final_state": ""},
        {"started": False, "test_depth": "tier3_none"},
    ],
)
def test_what_else_is_accepted(changed: dict[str, Any]) -> None:
    assert isinstance(parse_report(encoded(**changed)), Report)


REJECTED: list[tuple[str, bytes]] = [
    ("not JSON", b""),
    ("not JSON", b"I could not make it run, sorry."),
    ("not JSON", b"```json\n{}\n```"),
    ("not UTF-8: byte 1", b'"\xff"'),
    ("must be a JSON object, not an array", b"[]"),
    ("must be a JSON object, not null", b"null"),
    ("must be a JSON object, not a string", b'"report"'),
    ("nested too deeply", b"[" * 100_000 + b"]" * 100_000),
    ("NaN is no JSON number", encoded(spent=float("nan"))),
    ("'installed' stands twice", encoded()[:-1] + b', "installed": false}'),
    ("the report holds half a character", encoded()[:-1] + b', "x": "\\ud800"}'),
    ("a number beyond all bounds", encoded()[:-1] + b', "x": 1e999}'),
    ("field 'installed'", encoded(installed=1)),
    ("field 'installed'", encoded(installed="true")),
    ("field 'started'", encoded(started=None)),
    ("field 'errors'", encoded(errors="none")),
    ("field 'errors'", encoded(errors=3)),
    ("field 'errors.0.fixed'", encoded(errors=[{"what": "x", "fixed": "yes"}])),
    ("field 'errors.0.what'", encoded(errors=[{"what": "", "fixed": True}])),
    ("field 'test_depth'", encoded(test_depth="tier0_great")),
    ("field 'verified_how", encoded(verified_how=None)),
    ("field 'verified_how", encoded(verified_how={"command": "", "returned": "x"})),
    ("field 'verified_how", encoded(verified_how={"command": "x"})),
    ("field 'final_state'", encoded(final_state=["a", "b"])),
    ("3 errors claimed fixed but only 2 encountered", encoded(errors_fixed=3)),
    ("2 errors claimed fixed but only 1 encountered", encoded(errors_encountered=1, errors_fixed=2)),
    ("the counts say 5 encountered and 1 fixed", encoded(errors_encountered=5)),
    ("field 'errors_fixed'", encoded(errors_fixed=-1)),
    (f"more than {MAX_REPORT_BYTES}", b" " * (MAX_REPORT_BYTES + 1)),
]


@pytest.mark.parametrize(("said", "data"), REJECTED, ids=[f"{n}-{said}" for n, (said, _) in enumerate(REJECTED)])
def test_each_breach_gets_one_sentence(said: str, data: bytes) -> None:
    with pytest.raises(ReportRejected) as caught:
        parse_report(data)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_every_field_is_required(missing: str) -> None:
    with pytest.raises(ReportRejected, match=f"field '{missing}': Field required"):
        parse_report(json.dumps({key: value for key, value in GOOD.items() if key != missing}).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    with pytest.raises(ReportRejected):
        parse_report(data)


def check(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit code, standard output, and the message of a refusal."""
    done = CliRunner().invoke(make_app(), ["report", "check", *arguments], input=stdin)
    if isinstance(done.exception, RefereeError):
        return done.exception.exit_code, done.stdout, done.exception.message
    return done.exit_code, done.stdout, done.stderr


def test_the_command_says_ok(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(encoded())
    said = "ok: installed, started, 1 of 2 errors fixed, tier1_real; as claimed (edition 1): pass_full, 90 of 100\n"
    assert check(str(file)) == (0, said, "")
    assert check("-", stdin=encoded()) == (0, said, "")
    document = json.loads(check(str(file), "--json")[1])
    assert (document["ok"], document["claims"], document["total"]) == (True, "pass_full", 90)


def test_the_command_gives_one_sentence_and_exit_2() -> None:
    argv = [sys.executable, "-m", "referee.cli.app", "report", "check", "-"]
    done = subprocess.run(argv, input=encoded(errors_fixed=3), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"referee: the report is inconsistent: 3 errors claimed fixed but only 2 encountered\n"
    code, out, _ = check("-", "--json", stdin=b"nonsense")
    assert code == 2
    assert json.loads(out)["ok"] is False


def test_a_symlink_a_pipe_a_device_a_directory_and_a_giant_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(encoded())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(200 * 10**6)
    for name, said in (
        ("link", "it is a symlink"),
        ("pipe", "no regular file"),
        ("/dev/zero", "no regular file"),
        (".", "no regular file"),
        ("giant", "200000000 bytes"),
    ):
        code, _, message = check(str(tmp_path / name))
        assert (name, code) == (name, 2)
        assert said in message
    assert check("-", stdin=b" " * 3_000_000)[0] == 2
    assert check(str(tmp_path / "absent"))[0] == 5


def test_a_rejection_says_how_many_errors_there_are() -> None:
    with pytest.raises(ReportRejected) as caught:
        parse_report(b'{"installed": 1, "started": true, "errors": [], "verified_how": {"command": ""}}')
    assert caught.value.message == "the report's field 'installed': Input should be a valid boolean"
    assert caught.value.todo == "it is the first of 4 errors; the others: test_depth, verified_how, final_state"
    with pytest.raises(ReportRejected) as caught:
        parse_report(encoded(errors=[{}] * 9))
    assert caught.value.todo.startswith("it is the first of 18 errors; the others: errors.0.fixed, errors.1.what, ")
    assert caught.value.todo.endswith(", …")
    with pytest.raises(ReportRejected) as caught:
        parse_report(encoded(installed="yes"))
    assert caught.value.todo == ""
