"""Where tests install agent programs: one cache below ``build/`` for all of them, so that each is installed once."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from referee.adapters.agents.harnesses.agent import HarnessAgent
from referee.adapters.agents.harnesses.harness import load_harness
from referee.adapters.agents.harnesses.install import Site
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import Limits
from referee.protocols import PROJECT, REPORT, AgentStart, Machine, MachineSpec, PlacedFile, Sandbox, Session

CACHE = Path(__file__).parents[2] / "build"
LIMITS = Limits(memory_bytes=4 << 30, cpus=2.0, pids=1024, disk_bytes=20 << 30, nofile=4096)
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
MISSION = {
    "schema": "referee.mission/1",
    "subject": {"name": "nothing", "kind": "repository", "display": False, "languages": ["C"], "url": None},
    "project": PROJECT,
    "report": REPORT,
    "seconds": 900,
    "instructions": "Work alone, and leave a report.\n",
}


def site(sandbox: Sandbox, cache: Path = CACHE) -> Site:
    """A site whose machines come from ``sandbox``."""
    bundle = BUNDLE if BUNDLE.exists() else None
    return Site(cache=cache, sandbox=lambda: sandbox, workspace="tests", limits=LIMITS, ca_bundle=bundle)


def agent(name: str, where: Site, model: str = "scripted-1") -> HarnessAgent:
    """An agent of the harness ``name``."""
    program = load_harness(name)
    return HarnessAgent(name=name, program=program, version=program.version, model=model, upstream="local", site=where)


@dataclass(frozen=True)
class Ran:
    """A session's end: its output, its status (None: it was still running)."""

    output: str
    status: int | None


def machine(sandbox: DockerSandbox, start: AgentStart, gateway: tuple[str, int] | None) -> Machine:
    """A machine as attempts get it."""
    return sandbox.create(
        MachineSpec(
            run="r-agenttest",
            workspace="tests",
            deadline=time.time() + 900,
            limits=LIMITS,
            inputs=start.inputs,
            ca_bundle=BUNDLE if BUNDLE.exists() else None,
            gateway=gateway,
        )
    )


def place(on: Machine, files: Mapping[str, PlacedFile]) -> None:
    """Put the agent's files, and an empty project."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo(PROJECT.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        for path, file in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(file.data), file.mode
            tar.addfile(entry, io.BytesIO(file.data))
    buffer.seek(0)
    on.put(buffer, "/")


def run(on: Machine, start: AgentStart, seconds: float = 300) -> Ran:
    """Run the agent's session to its end."""
    session: Session = on.session(start.argv, environment=start.environment, cwd=PROJECT, columns=120, rows=32)
    said = bytearray()
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            data = session.read(65536, 1.0)
            if data == b"":
                break
            said += data or b""
        return Ran(said.decode("utf-8", "replace"), session.exit_status(5))
    finally:
        session.close()
