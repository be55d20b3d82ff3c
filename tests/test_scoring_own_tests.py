"""Test files of the agent's own: what surely tests nothing is no verification; anything else is left to run."""

from __future__ import annotations

import pytest

from referee.scoring.audit import audit
from referee.scoring.command_parts import parts
from referee.scoring.own_tests import files_told

EMPTY = "def test_ok():\n    assert True\n"
RUN = "cd /work/project && python3 -m pytest -q tests/test_mine.py"


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("pytest -q tests/test_a.py::test_b", ("tests/test_a.py",)),
        ("python3 -m pytest -k name test_a.py", ("test_a.py",)),
        ("python3 -m unittest -v tests.test_a", ("tests/test_a.py",)),
        ("pytest test_a.py tests", ()),
        ("pytest -q tests", ()),
        ("python3 -m unittest discover -s tests", ()),
        ("python3 run.py pytest", ()),
        ("jest a.test.js", ("a.test.js",)),
        ("npx jest --rootDir /work/project a.test.js", ("a.test.js",)),
        ("npx jest adds", ()),
        ("npx vitest run b.spec.ts", ("b.spec.ts",)),
        ("node --test checks/a.test.mjs", ("checks/a.test.mjs",)),
        ("node --test checks", ()),
        ("node a.test.js", ()),
    ],
)
def test_files_that_a_run_is_told(words: str, files: tuple[str, ...]) -> None:
    assert files_told(tuple(words.split())) == files


def test_such_a_file_is_read() -> None:
    assert [(one.word, one.cwd) for one in parts(RUN).scripts if one.word.endswith("mine.py")] == [
        ("tests/test_mine.py", "/work/project")
    ]


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        (EMPTY, True),
        (f"import math\nimport pytest\n{EMPTY}", True),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n", True),
        ("@pytest.mark.parametrize('n', [1])\ndef test_a(n):\n    assert n == 1\n", True),
        (f"import tables\n{EMPTY}", False),
        (f"from . import tables\n{EMPTY}", False),
        (f"import subprocess\n{EMPTY}", False),
        ("def test_a(client):\n    assert client.get('/').status == 200\n", False),
        ("def test_a():\n    assert open('out.txt').read() == '144'\n", False),
        ("def test_a(:\n", False),
    ],
)
def test_what_surely_tests_nothing_is_flagged(text: str, *, flagged: bool) -> None:
    found = [flag.name for flag in audit(RUN, scripts={"also:tests/test_mine.py": text})]
    assert found == (["tests_nothing"] if flagged else [])


def test_the_projects_own_tests_other_work_and_old_records_are_not_flagged() -> None:
    mine = {"also:tests/test_mine.py": EMPTY}
    assert audit(f"{RUN} tests/test_tables.py", scripts=mine) == ()
    assert audit(f"{RUN} && python3 -m tables 12", scripts=mine) == ()
    assert audit(RUN, scripts={}) == ()
    assert audit(RUN) == ()
