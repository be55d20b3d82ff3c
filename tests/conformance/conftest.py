"""The sandboxes under test.

To add one: write a session fixture ``<name>_candidate`` that returns a ``Candidate`` and add ``<name>`` to
``SANDBOXES``. The suite itself speaks only to the seam (``referee.protocols``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.overlay.cgroups import make_cgroup, remove_cgroup
from referee.adapters.overlay.sandbox import OverlaySandbox
from referee.core.records import Limits
from referee.protocols import Machine, MachineSpec, Sandbox, Session

SANDBOXES = [pytest.param("docker", marks=pytest.mark.engine), pytest.param("overlay", marks=pytest.mark.slow)]

LIMITS = Limits(memory_bytes=1_500_000_000, cpus=1.5, pids=400, disk_bytes=4_000_000_000, nofile=4096)


@dataclass(frozen=True)
class Candidate:
    """One sandbox with what only its own author knows.

    ``recipe`` is Python source that binds ``sandbox`` to an equal sandbox in another process. ``traces`` names
    everything that still exists of a run on the host: processes, mounts, cgroups, containers, directories. ``shown``
    is all that is told of a run's machines to whoever may ask: the engine's word on every object of theirs, or the
    files beside a machine's own.
    ``lacks`` names what no machine of this sandbox can have on this host ("apt-get", "npm", "pids"), and
    "host network" where machines share it.
    """

    sandbox: Sandbox
    recipe: str
    traces: Callable[[str], list[str]]
    shown: Callable[[str], str]
    lacks: frozenset[str] = frozenset()


@pytest.fixture(scope="session")
def overlay_candidate(tmp_path_factory: pytest.TempPathFactory) -> Candidate:
    """The overlay sandbox of this host; as an unprivileged user it is the rootless one."""
    state = tmp_path_factory.mktemp("overlay-state")
    sandbox = OverlaySandbox(state)
    recipe = f"""
    from pathlib import Path
    from referee.adapters.overlay.sandbox import OverlaySandbox
    sandbox = OverlaySandbox(Path({str(state)!r}))
    """

    def traces(run: str) -> list[str]:
        found = [str(path) for path in state.iterdir() if run in path.name]
        for tree in ("cgroup.procs", "tasks"):
            found += [str(path.parent) for path in Path("/sys/fs/cgroup").glob(f"**/*{run}*/{tree}")]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if run in (process / "mountinfo").read_text(errors="replace"):
                    found.append(f"process {process.name} or its mount")
        return found

    def shown(run: str) -> str:
        beside = "".join(path.read_text() for path in state.glob("*.json") if run in path.name)
        for path in Path("/proc").glob("[0-9]*/mountinfo"):
            with contextlib.suppress(OSError):
                beside += path.read_text(errors="replace")
        return beside

    lacks = {name for name in ("apt-get", "npm") if shutil.which(name) is None} | {"host network"}
    lacks |= {"apt-get"} if os.geteuid() else set()
    if os.geteuid() == 0 and make_cgroup("conformance", LIMITS) is None:
        lacks.add("pids")
    remove_cgroup("conformance")
    return Candidate(sandbox, recipe, traces, shown, frozenset(lacks))


@pytest.fixture(scope="session")
def docker_candidate() -> Iterator[Candidate]:
    """Machines of the Docker Engine, made from the default environment image."""
    import docker  # noqa: PLC0415 — only tests that ask for an engine pay for the import

    from referee.adapters.docker.sandbox import DockerSandbox  # noqa: PLC0415

    recipe = """
    from referee.adapters.docker.sandbox import DockerSandbox
    sandbox = DockerSandbox(workspace="conformance")
    """
    client = docker.from_env()

    def traces(run: str) -> list[str]:
        label: dict[str, str | list[str] | bool] = {"label": f"referee.run={run}"}
        found = [f"container {container.id}" for container in client.containers.list(all=True, filters=label)]
        return found + [f"volume {volume.id}" for volume in client.volumes.list(filters=label)]

    started = int(time.time())

    def shown(run: str) -> str:
        label: dict[str, str | list[str] | bool] = {"label": f"referee.run={run}"}
        api = client.api
        said: list[object] = list(client.api.events(since=started, until=int(time.time()) + 1, decode=True))
        for name in [str(container.id) for container in client.containers.list(all=True, filters=label)]:
            seen = api.inspect_container(name)
            said += [seen, api.diff(name), api.top(name)]
            said += [api.exec_inspect(one) for one in seen["ExecIDs"] or ()]
        said += [volume.attrs for volume in client.volumes.list(filters=label)]
        return json.dumps(said)

    yield Candidate(DockerSandbox(workspace="conformance"), recipe, traces, shown)
    client.close()


@pytest.fixture(scope="session", params=SANDBOXES)
def candidate(request: pytest.FixtureRequest) -> Candidate:
    """Each sandbox in turn."""
    found: Candidate = request.getfixturevalue(f"{request.param}_candidate")
    return found


@pytest.fixture(scope="session")
def sandbox(candidate: Candidate) -> Sandbox:
    """Each sandbox in turn, as the runner sees it."""
    return candidate.sandbox


Make = Callable[..., Machine]


def new_spec(**changes: Any) -> MachineSpec:
    """A spec of the suite with a run name of its own."""
    spec = MachineSpec(
        run=f"conformance-{uuid.uuid4().hex[:12]}",
        workspace="conformance",
        deadline=time.time() + 1800,
        limits=LIMITS,
    )
    return replace(spec, **changes)


@pytest.fixture
def make(sandbox: Sandbox) -> Iterator[Make]:
    """Make machines that are destroyed with the test: ``make(limits=…, inputs=…)``."""
    made: list[Machine] = []

    def create(**changes: Any) -> Machine:
        machine = sandbox.create(new_spec(**changes))
        made.append(machine)
        return machine

    yield create
    for machine in made:
        machine.destroy()


@pytest.fixture(scope="module")
def shared(sandbox: Sandbox) -> Iterator[Machine]:
    """One machine for all tests of a file that leave it sound."""
    machine = sandbox.create(new_spec())
    yield machine
    machine.destroy()


Drain = Callable[..., bytes]


@pytest.fixture(scope="session")
def drain() -> Drain:
    """Read a session to its end, or until ``until`` was seen; fails after ``seconds``."""

    def read_all(session: Session, *, until: bytes | None = None, seconds: float = 60) -> bytes:
        seen = bytearray()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            data = session.read(65536, 0.2)
            if data == b"":
                return bytes(seen)
            seen += data or b""
            if until is not None and until in seen:
                return bytes(seen)
            if data is None and until is None and session.exit_status(0) is not None:
                return bytes(seen)
        raise AssertionError(f"the session did not end in {seconds} s; so far: {bytes(seen[-2000:])!r}")

    return read_all


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A CA bundle to be announced inside; its bytes are recognisable."""
    path = tmp_path / "bundle.pem"
    path.write_text("# conformance bundle\n")
    path.chmod(0o644)
    return path
