"""Installing agent programs: once, from locks that hold, and what was taken out of a machine is read with care."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from referee.adapters.agents.harnesses.harness import Harness, Install, Start
from referee.adapters.agents.harnesses.install import install
from referee.adapters.agents.harnesses.tree import tree_digest, unpack
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import EnvironmentRef
from referee.errors import AgentUnavailable
from referee.protocols import AGENT_HOME, Machine, MachineSpec, Sandbox
from tests.agents.site import agent, site

#: The package `ms`, one file: enough to see what an installation does.
INTEGRITY = "sha512-6FlzubTLZG3J2a/NVCAleEhjzq5oxgHyaCU9yYXvcLsvoVaHJq/s5xXI6/XXP6tz7R9xAOtHnSO/tXtF3WRTlA=="


class Counting:
    """A sandbox that counts the machines that it makes."""

    def __init__(self) -> None:
        self.sandbox: Any = DockerSandbox()
        self.made = 0

    def environment(self) -> EnvironmentRef:
        return cast("EnvironmentRef", self.sandbox.environment())

    def create(self, spec: MachineSpec) -> Machine:
        self.made += 1
        return cast("Machine", self.sandbox.create(spec))


class Small(Harness):
    """A harness whose files stand elsewhere."""

    where: Path

    @property
    def directory(self) -> Path:
        return self.where


def small(root: Path, integrity: str = INTEGRITY) -> Small:
    root.mkdir(exist_ok=True)
    (root / "package.json").write_text('{"name": "small", "private": true, "dependencies": {"ms": "2.1.3"}}')
    lock = {
        "name": "small",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {
            "": {"name": "small", "dependencies": {"ms": "2.1.3"}},
            "node_modules/ms": {"version": "2.1.3", "integrity": integrity},
        },
    }
    (root / "package-lock.json").write_text(json.dumps(lock))
    return Small(
        schema="referee.harness/1",
        name="small",
        program="Small",
        version="2.1.3",
        dialect="openai-chat",
        output="none",
        install=Install(npm=True, take={"lib/ms": "node_modules/ms"}, locks=("package.json", "package-lock.json")),
        start=Start(argv=("/opt/agent/lib/ms",)),
        where=root,
    )


@pytest.mark.engine
@pytest.mark.registry
@pytest.mark.slow
def test_a_program_is_installed_once_and_what_was_changed_since_is_refused(tmp_path: Path) -> None:
    counting = Counting()
    where = site(cast("Sandbox", counting), tmp_path)
    harness = small(tmp_path / "small")
    first = install(harness, where)
    assert counting.made == 1
    index = first.root / "lib/ms/index.js"
    assert hashlib.sha256(index.read_bytes()).hexdigest()
    again = install(harness, where)
    assert (again, counting.made) == (first, 1)

    index.write_bytes(index.read_bytes() + b"\n")
    with pytest.raises(AgentUnavailable, match=r"is not what was installed: its tree digest is") as caught:
        install(harness, where)
    assert str(first.root.parent) in caught.value.message
    assert "delete that directory" in caught.value.todo
    shutil.rmtree(first.root.parent)
    assert install(harness, where).tree_digest == first.tree_digest
    assert counting.made == 2

    (first.root.parent / "installed.json").write_text("{}")
    with pytest.raises(AgentUnavailable, match=r"its installed.json cannot be read"):
        install(harness, where)


@pytest.mark.engine
@pytest.mark.registry
@pytest.mark.slow
def test_bytes_that_are_not_the_locks_are_not_installed(tmp_path: Path) -> None:
    counting = Counting()
    where = site(cast("Sandbox", counting), tmp_path)
    other = "sha512-" + "A" * 86 + "=="
    with pytest.raises(AgentUnavailable, match=r"installing Small 2\.1\.3 ended with status 1: .*") as caught:
        install(small(tmp_path / "small", other), where)
    assert "EINTEGRITY" in caught.value.message
    assert not list((tmp_path / "agents").glob("*/installed.json"))
    assert not list((tmp_path / "agents").glob("draft-*"))


@pytest.mark.engine
@pytest.mark.registry
@pytest.mark.slow
def test_the_prepared_agent_is_mounted_where_agents_stand(tmp_path: Path) -> None:
    counting = Counting()
    made = agent("opencode", site(cast("Sandbox", counting)))
    start = made.prepare()
    (root,) = start.inputs
    assert start.inputs[root] == AGENT_HOME
    assert start.tree_digest == tree_digest(root)
    # Its own program alone: nothing that a project could want stands beside it.
    assert sorted(file.name for file in root.rglob("*") if file.is_file()) == ["opencode"]
    before = counting.made
    assert made.prepare() == start
    assert counting.made == before


def archive(*members: Callable[[tarfile.TarFile], None]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        top = tarfile.TarInfo("agent")
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        for member in members:
            member(tar)
    buffer.seek(0)
    return buffer


def file(name: str, data: bytes = b"x", mode: int = 0o644) -> Callable[[tarfile.TarFile], None]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    return lambda tar: tar.addfile(entry, io.BytesIO(data))


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Callable[[tarfile.TarFile], None]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return lambda tar: tar.addfile(entry)


def links(*named: tuple[str, str]) -> Callable[[tarfile.TarFile], None]:
    return lambda tar: [link(name, target)(tar) for name, target in named].clear()


def test_an_installation_is_unpacked_as_it_stood(tmp_path: Path) -> None:
    into = tmp_path / "tree"
    unpack(
        archive(
            file("agent/bin/run", b"#!/bin/sh\n", 0o4755),
            link("agent/bin/same", "/opt/agent/bin/run"),
            link("agent/lib", "bin"),
            link("agent/bin/hard", "agent/bin/run", tarfile.LNKTYPE),
        ),
        into,
    )
    assert (into / "bin/run").stat().st_mode & 0o7777 == 0o755
    assert (into / "bin/same").readlink() == Path("/opt/agent/bin/run")
    assert (into / "bin/hard").read_bytes() == b"#!/bin/sh\n"
    digest = tree_digest(into)
    (into / "bin/run").chmod(0o644)
    assert tree_digest(into) != digest


@pytest.mark.parametrize(
    ("member", "says"),
    [
        (file("agent/../../escaped"), "leaves its directory"),
        (link("agent/out", "/etc/shadow"), "outside of it"),
        (link("agent/out", "../../etc"), "outside of it"),
        (link("agent/near", "/opt/agent-stage/x"), "outside of it"),
        (links(("agent/a/b/up", "../.."), ("agent/a/b/out", "up/../../etc")), "outside of it"),
        (links(("agent/twice", "a"), ("agent/twice", "b")), "twice"),
        (link("agent/hard", "../etc/passwd", tarfile.LNKTYPE), "leaves its directory"),
        (link("agent/device", "", tarfile.CHRTYPE), "no file, directory or link"),
        (link("agent/fifo", "", tarfile.FIFOTYPE), "no file, directory or link"),
    ],
)
def test_what_would_leave_the_directory_is_refused(
    tmp_path: Path, member: Callable[[tarfile.TarFile], None], says: str
) -> None:
    with pytest.raises(AgentUnavailable, match=says):
        unpack(archive(member), tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_a_link_is_never_written_through(tmp_path: Path) -> None:
    into = tmp_path / "tree"
    unpack(archive(link("agent/a", "b"), file("agent/b/c", b"inside")), into)
    assert (into / "b/c").read_bytes() == b"inside"
    second = archive(link("agent/a", "/opt/agent/b"), file("agent/a/x"))
    with pytest.raises(AgentUnavailable, match="cannot be unpacked"):
        unpack(second, tmp_path / "second")
