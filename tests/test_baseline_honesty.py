"""What baseline may say: no documented output that did not come, no install of nothing, no failure left out."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.agents.baseline import commands, drive, mission, quickstart, shows, workshop
from referee.adapters.agents.baseline.documents import parse_document
from referee.adapters.agents.baseline.ecosystems.plan import Plan
from referee.adapters.agents.baseline.payload import verify, verify_compare, verify_samples, verify_snippets
from referee.adapters.agents.baseline.report import Draft, plural


def make_shop(tmp_path: Path, readme: str, **subject: object) -> workshop.Workshop:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text(readme)
    value = {
        "subject": {
            "name": "tinycalc",
            "kind": "repository",
            "readme": str(tmp_path / "project" / "README.md"),
            **subject,
        },
        "project": str(tmp_path / "project"),
        "report": str(tmp_path / "report.json"),
        "seconds": 600,
        "deadline": time.time() + 600,
    }
    (tmp_path / "mission.json").write_text(json.dumps(value))
    return workshop.Workshop(mission.read_mission(tmp_path / "mission.json"), Draft())


def brought_up(tmp_path: Path, readme: str, **files: str) -> dict[str, Any]:
    """The report on a tree of files, brought up on this machine by its README alone."""
    shop = make_shop(tmp_path, readme)
    for name, text in files.items():
        path = shop.project / name.replace("_sh", ".sh")
        path.write_text(text)
        path.chmod(0o755)
    drive.carry_out(shop, Plan(ecosystem="README only", confidence=12, languages=frozenset({"shell"})))
    return shop.draft.as_dict()


@pytest.mark.parametrize(
    ("said", "seen", "verdict"),
    [
        ("6", "5\n", "differs"),
        ("5", "5\n", "same"),
        ("'abc'", "abc", "same"),
        ("{'b': 1, 'a': 2}", "{'a': 2, 'b': 1}", "same"),
        ("u'x'", "'x'", "same"),
        ("0.333", "0.3333333333", "same"),
        ("0.334", "0.3333333333", "differs"),
        ("-5", "5", "differs"),
        ("True", "1", "differs"),
        ("done in 1.2 s", "done in 3.4 s", "alike"),
        ("version 1.2.3", "version 1.4.0", "alike"),
        ("<Arrow [2013-05-11T21:23:58.970460+00:00]>", "<Arrow [2026-11-30T07:00:00.1+00:00]>", "alike"),
        ("wrote /home/ann/x/a.txt", "wrote /work/y/b/a.txt", "alike"),
        ("4 files in /tmp/x/y", "5 files in /tmp/z/y", "differs"),
        ("a 1\n...\nc 3", "a 1\nb 2\nc 3", "same"),
        ("...", "anything", "alike"),
        ("None", "", "alike"),
    ],
)
def test_an_output_is_the_same_or_alike_only_for_a_reason(said: str, seen: str, verdict: str) -> None:
    assert verify_compare.verdict(said, seen) == verdict


@pytest.mark.parametrize(
    ("said", "value", "printed", "marked", "verdict"),
    [
        ("6", 5, "", False, "differs"),
        ("5", 5, "", False, "same"),
        ("adds the two", 5, "", False, "alike"),  # a remark
        ("6", "5", "", False, "alike"),  # a number behind a text: a footnote
        ("Hello", None, "Hallo", True, "differs"),
        ("6", object(), "", True, "alike"),
        ("6", None, "", False, "alike"),
    ],
)
def test_a_comment_states_an_output_or_is_a_remark(
    said: str, value: object, printed: str, *, marked: bool, verdict: str
) -> None:
    assert verify_compare.stated(said, value, printed, marked=marked)[0] == verdict


def test_a_documented_output_that_does_not_come_is_no_use_of_the_package(tmp_path: Path) -> None:
    examples = [
        {"id": "1", "title": "", "kind": "plain", "text": "import math\nmath.sqrt(9)  # 4.0\nmath.sqrt(4)  # => 2.0\n"},
        {"id": "2", "title": "", "kind": "plain", "text": "import math\nprint(math.floor(2.5))\n# 3\n"},
        {"id": "3", "title": "", "kind": "pycon", "text": ">>> math.gcd(4, 6)\n3\n"},
        {"id": "4", "title": "", "kind": "plain", "text": "print(math.gcd(4, 6))\n", "expected": "3\n"},
        {"id": "5", "title": "", "kind": "plain", "text": "math.floor(len(text) / 2)  # 1\n"},
    ]
    (tmp_path / "list.json").write_text(json.dumps({"package": ["math"], "snippets": examples}))
    program = Path(verify_snippets.__file__)
    line = [sys.executable, str(program), "list.json", "--trial", "out.json"]
    subprocess.run(line, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    seen = json.loads((tmp_path / "out.json").read_text())
    assert [entry["differs"] for entry in seen.values()] == [
        [[1, "4.0", "3.0"]],
        [[1, "3", "2"]],
        [[0, "3", "2"]],
        [[1, "3", "2"]],
        [],  # the text was ours: what is documented cannot come
    ]
    assert (seen["1"]["matched"], seen["1"]["used"]) == ([2], [2])
    assert seen["3"]["used"] == []


def test_a_wrong_output_in_a_shell_session_stands_in_the_report_and_verifies_nothing(tmp_path: Path) -> None:
    readme = "# t\n\n```console\n$ ./add.sh 2 3\n6\n```\n"
    report = brought_up(tmp_path, readme, add_sh="#!/bin/sh\necho $(($1 + $2))\n")
    assert (report["started"], report["test_depth"]) == (False, "tier3_none")
    (error,) = report["errors"]
    assert ("`6`" in error["what"], "`5`" in error["what"], error["fixed"]) == (True, True, False)


def test_a_right_output_in_a_shell_session_verifies(tmp_path: Path) -> None:
    readme = "# t\n\n```console\n$ ./add.sh 2 3\n5\n```\n"
    report = brought_up(tmp_path, readme, add_sh="#!/bin/sh\necho $(($1 + $2))\n")
    assert (report["test_depth"], report["errors"]) == ("tier1_real", [])
    assert "1 output was as documented" in str(report["final_state"])
    assert "(as documented)" in report["verified_how"]["returned"]


def test_a_readme_that_shows_nothing_is_no_install(tmp_path: Path) -> None:
    report = brought_up(tmp_path, "Nothing here.\n")
    assert (report["installed"], report["started"], report["test_depth"]) == (False, False, "tier3_none")


def test_documented_steps_that_fail_are_errors(tmp_path: Path) -> None:
    readme = "# t\n\n```sh\n./add.sh 2 3\n```\n"
    report = brought_up(tmp_path, readme, add_sh="#!/bin/sh\necho boom >&2\nexit 3\n")
    assert report["started"] is False
    assert any("boom" in error["what"] and not error["fixed"] for error in report["errors"])


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n",
        "Usage: tool [options]\n",
        "tool 1.2.3\n",
        "Welcome to tool\nhttps://tool\n",
        "file not found\n",
        "tool 1.0\nProject name:\n",
    ],
)
def test_some_outputs_say_nothing(output: str) -> None:
    assert shows.hollow(output)
    assert not shows.hollow("3 lines read\n7 words\n")


def test_an_echo_is_no_work() -> None:
    line, other = "tool hello", shows.altered("tool hello")
    assert other == "tool zebra-hello-zebra"
    assert shows.echoes("Updating hello\n", "Updating zebra-hello-zebra\n", line, other)
    assert shows.echoes("banner\n", "banner\n", line, other)
    assert not shows.echoes("olleh\n", "arbez-olleh-arbez\n", line, other)
    assert shows.altered("tool --flag") == ""
    assert shows.altered("echo 'some text' | tool") == "echo 'zebra some text' | tool"


@pytest.mark.parametrize(
    "line",
    [
        "apt-get install python3-segno", "apt update && apt install -y python3-segno", "brew install segno",
        "conda install -c conda-forge segno", "pipx install segno", "dnf install python3-segno", "pip install -U segno",
    ],
)  # fmt: skip
def test_another_install_of_the_project_itself_is_told(line: str) -> None:
    assert commands.installs_itself(line, frozenset({"segno"}))
    assert not commands.installs_itself("apt-get install libzbar0", frozenset({"segno"}))


def test_a_distribution_package_of_the_project_is_no_further_install(tmp_path: Path) -> None:
    readme = "```sh\napt-get install python3-tinycalc\napt-get install libzbar0\n```\n"
    shop = make_shop(tmp_path, readme)
    plan = Plan(ecosystem="x", confidence=50, packages=("tinycalc",))
    assert quickstart.Quickstart(shop, plan, parse_document(readme, ".md")).documented_installs() == ["apt:libzbar0"]


def test_counts_agree_with_their_nouns() -> None:
    assert [plural(1, "output"), plural(2, "output")] == ["1 output", "2 outputs"]


def test_code_of_an_interpreter_shows_nothing_of_the_project(tmp_path: Path) -> None:
    readme = "# t\n\n```sh\npython3 -c \"print('ready')\"\n```\n"
    report = brought_up(tmp_path, readme, add_sh="#!/bin/sh\n")
    assert (report["installed"], report["test_depth"]) == (False, "tier3_none")


def test_a_sample_pdf_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert verify_samples.make("a.pdf")
    data = Path("a.pdf").read_bytes()
    places = [int(line.split()[0]) for line in data[data.rindex(b"\nxref\n") :].splitlines() if line.endswith(b" n ")]
    assert [data[place : place + 7] for place in places] == [b"%d 0 obj" % number for number in range(1, 6)]
    assert data[int(data.split(b"startxref\n")[1].split()[0]) :].startswith(b"xref")


def test_the_same_test_run_reads_the_same_on_either_side_of_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    verify.say("4050 passed in 118.86s (0:01:58)")
    verify.say("4050 passed in 55.10s")
    first, second = capsys.readouterr().out.splitlines()
    assert first == second == "4050 passed in …s"


@pytest.mark.slow
def test_a_service_that_the_verification_started_is_stopped_by_it(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    plan = {
        "cwd": str(tmp_path), "steps": [{"kind": "command", "line": "echo done"}],
        "services": [{
            "name": "ours", "port": port, "probe": f"timeout 2 bash -c '</dev/tcp/127.0.0.1/{port}' 2>/dev/null",
            "start": f"(setsid {sys.executable} -m http.server --bind 127.0.0.1 {port} >/dev/null 2>&1 &)",
        }],
    }  # fmt: skip
    verifier = verify.Verifier(plan)
    try:
        verifier.prepare()
        assert len(verify.holders(port)) == 1
    finally:
        verifier.close()
    assert verify.holders(port) == []


def test_a_step_ends_although_it_leaves_something_in_the_background(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verifier = verify.Verifier({"cwd": str(tmp_path), "steps": []})
    verifier.command({"kind": "command", "line": "sleep 300 & echo done", "seconds": 60}, str(tmp_path))
    (left,) = verifier.started
    verifier.close()
    assert capsys.readouterr().out.splitlines()[-1] == "done"
    for _ in range(100):  # who takes the orphan in may be slow to count it as ended
        if not _alive(left.pid):
            break
        time.sleep(0.05)
    assert not _alive(left.pid)


def _alive(group: int) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            cells = entry.read_text(errors="replace").rsplit(")", 1)[1].split()
            found += [entry.parent.name] if int(cells[2]) == group and cells[0] != "Z" else []
    return found
