"""Machines made by a Docker Engine (``protocols.Sandbox``)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, NotFound

from referee.adapters.docker import image as images
from referee.adapters.docker import reaper
from referee.adapters.docker.disk import DiskWatch
from referee.adapters.docker.engine import ENGINE_ERRORS, connect, fault, inspect_image, labels_of
from referee.adapters.docker.hardening import (
    environment,
    in_force,
    keeper_host_config,
    machine_host_config,
    main_command,
)
from referee.adapters.docker.machine import DockerMachine, remove
from referee.adapters.docker.network import SEALED, keeper_command, machines_network
from referee.adapters.docker.owner import (
    DEADLINE_LABEL,
    GRACE_SECONDS,
    OWNER_LABEL,
    ROLE_LABEL,
    RUN_LABEL,
    WORKSPACE_LABEL,
    this_process,
)
from referee.core.canonical import digest_of_bytes
from referee.core.records import EnvironmentRef, Limits
from referee.errors import EnvironmentUnavailable, MachineFault, RefereeError
from referee.protocols import MachineSpec

#: Always blocked, whatever the configuration adds.
LINK_LOCAL = ("169.254.0.0/16", "fe80::/10")
#: Storage drivers that can limit a container's disk by themselves; overlay2 can on XFS only.
LIMITING_DRIVERS = {"btrfs", "zfs", "devicemapper"}


class DockerSandbox:
    """Makes machines from the environment image.

    Args:
        image: the image's name without the variant.
        variant: the stage of the Dockerfile, used as the tag.
        blocked_networks: networks that no machine can reach, beside the link-local ones.
        host_reachable: whether machines reach services of the host on the network's gateway address.
        workspace: labels machines with the workspace they belong to.

    Raises:
        EngineUnavailable: no engine answers.
    """

    def __init__(
        self,
        *,
        image: str = "referee-env",
        variant: str = "default",
        blocked_networks: Sequence[str] = (),
        host_reachable: bool = False,
        workspace: str = "",
    ) -> None:
        self._tag = f"{image}:{variant}"
        self._variant = variant
        self._blocked = tuple(dict.fromkeys((*LINK_LOCAL, *blocked_networks)))
        self._host_reachable = host_reachable
        self._workspace = workspace
        self._client: Any = connect()
        self._network: str | None = None
        self._seen: dict[str, Any] | None = None
        self._info: dict[str, Any] | None = None

    def ping(self) -> None:
        """Check that the engine answers.

        Raises:
            EngineUnavailable: it does not.
        """
        try:
            self._client.ping()
        except ENGINE_ERRORS:
            self._client = connect()

    def environment(self) -> EnvironmentRef:
        """What a machine made now will be: the image's digest is the engine's id of it."""
        seen = self._image()
        info = self._engine()
        return EnvironmentRef(
            sandbox="docker",
            engine=f"Docker Engine {info['ServerVersion']}",
            image=next(iter(seen.get("RepoDigests") or ()), self._tag),
            image_digest=str(seen["Id"]),
            packages_digest=labels_of(seen).get(images.PACKAGES_LABEL),
            security_boundary=True,
            architecture=str(seen["Architecture"]),
        )

    def packages_manifest(self) -> bytes | None:
        """The package manifest inside the image; read once, then kept on this host under its digest."""
        seen = self._image()
        digest = labels_of(seen).get(images.PACKAGES_LABEL)
        if digest is None:
            return None
        kept = _cache() / f"{digest.replace(':', '-')}.json"
        try:
            data: bytes | None = kept.read_bytes()
        except OSError:
            data = None
        if data is not None and digest_of_bytes(data) == digest:
            return data
        try:
            data = images.read_manifest(self._client, str(seen["Id"]))
        except ENGINE_ERRORS as exc:
            raise fault(exc, "reading the image's package manifest") from exc
        if data is None or digest_of_bytes(data) != digest:
            raise EnvironmentUnavailable(
                f"the package manifest of {self._tag} is not the one its label names",
                todo=f"run `referee env build --rebuild --variant {self._variant}`",
            )
        _keep(kept, data)
        return data

    def gateway_address(self) -> str:
        """The machines' network's own address on this host."""
        try:
            network = self._network = self._network or machines_network(self._client)
            return str(self._client.inspect_network(network)["IPAM"]["Config"][0]["Gateway"])
        except ENGINE_ERRORS as exc:
            raise fault(exc, "asking for the machines' network") from exc

    def create(self, spec: MachineSpec) -> DockerMachine:
        """Make and start a machine in a sealed network."""
        client: Any = connect(timeout=300)
        made: list[str] = []
        try:
            return self._create(client, spec, made)
        except BaseException as exc:
            for container in reversed(made):
                remove(client, container)
            client.close()
            if isinstance(exc, ENGINE_ERRORS) and not isinstance(exc, RefereeError):
                raise fault(exc, "making a machine") from exc
            raise

    def _create(self, client: Any, spec: MachineSpec, made: list[str]) -> DockerMachine:
        image = str(self._image()["Id"])
        labels = {
            RUN_LABEL: spec.run,
            WORKSPACE_LABEL: spec.workspace or self._workspace,
            DEADLINE_LABEL: f"{spec.deadline:.3f}",
            OWNER_LABEL: this_process(),
        }
        seconds = int(max(0.0, spec.deadline - time.time()) + GRACE_SECONDS)
        keeper = self._keeper(client, image, labels, seconds, spec.gateway)
        made.append(keeper)
        lines = client.attach(keeper, stdout=True, stderr=True, stream=True)
        client.start(keeper)
        spec = replace(spec, limits=_granted(spec.limits, _await_seal(lines)))
        container, by_engine = self._container(client, spec, image, labels, seconds, keeper)
        made.append(container)
        client.start(container)
        info = self._engine()
        disk = None
        if not by_engine:
            disk = DiskWatch(container, spec.limits.disk_bytes, str(info["DockerRootDir"]))
        facts: dict[str, object] = {
            "container": container,
            "keeper": keeper,
            "image_digest": image,
            "blocked_networks": list(self._blocked),
            "host_reachable": self._host_reachable,
            **({"gateway": "{}:{}".format(*spec.gateway)} if spec.gateway else {}),
            "security_options": list(info.get("SecurityOptions") or ()),
            **in_force(spec.limits, disk_by_engine=by_engine),
        }
        return DockerMachine(client, run=spec.run, container=container, keeper=keeper, disk=disk, facts=facts)

    def _keeper(
        self, client: Any, image: str, labels: dict[str, str], seconds: int, gateway: tuple[str, int] | None
    ) -> str:
        command = keeper_command(self._blocked, seconds, host_reachable=self._host_reachable, gateway=gateway)
        for again in (True, False):
            if self._network is None:
                self._network = machines_network(client)
            try:
                created = client.create_container(
                    image,
                    command,
                    hostname="machine",
                    labels={**labels, ROLE_LABEL: "keeper"},
                    host_config=keeper_host_config(client, self._network, labels),
                )
            except NotFound:
                self._network = None  # removed by someone since we looked
                if not again:
                    raise
            else:
                return str(created["Id"])
        raise MachineFault("the machines' network vanishes as soon as it is made")

    def _container(
        self, client: Any, spec: MachineSpec, image: str, labels: dict[str, str], seconds: int, keeper: str
    ) -> tuple[str, bool]:
        """Create the machine's container; also whether the engine limits its disk."""
        by_engine = _may_limit_disk(self._engine())
        for limited in (True, False) if by_engine else (False,):
            try:
                created = client.create_container(
                    image,
                    main_command(seconds),
                    user="0",  # a number: an agent may have altered the names
                    working_dir="/",
                    environment=environment(spec),
                    labels={**labels, ROLE_LABEL: "machine"},
                    host_config=machine_host_config(client, spec, keeper=keeper, disk_by_engine=limited),
                )
            except APIError as exc:
                if limited and "storage" in str(exc.explanation).lower():
                    continue
                raise
            return str(created["Id"]), limited
        raise MachineFault("the engine refuses to make the machine's container")

    def reap(self) -> list[str]:
        """Remove what dead harnesses left: containers, volumes, networks."""
        try:
            return reaper.reap(self._client)
        except ENGINE_ERRORS as exc:
            raise fault(exc, "looking for what dead runs left") from exc

    def _image(self) -> dict[str, Any]:
        """The image as the engine holds it; asked once, so that a run's machines are all made from one image."""
        if self._seen is None:
            try:
                self._seen = inspect_image(self._client, self._tag)
            except ENGINE_ERRORS as exc:
                raise fault(exc, "looking for the environment image") from exc
        if self._seen is None:
            raise EnvironmentUnavailable(
                f"the engine holds no environment image {self._tag}",
                todo=f"run `referee env build --variant {self._variant}`",
            )
        return self._seen

    def _engine(self) -> dict[str, Any]:
        if self._info is None:
            try:
                self._info = self._client.info()
            except ENGINE_ERRORS as exc:
                raise fault(exc, "asking the engine about itself") from exc
        return self._info


def _await_seal(lines: Iterator[bytes]) -> str:
    """Wait for the keeper's word that the blocked networks are unreachable; what it says after it."""
    said = b""
    try:
        for line in lines:
            said += line
            if said.startswith(SEALED.encode()) and said.endswith(b"\n"):
                return said.decode().removeprefix(SEALED).strip()
    except (requests.exceptions.RequestException, OSError) as exc:
        raise fault(exc, "sealing the machine's network") from exc
    words = said.decode(errors="replace").strip()
    raise MachineFault(f"the machine's network could not be sealed: {words or 'the keeper ended'}")


def _granted(limits: Limits, ceiling: str) -> Limits:
    """The limits that this engine can give: one without the right to raise its own stays below them."""
    if not ceiling.isdigit() or int(ceiling) >= limits.nofile:
        return limits
    return limits.model_copy(update={"nofile": int(ceiling)})


def _may_limit_disk(info: dict[str, Any]) -> bool:
    if info.get("Driver") in LIMITING_DRIVERS:
        return True
    status = {str(row[0]): str(row[1]) for row in info.get("DriverStatus") or () if len(row) == 2}  # noqa: PLR2004
    return info.get("Driver") == "overlay2" and status.get("Backing Filesystem") == "xfs"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "referee" / "packages"


def _keep(file: Path, data: bytes) -> None:
    """Keep a copy; a host that cannot is merely slower."""
    temporary = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(file)
    except OSError:
        return
