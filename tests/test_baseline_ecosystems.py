"""Ecosystems beyond Python and Node: what is read from a tree, and which way of building it follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.agents.baseline import commands
from referee.adapters.agents.baseline.ecosystems import cmake, go, java, look, make, php, plans, ruby, rust
from tests.baseline_trees import FIXTURES, tree, workshop


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


def test_the_readme_alone_is_no_way_where_a_manifest_says_how(tmp_path: Path) -> None:
    built = tree(tmp_path / "built", {"Cargo.toml": '[package]\nname = "a"\n', "README.md": "# a\n"})
    bare = tree(tmp_path / "bare", {"README.md": "# a\n", "run.sh": "echo a\n"})
    assert [made.ecosystem for made in plans(workshop(built, tmp_path))] == ["rust"]
    assert [made.ecosystem for made in plans(workshop(bare, tmp_path))] == ["README only"]


def test_where_the_readme_knows_only_docker_its_lines_are_carried_out_by_the_plan(tmp_path: Path) -> None:
    made = plans(workshop(FIXTURES / "dockerfile-described", tmp_path))[0]
    assert (made.ecosystem, made.confidence) == ("dockerfile", 75)
    assert made.instead["docker run"] == "cd /srv/ledger && LEDGER=/srv/ledger/ledger.json sh balance.sh"
