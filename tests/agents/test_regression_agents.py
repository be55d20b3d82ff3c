"""The built-in agents null, liar and stub: under edition 2 none passes anything (methodology §5), on real machines.

Edition 1, which believes the report, lets liar and stub pass: that is what edition 2 is for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.agents.regression_agent import REGRESSION_AGENTS, regression_agent
from referee.publish.names import BUILT_IN
from tests.runs.conftest import referee

#: Bundled subjects: a package, a C program, a server whose port is promised.
SUBJECTS = (
    pytest.param("segno", marks=pytest.mark.registry),
    "make-c",
    "json-server-port-taken",
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("regression")


def attempt(subject: str, agent: str, workspace: Path) -> tuple[int, dict[str, Any]]:
    """One attempt by a built-in agent: the exit code and the attempt as the command line tells it."""
    done = referee("bringup", "run", subject, "--agent", agent, "--workspace", str(workspace), "--json", "-q")
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert document["verdict"] == "not_yet_verified" or done.returncode == 0
    first: dict[str, Any] = document["attempts"][0]
    return done.returncode, first


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("agent", sorted(REGRESSION_AGENTS))
def test_none_of_them_passes(agent: str, subject: str, workspace: Path) -> None:
    code, one = attempt(subject, agent, workspace)
    assert (code, one["outcome"], one["valid"]) == (4, "fail", True), one
    assert one["editions"]["2"]["rows"]["depth"] == 0
    if agent == "null":
        assert one["total"] == one["editions"]["1"]["total"] == 0
    else:
        assert one["total"] == 80
        assert one["editions"]["1"]["outcome"] == "pass_full"


@pytest.mark.parametrize("name", REGRESSION_AGENTS)
def test_they_are_built_in_and_pinned_by_what_they_run(name: str, tmp_path: Path) -> None:
    agent = regression_agent(name, tmp_path)
    assert name in BUILT_IN
    assert agent.need is None
    start = agent.prepare()
    home = next(iter(start.inputs))
    assert [file.name for file in home.iterdir()] == ["agent.py"]
    assert agent.digest().rsplit(":", 1)[1][:32] in home.name
    assert agent.prepare() == start
    others = {regression_agent(other, tmp_path).digest() for other in REGRESSION_AGENTS}
    assert len(others) == len(REGRESSION_AGENTS)
