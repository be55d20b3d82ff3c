"""What is the overlay sandbox's own: what it hides, what it forbids, what a killed harness leaves, odd trees."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from referee.adapters.overlay import owner, wire
from referee.adapters.overlay.machine import OverlayMachine
from referee.adapters.overlay.sandbox import OverlaySandbox, overlay_available
from referee.core.records import Limits
from referee.errors import EnvironmentUnavailable, MachineFault
from referee.protocols import MachineSpec

pytestmark = pytest.mark.slow

LIMITS = Limits(memory_bytes=800_000_000, cpus=1.0, pids=100, disk_bytes=800_000_000, nofile=1024)


def spec(run: str = "overlay-test") -> MachineSpec:
    return MachineSpec(run, "here", time.time() + 600, LIMITS)


def sh(machine: OverlayMachine, script: str) -> str:
    return machine.execute(["/bin/sh", "-c", script], timeout=60).output.decode(errors="replace").strip()


@pytest.fixture
def sandbox(tmp_path: Path) -> OverlaySandbox:
    if reason := overlay_available():
        pytest.skip(reason)
    return OverlaySandbox(tmp_path / "state")


@pytest.fixture
def machine(sandbox: OverlaySandbox) -> Iterator[OverlayMachine]:
    made = sandbox.create(spec())
    yield made
    made.destroy()


def test_only_system_directories_of_the_host_show(machine: OverlayMachine) -> None:
    top = set(sh(machine, "ls -A /").split())
    system = {"bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr", "var"}
    fresh = {"dev", "home", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp", "work"}
    assert top <= system | fresh
    assert fresh <= top
    assert sh(machine, "ls -A /root /home /tmp /var/tmp /work | grep -v :") == ""


def test_the_state_and_the_workspace_are_hidden_wherever_they_are(tmp_path: Path) -> None:
    if reason := overlay_available():
        pytest.skip(reason)
    state = Path("/var/lib/referee-overlay-test") / tmp_path.name
    workspace = state.parent / "workspace"
    try:
        workspace.mkdir(parents=True)
    except PermissionError:
        pytest.skip("only root may put a state below /var/lib")
    (workspace / "secret.txt").write_text("secret")
    machine = OverlaySandbox(state, hidden=[workspace, workspace / "below"]).create(spec())
    try:
        assert sh(machine, f"ls -A {workspace} {state} | grep -v :") == ""
    finally:
        machine.destroy()
        (workspace / "secret.txt").unlink()
        for path in (state, workspace, state.parent):
            path.rmdir()


def test_the_agent_cannot_reach_the_kernel_of_the_host(machine: OverlayMachine) -> None:
    name = Path("/proc/sys/kernel/hostname").read_text()
    attempts = {
        "mount -t tmpfs none /mnt": "mount",
        "mknod /work/disk b 254 0 && head -c 1 /work/disk": "raw disk",
        "echo 1 > /proc/sys/vm/drop_caches": "kernel setting",
        "echo x > /sys/kernel/mm/ksm/run": "sysfs",
        "hostname other": "host name",
        "umount /dev/pts": "unmount",
    }
    let = [what for script, what in attempts.items() if sh(machine, f"({script}) >/dev/null 2>&1 && echo done")]
    assert let == []
    assert Path("/proc/sys/kernel/hostname").read_text() == name


def test_the_first_process_cannot_be_killed_from_inside(machine: OverlayMachine) -> None:
    sh(machine, "kill -9 1; kill -TERM 1; kill -INT 1; kill -CHLD 1; kill -9 -1")
    assert sh(machine, "echo still") == "still"
    assert machine.trouble() is None


def test_facts_say_which_limits_hold(machine: OverlayMachine) -> None:
    in_force = machine.facts()["limits_in_force"]
    assert isinstance(in_force, dict)
    assert set(in_force) == {"memory", "cpus", "pids", "disk", "nofile"}
    assert in_force["disk"] == "watched"
    assert in_force["memory"] != "none"


def test_eight_machines_at_once_do_not_disturb_each_other(sandbox: OverlaySandbox) -> None:
    def life(number: int) -> str:
        made = sandbox.create(spec(f"many-{number}"))
        try:
            sh(made, f"echo {number} > /root/me")
            assert made.quiet().confirmed
            return sh(made, "cat /root/me")
        finally:
            made.destroy()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(life, range(8))) == [str(number) for number in range(8)]


def test_a_very_deep_tree_is_removed(sandbox: OverlaySandbox, tmp_path: Path) -> None:
    made = sandbox.create(spec())
    deep = "import os\nfor _ in range(3000):\n  os.mkdir('d'); os.chdir('d')\n"
    assert made.execute(["python3", "-c", deep], timeout=60, cwd="/work").exit_status == 0
    assert made.facts()["usage"]
    made.destroy()
    assert list((tmp_path / "state").iterdir()) == []


def test_files_may_be_read_only_below_the_machines_own_root(machine: OverlayMachine, tmp_path: Path) -> None:
    (tmp_path / "host.txt").write_text("host")
    sh(machine, f"ln -s {tmp_path} /work/way; ln -s /proc/1/root/etc /work/etc")
    assert machine.read_file("/work/way/host.txt", max_bytes=100) is None
    assert machine.read_file(f"/../../../..{tmp_path}/host.txt", max_bytes=100) is None


def test_a_destroyed_machine_answers_with_a_fault(sandbox: OverlaySandbox) -> None:
    made = sandbox.create(spec())
    made.destroy()
    with pytest.raises(MachineFault):
        made.execute(["true"], timeout=5)
    with pytest.raises(MachineFault):
        made.quiet()
    assert made.trouble()
    assert made.facts()["machine"]


def test_a_machine_whose_first_process_was_killed_says_so(sandbox: OverlaySandbox, tmp_path: Path) -> None:
    made = sandbox.create(spec("shot"))
    (directory,) = [path for path in (tmp_path / "state").iterdir() if path.is_dir()]
    for pid in owner.members(directory):
        os.kill(pid, 9)
    deadline = time.monotonic() + 10
    while made.trouble() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert made.trouble() == "the machine's first process has ended"
    with pytest.raises(MachineFault):
        made.execute(["true"], timeout=5)
    made.destroy()
    assert list((tmp_path / "state").iterdir()) == []


def test_what_cannot_be_made_leaves_nothing(sandbox: OverlaySandbox, tmp_path: Path) -> None:
    broken = MachineSpec("broken", "w", time.time() + 60, LIMITS, inputs={tmp_path / "missing": "/opt/agent"})
    with pytest.raises(MachineFault, match="could not be started"):
        sandbox.create(broken)
    assert list((tmp_path / "state").iterdir()) == []


def test_a_state_that_carries_no_upper_layer_is_named() -> None:
    reason = overlay_available(Path("/proc/referee-state"))
    assert reason is not None
    assert "/proc/referee-state" in reason
    with pytest.raises(EnvironmentUnavailable):
        OverlaySandbox(Path("/proc/referee-state")).environment()


def test_killing_the_harness_ends_the_machines_processes_at_once(sandbox: OverlaySandbox, tmp_path: Path) -> None:
    source = (
        "import sys, time\nfrom pathlib import Path\n"
        "from referee.adapters.overlay.sandbox import OverlaySandbox\n"
        "from referee.core.records import Limits\nfrom referee.protocols import MachineSpec\n"
        f"limits = Limits(**{LIMITS.model_dump()!r})\n"
        f"machine = OverlaySandbox(Path({str(tmp_path / 'state')!r})).create(MachineSpec('r', 'w', 9e9, limits))\n"
        "s = machine.session(['sleep', '900'], environment={}, cwd='/', columns=80, rows=24)\n"
        "print('up', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        (directory,) = [path for path in (tmp_path / "state").iterdir() if path.is_dir()]
        assert owner.members(directory)
        child.kill()
    deadline = time.monotonic() + 10
    while owner.members(directory) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert owner.members(directory) == set()
    assert [sentence for sentence in sandbox.reap() if "run r" in sentence]
    assert sandbox.reap() == []


def test_an_owners_file_that_was_torn_is_cleared_up(sandbox: OverlaySandbox, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "torn-1").mkdir(parents=True)
    (state / "torn-1.json").write_text('{"machine": "torn')
    (sentence,) = sandbox.reap()
    assert "torn-1" in sentence
    assert list(state.iterdir()) == []


def test_a_later_process_with_the_same_number_is_not_the_owner() -> None:
    mine = owner.owner_of("m", "r", "w", time.time() + 60)
    assert owner.why_removable(mine) is None
    other = owner.Owner(**(mine.__dict__ | {"started": mine.started - 1}))
    assert owner.why_removable(other) is not None
    elsewhere = owner.Owner(**(other.__dict__ | {"host": "another-host"}))
    assert owner.why_removable(elsewhere) is None


def test_messages_carry_descriptors_and_any_size() -> None:
    left, right = socket.socketpair()
    reader, writer = os.pipe()
    with left, right, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(wire.send, left, {"argv": ["x" * 3_000_000]}, [writer])
        received = wire.receive(right)
        sending.result()
        assert received is not None
        message, (copy,) = received
        assert len(message["argv"][0]) == 3_000_000
        os.write(copy, b"through")
        assert os.read(reader, 10) == b"through"
        left.close()
        assert wire.receive(right) is None
    for fd in (reader, writer, copy):
        os.close(fd)
