"""``scripts/test.sh`` with tests of its own in the place of ours: whose failure counts, and what a signal leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 100.0

pytestmark = pytest.mark.slow

#: Begins something of its own in its group, waits for ever, and closes when it is interrupted.
ENDLESS = """
import pathlib, subprocess, time
import pytest

@pytest.mark.alone
def test_endless():
    other = subprocess.Popen(["sleep", "1000"])
    try:
        pathlib.Path(__file__ + ".begun").touch()
        time.sleep(1000)
    finally:
        pathlib.Path(__file__ + ".closed").touch()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with the script, this environment and no tests yet."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "test.sh", tmp_path / "scripts")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    (tmp_path / "tests").mkdir()
    return tmp_path


def place(tree: Path, *bodies: str) -> list[Path]:
    """One file for each process of ``fast``, in order; the last body for those that are left."""
    files = [tree / "tests" / f"test_{number}.py" for number in range(len(os.sched_getaffinity(0)) + 1)]
    for number, file in enumerate(files):
        file.write_text(bodies[min(number, len(bodies) - 1)])
    return files


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    argv = ["bash", "scripts/test.sh", *arguments]
    return subprocess.Popen(
        argv, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def left_in(tree: Path) -> list[str]:
    """The command lines of processes that work in the tree."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == tree:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


PASSES, FAILS = "def test_it():\n    pass\n", "def test_it():\n    assert not 'this one'\n"


@pytest.mark.parametrize(("bodies", "status"), [((PASSES,), 0), ((FAILS, PASSES), 1), ((PASSES, PASSES, FAILS), 1)])
def test_a_failure_of_any_is_a_failure(tree: Path, bodies: tuple[str, ...], status: int) -> None:
    files = place(tree, *bodies)
    script = start(tree, "fast")
    said, _ = script.communicate(timeout=SECONDS)
    assert script.returncode == status, said
    assert said.count("1 passed") + said.count("1 failed") == len(files)
    assert ("'this one'" in said) == bool(status)


@pytest.mark.parametrize(
    ("arguments", "number", "status"),
    [
        (("fast",), signal.SIGTERM, 143),
        (("fast",), signal.SIGINT, 130),
        (("fast",), signal.SIGHUP, 129),
        ((), signal.SIGTERM, 143),
    ],
)
def test_a_signal_ends_them_all_and_lets_them_close(
    tree: Path, arguments: tuple[str, ...], number: int, status: int
) -> None:
    """To the script alone, as a polite kill comes; without ``fast`` while the tests run that come before the others."""
    files = place(tree, ENDLESS) if arguments else place(tree, ENDLESS, PASSES)[:1]
    script = start(tree, *arguments)
    wait_for(lambda: all(Path(f"{file}.begun").exists() for file in files))
    script.send_signal(number)
    assert script.wait(timeout=SECONDS) == status
    assert [file.name for file in files if not Path(f"{file}.closed").exists()] == []
    wait_for(lambda: left_in(tree) == [])


def test_who_heeds_no_interrupt_is_ended_all_the_same(tree: Path) -> None:
    ignore = "    import signal\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    stubborn = ENDLESS.replace("    other", f"{ignore}    other")
    files = place(tree, stubborn)
    script = start(tree, "fast")
    wait_for(lambda: all(Path(f"{file}.begun").exists() for file in files))
    os.killpg(script.pid, signal.SIGINT)
    time.sleep(0.5)
    os.killpg(script.pid, signal.SIGINT)  # once more: no more patience
    assert script.wait(timeout=SECONDS) == 130
    wait_for(lambda: left_in(tree) == [])
