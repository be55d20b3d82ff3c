"""``show``, ``board``, ``verdict`` and ``site build``, through the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from referee.cli.app import main
from tests.publish_workspace import Try, Written

REFEREE = (sys.executable, "-m", "referee.cli.app")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = Written(tmp_path_factory.mktemp("workspace"))
    written.write()
    return written.root


@dataclass(frozen=True)
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def referee(workspace: Path, *argv: str) -> Done:
    """Run the command line in this process: its whole way but the start of an interpreter."""
    out, errors = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["referee", *argv, "--workspace", str(workspace)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            main()
    except SystemExit as exc:
        code = exc.code or 0
    finally:
        sys.argv = before
    assert isinstance(code, int)
    return Done(code, out.getvalue(), errors.getvalue())


def one_document(done: Done) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_show_tells_rows_errors_phases_and_digests(workspace: Path) -> None:
    done = referee(workspace, "show", "r-000000000pass")
    assert done.returncode == 0
    for said in (
        "pass, verified for real, 93.33 of 100",
        "1. fixed: fatal error: graphviz/cgraph.h: No such file or directory",
        "3. not fixed: a warning of the linker",
        "square printed 144 for 12 — the quickstart works.",
        "starting the machine",
        "corroborated",
        "python3 -m square 12",
    ):
        assert said in done.stdout
    document = one_document(referee(workspace, "show", "r-000000000pass", "--json"))
    assert document["schema"] == "referee.run/1"
    assert document["rows"] == {"install": 30, "start": 30, "fixes": pytest.approx(40 / 3), "depth": 20}
    for file in document["files"]:
        assert file["digest"] in done.stdout
    assert document["evidence"] in done.stdout


@pytest.mark.parametrize("name", ["last", "r-0000rejected1", "r-0000rej", "0000rej"])
def test_a_run_is_found_by_id_beginning_or_last(workspace: Path, name: str) -> None:
    assert one_document(referee(workspace, "show", name, "--json"))["run"] == "r-0000rejected1"


def test_an_ambiguous_beginning_is_a_usage_error_and_an_unknown_run_matches_nothing(workspace: Path) -> None:
    ambiguous = referee(workspace, "show", "r-0000000fail")
    assert ambiguous.returncode == 2
    assert "r-0000000fail01, r-0000000fail02" in ambiguous.stderr
    unknown = referee(workspace, "show", "r-zzz")
    assert (unknown.returncode, unknown.stdout) == (5, "")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("r-000000invalid", "invalid, not counted: the recording reached its size cap"),
        ("r-00000000open1", "no end is recorded"),
        ("r-00000overlay1", "NO SECURITY BOUNDARY, never publishable"),
        ("r-0000contradic", "the report was contradicted: a person must look at it"),
        ("r-0000rejected1", "the report's field 'started': Field required"),
        ("r-000000vendor1", "acme-coder-9000 0.1.0"),
    ],
)
def test_show_says_what_is_special(workspace: Path, run: str, said: str) -> None:
    assert said in referee(workspace, "show", run).stdout


def test_hostile_text_does_not_reach_the_terminal_as_control(workspace: Path) -> None:
    for argv in (("show", "r-000000hostile"), ("show", "r-0000000fail01"), ("board",)):
        out = referee(workspace, *argv).stdout
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "\u202e" not in out
    assert "[" not in referee(workspace, "show", "r-000000hostile").stdout.split("final state")[0].split("run again")[0]


@pytest.mark.parametrize(
    ("subject", "code", "verdict"),
    [
        ("square", 0, "runs"),
        ("mailer", 0, "runs_with_mocks"),
        ("pygraphviz", 4, "could_not_verify"),
        ("slowbuild", 4, "not_yet_verified"),
    ],
)
def test_the_exit_code_tells_the_verdict(workspace: Path, subject: str, code: int, verdict: str) -> None:
    done = referee(workspace, "verdict", subject)
    assert done.returncode == code
    assert verdict.replace("_", " ") in done.stdout
    assert "broken" not in done.stdout
    asked = referee(workspace, "verdict", subject, "--json")
    assert asked.returncode == code
    document = one_document(asked)
    assert (document["schema"], document["verdict"]) == ("referee.verdict/1", verdict)


def test_an_unknown_subject_matches_nothing(workspace: Path) -> None:
    done = referee(workspace, "verdict", "nobody")
    assert (done.returncode, done.stdout) == (5, "")
    assert "nobody" in done.stderr


def test_the_board_is_the_same_for_people_and_programs(workspace: Path) -> None:
    said = referee(workspace, "board").stdout
    document = one_document(referee(workspace, "board", "--json"))
    assert document["schema"] == "referee.board/1"
    assert [line["agent"]["label"] for line in document["standings"]] == ["acme-coder-9000", "baseline"]
    assert "the runs lie too far apart" in said
    assert "could not verify (under review)" in said
    assert "wobbly" in said


def test_the_terminal_leads_to_the_names_on_pages(workspace: Path) -> None:
    assert 'acme-coder-9000 0.1.0, on pages "Agent A"' in referee(workspace, "show", "r-000000vendor1").stdout
    lines = referee(workspace, "board").stdout.splitlines()
    assert any("acme-coder-9000" in line and "Agent A" in line for line in lines)
    assert "by agent  baseline\n" in referee(workspace, "verdict", "mailer").stdout
    standings = one_document(referee(workspace, "board", "--json"))["standings"]
    assert [line["agent"]["on_pages"] for line in standings] == ["Agent A", "baseline"]


def test_the_terminal_says_what_can_never_be_published(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "square", sandbox="overlay"),))
    said = "runs (rests on 1 attempt that can never be published (no security boundary))"
    assert f"square: {said}" in referee(tmp_path, "verdict", "square").stdout
    board = referee(tmp_path, "board").stdout
    assert said in board
    assert "1 not counted (no security boundary)" in board
    assert "100 (no security boundary)" in board
    assert "100 of 100 (never publishable: no security boundary)" in referee(tmp_path, "show", "r-1").stdout


def test_one_total_alone_has_no_spread_here_as_on_pages(workspace: Path) -> None:
    sets = [line.split() for line in referee(workspace, "board").stdout.splitlines() if "mailer" in line]
    assert "none" in sets[0]
    assert "%" not in sets[0]


def test_nothing_is_folded_in_a_pipe(workspace: Path) -> None:
    for argv in (("board",), ("show", "r-000000000pass"), ("subject", "list")):
        lines = referee(workspace, *argv).stdout.splitlines()
        assert not [line for line in lines if line.endswith("…")]
    listed = one_document(referee(workspace, "subject", "list", "--json"))["subjects"]
    longest = max((one["summary"] for one in listed), key=len)
    assert longest in referee(workspace, "subject", "list").stdout


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["60", "40"])
def test_a_narrow_screen_cuts_no_name_or_digest_in_two(workspace: Path, columns: str) -> None:
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": columns, "NO_COLOR": "1"}
    document = one_document(referee(workspace, "show", "r-000000000mock", "--json"))
    for argv, wanted in (
        (("board",), ["r-0000contradic", "acme-coder-9000 0.1.0", document["evidence"].removeprefix("sha256:")[:12]]),
        (("show", "r-000000000mock"), [file["digest"] for file in document["files"]]),
    ):
        shown = _on_a_terminal([*REFEREE, *argv, "--workspace", str(workspace)], environment)
        for text in wanted:
            assert text in shown


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    done = referee(tmp_path, "board")
    assert done.returncode == 0
    assert "No attempt has been recorded here yet" in done.stdout
    empty: dict[str, Any] = {"schema": "referee.board/1", "edition": None, "standings": [], "other_editions": []}
    assert one_document(referee(tmp_path, "board", "--json")) == empty


def test_site_build_prints_the_page_to_open(workspace: Path) -> None:
    done = referee(workspace, "site", "build")
    assert Path(done.stdout.strip()).is_file()
    document = one_document(referee(workspace, "site", "build", "--json"))
    assert document["schema"] == "referee.site-build/1"
    assert document["open"].startswith("file://")


def test_verify_compares_the_built_site_and_tells_strays(tmp_path: Path) -> None:
    written = Written(tmp_path)
    assert referee(tmp_path, "verify").returncode == 5
    written.write((Try("r-1", "square", None, end="open"),))
    referee(tmp_path, "site", "build")
    (tmp_path / "evidence").mkdir(exist_ok=True)
    (tmp_path / "evidence" / "notes.txt").write_text("x")
    done = referee(tmp_path, "verify")
    assert done.returncode == 0
    assert "files compared with the pages written again" in done.stdout
    assert "note: evidence/notes.txt is no evidence: no record can name it" in done.stdout
    document = one_document(referee(tmp_path, "verify", "--json"))
    assert (document["strays"], document["site"]["there"], document["site"]["not_compared"]) == (
        ["notes.txt"],
        True,
        "",
    )
    page = tmp_path / "site" / "index.html"
    page.write_text(page.read_text().replace("not yet verified", "runs"))
    changed = referee(tmp_path, "verify")
    assert (changed.returncode, changed.stdout) == (1, "")
    assert "index.html is not what records and evidence give" in changed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals_that_want_it(tmp_path: Path, no_color: str, coloured: bool) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "square"),))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = no_color
    out = _on_a_terminal([*REFEREE, "board", "--workspace", str(tmp_path)], environment)
    assert "runs" in out
    assert ("\x1b[32m" in out) is coloured


def _on_a_terminal(argv: list[str], environment: dict[str, str]) -> str:
    """What a command shows on a terminal."""
    master, slave = pty.openpty()
    try:
        done = subprocess.Popen(argv, stdout=slave, env=environment, stdin=subprocess.DEVNULL)
        os.close(slave)
        out = _drain(master)
        assert done.wait() == 0
        return out
    finally:
        os.close(master)


def _drain(master: int) -> str:
    """All that a terminal was given; its other end is closed."""
    data = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            return data.decode()
        if not piece:
            return data.decode()
        data += piece
