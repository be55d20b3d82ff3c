"""The one way from a Docker machine to its host: also past blocked networks, also over IPv6, and nothing beside it."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from referee.adapters.docker.machine import DockerMachine
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import Limits
from referee.errors import UsageError
from referee.protocols import MachineSpec

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LIMITS = Limits(memory_bytes=600_000_000, cpus=1.0, pids=200, disk_bytes=2_000_000_000, nofile=2048)
ASK = """
import errno, json, socket, sys
said = []
for address, port in json.loads(sys.argv[1]):
    try:
        said.append(socket.create_connection((address, port), 5).recv(9).decode())
    except OSError as exc:
        said.append(errno.errorcode.get(exc.errno, str(exc)))
print(json.dumps(said))
"""
CLOSED = {"EHOSTUNREACH", "ENETUNREACH"}


def served(stack: contextlib.ExitStack, address: str) -> int:
    """The port of a service of this host at ``address``."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    service = stack.enter_context(socket.create_server((address, 0), family=family))
    stack.callback(service.shutdown, socket.SHUT_RDWR)

    def answer() -> None:
        while True:
            try:
                connection, _ = service.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"served")

    threading.Thread(target=answer, daemon=True).start()
    return int(service.getsockname()[1])


@contextlib.contextmanager
def machine_of(sandbox: DockerSandbox, gateway: tuple[str, int] | None) -> Iterator[DockerMachine]:
    run = f"docker-{uuid.uuid4().hex[:12]}"
    made = sandbox.create(MachineSpec(run, "tests", time.time() + 900, LIMITS, gateway=gateway))
    try:
        yield made
    finally:
        made.destroy()


def ask(machine: DockerMachine, *places: tuple[str, int]) -> list[str]:
    """What each place answers inside: "served", or the error's name."""
    done = machine.execute(["python3", "-c", ASK, json.dumps(places)], timeout=60)
    said: list[str] = json.loads(done.output)
    return said


def test_the_way_leads_past_a_blocked_network_to_another_address_of_the_host() -> None:
    with contextlib.ExitStack() as stack:
        client: Any = stack.enter_context(contextlib.closing(docker.APIClient(version="auto")))
        other = client.inspect_network("bridge")["IPAM"]["Config"][0]["Gateway"]
        port, beside = served(stack, other), served(stack, other)
        sandbox = DockerSandbox(blocked_networks=("172.16.0.0/12", "10.0.0.0/8", f"{other}/32"), workspace="tests")
        with machine_of(sandbox, (other, port)) as machine:
            assert ask(machine, (other, port), (other, beside)) == ["served", "EHOSTUNREACH"]
            assert machine.facts()["gateway"] == f"{other}:{port}"
        with machine_of(sandbox, None) as machine:
            assert ask(machine, (other, port)) == ["EHOSTUNREACH"]
            assert "gateway" not in machine.facts()


@pytest.fixture
def six() -> Iterator[tuple[str, str]]:
    """A network with IPv6: its id, and the host's address on it."""
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this host has no IPv6")
    groups = f"fd{uuid.uuid4().hex[:2]}:{uuid.uuid4().hex[:4]}:{uuid.uuid4().hex[:4]}::"
    subnet = str(ipaddress.IPv6Address(groups))  # as the kernel writes it, without leading zeros
    name = f"referee-test-{uuid.uuid4().hex[:8]}"
    client: Any = docker.APIClient(version="auto")
    network = client.create_network(
        name,
        enable_ipv6=True,
        ipam=docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet=f"{subnet}/64", gateway=f"{subnet}1")]),
    )["Id"]
    yield network, f"{subnet}1"
    client.remove_network(network)
    client.close()


def test_over_ipv6_too_only_the_gateway_is_reached(six: tuple[str, str]) -> None:
    network, address = six
    shown = subprocess.run(
        ["ip", "-6", "-o", "address", "show", "dev", f"br-{network[:12]}"], capture_output=True, text=True, check=True
    )
    link_local = [word.split("/")[0] for word in shown.stdout.split() if word.startswith("fe80:")]
    assert link_local
    sandbox = DockerSandbox(workspace="tests")
    sandbox._network = network  # the machines' own network is shared and stays as it is
    with contextlib.ExitStack() as stack:
        port, beside = served(stack, "::"), served(stack, "::")
        near = [(f"{one}%eth0", port) for one in link_local]
        with machine_of(sandbox, (address, port)) as machine:
            said = ask(machine, (address, port), (address, beside), *near)
            assert said[0] == "served"
            assert set(said[1:]) <= CLOSED
        with machine_of(sandbox, None) as machine:
            assert set(ask(machine, (address, port), (address, beside), *near)) <= CLOSED


def test_blocked_ipv6_networks_are_blocked_where_there_is_ipv6(six: tuple[str, str]) -> None:
    network, address = six
    sandbox = DockerSandbox(blocked_networks=("fd00:ec2::254/128",), workspace="tests")
    sandbox._network = network
    with machine_of(sandbox, None) as machine:
        routes = machine.execute(["ip", "-6", "route"], timeout=20).output.decode()
    assert "unreachable fd00:ec2::254" in routes
    assert "unreachable fe80::/10" in routes
    assert f"unreachable {address}" in routes


@pytest.mark.parametrize("gateway", [("localhost", 80), ("10.0.0.1; reboot", 80), ("10.0.0.1", 0), ("10.0.0.1", 70000)])
def test_what_is_no_address_and_port_is_refused(gateway: tuple[str, int]) -> None:
    with pytest.raises(UsageError), machine_of(DockerSandbox(workspace="tests"), gateway):
        raise AssertionError("a machine was made")
