"""The programs that verify inside the machine: they decode, they compare, and they fail when something is not right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from referee.adapters.agents.baseline.payload import verify_decode, verify_samples

PAYLOAD = Path(verify_decode.__file__).parent


def run_snippets(tmp_path: Path, snippets: list[dict[str, Any]], package: list[str], *more: str) -> tuple[int, str]:
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"package": package, "snippets": snippets}))
    line = [sys.executable, str(PAYLOAD / "verify_snippets.py"), str(listed), *more]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout


def snippet(number: int, text: str, kind: str = "plain", **more: object) -> dict[str, Any]:
    return {"id": str(number), "title": "t", "kind": kind, "text": text, **more}


def trial(tmp_path: Path, snippets: list[dict[str, Any]], package: list[str]) -> dict[str, Any]:
    out = tmp_path / "trial.json"
    run_snippets(tmp_path, snippets, package, "--trial", str(out))
    value: dict[str, Any] = json.loads(out.read_text())
    return value


def test_examples_share_a_namespace_and_values_are_compared_with_comments(tmp_path: Path) -> None:
    examples = [
        snippet(1, "import textwrap\nshort = textwrap.indent('a', '> ')\n"),
        snippet(2, "short + '!'  # => '> a!'\ntextwrap.dedent(' x')  # 'y'\n"),
    ]
    seen = trial(tmp_path, examples, ["textwrap"])
    assert seen["1"]["used"] == [1]
    assert seen["2"]["failed"] == {}
    assert seen["2"]["matched"] == [0]


def test_an_import_alone_is_no_use_of_the_package(tmp_path: Path) -> None:
    seen = trial(tmp_path, [snippet(1, "from textwrap import dedent\nprint(len('x'))\n")], ["textwrap"])
    assert seen["1"]["ran"] == [0, 1]
    assert seen["1"]["used"] == []


def test_a_missing_import_and_a_missing_sample_are_supplied(tmp_path: Path) -> None:
    text = "rows = list(csv.reader(open('people.csv')))\nrows[0]\n"
    seen = trial(tmp_path, [snippet(1, text)], ["csv"])
    assert seen["1"]["samples"] == ["people.csv"]
    assert seen["1"]["used"] == [0, 1]


@pytest.mark.slow
def test_an_example_that_no_alarm_reaches_is_left_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIFY_SNIPPET_SECONDS", "1")
    text = "import ctypes, time\nctypes.CDLL(None).pause.restype\n"
    text += "while True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        pass\n"
    seen = trial(tmp_path, [snippet(1, text)], ["ctypes"])
    assert seen["1"]["stuck"] is True
    assert seen["1"]["failed"]["2"]["kind"] == "Blocked"


def test_a_placeholder_and_an_unknown_name_are_left_out_with_their_kind(tmp_path: Path) -> None:
    seen = trial(tmp_path, [snippet(1, "import csv\ncsv.reader('<your file>')\ncsv.reader(nothing)\n")], ["csv"])
    assert {key: failure["kind"] for key, failure in seen["1"]["failed"].items()} == {
        "1": "SyntaxError",
        "2": "NameError",
    }


def test_documented_output_that_no_longer_matches_fails_the_verification(tmp_path: Path) -> None:
    text = ">>> import textwrap\n>>> textwrap.indent('a', '> ')\n'a'\n"
    code, said = run_snippets(tmp_path, [snippet(1, text, "pycon", matched=[1])], ["textwrap"])
    assert (code, "no longer match" in said) == (1, True)


def test_a_snippet_that_fails_fails_the_verification(tmp_path: Path) -> None:
    code, said = run_snippets(tmp_path, [snippet(1, "import csv\ncsv.nothing()\n")], ["csv"])
    assert code == 1
    assert "AttributeError" in said
    assert run_snippets(tmp_path, [snippet(1, "import csv\ncsv.nothing()\n", skip=[1])], ["csv"])[0] == 0


def test_a_doctest_is_compared(tmp_path: Path) -> None:
    seen = trial(tmp_path, [snippet(1, ">>> import csv\n>>> csv.QUOTE_ALL + 1\n2\n>>> 1\n5\n", "pycon")], ["csv"])
    assert seen["1"]["matched"] == [1]
    assert seen["1"]["differs"] == [[2, "5", "1"]]


@pytest.mark.parametrize(
    "name", ["a.wav", "a.csv", "a.json", "a.svg", "a.xml", "a.html", "a.zip", "a.db", "a.png", "a.txt"]
)
def test_every_sample_decodes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert verify_samples.make(name)
    assert verify_decode.decode(name)


def test_no_sample_is_made_outside_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not verify_samples.make("../x.txt")
    assert not verify_samples.make("/tmp/x.txt")


def _half_jpeg(path: Path) -> None:
    Image.effect_noise((200, 200), 80).convert("RGB").save(path, "JPEG")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _short_wav(path: Path) -> None:
    verify_samples._wav(str(path))
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("half.jpg", _half_jpeg),
        ("short.wav", _short_wav),
        ("nan.json", lambda path: path.write_text("[NaN]")),
        ("twice.json", lambda path: path.write_text('{"a": 1, "a": 2}')),
        ("broken.svg", lambda path: path.write_text("<svg><g></svg>")),
        ("empty.txt", lambda path: path.write_text(" \n")),
        ("broken.zip", lambda path: path.write_bytes(b"PK\x03\x04nothing")),
    ],
)
def test_what_a_header_check_would_accept_is_refused(name: str, make: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    make(path)
    with pytest.raises(verify_decode.Undecodable):
        verify_decode.decode(str(path))


def run_plan(tmp_path: Path, steps: list[dict[str, Any]]) -> tuple[int, str]:
    verify = tmp_path / "verify"
    verify.mkdir(exist_ok=True)
    for entry in PAYLOAD.glob("*.py"):
        (verify / entry.name).write_bytes(entry.read_bytes())
    plan = {"env": {}, "path": [], "cwd": str(verify / "scratch"), "scratch": True, "steps": steps}
    (verify / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [sys.executable, str(verify / "verify.py")], capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout


def test_a_plan_runs_decodes_and_is_the_same_twice(tmp_path: Path) -> None:
    steps = [{"kind": "command", "line": "echo '{\"a\": 1}' > made.json && echo made it in 3.2 s"}]
    first, second = run_plan(tmp_path, steps), run_plan(tmp_path, steps)
    assert first == second
    assert first[0] == 0
    assert "decoded made.json: JSON dict with 1 entries" in first[1]


def test_a_file_that_cannot_be_decoded_fails_the_plan(tmp_path: Path) -> None:
    code, said = run_plan(tmp_path, [{"kind": "command", "line": "echo '{' > made.json"}])
    assert code == 1
    assert "NOT verified" in said


def test_a_failing_command_fails_the_plan(tmp_path: Path) -> None:
    assert run_plan(tmp_path, [{"kind": "command", "line": "false"}])[0] == 1
    assert run_plan(tmp_path, [{"kind": "tests", "line": "echo nothing ran"}])[0] == 1


SERVER = """\
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"answer": 42}' if self.path == "/answer" else b""
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
http.server.HTTPServer(("127.0.0.1", 0), H).serve_forever()
"""


def test_a_server_is_asked_on_its_own_port_and_stopped(tmp_path: Path) -> None:
    file = {"kind": "file", "name": "server.py", "text": SERVER}
    server = {"kind": "server", "line": f"{sys.executable} server.py", "paths": ["/answer"]}
    code, said = run_plan(tmp_path, [file, server])
    assert (code, 'GET /answer -> 200 text/plain {"answer": 42}' in said) == (0, True)
    assert run_plan(tmp_path, [file, {**server, "paths": ["/nothing"]}])[0] == 1


def test_a_mere_directory_listing_is_no_server(tmp_path: Path) -> None:
    server = {"kind": "server", "line": f"{sys.executable} -m http.server 0 --bind 127.0.0.1", "paths": ["/"]}
    assert run_plan(tmp_path, [server])[0] == 1
