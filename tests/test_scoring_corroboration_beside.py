"""What is observed beside the re-run, and what it takes from a claim. Pure: facts and bytes in, a status out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.challenge_input import challenge_input
from referee.core.records import (
    ChallengeFacts,
    ControlFacts,
    ListenerFacts,
    ObservedFacts,
    RerunFacts,
    RestoredFacts,
    SubjectRef,
)
from referee.core.report import Report, Verification
from referee.core.scripts import SCRIPTS_NAME, Scripts, read_scripts, scripts_bytes
from referee.scoring.attempts import pinned_version
from referee.scoring.beside import Beside
from referee.scoring.challenges import MOST, challenges
from referee.scoring.citations import cited
from referee.scoring.command_parts import brings
from referee.scoring.corroboration import Corroboration, corroborate

SQUARE = "python3 /work/project/square.py 12"
SAID = b"12 squared is 144\n"
RUN = "r-0123456789ab"


def report(command: str, returned: str, **fields: Any) -> Report:
    values = {
        "installed": True,
        "started": True,
        "errors": (),
        "test_depth": "tier1_real",
        "verified_how": Verification(command=command, returned=returned),
        "final_state": "It ran.",
        **fields,
    }
    return Report.model_validate(values)


def judged(
    command: str = SQUARE,
    output: bytes = SAID,
    *,
    returned: str | None = None,
    facts: dict[str, Any] | None = None,
    files: dict[str, bytes] | None = None,
    status: int = 0,
    **claims: Any,
) -> Corroboration:
    again = RerunFacts(command=command, exit_status=status, timed_out=False, seconds=1.0, output="rerun.txt")
    beside = Beside(RUN, ("square",), ObservedFacts(**(facts or {})), lambda name, _: (files or {}).get(name))
    return corroborate(
        report(command, output.decode() if returned is None else returned, **claims), again, output, beside
    )


def names(found: Corroboration) -> list[str]:
    return [flag.name for flag in found.flags]


def control(command: str = SQUARE, **fields: Any) -> ControlFacts:
    values = {"kind": "no-project", "command": command, "exit_status": 0, "timed_out": False, "output": "control.txt"}
    return ControlFacts.model_validate({**values, **fields})


def test_nothing_observed_takes_nothing() -> None:
    assert judged() == Corroboration(
        "corroborated", "run again from a fresh shell, the command succeeded and gave the reported result"
    )


@pytest.mark.parametrize(
    ("fact", "printed", "status"),
    [
        (control(), SAID, "not_observed"),
        (control(), b"something else\n", "corroborated"),
        (control(exit_status=2), SAID, "corroborated"),
        (control(exit_status=None, timed_out=True), SAID, "corroborated"),
        (control(exit_status=None, output=None, could_not_run="no machine"), None, "corroborated"),
        (control(command="another"), SAID, "corroborated"),
    ],
)
def test_a_control_that_gives_the_same_demotes(fact: ControlFacts, printed: bytes | None, status: str) -> None:
    found = judged(facts={"control": fact}, files={"control.txt": printed} if printed else {})
    assert found.status == status
    assert names(found) == (["needs_no_project"] if status == "not_observed" else [])


def test_a_command_that_brings_the_project_may_work_anywhere() -> None:
    command = "pip install -q square==1 && square 12"
    assert judged(command, facts={"control": control(command)}, files={"control.txt": SAID}).status == "corroborated"


@pytest.mark.parametrize(
    ("command", "brought"),
    [
        ("pip install square==1.1.4 && square 12", True),
        ("pip install 'square[cli]==1.1.4' && square 12", True),
        ("pip install square==1.1.* && square 12", True),
        ("pip install square && square 12", True),  # no other is fetched where the pinned one is installed
        ("pip install square==3.0.0 && square 12", False),
        ("npx -y square@3 12", False),
        ("npx -y square@1 12", True),
        ("npx -y square@latest 12", True),
        ("git clone https://host/square@2 && square 12", False),
        ("pip install /work/subject/square-1.1.4.tar.gz && square 12", True),
    ],
)
def test_another_version_is_another_project(command: str, *, brought: bool) -> None:
    assert brings(command, ("square",), version="1.1.4") is brought
    assert brings(command, ("square",)), "as a record without a control of this kind is read"


@pytest.mark.parametrize(
    ("kind", "pin", "version"),
    [
        ("package", "pypi:segno==1.6.6 sha256:0123", "1.6.6"),
        ("package", "npm:@scope/pad@1.3.0 sha256:0123", "1.3.0"),
        ("package", "npm:@scope/pad", None),
        ("repository", "git:https://host/a.git@0123", None),
    ],
)
def test_a_package_is_pinned_to_a_version(kind: Any, pin: str, version: str | None) -> None:
    assert pinned_version(SubjectRef(name="a", kind=kind, pin=pin, file_digest="sha256:aa")) == version


def test_a_script_that_stood_there_too_may_bring_the_project() -> None:
    files = {
        "control.txt": SAID,
        SCRIPTS_NAME: scripts_bytes(Scripts(named={"/work/a.sh": "pip install square==1\nsquare 12"})),
    }
    facts = {"control": control("sh /work/a.sh", placed=("/work/a.sh",))}
    assert judged("sh /work/a.sh", facts=facts, files=files).status == "corroborated"
    assert names(judged("sh /work/a.sh", facts={"control": control("sh /work/a.sh")}, files=files)) == [
        "needs_no_project"
    ]


def test_a_runner_that_finds_no_test_without_the_project_needs_it() -> None:
    command = "cd /work/project && python3 -m unittest"
    none = b"\nRan 0 tests in 0.000s\n\nOK\n"
    found = judged(
        command,
        b"Ran 3 tests in 0.001s\n\nOK\n",
        returned="OK",
        facts={"control": control(command, placed=())},
        files={"control.txt": none},
    )
    assert found.status == "corroborated"


def challenge(number: int, **fields: Any) -> ChallengeFacts:
    one = challenges(SQUARE, RUN)[number]
    values = {
        "original": one.original,
        "replaced_by": one.replaced_by,
        "command": one.command,
        "exit_status": 0,
        "timed_out": False,
        "output": f"challenge-{number + 1}.txt",
    }
    return ChallengeFacts.model_validate({**values, **fields})


@pytest.mark.parametrize(
    ("second", "printed", "status"),
    [
        ({}, SAID, "not_observed"),
        ({}, b"18 squared is 324\n", "corroborated"),
        ({"exit_status": 1}, SAID, "corroborated"),
        ({"exit_status": None, "timed_out": True}, SAID, "corroborated"),
        ({"exit_status": None, "could_not_run": "no machine", "output": None}, None, "corroborated"),
    ],
)
def test_a_program_must_heed_one_of_its_inputs(second: dict[str, Any], printed: bytes | None, status: str) -> None:
    files = {"challenge-1.txt": SAID} | ({"challenge-2.txt": printed} if printed else {})
    found = judged(facts={"challenges": (challenge(0), challenge(1, **second))}, files=files)
    assert found.status == status


def listener(*argv: str, port: int = 8000) -> ListenerFacts:
    return ListenerFacts(port=port, address="127.0.0.1", pid=9, executable=None, argv=argv, cwd="/work")


STUB = listener("python3", "fake.py")
REAL = listener("gunicorn", "app:app", port=9000)
ASK = "bash /work/ask.sh"
NAMES_IT = "cd /work && ./start.sh && curl -sf http://127.0.0.1:8000/"
FAKE = scripts_bytes(
    Scripts(behind={"/work/fake.py": "import http.server\nhttp.server.HTTPServer(('', 8000), None)\n"})
)


@pytest.mark.parametrize(
    ("command", "facts", "claims", "status"),
    [
        (NAMES_IT, {"listening_in_rerun": (STUB,)}, {}, "not_observed"),
        (NAMES_IT, {"listening_in_rerun": (STUB, REAL)}, {}, "not_observed"),
        (ASK, {"listening_in_rerun": (STUB,)}, {}, "not_observed"),
        (NAMES_IT, {"listening": (STUB,)}, {}, "not_observed"),
        # A stand-in beside a service of the project serves it something, for all that is known.
        (ASK, {"listening_in_rerun": (STUB, REAL)}, {}, "corroborated"),
        (ASK, {"listening_in_rerun": (STUB,)}, {"test_depth": "tier2_mock"}, "corroborated"),
        (ASK, {"listening": (STUB,)}, {}, "corroborated"),
        (NAMES_IT, {"listening": (STUB,), "listening_in_rerun": (listener("gunicorn", "a:a"),)}, {}, "corroborated"),
        ("cd /work/project && pytest -q", {"listening_in_rerun": (STUB,)}, {}, "corroborated"),
        (NAMES_IT, {"listening_in_rerun": (REAL,)}, {}, "corroborated"),
        # A test run beside it hides no stand-in; what a build's tests start names no port.
        (f"python3 -m doctest /dev/null && {NAMES_IT}", {"listening_in_rerun": (STUB,)}, {}, "not_observed"),
        ("make 'all of it' && ctest", {"listening_in_rerun": (STUB,)}, {}, "corroborated"),
        # A process that was seen dying is no service of the project.
        (ASK, {"listening_in_rerun": (STUB, listener(port=9000))}, {}, "not_observed"),
        (NAMES_IT, {"listening": (STUB,), "listening_in_rerun": (listener(),)}, {}, "not_observed"),
        (NAMES_IT, {"listening_in_rerun": (listener(),)}, {}, "corroborated"),
    ],
)
def test_a_stand_in_behind_the_port_demotes(
    command: str, facts: dict[str, Any], claims: dict[str, Any], status: str
) -> None:
    found = judged(command, b"it answers: 144\n", facts=facts, files={SCRIPTS_NAME: FAKE}, **claims)
    assert (found.status, names(found)) == (status, ["stand_in_behind_port"] if status == "not_observed" else [])


@pytest.mark.parametrize(
    ("output", "status"),
    [
        (b"collected 0 items\nno tests ran in 0.01s\n", "not_observed"),
        (b"5 skipped in 0.01s\n", "not_observed"),
        (b"Ran 0 tests in 0.000s\n\nOK\n", "not_observed"),
        (b"Ran 3 tests in 0.000s\n\nOK (skipped=3)\n", "not_observed"),
        (b"ok  \tgo.example/square\t0.004s\n", "corroborated"),
        (b"5 passed, 2 skipped in 0.01s\n", "corroborated"),
        (b"Ran 3 tests in 0.000s\n\nOK (skipped=1)\n", "corroborated"),
        (b"10 passing\n2 pending\n", "corroborated"),
        (b"===== 2 skipped, 1 warning in 0.12s =====\n", "not_observed"),
        (b"running 0 tests\ntest result: ok. 0 passed; 0 failed; finished in 0.00s\n", "not_observed"),
        (b"test result: ok. 0 passed; 0 failed\ntest result: ok. 3 passed; 0 failed\n", "corroborated"),
        (b"?   \tgo.example/a\t[no test files]\n", "not_observed"),
        (b"5 tests completed, 1 skipped\nBUILD SUCCESSFUL in 3s\n", "corroborated"),
        (b"all well, 3 skipped\n", "corroborated"),
    ],
)
def test_a_test_run_must_have_run_a_test(output: bytes, status: str) -> None:
    assert judged("cd /work/project && pytest", output).status == status


@pytest.mark.parametrize(
    ("command", "output", "status"),
    [
        ("ffmpeg -v error -i a.mp4 -f framemd5 -", b"[mp3] Header missing\nError while decoding\n", "not_observed"),
        ("ffmpeg -v error -i a.mp4 -f framemd5 -", b"0, 0, 0, 1, 4608, 0cc175b9c0f1b6a8\n", "corroborated"),
        ('python3 -c "import json, app; print(json.load(app.file()))"', b"{'mean': nan}\n", "not_observed"),
        ('python3 -c "import json, app; print(json.load(app.file()))"', b"{'inf': 'nan, inf'}\n", "corroborated"),
        ("set -o pipefail; app --json | python3 -m json.tool", b'{\n    "mean": NaN\n}\n', "not_observed"),
        ("set -o pipefail; app --json | python3 -m json.tool", b'{\n    "name": "NaN is text"\n}\n', "corroborated"),
    ],
)
def test_a_lenient_decoder_that_met_broken_data_demotes(command: str, output: bytes, status: str) -> None:
    assert judged(command, output).status == status


def test_tests_that_fail_with_their_own_files_back_are_not_observed_and_no_lie() -> None:
    changed = {"restored": RestoredFacts(restored=("tests/test_a.py",), removed=("/work/project/conftest.py",))}
    command = "cd /work/project && pytest"
    found = judged(command, b"1 failed\n", returned="1 passed", facts=changed, status=1)
    assert (found.status, [note.name for note in found.notes]) == ("not_observed", ["tests_restored"])
    assert "tests and the interpreter put back" in found.reason
    assert judged(command, b"1 failed\n", returned="1 passed", status=1).status == "contradicted"
    whole = judged(command, b"1 passed\n", facts=changed)
    assert (whole.status, len(whole.notes)) == ("corroborated", 1)


def test_a_test_run_whose_steering_files_could_not_be_looked_at_is_not_observed() -> None:
    unread = {"restored": RestoredFacts(restored=(), removed=(), could_not="the machine did not answer in time")}
    found = judged("cd /work/project && pytest", b"1 passed\n", facts=unread)
    assert (found.status, names(found)) == ("not_observed", ["tests_not_put_back"])
    assert "did not answer in time" in found.reason
    assert judged(facts=unread).status == "corroborated"  # no test run: nothing else would have been put back
    assert judged("cd /work/project && pytest", b"1 passed\n", facts={}).status == "corroborated"  # not looked for


def test_changed_sources_are_noted_and_demote_nothing() -> None:
    mended = {"restored": RestoredFacts(restored=(), removed=(), changed=tuple(f"src/{n}.py" for n in range(8)))}
    found = judged(facts=mended)
    assert (found.status, [note.name for note in found.notes]) == ("corroborated", ["sources_changed"])
    assert found.notes[0].sentence.endswith("src/4.py, src/5.py …")
    assert judged(facts={"restored": RestoredFacts(restored=(), removed=(), changed=())}).notes == ()


CHALLENGED = {
    SQUARE: ["12"],
    "cd /work/project && npm ci && ./bin/app say 'buy milk'; status=$?; kill $pid; exit $status": ["buy milk"],
    "echo hello | segno -": ["hello"],
    "app <<< 'some text'": ["some text"],
    "python3 -c \"import segno; print(segno.make('hello', error='h').designator)\"": ["hello"],
    "redis-cli flushall && redis-cli incrby a 55": ["55"],
    "python3 -c 'import app; assert app.square(12) == 144; print(1)'": ["12"],
    "set -o pipefail; echo hello | segno - | head -n 5": ["hello"],
    "node index.js 'hello world'": ["hello world"],
    "timeout 30 xvfb-run -a app 77": ["77"],
}
NOT_CHALLENGED = (
    "cd /work/project && /usr/bin/python3 verify/verify.py", "app --timeout 30 run", "sleep 25; app run",
    "app serve 8000 & sleep 2; curl -sf localhost:8000/", "pytest -q 'tests/a b.py'", "npm test", "app run file.txt",
    "cd /work/project && npm run test:unit", "make -j 4 && ./prog", "curl -sf 'http://localhost:8000/?q=hello'",
    "python3 -c 'import sys; sys.path.insert(0, \"/x\"); import app; print(app.main())'", "bash -c 'app 12'",
    "python3 -c 'import time, app; time.sleep(5); app.seed(42); print(app.main())'", "app 'out/dir name'",
    "echo 'select 1' | psql", "psql -c 'select 1 + 1'", "app --name 'Some Body' --level 9",
    "./bin/server 'My App' & sleep 1; curl -sf localhost:8000/health",
    "python3 -c \"from flask import Flask; app = Flask('demo'); print(app.test_client().get('/').data)\"",
    "docker run -p 80:80 image 12", "python3 -c \"import app; print(app.get('/index'))\"",
    "pip install 'a b' && app run",
)  # fmt: skip


@pytest.mark.parametrize("command", CHALLENGED)
def test_inputs_are_replaced_one_at_a_time(command: str) -> None:
    found = challenges(command, RUN)
    assert sorted({one.original for one in found}) == CHALLENGED[command]
    assert 0 < len(found) <= MOST
    for one in found:
        assert one.replaced_by in {challenge_input(RUN, one.original, way) for way in (0, 1)}
        assert one.command == command.replace(one.original, one.replaced_by)
        assert one.command != command


LEFT_OUT = {
    "python3 -m doctest /dev/null && python3 -m tables 12": "python3 -m doctest /dev/null && python3 -m tables {}",
    "cd x && app 12 && dd if=/dev/null of=/dev/null": "cd x && app {} && true",
    "./bin/app add 'buy milk' && ./bin/app count": "./bin/app add '{}' && true",
    "app 12 | dd | tail -n 3; npm test": "app {} | cat | tail -n 3; true",
    "app 12; status=$?; other $(third); exit $status": "app {}; status=$?; true; exit $status",
}


@pytest.mark.parametrize("command", LEFT_OUT)
def test_what_works_behind_the_challenged_command_is_left_out(command: str) -> None:
    found = challenges(command, RUN)
    assert found
    for one in found:
        assert one.command == LEFT_OUT[command].format(one.replaced_by)


@pytest.mark.parametrize(
    ("command", "output", "returned", "printed", "status"),
    [
        # Nothing that stands before, behind or beside saves a program that prints the same for every input.
        ("python3 -m doctest /dev/null && square 12", b"144\n", "144", b"144\n", "not_observed"),
        ("square 12 && dd if=/dev/null of=/dev/null", b"144\n", "144", b"144\n", "not_observed"),
        ("square 12", b"f3a9\n12 squared is 144\n", "12 squared is 144", b"07be\n12 squared is 144\n", "not_observed"),
        ("square 12", b"f3a9\n12 squared is 144\n", "12 squared is 144", b"07be\n9 squared is 81\n", "corroborated"),
        # An excerpt that has nothing of the input in it shows nothing of what it changes.
        ("square 12", b"12 squared is 144\nall done\n", "all done", b"9 squared is 81\nall done\n", "corroborated"),
        ("app add 'milk' && app count", b"added\n1 item\n", "added\n1 item", b"added\n", "corroborated"),
        ("app wait 12", b"waited 12 s\n9 ok\n", "waited 12 s", b"waited 18 s\n8 ok\n", "corroborated"),
    ],
)
def test_only_what_the_asked_command_does_with_its_input_is_an_effect(
    command: str, output: bytes, returned: str, printed: bytes, status: str
) -> None:
    made = [
        ChallengeFacts(
            original=one.original, replaced_by=one.replaced_by, command=one.command, exit_status=0, timed_out=False,
            output=f"challenge-{number}.txt",
        )
        for number, one in enumerate(challenges(command, RUN))
    ]  # fmt: skip
    assert made
    files = {one.output: printed for one in made if one.output}
    assert judged(command, output, returned=returned, facts={"challenges": tuple(made)}, files=files).status == status


@pytest.mark.parametrize("command", NOT_CHALLENGED)
def test_what_is_no_input_is_left_alone(command: str) -> None:
    assert challenges(command, RUN) == ()


def test_inputs_follow_from_the_run_and_differ_in_kind() -> None:
    assert challenge_input(RUN, "12", 0) == challenge_input(RUN, "12", 0)
    assert len({challenge_input(f"r-{n}", "12", 0) for n in range(50)}) > 5
    for original in ("2", "7", "12", "999999"):
        even, odd = (int(challenge_input(RUN, original, way)) for way in (0, 1))
        assert (even % 2, odd % 2) == ((int(original) + 1) % 2, int(original) % 2)
        assert int(original) not in {even, odd}
    assert len(challenge_input(RUN, "two words", 0).split()) == 3
    assert challenge_input(RUN, "2.50", 0).endswith(".50")


SHOWN = "$ python3 /work/project/square.py 12\r\n\x1b[32m12 squared is 144\x1b[0m\r\n"
EVENT = json.dumps({"type": "item", "command": f"bash -lc '{SQUARE}'", "output": "12 squared is 144\n"})
BOXED = "| $ python3 /work/project/squa |\r\n| re.py 12     |\r\n| 12 squared is 144 |\r\n".replace("|", "\u2502")
CALL = json.dumps({"arguments": json.dumps({"command": SQUARE})}) + "\n" + json.dumps({"output": "12 squared is 144"})


@pytest.mark.parametrize("shown", [SHOWN, EVENT, BOXED, CALL], ids=["plain", "events", "wrapped", "escaped-twice"])
def test_what_a_session_showed_is_found(shown: str) -> None:
    found = cited(report(SQUARE, "12 squared is 144"), shown.encode())
    assert found is not None
    assert (found.command, found.returned) == (True, True)


def test_the_report_itself_shows_nothing() -> None:
    written = json.dumps({"verified_how": {"command": SQUARE, "returned": "12 squared is 144"}})
    for shown in (written, json.dumps({"text": written}), f"cat > report.json <<END\n{written}\nEND\n"):
        found = cited(report(SQUARE, "12 squared is 144"), shown.encode())
        assert found is not None
        assert (found.command, found.returned) == (False, False)


def test_a_citation_that_was_not_shown_is_a_note_and_demotes_nothing() -> None:
    found = judged(files={"transcript.txt": b"working ...\n"})
    assert (found.status, [note.name for note in found.notes]) == (
        "corroborated",
        ["command_not_shown", "result_not_shown"],
    )
    assert judged(files={"transcript.txt": SHOWN.encode()}).notes == ()


def test_scripts_are_kept_as_they_were() -> None:
    kept = Scripts(named={"a.sh": "echo \u00e4\n"}, behind={"/work/b.py": "x"})
    assert read_scripts(scripts_bytes(kept)) == kept
    assert read_scripts(None) == read_scripts(b"no json") == read_scripts(b"[]") == Scripts()
