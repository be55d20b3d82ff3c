"""Ecosystems beyond Python and Node: what is read from a tree, what counts as a passed test, what each failure is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from referee.adapters.agents.baseline import commands, troubles
from referee.adapters.agents.baseline.ecosystems import (
    cmake,
    counts,
    dockerfile,
    go,
    java,
    look,
    make,
    php,
    plans,
    ruby,
    rust,
)
from referee.adapters.agents.baseline.ecosystems import dockerfile_syntax as syntax
from referee.adapters.agents.baseline.mission import read_mission
from referee.adapters.agents.baseline.remedies import REMEDIES
from referee.adapters.agents.baseline.report import Draft
from referee.adapters.agents.baseline.terminal import Result
from referee.adapters.agents.baseline.workshop import Workshop

FIXTURES = Path(str(resources.files("referee"))) / "bundled" / "fixtures"


def workshop(project: Path, home: Path) -> Workshop:
    value = {"subject": {"name": project.name, "kind": "repository"}, "project": str(project), "seconds": 60}
    file = home / "mission.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    return Workshop(read_mission(file), Draft())


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


# -- counting ----------------------------------------------------------------------------------------------------------

_CARGO = """\
running 2 tests
test tests::a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests roman
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
_GO = """\
=== RUN   TestA
=== RUN   TestA/sub
--- PASS: TestA (0.00s)
    --- PASS: TestA/sub (0.00s)
PASS
ok  	x	0.002s
"""
_MAVEN = """\
[INFO] Running ATest
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.061 s - in ATest
[INFO] Results:
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1
[INFO] Running BTest
[INFO] Tests run: 4, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 0.061 s - in BTest
[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 0
"""
_CTEST = """\
1/3 Test #1: a ................   Passed    0.00 sec
2/3 Test #2: b ................***Skipped   0.00 sec
3/3 Test #3: c ................***Failed    0.00 sec

67% tests passed, 1 tests failed out of 3
"""
_AUTOMAKE = "PASS: a\nPASS: b\nFAIL: c\n# TOTAL: 3\n# PASS:  2\n# SKIP:  0\n# FAIL:  1\n"
_TAP = "1..4\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no network\nok 4\n"
_PROVE = "t/a.t .. ok\nt/b.t .. ok\nAll tests successful.\nFiles=2, Tests=7,  0 wallclock secs\nResult: PASS\n"
_GTEST = "[==========] 3 tests from 1 test suite ran.\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n"
_XML = '<testsuite name="A" tests="3" skipped="1" failures="0" errors="0" time="0.1">\n<testsuite name="B" tests="2">\n'


@pytest.mark.parametrize(
    ("count", "output", "passed"),
    [
        (counts.cargo, _CARGO, 3),
        (counts.cargo, "test result: ok. 0 passed; 0 failed; 0 ignored\n", 0),
        (counts.go, _GO, 2),
        (counts.go, "?   \tx\t[no test files]\n", 0),
        (counts.go, '{"Action":"pass","Package":"x","Test":"TestA"}\n{"Action":"pass","Package":"x"}\n', 1),
        (counts.surefire, _MAVEN, 4),
        (counts.surefire, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n", 0),
        (counts.junit_xml, _XML, 4),
        (counts.junit_xml, "BUILD SUCCESSFUL in 1s\n", None),
        (counts.junit_console, "\nOK (2 tests)\n", 2),
        (counts.junit_console, "[         5 tests successful      ]\n[         1 tests failed          ]\n", 5),
        (counts.ctest, _CTEST, 1),
        (counts.ctest, "No tests were found!!!\n", 0),
        (counts.meson, "Ok:                 4   \nExpected Fail:      0   \n", 4),
        (counts.automake, _AUTOMAKE, 2),
        (counts.tap, _TAP, 2),
        (counts.tap, _PROVE, 7),
        (counts.ruby, "4 examples, 1 failure, 1 pending\n", 2),
        (counts.ruby, "5 runs, 9 assertions, 1 failures, 0 errors, 2 skips\n", 2),
        (counts.ruby, "3 tests, 4 assertions, 0 failures, 0 errors, 0 pendings, 1 omissions, 0 notifications\n", 2),
        (counts.phpunit, "OK (5 tests, 9 assertions)\n", 5),
        (counts.phpunit, "Tests: 5, Assertions: 9, Failures: 1, Skipped: 2.\n", 2),
        (counts.phpunit, "  Tests:    2 failed, 5 passed (9 assertions)\n", 5),
        (counts.phpunit, "No tests executed!\n", 0),
        (counts.c_runners, _GTEST, 2),
        (counts.c_runners, "All tests passed (12 assertions in 5 test cases)\n", 5),
        (counts.c_runners, "100%: Checks: 6, Failures: 0, Errors: 0\n", 6),
        (counts.any_runner, "Ran 3 tests in 0.1s\n\nOK (skipped=1)\n", 2),
        (counts.any_runner, "12/12 tests passed\n", 12),
        (counts.any_runner, "3 tests passed\n", 3),
        (counts.any_runner, "all checks passed\n", 1),
        (counts.any_runner, "✓ adds\n✓ subtracts\n", 2),
        (counts.any_runner, "cc -o a a.c\nmake: Nothing to be done for 'test'.\n", None),
        (counts.any_runner, "0 tests passed\n", 0),
    ],
)
def test_passed_tests_are_counted_from_the_runners_own_words(
    count: Callable[[str], int | None], output: str, passed: int | None
) -> None:
    assert count(output) == passed


# -- Dockerfiles -------------------------------------------------------------------------------------------------------

_DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG TAG=3.11-slim
FROM python:${TAG} AS build
WORKDIR /src
# a comment
RUN apt-get update && \\
    # inside a continued line
    apt-get install -y --no-install-recommends jq \\
    && rm -rf /var/lib/apt/lists/*
RUN <<EOT
set -e
echo made > out.txt
EOT
FROM scratch AS unused
RUN false
FROM python:${TAG}
ARG MODE=fast
ENV PORT=8000 GREETING="hello there" WHERE=/srv/$MODE
WORKDIR $WHERE
COPY --from=build /src/out.txt ./
COPY --chown=1:1 app.py data/ ./
EXPOSE ${PORT}/tcp
HEALTHCHECK CMD curl -f http://localhost:8000/health || exit 1
ENTRYPOINT ["python3", "app.py"]
CMD ["--port", "8000"]
"""


def test_a_dockerfile_is_read_with_continuations_comments_flags_and_here_documents() -> None:
    stages = syntax.stages(_DOCKERFILE)
    assert [(stage.base, stage.name) for stage in stages] == [
        ("python:3.11-slim", "build"),
        ("scratch", "unused"),
        ("python:3.11-slim", "2"),
    ]
    run, document = stages[0].instructions[1:3]
    assert run.value == (
        "apt-get update && apt-get install -y --no-install-recommends jq && rm -rf /var/lib/apt/lists/*"
    )
    assert document.heredocs == (("EOT", "set -e\necho made > out.txt\n"),)
    copy = stages[2].instructions[3]
    assert (copy.name, copy.flag("from"), copy.value) == ("COPY", "build", "/src/out.txt ./")
    assert [stage.name for stage in syntax.needed(stages)] == ["build", "2"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A/${A}", "one/one"),
        ("${NONE:-two}", "two"),
        ("${A:+three}", "three"),
        ("${NONE:+x}", ""),
        (r"\$A", "$A"),
        ("${NONE:-$A}", "one"),
    ],
)
def test_variables_are_filled_in_as_a_builder_does(text: str, expanded: str) -> None:
    assert syntax.expand(text, {"A": "one"}) == expanded


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('A=1 B="two words" C=three\\ words', [("A", "1"), ("B", "two words"), ("C", "three words")]),
        ("OLD the whole rest", [("OLD", "the whole rest")]),
        ("A='x y'", [("A", "x y")]),
    ],
)
def test_settings_are_read_in_both_forms(text: str, pairs: list[tuple[str, str]]) -> None:
    assert syntax.pairs(text) == pairs


def test_the_start_of_a_described_program_carries_its_environment_and_directory(tmp_path: Path) -> None:
    project = tree(tmp_path / "p", {"Dockerfile": _DOCKERFILE, "app.py": "", "data/x": ""})
    made = dockerfile.plan(workshop(project, tmp_path))
    assert made is not None
    assert made.servers[0].command == (
        "cd /srv/fast && PORT=8000 GREETING='hello there' WHERE=/srv/fast python3 app.py --port 8000"
    )
    assert made.servers[0].paths == ("/health", "/")
    assert not any("false" in step or "apt/lists" in step for step in made.install)


@pytest.mark.parametrize(
    ("line", "translated"),
    [
        ("apk add --no-cache build-base jq",
         "apt-get update -qq && apt-get install -y -qq --no-install-recommends build-essential jq"),
        ("apk add --virtual .deps musl-dev", "true"),
        ("apt-get update && apt-get install -y jq && rm -rf /var/lib/apt/lists/* && echo ok",
         "apt-get update && apt-get install -y jq  && echo ok"),
        ("adduser -D -u 1000 app", "(id -u app || useradd -m app || useradd -m -g app app)"),
    ],
)  # fmt: skip
def test_lines_for_other_images_are_translated(line: str, translated: str) -> None:
    assert dockerfile.for_debian(line) == translated


def test_the_steps_of_a_dockerfile_do_on_this_machine_what_they_say(tmp_path: Path) -> None:
    room = tmp_path / "room"
    text = f"""\
FROM debian:12
WORKDIR {room}/a
COPY . .
COPY one.txt renamed.txt
COPY sub {room}/copied/
RUN cat sub/two.txt > joined && cat one.txt >> joined
RUN ["sh", "-c", "echo json > form"]
RUN <<EOF
echo here > document
EOF
CMD cat joined
"""
    project = tree(tmp_path / "p", {"Dockerfile": text, "one.txt": "1\n", "sub/two.txt": "2\n"})
    made = dockerfile.plan(workshop(project, tmp_path))
    assert made is not None
    for step in made.install:
        subprocess.run(["/bin/bash", "-c", step], check=True, cwd=project)
    assert (room / "a/joined").read_text() == "2\n1\n"
    assert (room / "a/renamed.txt").read_text() == "1\n"
    assert (room / "copied/two.txt").read_text() == "2\n"
    assert [(room / "a" / name).read_text() for name in ("form", "document")] == ["json\n", "here\n"]
    ran = subprocess.run(["/bin/bash", "-c", made.invocations[0]], check=True, capture_output=True, text=True)
    assert ran.stdout == "2\n1\n"


@pytest.mark.parametrize(
    "base", ["nvidia/cuda:12.4.1-base", "mcr.microsoft.com/dotnet/sdk:8.0", "continuumio/miniconda3"]
)
def test_a_base_that_this_machine_cannot_stand_in_for_makes_no_plan(tmp_path: Path, base: str) -> None:
    project = tree(tmp_path / "p", {"Dockerfile": f"FROM {base}\nCMD true\n"})
    assert dockerfile.plan(workshop(project, tmp_path)) is None


# -- trees -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fixture", "ecosystem", "tools", "install", "test"),
    [
        ("rust-cli", "rust", {"cargo", "cc"}, "cargo build", "cargo test"),
        ("go-cli", "go", {"go"}, "go build ./...", "go test -count=1 -v ./..."),
        ("cmake-bzip2", "cmake", {"cmake", "c++"}, "cmake -S . -B build", "ctest --test-dir build --output-on-failure"),
        ("make-c", "make", {"make", "cc"}, "make", "make check"),
        ("php-plain", "php", {"php", "composer", "unzip"}, "composer dump-autoload --no-interaction",
         "composer --no-interaction run-script test"),
        ("memory-hungry-build", "make", {"make"}, "make", "make test"),
    ],
)  # fmt: skip
def test_a_tree_is_known_by_its_manifest(
    tmp_path: Path, fixture: str, ecosystem: str, tools: set[str], install: str, test: str
) -> None:
    best = plans(workshop(FIXTURES / fixture, tmp_path))[0]
    assert best.ecosystem == ecosystem
    assert {tool.command for tool in best.tools} == tools
    assert best.install[0] == install
    assert best.tests[0].command == test


@pytest.mark.parametrize(
    ("fixture", "line"),
    [
        ("rust-cli", "cargo run -- 1994"),
        ("go-cli", "./morse sos"),
        ("cmake-bzip2", "./build/squeeze --round-trip hello"),
        ("make-c", "echo Hello | ./rot13"),
        ("ruby-plain", 'ruby bin/vowels "Education for everyone"'),
        ("php-plain", 'php bin/slug "Hello, World!"'),
        ("java-plain", 'java -cp classes example.Palindrome "Never odd or even"'),
    ],
)
def test_a_documented_use_of_the_built_program_is_told_from_building_it(
    tmp_path: Path, fixture: str, line: str
) -> None:
    programs = frozenset(plans(workshop(FIXTURES / fixture, tmp_path))[0].programs)
    assert commands.read_command(line, 0, "", programs, frozenset()).purpose == "own"
    for build in ("make", "cargo build", "go build ./...", "cmake -S . -B build", "mvn package"):
        assert commands.read_command(build, 0, "", programs, frozenset()).purpose == "run"


def test_rust_programs_and_dependencies_are_read_from_every_member(tmp_path: Path) -> None:
    project = tree(tmp_path, {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n[workspace.dependencies]\nserde = "1"\n',
        "crates/a/Cargo.toml": '[package]\nname = "a"\n[dependencies]\nb = { path = "../b" }\n'
        '[dependencies.c]\npackage = "itoa"\nversion = "1"',
        "crates/a/src/main.rs": "fn main() {}",
        "crates/b/Cargo.toml": '[package]\nname = "b"\n[[bin]]\nname = "bee"\n[dev-dependencies]\nd = { git = "x" }\n',
    })  # fmt: skip
    assert rust.programs_of(project) == ("a", "bee")
    assert rust.dependencies(project) == {"serde": "1", "itoa": "1"}


def test_go_programs_and_language_version_are_read(tmp_path: Path) -> None:
    project = tree(tmp_path, {
        "go.mod": "module example.test/tool/v2\n\ngo 1.22.1\n\ntoolchain go1.22.5\n",
        "main.go": "package main\n\nfunc main() {}\n",
        "cmd/second/main.go": "package main\n\nfunc main() {}\n",
        "gen.go": "//go:build ignore\n\npackage main\n\nfunc main() {}\n",
        "lib/lib.go": "package lib\n",
    })  # fmt: skip
    assert go.programs_of(project) == {"tool": ".", "second": "cmd/second"}
    assert go.wanted_version(look.text(project / "go.mod")) == (1, 22, 1)


def test_go_modules_are_found_under_debians_names() -> None:
    text = "module a\n\nrequire github.com/google/uuid v1.3.0\n\nrequire (\n\tgolang.org/x/text v0.3.0 // indirect\n)\n"
    assert go.requirements(text) == ["github.com/google/uuid", "golang.org/x/text"]
    names = ["golang-github-google-uuid-dev", "golang-golang-x-text-dev"]
    assert [go.debian_package(module) for module in go.requirements(text)] == names


def test_java_start_class_jar_and_release_are_read(tmp_path: Path) -> None:
    project = tree(tmp_path, {
        "pom.xml": '<project xmlns="http://maven.apache.org/POM/4.0.0"><artifactId>add</artifactId><version>1.0</version>'
        "<properties><maven.compiler.release>21</maven.compiler.release></properties></project>",
        "src/main/java/x/Main.java": "package x;\npublic class Main { public static void main(String[] a) {} }",
        "src/test/java/x/T.java": "package x;\npublic class T { public static void main(String[] a) {} }",
    })  # fmt: skip
    assert java.main_classes(project) == ["x.Main"]
    assert java.jar_of(project / "pom.xml") == "add-1.0.jar"
    assert java.release_of(project) == (21,)


def test_a_pom_with_a_document_type_is_not_parsed(tmp_path: Path) -> None:
    pom = tmp_path / "pom.xml"
    pom.write_text('<!DOCTYPE p [<!ENTITY a "b">]><project><artifactId>&a;</artifactId><version>1</version></project>')
    assert java.jar_of(pom) == ""


def test_ruby_and_php_requirements_are_read(tmp_path: Path) -> None:
    project = tree(tmp_path, {
        "Gemfile": "source 'x'\ngemspec\ngem 'rake'\n# gem 'none'\ngem \"rspec\", '~> 3.0'\n",
        "x.gemspec": 'Gem::Specification.new do |s|\n  s.add_dependency "thor", ">= 1"\nend\n',
        "composer.json": '{"require": {"php": ">=8", "ext-mbstring": "*", "ext-pdo": "", "ext-dom": "*", "a/b": "1"}}',
    })  # fmt: skip
    assert ruby.gems(project) == {"rake": "", "rspec": "~> 3.0", "thor": ">= 1"}
    manifest = php.manifest_of(project)
    assert php.extensions(manifest) == ["php-mbstring", "php-xml"]
    assert php.packages(manifest, "require") == {"a/b": "1"}


def test_cmake_programs_and_switched_off_tests_are_read(tmp_path: Path) -> None:
    text = 'project(app CXX)\noption(APP_BUILD_TESTS "tests" OFF)\noption(APP_X "x" ON)\noption(BUILD_TESTING "t" ON)\n'
    text += "add_executable(unit_tests t.cpp)\nadd_executable(${PROJECT_NAME} a.cpp)\nadd_executable(tool b.cpp)\n"
    assert cmake.test_options(text) == ["APP_BUILD_TESTS"]
    assert cmake.programs_of(text) == ("app", "tool", "unit_tests")
    (tmp_path / "build").mkdir()
    assert cmake.build_directory(tmp_path) == "_build"


def test_makefile_targets_are_told_from_assignments() -> None:
    text = "CC := cc\nA ::= b\nall: a b\na b: c.o\n\tcc\n.PHONY: all\ncheck test: all\n"
    assert make.targets_of(text) == ("all", "a", "b", "check", "test")


def test_a_makefile_that_only_calls_another_tool_is_the_last_resort(tmp_path: Path) -> None:
    project = tree(tmp_path / "p", {"Makefile": "run:\n\tdocker compose up\n"})
    made = make.plan(workshop(project, tmp_path))
    assert made is not None
    assert made.confidence == 20


# -- failures ----------------------------------------------------------------------------------------------------------


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


def test_the_readme_alone_is_no_way_where_a_manifest_says_how(tmp_path: Path) -> None:
    built = tree(tmp_path / "built", {"Cargo.toml": '[package]\nname = "a"\n', "README.md": "# a\n"})
    bare = tree(tmp_path / "bare", {"README.md": "# a\n", "run.sh": "echo a\n"})
    assert [made.ecosystem for made in plans(workshop(built, tmp_path))] == ["rust"]
    assert [made.ecosystem for made in plans(workshop(bare, tmp_path))] == ["README only"]


def test_where_the_readme_knows_only_docker_its_lines_are_carried_out_by_the_plan(tmp_path: Path) -> None:
    made = plans(workshop(FIXTURES / "dockerfile-described", tmp_path))[0]
    assert (made.ecosystem, made.confidence) == ("dockerfile", 75)
    assert made.instead["docker run"] == "cd /srv/ledger && LEDGER=/srv/ledger/ledger.json sh balance.sh"
