"""What only a Docker machine promises: its fences are in force, seen from inside; its network is sealed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from referee.adapters.docker import network
from referee.adapters.docker.hardening import CAPABILITIES, main_command
from referee.adapters.docker.machine import DockerMachine
from referee.adapters.docker.owner import DEADLINE_LABEL, OWNER_LABEL, ROLE_LABEL, RUN_LABEL, this_process, why_stale
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import Limits
from referee.errors import EngineUnavailable, EnvironmentUnavailable, UsageError
from referee.protocols import MachineSpec

pytestmark = pytest.mark.engine

LIMITS = Limits(memory_bytes=600_000_000, cpus=1.0, pids=200, disk_bytes=2_000_000_000, nofile=2048)
BLOCKED = ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")

Make = Callable[..., DockerMachine]


@pytest.fixture(scope="module")
def sandbox() -> DockerSandbox:
    return DockerSandbox(blocked_networks=BLOCKED, workspace="tests")


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    client = docker.APIClient(version="auto")
    yield client
    client.close()


def new_spec(**changes: Any) -> MachineSpec:
    spec = MachineSpec(
        run=f"docker-{uuid.uuid4().hex[:12]}", workspace="tests", deadline=time.time() + 900, limits=LIMITS
    )
    return replace(spec, **changes)


@pytest.fixture
def make(sandbox: DockerSandbox) -> Iterator[Make]:
    made: list[DockerMachine] = []

    def create(**changes: Any) -> DockerMachine:
        made.append(sandbox.create(new_spec(**changes)))
        return made[-1]

    yield create
    for machine in made:
        machine.destroy()


@pytest.fixture(scope="module")
def machine(sandbox: DockerSandbox) -> Iterator[DockerMachine]:
    made = sandbox.create(new_spec())
    yield made
    made.destroy()


def sh(machine: DockerMachine, script: str, *, timeout: float = 60) -> tuple[int | None, str]:
    done = machine.execute(["/bin/sh", "-c", script], timeout=timeout)
    return done.exit_status, done.output.decode(errors="replace")


def connect(machine: DockerMachine, address: str, port: int = 80) -> tuple[str, float]:
    """Try a connection from inside: the error's name or "connected", and the seconds it took."""
    script = textwrap.dedent(f"""
        import errno, socket, time
        began = time.monotonic()
        try:
            socket.create_connection(({address!r}, {port}), 3).close()
            said = "connected"
        except OSError as exc:
            said = errno.errorcode.get(exc.errno or 0, type(exc).__name__)
        print(said, time.monotonic() - began)
    """)
    done = machine.execute(["python3", "-c", script], timeout=30)
    said, seconds = done.output.decode().split()
    return said, float(seconds)


# --- the fences, from inside


def test_only_the_listed_capabilities_are_left(machine: DockerMachine) -> None:
    numbers = {
        "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
        "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18, "AUDIT_WRITE": 29, "SETFCAP": 31,
    }  # fmt: skip
    assert set(numbers) == set(CAPABILITIES)
    wanted = sum(1 << numbers[name] for name in CAPABILITIES)
    lines = dict(line.split(":\t", 1) for line in sh(machine, "cat /proc/self/status")[1].splitlines() if ":\t" in line)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(lines[name], 16) == wanted, name
    assert int(lines["CapAmb"], 16) == 0
    assert lines["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -t tmpfs none /mnt",
        "unshare --mount true",
        "mknod /work/disk b 8 0",
        "ip route del unreachable 169.254.0.0/16",
        "ip link set eth0 down",
        "echo 1 > /proc/sys/kernel/sysrq",
        "echo x > /usr/local/lib/referee/busybox",
        "rm -f /usr/local/lib/referee/busybox",
        "umount /usr/local/lib/referee",
        "dmesg --clear",
        "hostname other",
        "date -s 2001-01-01",
    ],
)
def test_root_inside_cannot(machine: DockerMachine, attempt: str) -> None:
    status, said = sh(machine, attempt)
    assert status not in {0, 127}, said


def test_engine_reports_the_fences(machine: DockerMachine, engine: Any) -> None:
    seen = engine.inspect_container(str(machine.facts()["container"]))
    host = seen["HostConfig"]
    assert not host["Privileged"]
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert not host["Init"], "the main command is the init, which nothing inside can end"
    assert (host["Memory"], host["MemorySwap"]) == (LIMITS.memory_bytes, LIMITS.memory_bytes)
    assert host["PidsLimit"] == LIMITS.pids
    assert host["NanoCpus"] == LIMITS.cpus * 1e9
    assert not host["PortBindings"]
    assert not host["Binds"]
    assert host["LogConfig"]["Type"] == "none"
    assert [mount["RW"] for mount in seen["Mounts"]] == [False]
    keeper = engine.inspect_container(str(machine.facts()["keeper"]))
    assert keeper["HostConfig"]["CapAdd"] == ["NET_ADMIN"]
    assert not keeper["NetworkSettings"]["Ports"]


def test_memory_limit_ends_the_hog_and_not_the_machine(make: Make) -> None:
    machine = make(limits=LIMITS.model_copy(update={"memory_bytes": 200_000_000}))
    status, _ = sh(machine, "python3 -c \"b = b'x' * 400_000_000\"")
    assert status == 137
    assert sh(machine, "echo sound") == (0, "sound\n")
    assert machine.trouble() is None


def test_facts_hold_the_limits_that_the_engine_granted(make: Make) -> None:
    machine = make(limits=LIMITS.model_copy(update={"nofile": 1 << 28}))
    limits: Any = machine.facts()["limits"]
    assert sh(machine, "ulimit -Hn") == (0, f"{limits['nofile']}\n")
    facts = machine.facts()
    assert json.loads(json.dumps(facts)) == facts


def test_inputs_are_read_only_and_sockets_are_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "code.py").write_text("print('agent')")
    machine = make(inputs={tmp_path / "agent": "/opt/agent"})
    assert sh(machine, "python3 /opt/agent/code.py")[1] == "agent\n"
    assert sh(machine, "echo x > /opt/agent/code.py")[0] != 0
    assert sh(machine, "mount -o remount,rw /opt/agent")[0] != 0
    with pytest.raises(UsageError):
        make(inputs={Path("/var/run/docker.sock"): "/var/run/docker.sock"})
    with pytest.raises(UsageError):
        make(inputs={tmp_path / "missing": "/opt/agent"})


# --- the network


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.1.1"])
def test_link_local_addresses_are_unreachable_at_once(machine: DockerMachine, address: str) -> None:
    said, seconds = connect(machine, address)
    assert said in {"EHOSTUNREACH", "ENETUNREACH"}
    assert seconds < 2


def test_ipv6_metadata_is_unreachable(machine: DockerMachine) -> None:
    assert connect(machine, "fd00:ec2::254")[0] in {"EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"}


def test_the_seal_holds_after_quiet(make: Make) -> None:
    machine = make()
    assert machine.quiet().confirmed
    assert connect(machine, "169.254.169.254")[0] in {"EHOSTUNREACH", "ENETUNREACH"}


def test_a_configured_network_is_blocked_too(sandbox: DockerSandbox) -> None:
    blocking = DockerSandbox(blocked_networks=("198.51.100.0/24",))
    machine = blocking.create(new_spec())
    try:
        assert connect(machine, "198.51.100.7")[0] in {"EHOSTUNREACH", "ENETUNREACH"}
        assert connect(machine, "169.254.169.254")[0] in {"EHOSTUNREACH", "ENETUNREACH"}
    finally:
        machine.destroy()


def test_machines_do_not_reach_each_other(make: Make, engine: Any) -> None:
    server, client = make(), make()
    session = server.session(
        ["python3", "-u", "-m", "http.server", "8000"], environment={}, cwd="/work", columns=80, rows=24
    )
    seen = b""
    deadline = time.monotonic() + 20
    while b"Serving" not in seen and time.monotonic() < deadline:
        seen += session.read(1000, 1.0) or b""
    keeper = engine.inspect_container(str(server.facts()["keeper"]))
    address = keeper["NetworkSettings"]["Networks"][network.NETWORK]["IPAddress"]
    assert connect(server, address, 8000)[0] == "connected"
    assert connect(client, address, 8000)[0] != "connected"
    session.close()


def test_the_network_is_made_once_and_found_again(engine: Any, sandbox: DockerSandbox, make: Make) -> None:
    make()
    first = network.machines_network(engine)
    assert network.machines_network(engine) == first
    seen = engine.inspect_network(first)
    assert seen["Options"]["com.docker.network.bridge.enable_icc"] == "false"
    assert len(seen["IPAM"]["Config"]) == 1


# --- ends


def test_an_altered_system_cannot_survive_quiet(make: Make) -> None:
    machine = make()
    script = "cp /bin/true /bin/sleep; rm -f /etc/passwd; echo /work/evil.so > /etc/ld.so.preload; echo done"
    assert sh(machine, script) == (0, "done\n")
    facts = machine.quiet()
    assert facts.confirmed
    assert machine.execute(["/usr/local/lib/referee/busybox", "id", "-u"], timeout=20).output == b"0\n"
    seen = machine.execute(["/usr/local/lib/referee/busybox", "ps", "-o", "args"], timeout=20).output.decode()
    rows = [row for row in seen.splitlines()[1:] if "busybox ps" not in row]
    assert len(rows) == 2, rows


def test_a_machine_ends_by_itself_when_nobody_reaps(make: Make, engine: Any) -> None:
    machine = make(deadline=time.time() + 100)
    command = engine.inspect_container(str(machine.facts()["container"]))["Config"]["Cmd"]
    seconds = re.search(r"date \+%s\) \+ (\d+) ", command[-1])
    assert seconds is not None, command
    assert 600 < int(seconds[1]) <= 700


def test_the_init_ends_when_its_time_is_over(engine: Any, sandbox: DockerSandbox) -> None:
    made = engine.create_container(sandbox.environment().image, main_command(1))["Id"]
    try:
        engine.start(made)
        assert engine.wait(made, timeout=60)["StatusCode"] == 0
    finally:
        engine.remove_container(made, force=True)


def test_killed_from_outside_is_trouble(make: Make, engine: Any) -> None:
    machine = make()
    engine.kill(str(machine.facts()["container"]))
    engine.wait(str(machine.facts()["container"]))
    assert "stopped by itself" in (machine.trouble() or "")
    engine.remove_container(str(machine.facts()["container"]), v=True)
    assert "removed" in (machine.trouble() or "")


HARNESS = """
import sys, time
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import Limits
from referee.protocols import MachineSpec
limits = Limits(memory_bytes=300_000_000, cpus=1.0, pids=100, disk_bytes=10**9, nofile=1024)
DockerSandbox().create(MachineSpec(run=sys.argv[1], workspace="tests", deadline=time.time() + 900, limits=limits))
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.alone
def test_reap_after_kill_leaves_no_container_no_volume(sandbox: DockerSandbox, engine: Any) -> None:
    run = f"docker-killed-{uuid.uuid4().hex[:8]}"
    child = subprocess.Popen([sys.executable, "-c", HARNESS, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.wait(20)
    child.stdin.close()
    child.stdout.close()
    label = {"label": f"{RUN_LABEL}={run}"}
    assert len(engine.containers(all=True, filters=label)) == 2
    found = [sentence for sentence in sandbox.reap() if run in sentence]
    assert len(found) == 2
    assert all("its harness is dead" in sentence for sentence in found)
    assert engine.containers(all=True, filters=label) == []
    assert not engine.volumes(filters=label)["Volumes"]


@pytest.mark.alone
def test_reap_removes_a_volume_whose_container_is_gone(sandbox: DockerSandbox, engine: Any) -> None:
    name = f"referee-test-{uuid.uuid4().hex[:8]}"
    dead = this_process().rpartition("/")[0] + "/1"
    engine.create_volume(name, labels={RUN_LABEL: name, OWNER_LABEL: dead, DEADLINE_LABEL: "1"})
    assert any(name in sentence for sentence in sandbox.reap())
    assert name not in [volume["Name"] for volume in engine.volumes()["Volumes"] or ()]


@pytest.mark.alone
def test_reap_removes_a_stale_network_and_keeps_the_shared_one(sandbox: DockerSandbox, engine: Any, make: Make) -> None:
    make()
    name = f"referee-old-{uuid.uuid4().hex[:8]}"
    engine.create_network(name, internal=True, labels={ROLE_LABEL: "network"})
    assert any(name in sentence for sentence in sandbox.reap())
    left = [net["Name"] for net in engine.networks()]
    assert name not in left
    assert network.NETWORK in left


def test_a_living_harness_is_told_from_a_reused_process_id() -> None:
    mine = {OWNER_LABEL: this_process(), DEADLINE_LABEL: str(time.time() + 60)}
    assert why_stale(mine, time.time()) is None
    reused = {**mine, OWNER_LABEL: this_process().rpartition("/")[0] + "/1"}
    assert why_stale(reused, time.time()) == "its harness is dead"
    elsewhere = {**mine, OWNER_LABEL: "another-host/boot/1/1"}
    assert why_stale(elsewhere, time.time()) is None
    assert why_stale(elsewhere, time.time() + 86_400) == "its deadline has long passed"


# --- what is missing is said


def test_no_engine_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(EngineUnavailable) as caught:
        DockerSandbox()
    assert caught.value.message == "no Docker Engine answers"
    assert caught.value.todo


def test_no_image_is_one_sentence() -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        DockerSandbox(image="referee-env-missing").environment()
    assert "referee-env-missing:default" in caught.value.message
    assert "referee env build" in caught.value.todo
