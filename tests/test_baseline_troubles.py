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


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("  unable to update registry `crates-io`\n\nCaused by:\n  (Could not resolve host: index.example.org)\n",
         "crates_from_debian"),
        ("error: rustc 1.63.0 is not supported by the following package:\n", "newer_cargo"),
        ("Caused by:\n  lock file version 4 requires `-Znext-lockfile-bump`\n", "newer_cargo"),
        ("go: errors parsing go.mod:\n/x/go.mod:3: invalid go version '1.21.0': must match format 1.23\n", "go_newer"),
        ("./main.go:2:52: undefined: min\nnote: module requires Go 1.22\n", "go_newer"),
        ("main.go:2:8: missing go.sum entry for module providing package a.example/b\n", "go_modules"),
        ('main.go:3:8: a@v1: Get "https://x": dial tcp: lookup proxy.example.org on 10.0.0.1:53: no such host\n',
         "modules_from_debian"),
        ("[ERROR] Plugin org.apache.maven.plugins:x:2.6 could not be resolved: Unknown host repo.example.org: Name\n",
         "maven_from_debian"),
        ("> Could not GET 'https://x'.\n> repo.example.org: Name or service not known\n", "gradle_offline"),
        ("Fatal error compiling: error: release version 21 not supported\n", "java_release"),
        ("Could not reach host index.rubygems.example. Check your network connection\n", "gems_from_debian"),
        ("Your Ruby version is 3.1.2, but your Gemfile specified ~> 3.3\n", "ruby_version"),
        ("- Root composer.json requires php >=8.4 but your php version (8.2.36) does not satisfy that\n", "stop"),
        ("  - Root composer.json requires PHP extension ext-intl * but it is missing from your system.\n",
         "php_extension"),
        ("CMake Error at CMakeLists.txt:1:\n  CMake 3.28 or higher is required.  You are running version 3.25.1\n",
         "tool_from_pip:cmake"),
        ("meson.build:1:0: ERROR: Meson version is 1.0.1 but project requires >= 1.4\n", "tool_from_pip:meson"),
        ("a.c:3:1: error: unused variable 'x' [-Werror=unused-variable]\n", "compiler_flag:-Wno-error="),
        ("configure.ac:9: error: possibly undefined macro: AC_PROG_LIBTOOL\n", "apt:libtool"),
        ("configure: error: libpcre2 not found\n", "development_package"),
        ("E: Unable to locate package python3.12-venv\n", "apt_without"),
        ("Killed\nmake[1]: *** [Makefile:14: build/part3.txt] Error 137\n", "less_parallel"),
    ],
)  # fmt: skip
def test_the_first_diagnosis_of_a_failure_leads_to_its_remedy(output: str, remedy: str) -> None:
    found = next(iter(troubles.diagnose(Result("x", 1, output, 1.0))))
    assert found.remedy == remedy
    assert remedy == "stop" or remedy.partition(":")[0] in REMEDIES


def test_a_blocked_host_is_named_after_the_fallbacks() -> None:
    output = 'go: x@v1: Get "https://proxy.example.org/x": lookup proxy.example.org on 10.0.0.1:53: no such host\n'
    found = [d for d in troubles.diagnose(Result("go build ./...", 1, output, 1.0)) if d.remedy == "stop"]
    assert found[0].what == "the host proxy.example.org is not reachable from this machine"


def test_a_blocked_host_is_named_whole() -> None:
    output = (
        "> Could not GET 'https://repo.maven.example.org/x'.\n   > repo.maven.example.org: Name or service not known\n"
    )
    found = list(troubles.diagnose(Result("gradle build", 1, output, 1.0)))
    assert found[0].what == "Gradle cannot reach repo.maven.example.org"
