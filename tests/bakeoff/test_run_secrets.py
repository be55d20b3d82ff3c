"""A sentinel credential comes back in every place an answer can carry it, and reaches nothing that is written."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from referee.core.redaction import Redactor
from tests.bakeoff.lane_targets import KEY, SURFACES
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_server import serving
from tests.bakeoff.test_run_start import command

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

PLAYS = [
    "echo-credential",
    "echo-credential-error",
    "echo-credential-stream",
    "echo-credential-pieces",
    "echo-credential-chunks",
    "echo-credential-encoded",
    "echo-credential-wire",
]
ONE_TRY = "[retry]\ntries = 1\n"


def told(root: Path) -> bytes:
    """Every byte of the workspace."""
    return b"\0".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def forms(key: str) -> list[bytes]:
    raw = key.encode()
    return [
        raw,
        raw[: len(raw) // 2 + 4],  # half of it, as pieces of a stream leave behind
        base64.b64encode(raw)[:-3],
        base64.b64encode(b"Bearer " + raw)[12:-3],
        quote(key, safe="").encode(),
        raw.hex().encode(),
        raw[::-1],
        "".join(f"\\u{ord(letter):04x}" for letter in key).encode(),
    ]


def never_written(written: bytes) -> None:
    for form in forms(KEY):
        assert form not in written
    assert not Redactor({"SCRIPTED_API_KEY": KEY}).holds(written)


@pytest.mark.parametrize("lane", SURFACES)
@pytest.mark.parametrize("play", PLAYS)
def test_a_credential_that_comes_back_reaches_nothing_that_is_written(tmp_path: Path, play: str, lane: str) -> None:
    with serving(calls=right) as server:
        base = server.url if lane == "ollama" else f"{server.url}/v1"
        more = {"lane": lane, "base_url": base, "stream": play == "echo-credential-stream"}
        if lane == "ollama":
            more["channel"] = "local"
        space = RunWorkspace(tmp_path, server.url, cases=3, repeats=1, plan=ONE_TRY, one=more)
        server.script = lambda got: play if "City" in got.question else None
        report = space.run()
        sent = [got for got in server.got if "City" in got.question and got.credential == KEY]
        assert sent, "the sentinel was not sent, so nothing was tested"
    assert space.rows()
    never_written(told(tmp_path) + repr(report).encode())
    assert not Redactor({"SCRIPTED_API_KEY": KEY}).holds_pieces(told(tmp_path / "answers"))
    if play != "echo-credential-wire":  # what is no HTTP is not kept, only that it was none
        assert b"[redacted:SCRIPTED_API_KEY]" in told(tmp_path / "answers")


def test_an_answer_that_had_to_be_withheld_is_asked_for_once(tmp_path: Path) -> None:
    plan = "[retry]\ntries = 4\nfirst_seconds = 0.01\n"
    with serving(calls=lambda _: [("get_weather", {"letters": list(KEY)})]) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, plan=plan)
        space.run()
        asked = [got for got in server.got if "City" in got.question]
    assert [(row["infra_class"], row["passed"], row["tries"]) for row in space.rows()] == [("withheld", None, 1)] * 2
    assert len(asked) == 2


@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
def test_neither_progress_nor_report_tells_a_credential(tmp_path: Path, play: str) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=12, repeats=1, plan=ONE_TRY)
        space.freeze()
        server.script = lambda got: play if "City" in got.question else None
        done = command(space, SCRIPTED_API_KEY=KEY)
    assert space.rows(), done.stderr
    report = subprocess.run(
        [str(Path(sys.executable).with_name("referee")), "bakeoff", "report", "small", "--all", "-w", str(tmp_path)],
        env={**os.environ, "SCRIPTED_API_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert report.returncode == 0, report.stderr
    never_written(told(tmp_path) + (done.stdout + done.stderr + report.stdout + report.stderr).encode())


def test_a_check_that_fails_says_so_without_the_credential(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, f"{server.url}/play/echo-credential-error", cases=1)
        space.freeze()
        done = command(space, SCRIPTED_API_KEY=KEY)
    assert done.returncode != 0
    for form in forms(KEY):
        assert form not in told(tmp_path) + (done.stdout + done.stderr).encode()


def test_only_the_credentials_name_stands_in_files(tmp_path: Path) -> None:
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=1, repeats=1)
        space.run()
    assert b"SCRIPTED_API_KEY" in told(tmp_path)
    assert KEY.encode() not in told(tmp_path)


@pytest.mark.parametrize(("pinned", "code"), [({"quantisation": "Q8_0"}, 4), ({}, 0)])
def test_a_check_by_hand_tells_no_credential(tmp_path: Path, pinned: dict[str, str], code: int) -> None:
    with serving(ollama={"details": {"quantization_level": f"Q4 {KEY}"}}) as server:
        more = {"lane": "ollama", "base_url": server.url, "channel": "local", **pinned}
        RunWorkspace(tmp_path, server.url, cases=1, one=more)
        done = subprocess.run(
            [str(Path(sys.executable).with_name("referee")), "bakeoff", "targets", "check", "one", "-w", str(tmp_path)],
            env={**os.environ, "SCRIPTED_API_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == code, done.stderr
    assert "Q4 [redacted:SCRIPTED_API_KEY]" in done.stdout + done.stderr
    never_written((done.stdout + done.stderr).encode())


def test_a_name_that_is_like_a_credential_stays_the_name_that_it_is(tmp_path: Path) -> None:
    aims: dict[str, Any] = {"local-engine-of-tests": {}}
    with serving(calls=right) as server:
        space = RunWorkspace(tmp_path, server.url, cases=2, repeats=1, **aims)
        space.environ["SCRIPTED_API_KEY"] = "key-local-engine-of-tests"
        space.run()
        assert space.verify().rows == 2
    assert [row["target"] for row in space.rows()] == ["local-engine-of-tests"] * 2
    assert all(row["passed"] for row in space.rows())
