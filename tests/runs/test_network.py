"""A network of ours that is down is no zero; services of the host are out of reach of machines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from tests.runs.conftest import Measured, containers

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Measure = Callable[..., Measured]

NO_NETWORK = '[network]\nblocked = ["0.0.0.0/1", "128.0.0.0/1"]\n'


def test_a_failure_without_a_network_is_no_measurement(measure: Measure) -> None:
    run = measure("false", config=NO_NETWORK)
    assert run.code == 4
    assert run.attempt["valid"] is False, run.attempt
    assert run.attempt["cause"] == "network_of_machines"
    assert run.attempt["network"]["reachable"] is False
    assert run.attempt["total"] is None
    assert len(run.document["attempts"]) == 3, "such a cause may pass, so it is tried again, twice"
    assert not containers(run.workspace)


@pytest.mark.registry
def test_a_failure_with_a_network_is_the_agents(measure: Measure) -> None:
    run = measure("true")
    assert run.attempt["valid"] is True
    assert run.attempt["network"]["reachable"] is True, run.attempt["network"]
    assert run.attempt["total"] == 0


@pytest.mark.parametrize(("config", "met"), [("", False), ("[network]\nhost_reachable = true\n", True)])
def test_services_of_the_host_are_reached_only_where_that_is_wanted(measure: Measure, config: str, met: bool) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        calls: list[bytes] = []
        thread = threading.Thread(target=_answer, args=(server, calls), daemon=True)
        thread.start()
        gateway = "$(ip route show default | cut -d' ' -f3)"
        measure(f"curl -s -m 5 http://{gateway}:{port}/from-inside; true", config=config)
    thread.join(10)
    assert bool(calls) is met


def _answer(server: socket.socket, calls: list[bytes]) -> None:
    server.settimeout(60)
    try:
        peer, _ = server.accept()
    except OSError:
        return
    with peer:
        calls.append(peer.recv(1000))
        peer.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
