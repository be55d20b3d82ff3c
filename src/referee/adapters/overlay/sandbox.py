"""The maker of machines over the host's own root (``protocols.Sandbox``).

Disposable, with the host's real apt, pip and npm, on the host's network: no security boundary.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import resource
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from referee.adapters.overlay import owner
from referee.adapters.overlay.cgroups import Cgroup, make_cgroup
from referee.adapters.overlay.layers import prepare_layers
from referee.adapters.overlay.machine import OverlayMachine
from referee.core.canonical import canonical_bytes, digest_of, digest_of_bytes
from referee.core.records import EnvironmentRef, Limits
from referee.errors import EnvironmentUnavailable, MachineFault
from referee.protocols import MachineSpec

_PROBE_SECONDS = 20.0


class OverlaySandbox:
    """Makes machines below ``state``.

    Args:
        state: a directory of this sandbox alone, on a file system that can carry an overlay's upper layer (ext4,
            xfs, btrfs; not itself an overlay). It is made where missing.
        hidden: host paths that no machine may see, such as the workspace; ``state`` is among them anyway.
    """

    def __init__(self, state: Path, *, hidden: Sequence[Path] = ()) -> None:
        self._state = state
        self._hidden = (state, *hidden)

    def environment(self) -> EnvironmentRef:
        """The host as a machine will see it.

        Raises:
            EnvironmentUnavailable: this host cannot make overlay machines.
        """
        if reason := _why_not(self._state):
            raise EnvironmentUnavailable(
                f"the overlay sandbox does not work here: {reason}",
                todo="Use the Docker sandbox, or a host whose kernel allows overlay mounts for this user.",
            )
        manifest = self.packages_manifest()
        packages_digest = None if manifest is None else digest_of_bytes(manifest)
        described = _os_release()
        facts = {
            "architecture": platform.machine(),
            "os_release": described,
            "packages": packages_digest,
        }
        mode = "rootless" if _rootless() else "as root"
        return EnvironmentRef(
            sandbox="overlay",
            engine=f"overlayfs and namespaces of Linux {platform.release()}, {mode}",
            image=f"host root: {described.get('PRETTY_NAME', 'Linux')}",
            image_digest=digest_of("host-root", facts),
            packages_digest=packages_digest,
            security_boundary=False,
            architecture=platform.machine(),
        )

    def packages_manifest(self) -> bytes | None:
        """The host's Debian packages with their versions; None where there is no dpkg."""
        return _debian_packages()

    def gateway_address(self) -> str:
        """Machines share the host's network: its loopback address."""
        return "127.0.0.1"

    def create(self, spec: MachineSpec) -> OverlayMachine:
        """Make and start a machine.

        Raises:
            MachineFault: it could not be made; nothing of it is left.
        """
        name = f"{re.sub(r'[^A-Za-z0-9_.-]', '-', spec.run)[:80]}-{secrets.token_hex(4)}"
        try:
            return self._create(spec, name)
        except (OSError, MachineFault) as exc:
            with contextlib.suppress(OSError):
                owner.remove_machine(self._state, name, search=False)
            if isinstance(exc, MachineFault):
                raise
            raise MachineFault(
                f"the machine's directory could not be prepared: {exc}",
                todo=f"See that {self._state} can be written and is on a disk with room.",
            ) from exc

    def _create(self, spec: MachineSpec, name: str) -> OverlayMachine:
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner.write_owner(self._state, owner.owner_of(name, spec.run, spec.workspace, spec.deadline))
        directory = self._state.resolve() / name
        directory.mkdir()
        (directory / "root").mkdir()
        rootless = _rootless()
        layers = prepare_layers(directory, rootless=rootless, hide=self._hidden)
        cgroup = None if rootless else make_cgroup(name, spec.limits)
        return OverlayMachine(
            state=self._state.resolve(),
            name=name,
            spec=spec,
            layers=layers,
            rlimits=_rlimits(spec.limits, cgroup, rootless=rootless),
            cgroup=cgroup,
            rootless=rootless,
        )

    def reap(self) -> list[str]:
        """Remove the machines of dead harnesses, and those long past their deadline."""
        sentences: list[str] = []
        if not self._state.is_dir():
            return sentences
        for found in owner.read_owners(self._state):
            why = owner.why_removable(found)
            if why is None:
                continue
            owner.remove_machine(self._state.resolve(), found.machine, search=True)
            gone = not owner.owner_file(self._state, found.machine).exists()
            done = "removed" if gone else "could not wholly remove"
            sentences.append(f"{done} the overlay machine {found.machine} of run {found.run}: {why}")
        return sentences


def overlay_available(state: Path | None = None) -> str | None:
    """None when overlay machines can be made here; else one sentence why not.

    Args:
        state: where machines would be made; without it a temporary directory is tried.
    """
    if state is not None:
        return _why_not(state)
    with tempfile.TemporaryDirectory(prefix="referee-overlay-", dir="/var/tmp") as place:
        return _why_not(Path(place))


@functools.lru_cache(maxsize=16)
def _why_not(state: Path) -> str | None:
    """Really make a machine and run something in it."""
    if platform.system() != "Linux":
        return "it needs Linux"
    limits = Limits(memory_bytes=1 << 30, cpus=1.0, pids=64, disk_bytes=1 << 30, nofile=256)
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        return f"the directory {state} cannot be made: {exc}"
    try:
        machine = OverlaySandbox(state).create(MachineSpec("probe", "", 0.0, limits))
    except MachineFault as exc:
        return exc.message
    try:
        done = machine.execute(["/bin/sh", "-c", "echo x > /work/probe && cat /work/probe"], timeout=_PROBE_SECONDS)
    except MachineFault as exc:
        return exc.message
    finally:
        machine.destroy()
    return None if done.output == b"x\n" else "a command in a machine does not do what it should"


def _rootless() -> bool:
    return os.geteuid() != 0


def _rlimits(limits: Limits, cgroup: Cgroup | None, *, rootless: bool) -> dict[str, int]:
    """Limits on each process, where no control group holds the whole machine."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    room = rootless and hard != resource.RLIM_INFINITY
    found = {"nofile": min(limits.nofile, hard) if room else limits.nofile, "core": 0}
    # One file cannot outgrow the whole disk limit between two measurements.
    found["fsize"] = limits.disk_bytes
    in_force = cgroup.in_force if cgroup else {}
    if "memory" not in in_force:
        found["data"] = limits.memory_bytes
    if "pids" not in in_force and rootless:
        # The kernel does not hold root to this limit.
        found["nproc"] = limits.pids
    return found


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _debian_packages() -> bytes | None:
    form = "${db:Status-Abbrev}\\t${binary:Package}\\t${Version}\\n"
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    packages: list[dict[str, Any]] = [
        {"name": row[1], "version": row[2]} for row in rows if row[0].startswith("ii") and row[1]
    ]
    return canonical_bytes({"schema": "referee.packages/1", "packages": packages})
