"""docs/agents.md and docs/subjects.md: their examples are read by the program, and every field is named."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from referee.adapters.catalog.agents import AgentFile, load_agent_file
from referee.adapters.catalog.subjects import (
    Facts,
    PackagePin,
    RepositoryPin,
    SubjectFile,
    list_subjects,
    parse_subject,
)
from referee.benchmarks.bringup.rerun import MAX_OUTPUT
from referee.core.report import MAX_REPORT_BYTES, Report, ReportedError, Verification, parse_report
from referee.protocols import TRUSTED_PATH
from referee.runner.attempt import RERUN_SECONDS
from referee.scoring.bringup import claims_of, score

DOCS = Path(__file__).parents[1] / "docs"
AGENTS = (DOCS / "agents.md").read_text(encoding="utf-8")
SUBJECTS = (DOCS / "subjects.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def write_the_example(agents: Path) -> None:
    (agents / "first-try").mkdir(parents=True)
    (agents / "first-try.toml").write_text(blocks(AGENTS, "toml")[0])
    (agents / "first-try" / "agent.py").write_text(blocks(AGENTS, "python")[0])


def test_the_agent_file_is_one_and_every_field_is_told(tmp_path: Path) -> None:
    write_the_example(tmp_path)
    file = load_agent_file("first-try", tmp_path)
    assert file.command == ("python3", "/opt/agent/agent.py")
    for field in AgentFile.model_fields:
        assert f"| `{field.removesuffix('_')}` |" in AGENTS


def test_the_report_is_one_and_every_field_is_told() -> None:
    report = parse_report(blocks(AGENTS, "json")[1].encode())
    assert score(claims_of(report), timed_out=False, edition=1).total == 90
    for model in (Report, ReportedError, Verification):
        for field in model.model_fields:
            if field not in {"errors_encountered", "errors_fixed"}:
                assert f'"{field}"' in AGENTS


def test_figures_are_those_of_the_program() -> None:
    assert json.loads(blocks(AGENTS, "json")[0])["schema"] == "referee.mission/1"
    assert f"{MAX_REPORT_BYTES:,} bytes" in AGENTS
    assert f"**{RERUN_SECONDS:.0f} seconds at most**" in AGENTS
    assert f"PATH={TRUSTED_PATH}" in AGENTS
    assert MAX_OUTPUT == MAX_REPORT_BYTES


def test_the_subject_files_are_some_and_every_field_is_told() -> None:
    found = blocks(SUBJECTS, "toml")
    assert [parse_subject(text.encode(), Path("x.toml")).kind for text in found] == ["package", *["repository"] * 2]
    for prefix, model in (
        ("", SubjectFile),
        ("package.", PackagePin),
        ("repository.", RepositoryPin),
        ("facts.", Facts),
    ):
        for field in model.model_fields:
            if field not in {"package", "repository", "facts"} or prefix:
                assert f"`{prefix}{field.removesuffix('_')}`" in SUBJECTS


def test_the_tree_digest_can_be_rebuilt_from_its_description(tmp_path: Path) -> None:
    script = tmp_path / "digest.py"
    script.write_text(blocks(SUBJECTS, "python")[0])
    trees = [one for one in list_subjects(tmp_path) if one.content.repository and one.content.repository.path]
    assert len(trees) > 10
    for one in trees:
        done = subprocess.run(
            [sys.executable, str(script), str(one.pin()["path"])], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == one.pin()["sha256"], one.name


@pytest.mark.engine
@pytest.mark.registry
@pytest.mark.slow
def test_the_example_passes(tmp_path: Path) -> None:
    write_the_example(tmp_path / "agents")
    argv = [*(sys.executable, "-m", "referee.cli.app"), "bringup", "run", "segno", "--agent", "first-try", "--json"]
    done = subprocess.run([*argv, "--workspace", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["verdict"] == "runs"
    assert document["attempts"][0]["corroboration"] == "corroborated"
    assert document["attempts"][0]["total"] == 100
