"""The table of troubles: each kind is told from real output, whoever prints it."""

from __future__ import annotations

import pytest

from referee.adapters.agents.baseline import troubles
from referee.adapters.agents.baseline.remedies import REMEDIES
from referee.adapters.agents.baseline.terminal import Result


def first(output: str, code: int | None = 1, command: str = "pip install x") -> list[str]:
    return [d.key for d in troubles.diagnose(Result(command, code, output, 1.0))]


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("src/a.c:3:10: fatal error: foo/bar.h: No such file or directory\n", "header:foo/bar.h"),
        ("/usr/bin/ld: cannot find -lfoo: No such file\n", "library:foo"),
        ("ImportError: libfoo.so.2: cannot open shared object file: No such file\n", "shared_object:libfoo.so.2"),
        (
            "Package libfoo was not found in the pkg-config search path.\nNo package 'libfoo' found\n",
            "pkgconfig:libfoo",
        ),
        ("bash: line 1: footool: command not found\n", "program:footool"),
        ("/bin/sh: 1: footool: not found\n", "program:footool"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'footool'\n", "program:footool"),
        ("footool is not installed or it's not in your PATH.\n", "program:footool"),
        ("Error: spawn footool ENOENT\n", "program:footool"),
        ("RuntimeError: command not found: footool\n", "program:footool"),
        ("AttributeError: cython_sources\n", "build_tool:Cython<3:"),
        ("error in x setup command: use_2to3 is invalid.\n", "build_tool:setuptools<58:"),
        ("LookupError: setuptools-scm was unable to detect version for /x.\n", "pretend_version:"),
        ("ImportError: cannot import name 'escape' from 'foo' (/x/foo.py)\n", "older_dependency:escape,foo"),
        ("ERROR: Package 'x' requires a different Python: 3.11.2 not in '>=3.12'\n", "other_python:x,3.11.2,>=3.12"),
        ("ConnectionRefusedError: [Errno 111] connecting to localhost:6379. Connection refused\n", "service:6379"),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432\n", "service:5432"),
        ("Error: listen EADDRINUSE: address already in use :::3000\n", "other_port:"),
        (
            "Error: error:0308010C:digital envelope routines::unsupported\n",
            "env:NODE_OPTIONS=--openssl-legacy-provider:",
        ),
        ("npm error code ERESOLVE\n", "peer:"),
        ("Error: Cannot find module 'foo-bar'\nRequire stack:\n", "node_module:foo-bar"),
        ("Do you want to install 'foo-cli' (yes/no): ", "node_module:foo-cli"),
        ("_tkinter.TclError: no display name and no $DISPLAY environment variable\n", "display:"),
        ("initdb: error: cannot be run as root\n", "unprivileged:"),
        ("NVML Shared Library Not Found: querying NVIDIA devices\n", "stop:"),
        ("Error: BRAVE_API_KEY environment variable is required\n", "stop:"),
        ("OSError: [Errno 28] No space left on device\n", "stop:"),
        ("c++: fatal error: Killed signal terminated program cc1plus\n", "less_parallel:"),
        ("Please run: apt-get install libfoo-dev foo\n", "apt_named:libfoo-dev foo"),
    ],
)
def test_a_kind_of_failure_is_told(output: str, key: str) -> None:
    assert key in first(output)


def test_signals_and_prompts_are_told_without_words() -> None:
    assert first("", -11)[0].startswith("crash:")
    assert first("", 137)[0] == "killed"
    waiting = Result("x", None, "Project name: ", 30.0, waiting=True)
    assert next(iter(troubles.diagnose(waiting))).remedy == "prompt"


def test_success_words_are_no_trouble() -> None:
    assert first("Successfully installed x-1.0\n") == []


def test_every_row_names_a_remedy_that_exists() -> None:
    names = {row.remedy.partition(":")[0] for row in troubles.TABLE} - {"stop"}
    assert names <= set(REMEDIES)
