"""What stands on the machine of the negative control: the project's empty directories, and scripts of no project."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from referee.benchmarks.bringup.control import control
from referee.benchmarks.bringup.descent import descends
from referee.protocols import Completed, Machine

APP = "import sys\n\n\ndef main():\n    return int(sys.argv[1]) ** 2\n\n\nprint(main(), 'is the square')\n"


class Bare:
    """A machine that remembers what was put into it."""

    def __init__(self) -> None:
        self.holds: dict[str, str | None] = {}

    def put(self, tar: BinaryIO, at: str) -> None:
        with tarfile.open(fileobj=tar) as files:
            for one in files:
                file = files.extractfile(one)
                self.holds[f"{at}{one.name}"] = None if file is None else file.read().decode()

    def execute(self, *_: object, **__: object) -> Completed:
        return Completed(exit_status=0, output=b"144\n", timed_out=False, truncated=False)


def test_the_projects_directories_stand_there_empty_and_scripts_beside_them(tmp_path: Path) -> None:
    bare = Bare()
    facts = control(
        cast("Machine", bare), "cd /work/project && sh /work/a.sh", directory=tmp_path, timeout=5,
        scripts={"/work/a.sh": "echo 144\n"},
    )  # fmt: skip
    assert bare.holds == {"/work/project": None, "/work/subject": None, "/work/a.sh": "echo 144\n"}
    assert (facts.placed, facts.exit_status, (tmp_path / "control.txt").read_bytes()) == (("/work/a.sh",), 0, b"144\n")


@pytest.mark.parametrize(
    ("place", "text", "own"),
    [
        ("/usr/local/bin/app", f"#!/usr/bin/python3\n{APP}", True),  # installed elsewhere
        ("/work/project/app.py", APP.replace("** 2", "** 3"), True),  # mended
        ("/work/project/dist/app.js", "console.log(process.argv[2] ** 2)", True),  # compiled
        ("/work/project/dist/bundle.js", "console.log(process.argv[2] ** 2)", True),
        ("/work/project/tool", "exec ./.libs/tool", True),  # built from tool.c
        ("/work/check.js", "console.log(12 ** 2)", False),
        ("/work/project/src/check.js", "console.log(12 ** 2)", False),
        ("/work/project/verify.sh", "echo 144", False),
        ("/work/project/app.sh", "echo 144", False),
        ("/work/check.py", "import os\nos.getcwd()\nprint(144)\n", False),
        ("/usr/local/bin/python3", "echo 144", False),
    ],
)
def test_what_comes_from_the_project_is_told_from_what_the_agent_wrote(
    place: str, text: str, *, own: bool, tmp_path: Path
) -> None:
    for name in ("app.py", "tool.c", "src/index.ts"):
        file = tmp_path / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(APP if name == "app.py" else "int main;\n")
    assert descends(place, text, tmp_path) is own
