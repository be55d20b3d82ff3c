"""Subject files: what is accepted, what is said of what is not, and where a name is looked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from referee.adapters.catalog.subjects import (
    BUNDLED,
    DEMO_SUBJECTS,
    Subject,
    find_subject,
    list_subjects,
    load_subject,
    parse_subject,
)
from referee.adapters.sources.repository import RepositorySource
from referee.core.canonical import digest_of
from referee.errors import ConfigError, DigestMismatch, NothingMatched

SHA = "ab" * 32
PACKAGE = f"""\
schema = "referee.subject/1"
name = "thing"
kind = "package"
summary = "a thing"

[package]
registry = "pypi"
name = "Thing"
version = "1.0"
artifact = "thing-1.0-py3-none-any.whl"
sha256 = "{SHA}"
"""
REPOSITORY = """\
schema = "referee.subject/1"
name = "thing"
kind = "repository"
summary = "a thing"

[repository]
"""


def write(directory: Path, text: str, name: str = "thing.toml") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")
    return directory / name


def test_a_package_is_read_with_the_digest_of_its_content(tmp_path: Path) -> None:
    subject = load_subject(write(tmp_path, PACKAGE))
    again = load_subject(write(tmp_path / "b", "# a comment\n" + PACKAGE))
    assert subject.pin() == {
        "kind": "package",
        "name": "thing",
        "display": False,
        "registry": "pypi",
        "package": "Thing",
        "version": "1.0",
        "artifact": "thing-1.0-py3-none-any.whl",
        "sha256": SHA,
    }
    assert subject.pin_text() == f"pypi:Thing==1.0 sha256:{SHA}"
    assert subject.file_bytes == PACKAGE.encode()
    assert subject.digest == again.digest
    assert subject.digest.startswith("subject:sha256:")
    assert subject.ref().file_digest == subject.digest


def test_the_digest_is_over_the_parsed_content(tmp_path: Path) -> None:
    text = REPOSITORY + f'path = "../x"\nsha256 = "{SHA}"\n'
    expected = {
        "schema": "referee.subject/1",
        "name": "thing",
        "kind": "repository",
        "summary": "a thing",
        "repository": {"path": "../x", "sha256": SHA},
    }
    subject = load_subject(write(tmp_path / "subjects", text))
    assert subject.digest == digest_of("subject", expected)
    assert subject.pin()["path"] == str(tmp_path.resolve() / "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PACKAGE.replace('kind = "package"', 'kind = "package'), "line 3"),
        (PACKAGE + "colour = 1\n", "unknown key `package.colour`; "),
        ("mood = 1\n" + PACKAGE, "unknown key `mood`; "),
        (PACKAGE.replace('summary = "a thing"\n', ""), "`summary` is missing; add it"),
        (PACKAGE.replace('name = "thing"', 'name = "../thing"'), "the name '../thing' must be"),
        (PACKAGE.replace(SHA, SHA.upper()), "64 hexadecimal digits in lower case"),
        (PACKAGE.replace(SHA, "ab"), "64 hexadecimal digits"),
        (PACKAGE.replace('"thing-1.0-py3-none-any.whl"', '"../thing.whl"'), "package.artifact"),
        (PACKAGE.replace('"Thing"', '"git+https://x"'), "package.name"),
        (PACKAGE.replace('kind = "package"', 'kind = "repository"'), "needs a table [repository]"),
        (PACKAGE + "[repository]\npath='x'\nsha256='" + SHA + "'\n", "has no table [repository]"),
        (REPOSITORY + 'url = "https://host/x"\n', "needs the commit"),
        (REPOSITORY + 'url = "https://host/x"\ncommit = "abc"\n', "40 hexadecimal digits"),
        (REPOSITORY + 'url = "ext::sh -c id"\ncommit = "' + "a" * 40 + '"\n', "repository.url"),
        (REPOSITORY + 'path = "x"\n', "needs the sha256"),
        (REPOSITORY + 'path = "x"\nurl = "https://h/x"\n', "either url and commit, or path and sha256"),
        (PACKAGE.replace('"referee.subject/1"', '"referee.subject/9"'), "schema"),
        (PACKAGE.replace("[package]", 'tier = "enormous"\n[package]'), "tier"),
        (PACKAGE.replace("[package]", 'display = "yes"\n[package]'), "display"),
    ],
)
def test_what_breaks_the_schema_is_named_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        load_subject(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


def test_bytes_that_are_no_utf8_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8: byte 8"):
        load_subject(path)


def test_the_workspace_stands_before_the_bundled(tmp_path: Path) -> None:
    bundled = find_subject("segno", tmp_path)
    write(tmp_path / "subjects", PACKAGE.replace('"thing"', '"segno"'), "segno.toml")
    own = find_subject("segno", tmp_path)
    assert bundled.bundled
    assert not own.bundled
    assert [subject.pin_text() for subject in list_subjects(tmp_path) if subject.name == "segno"] == [own.pin_text()]


def test_a_path_to_a_file_is_a_subject(tmp_path: Path) -> None:
    path = write(tmp_path, PACKAGE, "any-name.toml")
    assert find_subject(str(path), tmp_path).name == "thing"


@pytest.mark.parametrize("name", ["segnoo", "../segno", "nothing-like-it-at-all", "no.toml", "", "a\x00b"])
def test_an_unknown_name_matches_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(NothingMatched) as caught:
        find_subject(name, tmp_path)
    assert caught.value.exit_code == 5
    if name == "segnoo":
        assert "segno" in caught.value.todo


def test_a_file_under_another_name_than_its_own_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "subjects", PACKAGE, "other.toml")
    with pytest.raises(ConfigError, match=r"its file must be thing\.toml"):
        find_subject("other", tmp_path)


@pytest.mark.parametrize(
    ("facts", "objections"),
    [
        ('licence = "MIT"\nreadme = true\nlanguages = ["C"]\nsize_bytes = 1', []),
        ('licence = "GPL-3.0-only OR (MIT AND ISC)"\nreadme = true\nlanguages = ["C"]\nsize_bytes = 1', []),
        (
            'licence = "MIT AND GPL-3.0-only"\nreadme = true\nlanguages = ["C"]\nsize_bytes = 1',
            ["its licence MIT AND GPL-3.0-only is not permissive"],
        ),
        ('licence = "MIT"\nreadme = false\nlanguages = ["C"]\nsize_bytes = 1', ["it has no README"]),
        (
            "",
            [
                "its licence is not known",
                "its README is not known",
                "its languages are not known",
                "its size is not known",
            ],
        ),
    ],
)
def test_a_cycle_needs_licence_readme_languages_and_size(facts: str, objections: list[str]) -> None:
    subject = parse_subject((PACKAGE + "[facts]\n" + facts + "\n").encode(), Path("thing.toml"))
    assert subject.cycle_objections() == objections


def bundled() -> list[Subject]:
    return [load_subject(path) for path in sorted(BUNDLED.glob("*.toml"))]


def test_the_first_pool_is_whole() -> None:
    subjects = bundled()
    registries = [one.content.package.registry for one in subjects if one.content.package is not None]
    languages = {language for one in subjects for language in one.content.facts.languages[:1]}
    assert len(registries) >= 22
    assert {"pypi", "npm"} == set(registries)
    assert languages >= {"Python", "JavaScript", "C", "C++", "Rust", "Go", "Java", "Ruby", "PHP", "Shell"}
    assert all(one.file.stem == one.name for one in subjects)
    assert len({one.content.summary for one in subjects}) == len(subjects)
    assert set(DEMO_SUBJECTS) <= {one.name for one in subjects}


@pytest.mark.parametrize("subject", bundled(), ids=lambda subject: subject.name)
def test_a_bundled_subject_may_enter_a_cycle(subject: Subject) -> None:
    assert subject.cycle_objections() == []


@pytest.mark.parametrize(
    "subject", [one for one in bundled() if one.kind == "repository"], ids=lambda subject: subject.name
)
def test_a_bundled_tree_is_the_pinned_one(subject: Subject, tmp_path: Path) -> None:
    placement = RepositorySource(tmp_path).fetch(subject.pin())
    facts = subject.content.facts
    assert placement.facts["readme"] is not None
    assert placement.facts["licence"] == facts.licence == "Apache-2.0"
    assert placement.facts["languages"] == list(facts.languages)
    assert placement.size_bytes == facts.size_bytes
    wrong = subject.pin() | {"sha256": SHA}
    with pytest.raises(DigestMismatch, match=SHA):
        RepositorySource(tmp_path).fetch(wrong)
