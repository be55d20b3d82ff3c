"""How a machine and its keeper are fenced: the arguments that the engine gets, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from docker.types import LogConfig, Mount, Ulimit

from referee.adapters.docker.network import BUSYBOX, TRUSTED_TOOLS
from referee.core.records import Limits
from referee.errors import UsageError
from referee.protocols import TRUSTED_PATH, MachineSpec
from referee.trust import CA_BUNDLE, announced

#: What root inside keeps. Everything else is dropped, among it NET_ADMIN, NET_RAW, SYS_ADMIN, SYS_PTRACE and MKNOD.
CAPABILITIES: Mapping[str, str] = {
    "CHOWN": "dpkg and tar give files their owners",
    "DAC_OVERRIDE": "root writes where other owners' files stand, as apt does in /var/cache",
    "FOWNER": "dpkg sets modes and times of files it has given away",
    "FSETID": "dpkg installs programs with set-group-id",
    "SETFCAP": "packages install file capabilities",
    "SETUID": "apt drops to _apt; servers and `su` drop to their own user",
    "SETGID": "the same for groups",
    "KILL": "root stops a service that runs as its own user",
    "NET_BIND_SERVICE": "a project listens on a port below 1024",
    "SYS_CHROOT": "services such as sshd and postfix enter their chroot",
    "AUDIT_WRITE": "sudo and su report through PAM",
}

APT_FRAGMENT = "/etc/apt/apt.conf.d/90referee-ca"
SHARED_MEMORY_BYTES = 512 * 1024**2


def environment(spec: MachineSpec) -> dict[str, str]:
    """The variables of every process of the machine."""
    certificates = announced(spec.ca_bundle)
    return {"PATH": TRUSTED_PATH, "HOME": "/root", "LANG": "C.UTF-8", **certificates, **spec.environment}


def machine_host_config(client: Any, spec: MachineSpec, *, keeper: str, disk_by_engine: bool) -> Any:
    """The fences of a machine."""
    limits = spec.limits
    return client.create_host_config(
        init=False,  # the main command is the init; the engine's own would end with its one child
        network_mode=f"container:{keeper}",
        volumes_from=[f"{keeper}:ro"],  # the trusted tools
        mounts=mounts(spec),
        cap_drop=["ALL"],
        cap_add=list(CAPABILITIES),
        security_opt=["no-new-privileges"],
        privileged=False,
        ipc_mode="private",
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,  # the same figure: no swap
        nano_cpus=int(limits.cpus * 1e9),
        pids_limit=limits.pids,
        ulimits=[
            Ulimit(name="nofile", soft=limits.nofile, hard=limits.nofile),
            Ulimit(name="core", soft=0, hard=0),  # a crash must not fill the disk
        ],
        shm_size=min(SHARED_MEMORY_BYTES, limits.memory_bytes // 2),
        storage_opt={"size": str(limits.disk_bytes)} if disk_by_engine else None,
        log_config=LogConfig(type="none"),  # the main process says nothing; sessions are recorded by the recorder
        restart_policy={"Name": "no"},
    )


def keeper_host_config(client: Any, network: str, labels: Mapping[str, str]) -> Any:
    """The fences of a keeper: one static program, one capability."""
    return client.create_host_config(
        init=False,
        network_mode=network,
        mounts=[Mount(target=TRUSTED_TOOLS, source=None, type="volume", labels=dict(labels))],
        cap_drop=["ALL"],
        cap_add=["NET_ADMIN"],
        security_opt=["no-new-privileges"],
        read_only=True,
        mem_limit=32 * 1024**2,
        memswap_limit=32 * 1024**2,
        pids_limit=16,
        log_config=LogConfig(type="none"),
        restart_policy={"Name": "no"},
    )


def mounts(spec: MachineSpec) -> list[Mount]:
    """The read-only inputs, and the CA bundle with apt's word for it.

    Raises:
        UsageError: an input does not exist, or is a socket (the engine's would be a way out).
    """
    wanted = dict(spec.inputs)
    if spec.ca_bundle:
        wanted[spec.ca_bundle] = CA_BUNDLE
        wanted[Path(str(resources.files("referee.adapters.docker") / "context" / "apt-ca.conf"))] = APT_FRAGMENT
    for host in wanted:
        if not host.exists() or host.is_socket():
            raise UsageError(f"the input {host} is not there, or is a socket")
    return [
        Mount(target=inside, source=str(host.resolve()), type="bind", read_only=True) for host, inside in wanted.items()
    ]


def main_command(seconds: int) -> list[str]:
    """A machine's init: reaps orphans, and ends the machine by itself when every harness is gone.

    It is the first process of its namespace and handles no signal, so the kernel lets nothing inside end it: what
    ends a machine is the engine's doing or the memory limit's, never the agent's.
    """
    lines = (
        "trap '' TERM INT HUP QUIT USR1 USR2 PIPE ALRM",
        f"end=$(( $({BUSYBOX} date +%s) + {seconds} ))",
        f"while [ $({BUSYBOX} date +%s) -lt $end ]; do {BUSYBOX} sleep 10 & wait; done",
    )
    return [BUSYBOX, "sh", "-c", "\n".join(lines)]


def in_force(limits: Limits, *, disk_by_engine: bool) -> dict[str, object]:
    """The fences as a record keeps them."""
    return {
        "capabilities": sorted(CAPABILITIES),
        "no_new_privileges": True,
        "limits": limits.model_dump(),
        "swap": False,
        "disk_limit_by": "engine" if disk_by_engine else "watch",
        "published_ports": [],
    }
