"""Installing an agent program once, so that no attempt depends on a registry and no machine is changed by it.

A throwaway machine of the environment that attempts use runs ``install.sh``: pinned versions, every file checked
against the lock's hashes, into ``/opt/agent`` with the program's own runtime. The directory is taken out, unpacked in
the workspace's cache, digested, and from then on mounted read-only. Before each use the digest is computed again.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.adapters.agents.harnesses.harness import Harness
from referee.adapters.agents.harnesses.tree import tree_digest, unpack
from referee.core.canonical import canonical_bytes, digest_of, strict_loads
from referee.core.records import Limits
from referee.errors import AgentUnavailable, UsageError
from referee.protocols import AGENT_HOME, MachineSpec, Sandbox

#: The longest that an installation may take, seconds; the largest comes with hundreds of megabytes.
INSTALL_SECONDS = 1500.0
_STAGE = "/opt/agent-stage"
_SHOWN = 600


@dataclass(frozen=True)
class Site:
    """Where and with what agent programs are installed.

    Args:
        cache: the workspace's cache: can be deleted without loss.
        sandbox: makes the throwaway machine; called only when it is known what is to be installed.
        workspace: labels the machine.
        limits: of the machine.
        ca_bundle: whom the machine trusts.
    """

    cache: Path
    sandbox: Callable[[], Sandbox]
    workspace: str
    limits: Limits
    ca_bundle: Path | None


@dataclass(frozen=True)
class Installed:
    """An installation that was checked just now."""

    root: Path
    tree_digest: str


def install(harness: Harness, site: Site) -> Installed:
    """The installation of a harness for the environment that machines are made from; made where it is not there.

    Raises:
        AgentUnavailable: it could not be installed, or what stands in the cache is not what was installed.
        MachineFault: the throwaway machine failed.
    """
    sandbox = site.sandbox()
    environment = sandbox.environment()
    made_of = {
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in harness.installed_files().items()},
        "install": harness.install.model_dump(mode="json"),
        "environment": environment.image_digest,
        "architecture": environment.architecture,
    }
    digest = digest_of("installation", made_of)
    # A machine's table of mounts shows this path to every command: it names no program.
    home = site.cache / "agents" / digest.rsplit(":", 1)[1][:32]
    home.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.with_name(f"{home.name}.lock")):
        if not (home / "installed.json").is_file():
            shutil.rmtree(home, ignore_errors=True)
            _make(harness, site, sandbox, home, {**made_of, "installation": digest})
        return _checked(harness, home, digest)


def _checked(harness: Harness, home: Path, digest: str) -> Installed:
    try:
        said = strict_loads((home / "installed.json").read_bytes())
        promised = (str(said["installation"]), str(said["tree_digest"]))
    except (OSError, UsageError, KeyError, TypeError) as exc:
        raise _spoilt(harness, home, "its installed.json cannot be read") from exc
    found = tree_digest(home / "tree")
    if promised != (digest, found):
        raise _spoilt(harness, home, f"its tree digest is {found}, that of what was installed {promised[1]}")
    return Installed(home / "tree", found)


def _spoilt(harness: Harness, home: Path, why: str) -> AgentUnavailable:
    return AgentUnavailable(
        f"the installation of {harness.program} in {home} is not what was installed: {why}",
        todo="delete that directory; the next run installs it again",
    )


def _make(harness: Harness, site: Site, sandbox: Sandbox, home: Path, made_of: dict[str, object]) -> None:
    spec = MachineSpec(
        run=f"agent-{harness.name}",
        workspace=site.workspace,
        deadline=time.time() + INSTALL_SECONDS,
        limits=site.limits,
        ca_bundle=site.ca_bundle,
    )
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=home.parent))
    machine = sandbox.create(spec)
    try:
        machine.put(_stage(harness), _STAGE)
        done = machine.execute(
            ["/bin/sh", f"{_STAGE}/install.sh"], timeout=INSTALL_SECONDS, cwd=_STAGE, max_output=4_000_000
        )
        if done.exit_status != 0:
            said = done.output.decode(errors="replace").strip()[-_SHOWN:]
            how = "took too long" if done.timed_out else f"ended with status {done.exit_status}"
            raise AgentUnavailable(
                f"installing {harness.program} {harness.version} {how}: {said or 'it said nothing'}",
                todo="see that machines reach the package registries, then try again",
            )
        with machine.take(AGENT_HOME) as stream:
            unpack(stream, draft / "tree")
        facts = {"schema": "referee.installation/1", "harness": harness.name, "version": harness.version, **made_of}
        facts["tree_digest"] = tree_digest(draft / "tree")
        (draft / "installed.json").write_bytes(canonical_bytes(facts))
        draft.chmod(0o755)
        draft.rename(home)
    finally:
        machine.destroy()
        shutil.rmtree(draft, ignore_errors=True)


def _stage(harness: Harness) -> io.BytesIO:
    """What ``install.sh`` works from: the files, and what is asked of it as one line each."""
    wanted = harness.install
    plan = [f"{part}={getattr(wanted, part)}" for part in ("python", "newer_python", "npm", "node")]
    files = dict(harness.installed_files())
    files["plan"] = "\n".join(line.lower() for line in plan).encode() + b"\n"
    files["take"] = "".join(f"{place} {pattern}\n" for place, pattern in wanted.take.items()).encode()
    files["files"] = "".join(f"{name}\n" for name in wanted.files).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process installs at a time; the others then find what it made."""
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def describe(home: Path) -> dict[str, object]:
    """What stands in ``installed.json``: for people who ask what is installed."""
    found = json.loads((home / "installed.json").read_bytes())
    return dict(found)
