"""The JavaScript examples of a README: types, JSX, signatures, what changes from run to run, what shows nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.agents.baseline import commands, proof
from referee.adapters.agents.baseline.terminal import Result

PAYLOAD = Path(__file__).parents[1] / "src/referee/adapters/agents/baseline/payload"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a package of ours, React, and the verification's parsers beside it."""
    root = tmp_path_factory.mktemp("bench")
    (root / "verify").mkdir()
    for path in PAYLOAD.glob("*.mjs"):
        shutil.copy(path, root / "verify")
    line = "npm init -y && npm install --silent acorn@8 sucrase@3 && cd .. && npm init -y && npm install react@18 "
    subprocess.run(line + "react-dom@18", shell=True, cwd=root / "verify", check=True, capture_output=True)
    own = root / "node_modules/shout"
    own.mkdir()
    (own / "package.json").write_text('{"name": "shout", "version": "1.0.0", "type": "module", "main": "i.js"}')
    (own / "i.js").write_text(
        "import React from 'react'\nexport const shout = s => s.toUpperCase()\n"
        "export const dice = () => Math.random()\n"
        "export const Loud = p => React.createElement('b', null, shout(p.children))\n"
    )
    return root


def trial(bench: Path, *texts: str, **more: Any) -> dict[str, dict[str, Any]]:
    """What came of examples, by number; ``more`` goes into each."""
    snippets = [{"id": str(n + 1), "title": "", "text": text, **more} for n, text in enumerate(texts)]
    (bench / "list.json").write_text(json.dumps({"package": ["shout"], "paths": [], "snippets": snippets}))
    line = ["node", "verify/verify_snippets.mjs", "list.json", "--trial", "out.json"]
    subprocess.run(line, cwd=bench, check=False, capture_output=True, timeout=60)
    value: dict[str, dict[str, Any]] = json.loads((bench / "out.json").read_text())
    return value


@pytest.mark.registry
@pytest.mark.slow
def test_types_are_read_and_documented_values_compared(bench: Path) -> None:
    text = "import { shout } from 'shout'\ninterface A { b: string }\nconst a: A = { b: 'x' }\n"
    text += "shout(a.b as string) // 'X'\n"
    seen = trial(bench, text, typed=True)["1"]
    assert not seen["failed"]
    assert len(seen["matched"]) == 1
    assert seen["matched"] == [index for index in seen["used"] if index in seen["matched"]]


@pytest.mark.registry
@pytest.mark.slow
def test_a_component_that_is_only_defined_is_rendered(bench: Path) -> None:
    own = "import { Loud } from 'shout'\nexport default function App() { return <p><Loud>hi</Loud></p> }\n"
    mounted = "import { createRoot } from 'react-dom/client'\ncreateRoot(document.body).render(<Loud>ho</Loud>)\n"
    seen = trial(bench, own, mounted)
    said = json.dumps([seen["1"]["said"], seen["2"]["said"]])
    assert "<b>HI</b>" in said
    assert "<b>HO</b>" in said
    assert all(seen[number]["used"] and not seen[number]["failed"] for number in "12")


@pytest.mark.registry
@pytest.mark.slow
def test_an_empty_result_shows_nothing(bench: Path) -> None:
    seen = trial(bench, "import { shout } from 'shout'\nconst a = shout('')\nshout('b')\n")
    assert seen["1"]["used"] == [2]


@pytest.mark.registry
@pytest.mark.slow
def test_a_definition_alone_shows_nothing(bench: Path) -> None:
    seen = trial(
        bench, "import { shout } from 'shout'\nconst f = () => shout('a')\nfunction g() { return shout('b') }\n"
    )
    assert (seen["1"]["used"], seen["1"]["failed"]) == ([], {})


@pytest.mark.registry
@pytest.mark.slow
def test_paragraphs_that_no_parser_reads_do_not_hide_the_others(bench: Path) -> None:
    text = "import { shout } from 'shout'\n\nshout(text[, options])\n\n... and so on ...\n\nshout('b') // 'B'\n"
    seen = trial(bench, text)["1"]
    assert set(seen["failed"]) == {"-1"}
    assert len(seen["used"]) == 2
    assert not trial(bench, text, skip=[-1])["1"]["failed"]


@pytest.mark.registry
@pytest.mark.slow
def test_a_muted_statement_says_what_it_gave_without_the_value(bench: Path) -> None:
    text = "import { dice, shout } from 'shout'\ndice()\nshout('c')\n"
    first, second = (trial(bench, text, mute=[1])["1"]["said"] for _ in range(2))
    assert first == second
    assert "number, another each time" in first["1"]
    assert "'C'" in first["2"]


@pytest.mark.registry
@pytest.mark.slow
def test_an_example_in_a_test_frame_runs_and_can_fail(bench: Path) -> None:
    head = "import { shout } from 'shout'\n"
    body = "describe('s', () => { it('shouts', () => { expect(shout('a')).toBe('%s') }) })\n"
    seen = trial(bench, head + body % "A", head + body % "B")
    assert (seen["1"]["failed"], len(seen["1"]["used"])) == ({}, 1)
    assert "expected 'A' to be 'B'" in next(iter(seen["2"]["failed"].values()))["text"]


def result(output: str) -> Result:
    """A run that printed this."""
    return Result(command="verify", code=0, output=output, seconds=1.0)


def test_of_output_that_changes_the_stable_lines_are_kept_and_nothing_when_none_is() -> None:
    steps: list[dict[str, Any]] = [{"kind": "command", "line": "go"}]
    runs = [result(f"$ go\nloaded 3 words\nnonce {n}\nverified: 1\n") for n in (1, 2)]
    assert proof._mute(steps, runs) is None
    assert steps[0]["stable"] == ["loaded 3 words", "verified: 1"]
    assert proof._mute(steps, runs) is None
    assert (steps[0].get("quiet"), "stable" in steps[0]) == (True, False)


@pytest.mark.parametrize(
    ("line", "where"),
    [("mkdir -p build && cd build && cmake ..", "build"), ("cd a; cd b && make", "a/b"), ("(cd a && make)", ""),
     ("cd /tmp && ls", ""), ("make", "")],
)  # fmt: skip
def test_a_line_leaves_the_readers_shell_where_its_cd_went(line: str, where: str) -> None:
    assert commands.moves(line) == where


@pytest.mark.registry
@pytest.mark.slow
def test_an_error_that_the_example_announces_is_as_documented_and_another_is_not(bench: Path) -> None:
    head = "import { shout } from 'shout'\n"
    seen = trial(bench, head + "// Throws a TypeError\nshout(5)\n\nshout(6)\n", head + "shout(svgString)\n")
    assert seen["1"]["matched"] == [1]
    assert set(seen["1"]["failed"]) == {"2"}
    assert len(seen["2"]["used"]) == 1


@pytest.mark.registry
@pytest.mark.slow
def test_what_nothing_will_settle_is_left_and_a_slow_promise_is_waited_for(bench: Path) -> None:
    head = "import { shout } from 'shout'\n"
    slow = head + "const v = await new Promise(done => setTimeout(() => done(shout('a')), 3000))\n"
    seen = trial(bench, head + "await new Promise(() => shout('x'))\n", slow)
    assert seen["1"]["failed"]["1"] == {
        "kind": "Blocked", "text": "Error: it waits for what nothing will bring", "inside": False,
    }  # fmt: skip
    assert not seen["2"]["failed"]


@pytest.mark.slow
def test_a_page_whose_script_does_not_compile_is_no_running_server(tmp_path: Path) -> None:
    program = (
        "import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(self):\n"
        "  page = self.path == '/'\n  self.send_response(200 if page else %d)\n"
        "  self.send_header('content-type', 'text/html' if page else 'text/javascript')\n  self.end_headers()\n"
        '  self.wfile.write(b\'<script src="/a.js"></script>\' if page else b"let a = 1")\n'
        "http.server.HTTPServer(('127.0.0.1', 0), H).serve_forever()\n"
    )
    said = {}
    for status in (200, 500):
        (tmp_path / "s.py").write_text(program % status)
        shutil.copy(PAYLOAD / "verify.py", tmp_path)
        step = {"kind": "server", "line": f"exec python3 {tmp_path}/s.py", "paths": ["/"], "port": None}
        (tmp_path / "plan.json").write_text(json.dumps({"cwd": str(tmp_path), "steps": [step]}))
        done = subprocess.run(
            ["python3", str(tmp_path / "verify.py")], check=False, capture_output=True, text=True, timeout=60
        )
        said[done.returncode] = done.stdout
    assert "its script /a.js -> 200 text/javascript" in said[0]
    assert "GET /a.js answered 500" in said[1]


@pytest.mark.registry
@pytest.mark.slow
def test_a_documented_value_that_does_not_come_is_told(bench: Path) -> None:
    text = "import { shout } from 'shout'\nshout('a') // 'B'\nshout('c') // loud\n"
    text += "console.log(shout('d')) // 6\nshout('e') // 5\n"
    seen = trial(bench, text)["1"]
    assert seen["differs"] == [[1, "'B'", "A"], [3, "6", "D"]]
    assert seen["used"] == [2, 4]


@pytest.mark.registry
@pytest.mark.slow
def test_a_function_that_the_reader_would_bring_is_a_sample_of_ours(bench: Path) -> None:
    text = "import { Loud } from 'shout'\nexport default function App() { return <Loud>{fetcher()}</Loud> }\n"
    seen = trial(bench, text)["1"]
    assert (seen["failed"], "SAMPLE" in json.dumps(seen["said"])) == ({}, True)


@pytest.mark.registry
@pytest.mark.slow
def test_what_a_restless_example_says_by_chance_is_left_out(bench: Path) -> None:
    text = "import { shout } from 'shout'\nconsole.log(shout('now'))\n"
    text += "setInterval(() => process.stderr.write('tick'), 70)\n"
    first = trial(bench, text)["1"]
    assert first["restless"] is True
    said = "".join(trial(bench, text, restless=True)["1"]["said"].values()).splitlines()
    assert ("NOW" in said, "tick" in said) == (True, False)
    assert "tick" in "".join(first["said"].values()).splitlines()
