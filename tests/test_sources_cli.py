"""``referee subject``: add, list, show and check, as a user types them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from referee.adapters.catalog.subjects import BUNDLED, find_subject, list_subjects
from referee.cli.subject import app
from referee.errors import RefereeError, UsageError


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REFEREE_WORKSPACE", raising=False)
    return tmp_path / "ws"


def referee(*arguments: str, workspace: Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*arguments, "--workspace", str(workspace)])
    if isinstance(result.exception, RefereeError):
        raise result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout


def document(*arguments: str, workspace: Path) -> dict[str, Any]:
    status, stdout = referee(*arguments, "--json", workspace=workspace)
    assert status == 0
    value: dict[str, Any] = json.loads(stdout)
    return value


def make_tree(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "README.md").write_text("# thing\n")
    (root / "main.go").write_text("package main\n")
    return root


def test_a_local_tree_is_pinned_listed_shown_and_checked(workspace: Path, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "Some Thing")
    added = document("add", str(root), workspace=workspace)
    assert added["schema"] == "referee.subject-added/1"
    subject = find_subject("some-thing", workspace)
    assert added["file"] == str(subject.file)
    assert added["subject"]["digest"] == subject.digest
    assert added["subject"]["cycle_objections"] == ["its licence is not known"]
    listed = document("list", workspace=workspace)["subjects"]
    assert [one["name"] for one in listed] == [one.name for one in list_subjects(workspace)]
    assert "some-thing" in {one["name"] for one in listed if not one["bundled"]}
    shown = document("show", "some-thing", workspace=workspace)["subject"]
    assert shown["facts"] == {"licence": None, "readme": True, "size_bytes": 21, "languages": ["Go"]}
    assert document("check", "some-thing", workspace=workspace)["subjects"][0]["status"] == "holds"


def test_a_tree_inside_the_workspace_is_pinned_by_a_relative_path(workspace: Path) -> None:
    root = make_tree(workspace / "trees" / "thing")
    document("add", str(root), "--display", "--heavy", "--summary", "a thing", workspace=workspace)
    subject = find_subject("thing", workspace)
    assert subject.content.repository is not None
    assert subject.content.repository.path == "../trees/thing"
    assert (subject.content.display, subject.content.tier, subject.content.summary) == (True, "heavy", "a thing")


def test_a_git_url_is_pinned_at_its_head_or_at_a_named_commit(workspace: Path, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "origin")
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    commits = []
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for message in ("one", "two"):
        (root / "file").write_text(message)
        subprocess.run(["git", "add", "."], cwd=root, check=True)
        subprocess.run(["git", "commit", "-qm", message], cwd=root, check=True, env={**os.environ, **identity})
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
        commits.append(head.stdout.strip())
    document("add", root.as_uri(), workspace=workspace)
    document("add", f"{root.as_uri()}#{commits[0]}", "--name", "older", workspace=workspace)
    assert find_subject("origin", workspace).pin()["commit"] == commits[1]
    assert find_subject("older", workspace).pin()["commit"] == commits[0]
    assert {one["status"] for one in document("check", "origin", "older", workspace=workspace)["subjects"]} == {"holds"}


def test_check_names_each_pin_that_does_not_hold(workspace: Path, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "thing")
    document("add", str(root), workspace=workspace)
    (root / "main.go").write_text("package other\n")
    port = closed_port()
    (workspace / "subjects" / "gone.toml").write_text(
        'schema = "referee.subject/1"\nname = "gone"\nkind = "repository"\nsummary = "gone"\n'
        f'[repository]\nurl = "git://127.0.0.1:{port}/x"\ncommit = "{"a" * 40}"\n'
    )
    status, stdout = referee("check", "thing", "gone", "make-c", "--json", workspace=workspace)
    results = {one["name"]: one["status"] for one in json.loads(stdout)["subjects"]}
    assert status == 1
    assert results == {"thing": "differs", "gone": "unreachable", "make-c": "holds"}
    assert referee("check", "gone", "make-c", workspace=workspace)[0] == 4


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no such thing",), "is no subject to pin"),
        (("pypi:",), "is no subject to pin"),
        (("make-c", "--sdist"), "source distribution"),
        (("pypi:a b",), "is no subject to pin"),
    ],
)
def test_what_cannot_be_pinned_is_a_usage_error(workspace: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        referee("add", *arguments, workspace=workspace)
    assert not (workspace / "subjects").exists()


def test_an_existing_subject_is_not_overwritten(workspace: Path, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "thing")
    document("add", str(root), workspace=workspace)
    before = find_subject("thing", workspace).file_bytes
    (root / "main.go").write_text("package other\n")
    with pytest.raises(UsageError, match="already in"):
        referee("add", str(root), workspace=workspace)
    assert find_subject("thing", workspace).file_bytes == before


def test_people_read_a_table_and_a_sheet(workspace: Path) -> None:
    workspace.mkdir(exist_ok=True)
    assert "segno" in referee("list", workspace=workspace)[1]
    shown = referee("show", "segno", workspace=workspace)[1]
    assert find_subject("segno", workspace).digest in shown
    assert "BSD-3-Clause" in shown


@pytest.mark.registry
def test_a_bundled_pin_is_what_add_would_write_today(workspace: Path) -> None:
    document("add", "pypi:PyYAML==5.4.1", "--sdist", workspace=workspace)
    document("add", "npm:@modelcontextprotocol/server-brave-search@0.6.2", "--name", "brave", workspace=workspace)
    assert find_subject("pyyaml", workspace).pin() == find_subject("pyyaml", workspace / "none").pin()
    brave = find_subject("brave", workspace).pin()
    assert brave | {"name": "server-brave-search"} == find_subject("server-brave-search", workspace).pin()


@pytest.mark.registry
@pytest.mark.slow
def test_every_bundled_pin_holds(workspace: Path) -> None:
    results = document("check", workspace=workspace)["subjects"]
    assert [one for one in results if one["status"] != "holds"] == []
    assert len(results) == len(list(BUNDLED.glob("*.toml")))
