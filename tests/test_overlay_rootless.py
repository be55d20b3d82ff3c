"""The overlay sandbox as an unprivileged user: the conformance suite again, in a process that is nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534
TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]


def usable_python() -> list[str] | None:
    """A Python that nobody may run and that has the packages of this one."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    for python in (sys.executable, "/usr/bin/python3"):
        command = [*AS_NOBODY, "env", "-i", f"PYTHONPATH={':'.join([str(SOURCE), *packages])}"]
        command += ["PYTHONDONTWRITEBYTECODE=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", python]
        probe = [
            *command,
            "-c",
            f"import sys, pydantic, pytest; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})",
        ]
        if subprocess.run(probe, check=False, capture_output=True, cwd="/").returncode == 0:
            return command
    return None


@pytest.fixture(scope="module")
def nobody() -> Iterator[tuple[list[str], Path]]:
    """The command line of a Python that runs as nobody, and a directory of nobody's."""
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody; as an unprivileged user the suite itself is rootless")
    command = usable_python()
    if command is None:
        pytest.skip("no Python here may be run by nobody with the packages of this one")
    place = Path(tempfile.mkdtemp(prefix="referee-nobody-", dir="/var/tmp"))
    os.chown(place, NOBODY, NOBODY)
    yield command, place
    shutil.rmtree(place)


@pytest.mark.slow
def test_a_machine_of_nobody_is_disposable_and_labelled(nobody: tuple[list[str], Path]) -> None:
    command, place = nobody
    source = """if True:
        import sys, time
        from pathlib import Path
        from referee.adapters.overlay.sandbox import OverlaySandbox, overlay_available
        from referee.core.records import Limits
        from referee.protocols import MachineSpec
        state = Path(sys.argv[1])
        why = overlay_available(state)
        if why:
            sys.exit("not here: " + why)
        sandbox = OverlaySandbox(state)
        limits = Limits(memory_bytes=10**9, cpus=1, pids=50, disk_bytes=10**9, nofile=256)
        machine = sandbox.create(MachineSpec("nobody", "w", time.time() + 60, limits))
        done = machine.execute(["/bin/sh", "-c", "id -u; echo x > /root/x && cat /root/x"], timeout=30)
        print(done.output.decode().split(), machine.facts()["mode"], sandbox.environment().security_boundary)
        machine.execute(["/bin/sh", "-c", "mkdir -p /work/a/b; chmod 000 /work/a/b /work/a"], timeout=30)
        print(machine.quiet().confirmed)
        machine.destroy()
        print(sorted(state.iterdir()))
    """
    done = subprocess.run(
        [*command, "-c", source, place / "state"], check=False, capture_output=True, text=True, cwd="/"
    )
    if "not here: " in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout.splitlines() == ["['0', 'x'] rootless False", "True", "[]"], done.stderr


@pytest.mark.slow
def test_the_conformance_suite_as_nobody(nobody: tuple[list[str], Path]) -> None:
    command, place = nobody
    options = ["-q", "-k", "overlay and not registry", "-p", "no:cacheprovider", f"--basetemp={place}/tests"]
    done = subprocess.run(
        [*command, "-m", "pytest", str(TESTS / "conformance"), *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
    )
    if "the overlay sandbox does not work here" in done.stdout:
        pytest.skip("this kernel allows no rootless overlay machines")
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
