"""Runs the attempts that the chosen tests ask for, a few at a time: each on a machine of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from referee.cli.app import make_app
from tests.cheats.planted import Act
from tests.cheats.projects import PROJECTS, write_project
from tests.runs.conftest import Measured, referee

#: Attempts at the same time: mostly they wait.
_ABREAST = min(3, (os.cpu_count() or 1) + 1)


class Attempts:
    """Attempts by an act, made when first asked for, in the background when announced."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._pool = ThreadPoolExecutor(_ABREAST)
        self._made: dict[Act, Future[Measured]] = {}

    def begin(self, act: Act) -> Future[Measured]:
        if act not in self._made:
            self._made[act] = self._pool.submit(self._make, act)
        return self._made[act]

    def of(self, act: Act) -> Measured:
        return self.begin(act).result()

    def end(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _make(self, act: Act) -> Measured:
        done = referee(
            "bringup", "run", act.project, "--agent", "command", "--command", act.line(), "--json", "-q",
            "--workspace", str(self.workspace),
        )  # fmt: skip
        document: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        return Measured(done.returncode, document, done.stderr, self.workspace)


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Attempts]:
    """A workspace with the projects; what the module's chosen tests need is begun at once."""
    root = tmp_path_factory.mktemp("cheats")
    workspace = root / "ws"
    for name in PROJECTS:
        project = write_project(name, root)
        added = ["subject", "add", str(project), "--name", name, "--workspace", str(workspace)]
        done = CliRunner().invoke(make_app(), added)
        assert done.exit_code == 0, done.output
    made = Attempts(workspace)
    for item in request.session.items:
        call = getattr(item, "callspec", None)
        if item.path == request.path and call is not None and "act" in call.params:
            made.begin(call.params["act"])
    yield made
    made.end()
