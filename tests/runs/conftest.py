"""Real attempts through the command line: a tiny subject, any command line as the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.catalog.workspace import Config, Workspace
from referee.cli.wiring import workspace_id

REFEREE = (sys.executable, "-m", "referee.cli.app")

#: A report that claims a verification which the machine can repeat.
GOOD_REPORT = {
    "installed": True,
    "started": True,
    "errors": [],
    "test_depth": "tier1_real",
    "verified_how": {"command": "python3 /work/project/square.py 12", "returned": "12 squared is 144"},
    "final_state": "square.py printed 144 for 12.",
}


@dataclass(frozen=True)
class Measured:
    """What one command left: exit code, the document, stderr, and the workspace."""

    code: int
    document: dict[str, Any]
    stderr: str
    workspace: Path

    @property
    def attempt(self) -> dict[str, Any]:
        """The first attempt."""
        first: dict[str, Any] = self.document["attempts"][0]
        return first


@pytest.fixture
def subject(tmp_path: Path) -> Path:
    """A project that squares a number, as a subject file with a local path."""
    project = tmp_path / "square"
    project.mkdir()
    (project / "square.py").write_text("import sys\nn = int(sys.argv[1])\nprint(f'{n} squared is {n * n}')\n")
    (project / "README.md").write_text("# square\n\n```sh\npython3 square.py 12\n```\n")
    workspace = tmp_path / "ws"
    done = referee("subject", "add", str(project), "--name", "square", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr
    return workspace / "subjects" / "square.toml"


@pytest.fixture
def measure(subject: Path) -> Callable[..., Measured]:
    """Run one attempt at the tiny subject with a command line as the agent."""
    workspace = subject.parent.parent

    def run(command: str, *options: str, config: str = "", peak: Path | None = None) -> Measured:
        (workspace / "referee.toml").write_text(config)
        done = referee(
            "bringup", "run", "square", "--agent", "command", "--command", command, "--json",
            "--workspace", str(workspace), *options, peak=peak,
        )  # fmt: skip
        document = json.loads(done.stdout) if done.stdout.strip() else {}
        return Measured(done.returncode, document, done.stderr, workspace)

    return run


#: Runs a command and writes down its peak memory in kilobytes: pytest itself only knows the largest child it ever had.
WITH_PEAK = """
import pathlib, resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
pathlib.Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


def referee(*arguments: str, timeout: float = 600, peak: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line, as a user has it; its peak memory in kilobytes is left in the file ``peak``."""
    weighed = (sys.executable, "-c", WITH_PEAK, str(peak)) if peak else ()
    return subprocess.run(
        [*weighed, *REFEREE, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        # A copy: attempts are made in threads while a test sets variables, and a child may not read them half changed.
        env=dict(os.environ),
    )


def leaves_report(report: object, *, before: str = "", after: str = "") -> str:
    """A command line that leaves this report."""
    text = report if isinstance(report, str) else json.dumps(report)
    return f"{before}\ncat > /work/report.json <<'END_OF_REPORT'\n{text}\nEND_OF_REPORT\n{after}"


def containers(workspace: Path) -> Sequence[str]:
    """Ids of all containers that belong to a workspace."""
    label = f"label=referee.workspace={workspace_id(Workspace(workspace, Config()))}"
    done = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=True)
    return done.stdout.split()
