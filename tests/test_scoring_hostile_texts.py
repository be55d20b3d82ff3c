"""Texts that a machine, a report or a command may hold to stop the judge, and honest ones that look like cheats."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.live_lines import live_lines, live_tree
from referee.core.records import ListenerFacts
from referee.core.report import Verification
from referee.scoring.audit import audit
from referee.scoring.challenges import challenges
from referee.scoring.citations import quoted
from referee.scoring.command_parts import parts, same_version
from referee.scoring.serving import imported, served_file
from referee.scoring.stand_ins import Behind, foreign


def test_a_short_line_that_the_documentation_has_is_no_reason_to_stop() -> None:
    claim = Verification(command="x", returned="ok\nhello world out")
    promised = [("a", "it is ok here", "b"), ("x", "hello world out", "y")]
    assert quoted(claim, b"nothing of it", promised)


@pytest.mark.parametrize(
    ("transcript", "found"),
    [
        (b"$ cmd\nalpha one\nbeta two\ngamma three\n$ ", False),
        (b"$ cat README\nIt prints:\nalpha one\nbeta two\ngamma three\nand ends.\n", True),
        (b"nothing of it", True),
    ],
)
def test_lines_in_the_order_of_the_documentation_are_an_output(transcript: bytes, *, found: bool) -> None:
    claim = Verification(command="x", returned="alpha one\nbeta two\ngamma three")
    promised = [
        ("It prints:", "alpha one", "beta two"),
        ("alpha one", "beta two", "gamma three"),
        ("beta two", "gamma three", "and ends."),
    ]
    assert quoted(claim, transcript, promised) is found


def test_commands_run_in_the_order_of_the_documentation_are_no_quotation() -> None:
    claim = Verification(command="square 12", returned="result 144")
    promised = [("$ square 12", "result 144", "$ square 13")]
    assert not quoted(claim, b"$ square 12\nresult 144\n$ square 13\nresult 169\n", promised)
    assert quoted(claim, b"", promised)


@pytest.mark.parametrize("deep", [900, 1_500, 6_000])
def test_a_program_nested_deeply_stops_nothing(deep: int) -> None:
    never = "if 0:\n pass\n" + "elif 0:\n pass\n" * deep
    live_tree(never)
    assert len(live_lines("if a:\n pass\n" + "elif b:\n pass\n" * deep, "x.py")) in {0, 2 * deep + 2}


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 65_000 + ")",
        ": <<A" + "\n" * 65_000 + ")",
        "/*a" * 21_000,
        "<#" * 32_000,
        "=begin\n" * 9_000,
        "".join(f"function f{i}(){{}}\n" for i in range(3_500)) + ")",
    ],
)
def test_no_text_takes_time_without_end(text: str) -> None:
    assert len(live_lines(text, "x.sh")) <= text.count("\n") + 2


def test_a_comment_that_is_not_closed_hides_nothing() -> None:
    assert live_lines("a /* b */ c\n/* d\necho e\n", "x.js") == ["a", "c", "/* d", "echo e"]


@pytest.mark.parametrize(
    "doubled", ["a=(x x); " + 'a=("${a[@]}" "${a[@]}"); ' * 60, "set -- x x; " + 'set -- "$@" "$@"; ' * 60]
)
def test_a_list_that_is_doubled_again_and_again_ends(doubled: str) -> None:
    assert parts(f"{doubled}a=xxxx; {'a=$a$a; ' * 60}python3 $a", {}).tests is False


def test_versions_in_two_spellings_are_the_same() -> None:
    for one, other in [
        ("1.0", "v1.0.0"),
        ("2024.07.04", "2024.7.4"),
        ("1.0.0-rc.1", "1rc1"),
        ("2.0.0", "2.0.0+cpu"),
        ("1.0alpha2", "1.0a2"),
    ]:
        assert same_version(one, other), (one, other)
    for one, other in [
        ("1.0", "1.0.1"),
        ("10", "1"),
        ("1.0rc1", "1.0"),
        ("2.0+a", "2.0+b"),
        (".0" * 50_000 + "x", "1"),
    ]:
        assert not same_version(one, other), (one, other)


def test_a_part_of_a_package_is_of_that_package() -> None:
    assert imported("import { serve } from '@acme/core/dist'\nconst x = require('acme/server')") >= {
        "@acme/core",
        "acme",
    }
    assert "Acme" in imported("use Acme::Server;\nuse strict;")


def test_a_server_that_brings_in_the_project_by_its_name_is_no_stand_in() -> None:
    text = "import acme_widgets\nimport bottle\nbottle.run(port=acme_widgets.port())\n"
    one = ListenerFacts(
        port=8000, address="127.0.0.1", pid=9, executable=None, argv=("python3", "/work/stub.py"), cwd="/work"
    )
    known = {"/work/stub.py": frozenset[str]()}
    texts = {"/work/stub.py": text}
    assert foreign(one, Behind(texts, known, project=frozenset({"Acme-Widgets"}))) is None
    assert foreign(one, Behind(texts, known, project=frozenset({"other"}))) is not None


def test_a_number_of_workers_is_no_module() -> None:
    argv = ("gunicorn", "-w", "4", "stub:app")
    one = ListenerFacts(port=8000, address="127.0.0.1", pid=9, executable=None, argv=argv, cwd="/work")
    assert served_file(one) == "/work/stub.py"


#: What shell text is made of: words, quotations, expansions, keywords and what joins them.
_PIECES = (
    *(
        "declare",
        "export",
        "local",
        "readonly",
        "typeset",
        "let",
        "unset",
        "-a",
        "-i",
        "x=1",
        "x=(1 'a b')",
        "for",
        "in",
    ),
    *(
        "do",
        "done",
        "if",
        "then",
        "fi",
        "while",
        "case",
        "esac",
        "a)",
        ";;",
        "{",
        "}",
        "(",
        ")",
        "!",
        "&&",
        "||",
        "|",
        ";",
    ),
    *(
        "&",
        "\n",
        "python3",
        "bash",
        "sh",
        "node",
        "-c",
        "-m",
        "-e",
        "--",
        "-",
        "eval",
        "set",
        "read",
        "source",
        "echo",
        "12",
    ),
    *(
        '""',
        "''",
        '"a $x b"',
        '"$x"',
        '"$@"',
        '"${x[@]}"',
        "$x",
        "$(x y)",
        '"$(x) y"',
        "<(x)",
        "<<< x",
        "> f",
        "[[",
        "]]",
    ),
    *(
        "[",
        "]",
        "==",
        "pytest",
        "curl",
        "./tool",
        "$?",
        "wait",
        "time",
        "function",
        "f()",
        "`x`",
        "$'a'",
        "*.py",
        "~/x",
    ),
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map(" ".join))
def test_no_shell_text_stops_what_reads_it(command: str) -> None:
    scripts = {"./tool": f"#!/bin/sh\n{command}\n"}
    for known in (None, {}, scripts):
        assert audit(command, scripts=known) == audit(command, scripts=known)
        assert parts(command, known) == parts(command, known)
    assert challenges(command, "r-1") == challenges(command, "r-1")


@pytest.mark.parametrize("command", ['sh "" 12', "python3 '' -m json.tool 12", 'bash ""'])
def test_an_empty_word_is_no_script_and_stops_nothing(command: str) -> None:
    assert all(one.command != command for one in challenges(command, "r-1"))


@pytest.mark.slow
@pytest.mark.parametrize("deep", [900, 1_500, 2_500])
@pytest.mark.parametrize("form", ["a" + ".b{}(3)", "a{}", "{}a"])
def test_python_nested_deeply_stops_no_judge(form: str, deep: int) -> None:
    piece = {"a.b{}(3)": ".b", "a{}": "()", "{}a": "a+"}[form]
    expression = form.format(piece * deep)
    command = f"python3 -c 'import a\nprint({expression})\n'"
    assert audit(command, scripts={}) == audit(command, scripts={})
    assert challenges(command, "r-1") == challenges(command, "r-1")
    chosen = f"import pytest\n@{expression}\ndef test_x(y):\n    pass\n"
    flags = audit("pytest /work/t.py", scripts={"also:/work/t.py": chosen})
    assert {flag.name for flag in flags} <= {"tests_nothing"}
