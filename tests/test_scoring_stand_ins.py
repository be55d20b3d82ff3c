"""Stand-ins of other kinds, other copies and quotations: what demotes a claim, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.live_lines import live_lines
from referee.core.records import CompiledFacts, ControlFacts, InstalledFacts, ListenerFacts, ObservedFacts, RerunFacts
from referee.core.report import Report, Verification
from referee.core.scripts import SCRIPTS_NAME, Scripts, read_scripts, scripts_bytes
from referee.scoring.audit import audit
from referee.scoring.beside import Beside
from referee.scoring.challenges import challenges
from referee.scoring.citations import quoted
from referee.scoring.command_parts import brings_pinned, parts
from referee.scoring.corroboration import corroborate
from referee.scoring.serving import imported, served_file

ASKED = "python3 /work/stub.py & sleep 1; curl -fs http://127.0.0.1:8000/"
STUB = "import bottle\n@bottle.route('/')\ndef answer():\n    return '144'\nbottle.run(port=8000)\n"
WRAPPER = "import bottle\nfrom square import square\n@bottle.route('/')\ndef answer():\n    return str(square(12))\n"


def listener(*argv: str, **fields: Any) -> ListenerFacts:
    values = {"port": 8000, "address": "127.0.0.1", "pid": 9, "executable": "/usr/bin/python3.11", "cwd": "/work"}
    return ListenerFacts(argv=argv, **{**values, **fields})


def flags(
    command: str,
    facts: dict[str, Any],
    scripts: Scripts | None = None,
    *,
    printed: str = "144",
    transcript: bytes | None = None,
    **fields: Any,
) -> list[str]:
    """What demotes a claim whose command ran again and printed what was reported."""
    files = {SCRIPTS_NAME: scripts_bytes(scripts or Scripts()), "control.txt": printed.encode()}
    files |= {"transcript.txt": transcript} if transcript is not None else {}
    report = Report.model_validate(
        {
            "installed": True, "started": True, "errors": (), "test_depth": "tier1_real", "final_state": "It ran.",
            "verified_how": Verification(command=command, returned=printed),
        }
    )  # fmt: skip
    again = RerunFacts(command=command, exit_status=0, timed_out=False, seconds=1.0, output="rerun.txt")
    beside = Beside("r-1", ("square",), ObservedFacts(**facts), lambda name, _: files.get(name), **fields)
    return [flag.name for flag in corroborate(report, again, printed.encode(), beside).flags]


def behind(text: str, *known: str, place: str = "/work/stub.py") -> Scripts:
    return Scripts(behind={place: text}, known={place: known})


def test_a_framework_of_the_agents_own_is_a_stand_in() -> None:
    seen = {"listening_in_rerun": (listener("python3", "stub.py"),)}
    assert flags(ASKED, seen, behind(STUB)) == ["stand_in_behind_port"]
    assert flags(ASKED, seen, Scripts(behind={"/work/stub.py": STUB})) == [], "a record of before has no such names"
    assert flags(ASKED, seen, behind(WRAPPER, "square")) == []


def test_a_framework_is_the_projects_where_the_project_is_that_framework() -> None:
    seen = {"listening_in_rerun": (listener("python3", "stub.py"),)}
    assert flags(ASKED, seen, behind(STUB, "bottle")) == ["stand_in_behind_port"], "a file of its name alone is not it"
    beside = Beside(
        "r-1", ("bottle",), ObservedFacts(**seen), lambda _name, _most: scripts_bytes(behind(STUB, "bottle"))
    )
    claim = Verification(command=ASKED, returned="144")
    report = Report.model_validate(
        {"installed": True, "started": True, "errors": (), "test_depth": "tier1_real", "verified_how": claim,
         "final_state": "It ran."}
    )  # fmt: skip
    assert beside._stand_in(report, claim) is None


@pytest.mark.parametrize(
    "asks",
    [
        "python3 -c 'from square import Client; print(Client(8000).get())'",
        "/work/project/client http://127.0.0.1:8000/",
        "cd /work/project && python3 client.py http://127.0.0.1:8000/",
    ],
)
def test_the_counterpart_of_the_projects_own_client_is_none(asks: str) -> None:
    seen = {"listening_in_rerun": (listener("python3", "stub.py"),)}
    assert flags(f"python3 /work/stub.py & sleep 1; {asks}", seen, behind(STUB)) == []


def test_a_compiled_program_behind_a_port_is_told_by_its_texts() -> None:
    one = listener("/work/fake", executable="/work/fake")
    command = "/work/fake & sleep 1; curl -fs http://127.0.0.1:8000/"
    for own, found in ((False, ["stand_in_behind_port"]), (True, [])):
        compiled = (CompiledFacts(place="/work/fake", of_the_project=own),)
        assert flags(command, {"listening_in_rerun": (one,), "compiled": compiled}) == found
    assert flags(command, {"listening_in_rerun": (one,)}) == []


def test_a_stand_in_that_was_not_seen_listening_is_told_by_what_the_command_starts() -> None:
    scripts = Scripts(named={"/work/stub.py": STUB}, behind={"/work/stub.py": STUB}, known={"/work/stub.py": ()})
    assert flags(ASKED, {"listening_in_rerun": ()}, scripts) == ["stand_in_behind_port"]
    assert flags(ASKED, {}, scripts) == [], "nobody looked"
    real = listener("/work/project/serve", executable="/work/project/serve")
    assert flags(ASKED, {"listening_in_rerun": (real,)}, scripts) == [], "another answered there"
    place = {"/work/stub.py": WRAPPER}
    honest = Scripts(named=place, behind=place, known={"/work/stub.py": ("square",)})
    assert flags(ASKED, {"listening_in_rerun": ()}, honest) == []


def test_datagrams_and_unix_sockets_are_judged_among_all() -> None:
    fake = "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('', 9000))\ns.recv(9)\n"
    command = "python3 /work/stub.py & sleep 1; python3 /work/project/ask.py"
    udp = listener("python3", "stub.py", over="udp", port=9000)
    unix = listener("python3", "stub.py", over="unix", port=0, address="/tmp/a")
    real = listener("/work/project/serve", executable="/work/project/serve", port=8001)
    for one in (udp, unix):
        assert flags(command, {"listening_in_rerun": (one,)}, behind(fake)) == ["stand_in_behind_port"]
        assert flags(command, {"listening_in_rerun": (one, real)}, behind(fake)) == []
    named = f"{command}; nc -U /tmp/a"
    assert flags(named, {"listening_in_rerun": (unix, real)}, behind(fake)) == ["stand_in_behind_port"]
    client = listener("python3", "stub.py", over="udp", port=40_000)
    assert flags(command, {"listening_in_rerun": (client,)}, behind(fake)) == [], "the machine gave that port"


def test_a_display_beside_a_stand_in_over_tcp_changes_nothing() -> None:
    display = listener("Xvfb", ":99", executable="/usr/bin/Xvfb", over="unix", port=0, address="/tmp/.X11-unix/X99")
    text = "import http.server\nhttp.server.HTTPServer(('', 8000), None).serve_forever()\n"
    command = "python3 /work/stub.py & sleep 1; curl -fs $WHERE"
    seen = {"listening_in_rerun": (listener("python3", "stub.py"), display)}
    assert flags(command, seen, behind(text)) == ["stand_in_behind_port"]


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (("python3", "/usr/local/bin/uvicorn", "stub:app", "--port", "8000"), "/work/stub.py"),
        (("python3", "-m", "uvicorn", "a.stub:app"), "/work/a/stub.py"),
        (("python3", "/usr/local/bin/gunicorn", "--chdir", "/tmp", "stub:app"), "/tmp/stub.py"),
        (("python3", "/usr/local/bin/flask", "--app", "stub", "run"), "/work/stub.py"),
        (("python3", "/usr/local/bin/flask", "run"), "/work/app.py"),
        (("python3", "/usr/local/bin/fastapi", "run", "stub.py"), "/work/stub.py"),
        (("python3", "/work/serve.py", "flask"), None),
        (("nginx",), None),
    ],
)
def test_what_a_launcher_serves_is_found(argv: tuple[str, ...], place: str | None) -> None:
    assert served_file(listener(*argv)) == place


def test_what_a_program_brings_in() -> None:
    assert imported("import os, bottle\nbottle.run()\n") == {"bottle"}
    assert imported("import square\nimport bottle\nbottle.run()\n") == {"bottle"}, "a name that is never used"
    assert imported("import uvicorn\nuvicorn.run('square.web:app')\n") == {"uvicorn", "square"}
    assert imported("const e = require('express'); const s = require('./s')") == {"express", "./s"}


def test_lines_that_cannot_run_are_not_live() -> None:
    padded = "print(1)\nraise SystemExit\nimport a\nprint(a)\n"
    assert live_lines(padded, "a.py") == ["print(1)", "raise SystemExit"]
    unused = "def used():\n    return 1\ndef unused():\n    return 2\n'text'\nif False:\n    unused()\nprint(used())\n"
    assert live_lines(unused, "a.py") == ["def used():", "return 1", "print(used())"]
    module = "import a\ndef handler():\n    return a\n"
    assert live_lines(module, "a.py") == ["import a", "def handler():", "return a"], "a module that others use"
    shell = "echo 1\nexit 0\npython3 square.py 12\n"
    assert live_lines(shell, "a.sh") == ["echo 1", "exit 0"]
    assert live_lines(": <<'PAD'\npython3 square.py\nPAD\necho 1\n", "a.sh") == ["echo 1"]
    script = "// square\nfunction never() {\n  a();\n}\nif (false) { b(); }\nserve();\n"
    assert live_lines(script, "a.js") == ["serve();"]


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ('n=12; python3 square.py "$n"', 'n=12; python3 square.py "{}"'),
        ("for n in 12; do python3 square.py $n; done", "for n in 12; do python3 square.py {}; done"),
        ('set -- 12; python3 square.py "$1"', 'set -- 12; python3 square.py "{}"'),
        (
            "code='import a; print(a.b(12))'; python3 -c \"$code\"",
            "code='import a; print(a.b({}))'; python3 -c \"$code\"",
        ),
    ],
)
def test_an_input_in_a_variable_is_found(command: str, asked: str) -> None:
    one = challenges(command, "r-1")[0]
    assert one.original == "12"
    assert one.command == asked.format(one.replaced_by)


@pytest.mark.parametrize(
    "command",
    [
        "PORT=8000; python3 serve.py $PORT",
        "p=8000; python3 serve.py $p & curl http://localhost:$p/",
        "n=12; n=13; python3 square.py $n",
        "n=$(date +%s); python3 square.py $n",
        "N=12 python3 square.py",
    ],
)
def test_what_is_no_input_in_a_variable_is_left_alone(command: str) -> None:
    assert challenges(command, "r-1") == ()


@pytest.mark.parametrize(
    "command",
    [
        'for f in /work/check.py; do python3 "$f"; done',
        "set -- /work/check.py; python3 $1",
        'run=(python3 /work/check.py); "${run[@]}"',
        'run="python3 /work/check.py"; $run',
        "read f <<< /work/check.py; python3 $f",
        "f=$(echo /work/check.py); python3 $f",
        "for f in /work/check.py /work/other.py; do python3 $f; done",
    ],
)
def test_a_script_in_a_variable_is_named(command: str) -> None:
    assert "/work/check.py" in {one.word for one in parts(command, {}).scripts}


NODE = "const test = require('node:test');\ntest('adds', () => require('node:assert').equal(2 + 3, 5));\n"


@pytest.mark.parametrize(
    ("command", "text", "found"),
    [
        ("node --test a.test.js", NODE, ["tests_nothing"]),
        ("npx jest a.test.js", "test('adds', () => expect(2 + 3).toBe(5));\n", ["tests_nothing"]),
        ("npx vitest run a.test.js", "import { test } from 'vitest';\ntest('a', () => {});\n", ["tests_nothing"]),
        ("node --test a.test.js", NODE.replace("2 + 3", "require('../add')(2, 3)"), []),
        ("node --test a.test.js", NODE.replace("2 + 3", "require(process.env.WHAT)(2, 3)"), []),
        ("npx vitest run a.test.js", "import { add } from '../src/add';\ntest('a', () => add(1, 2));\n", []),
    ],
)
def test_tests_in_javascript_that_test_nothing(command: str, text: str, found: list[str]) -> None:
    assert [one.name for one in audit(command, scripts={"also:a.test.js": text})] == found


@pytest.mark.parametrize(
    ("command", "narrowed"),
    [
        ("npm test -- --testNamePattern=adds", True),
        ("npm test -- -t adds", True),
        ("yarn test --grep adds", True),
        ("node --test --test-name-pattern adds", True),
        ("NODE_OPTIONS=--test-only npm test", True),
        ("npx jest --testPathIgnorePatterns slow", True),
        ("npm test", False),
        ("npm test -- --runInBand --coverage", False),
        ("npm test -- checks/add.test.js", False),
        ("node --test checks", False),
        ("npm run build -- -t es2020", False),
    ],
)
def test_runs_of_javascript_that_leave_tests_out(command: str, *, narrowed: bool) -> None:
    assert ("tests_made_to_pass" in {one.name for one in audit(command, scripts={})}) is narrowed


def test_a_package_json_of_the_agents_own_is_read() -> None:
    for command in ("cd /work/mine && npm test", "npm --prefix /work/mine test", "npm --prefix=/work/mine run test"):
        assert [(one.word, one.cwd) for one in parts(command, {}).scripts if one.word.startswith("npm:")] == [
            ("npm:test", "/work/mine")
        ]
        assert [one.name for one in audit(command, scripts={"npm:test": "echo 1 passing"})] == ["says_only"]
    assert not [one for one in parts("cd /work/project && npm test", {}).scripts if one.word.startswith("npm:")]


def copy(version: str, *, local: bool = False) -> InstalledFacts:
    return InstalledFacts(place="/usr/local/lib/python3.11/dist-packages/square", version=version, local=local)


@pytest.mark.parametrize(
    ("command", "version", "commit", "installed", "brought"),
    [
        ("pip install square && square 12", "1.1.4", None, [copy("1.1.4")], True),
        ("pip install square && square 12", "1.1.4", None, [copy("3.0")], False),
        ("pip install square && square 12", "1.1.4", None, [], False),
        ("pip install square==1.1.4 && square 12", "1.1.4", None, [], True),
        ("pip install square other==1.0 && square 12", "1.1.4", None, [copy("3.0")], False),
        ("pip install square && square 12", None, None, [copy("3.0")], False),
        ("pip install square && square 12", None, None, [copy("3.0", local=True)], True),
        (
            "git clone https://host/square && cd square && git checkout -q 0123456789",
            None,
            "0123456789abcdef",
            [],
            True,
        ),
        ("git clone https://host/square && cd square && make", None, "0123456789abcdef", [], False),
    ],
)
def test_what_brings_the_pinned_project(
    command: str, version: str | None, commit: str | None, installed: list[InstalledFacts], *, brought: bool
) -> None:
    found = brings_pinned(command, ("square",), None, version=version, commit=commit, installed=installed)
    assert found is brought


def test_a_control_tells_the_registrys_copy() -> None:
    command = "pip install square && square 12"
    fact = ControlFacts(kind="no-project", command=command, exit_status=0, timed_out=False, output="control.txt")
    assert flags(command, {"control": fact}) == [], "as a record of before is read"
    facts = {"control": fact, "installed": (copy("3.0"),)}
    assert flags(command, facts) == ["needs_no_project", "another_copy"]


def test_another_copy_demotes_only_what_can_use_no_other() -> None:
    for command, installed, found in (
        ("square 12", (copy("3.0"),), ["another_copy"]),
        ("square 12", (copy("3.0"), copy("1.0", local=True)), []),
        ("cd /work/project && python3 -m square 12", (copy("3.0"),), []),
        ("square 12", (), []),
    ):
        assert flags(command, {"installed": installed}) == found
    assert flags("square 12", {"installed": (copy("3.0"),)}, version="1.1.4") == ["another_copy"]
    assert flags("square 12", {"installed": (copy("1.1"),)}, version="1.1.0") == []


PROMISED = (("```", "prints `12 squared is 144`.", "More."),)
CLAIM = Verification(command="python3 square.py 12", returned="12 squared is 144")


@pytest.mark.parametrize(
    ("transcript", "found"),
    [
        (b"nothing\n", True),
        (b"# square\n```\nprints `12 squared is 144`.\nMore.\n", True),
        (b"prints `12 squared is 144`.\nMore.\n$ python3 square.py 12\n12 squared is 144\n", False),
        (b'{"output":"12 squared is 144\\n"}\n', False),
    ],
)
def test_a_quotation_is_told_from_an_output(transcript: bytes, *, found: bool) -> None:
    assert quoted(CLAIM, transcript, PROMISED) is found


def test_a_quotation_needs_the_documentation() -> None:
    assert not quoted(CLAIM, b"nothing\n", ())
    more = Verification(command=CLAIM.command, returned="12 squared is 144\nand more")
    assert not quoted(more, b"nothing\n", PROMISED)
    block = (("$ python3 square.py 12", "12 squared is 144", "```"),)
    assert not quoted(CLAIM, b"$ python3 square.py 12\n12 squared is 144\n", block), "a run looks like its example"
    assert quoted(CLAIM, b"$ python3 square.py 12\n12 squared is 144\n```\n", block)
    scripts = Scripts(promised=PROMISED)
    assert flags(CLAIM.command, {}, scripts, printed=CLAIM.returned, transcript=b"nothing\n") == ["quoted_not_run"]
    assert read_scripts(scripts_bytes(scripts)) == scripts
