"""The recorder under faults of the host: full disks, refused writes, kill -9, floods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.recorder import RecordingFiles, derive

#: Records argv[2] in argv[1]; argv[3] names what is done to this process first. Prints how it ended.
CHILD = """
import json, resource, sys, time
from pathlib import Path
from referee.adapters.recorder import Caps, HostPtySession, record
directory, script, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
session = HostPtySession(["sh", "-c", script])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
seen = 0
def count(data):
    global seen
    seen += len(data)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
recorded = record(session, directory=directory, columns=80, rows=24, caps=Caps(), deadline=time.monotonic() + 100,
                  on_output=count)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
session.end()
print(json.dumps({"end": recorded.end, "error": recorded.write_error, "bytes": recorded.bytes, "seen": seen,
                  "complete": recorded.complete, "status": recorded.exit_status, "grown_kib": grown}))
"""
DERIVE = """
import json, resource, sys
from pathlib import Path
from referee.adapters.recorder import RecordingFiles, derive
directory = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
derive(RecordingFiles.of(directory), directory)
print(json.dumps({"grown_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}))
"""


def run(program: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300, check=True
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def assert_readable_prefix(directory: Path) -> int:
    """The files fit together: every timed byte is there; the derived forms can be made. Returns the bytes covered."""
    coverage = RecordingFiles.of(directory).coverage()
    assert coverage.missing_bytes == 0
    assert coverage.covered_bytes + coverage.untimed_bytes == (directory / "session.raw").stat().st_size
    return coverage.covered_bytes


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk_stops_the_recording(tiny_disk: Path, tmp_path: Path) -> None:
    told = run(CHILD, str(tiny_disk), "yes", "0")
    assert told["end"] == "write_error"
    assert "ENOSPC" in str(told["error"])
    assert not told["complete"]
    assert told["status"] is None
    assert told["bytes"] == (tiny_disk / "session.raw").stat().st_size
    assert_readable_prefix(tiny_disk)
    derived = derive(RecordingFiles.of(tiny_disk), tmp_path)
    assert derived.cast.stat().st_size > 0


def test_disk_that_is_full_from_the_start(tiny_disk: Path) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={tiny_disk / 'filler'}", "bs=4k"], capture_output=True, check=False)
    assert os.statvfs(tiny_disk).f_bavail == 0
    told = run(CHILD, str(tiny_disk), "yes", "0")
    assert told["end"] == "write_error"
    assert "ENOSPC" in str(told["error"])
    assert told["seen"] == told["bytes"] == 0


def test_refused_write_stops_the_recording(tmp_path: Path) -> None:
    told = run(CHILD, str(tmp_path), "yes", "1000000")
    assert told["end"] == "write_error"
    assert "EFBIG" in str(told["error"])
    assert told["bytes"] == (tmp_path / "session.raw").stat().st_size == 1_000_000
    assert assert_readable_prefix(tmp_path) > 0


def test_missing_directory_is_a_write_error(tmp_path: Path) -> None:
    told = run(CHILD, str(tmp_path / "nowhere"), "echo x", "0")
    assert told["end"] == "write_error"
    assert "ENOENT" in str(told["error"])


@pytest.mark.parametrize("script", ["yes", "while :; do echo tick; sleep 0.02; done"])
def test_kill_9_keeps_the_evidence_so_far(tmp_path: Path, script: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), script, "0"])
    raw = tmp_path / "session.raw"
    try:
        limit = time.monotonic() + 60
        while not (raw.exists() and raw.stat().st_size > 40) and time.monotonic() < limit:
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert assert_readable_prefix(tmp_path) > 0
    assert RecordingFiles.of(tmp_path).coverage().ended is None
    derived = derive(RecordingFiles.of(tmp_path), tmp_path)
    assert derived.transcript.read_text("utf-8").startswith(("y\n", "tick\n"))


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 1, 20, 90, 100, 120])
def test_torn_files_are_read_as_far_as_they_go(tmp_path: Path, keep: int) -> None:
    run(CHILD, str(tmp_path), "echo one; sleep 0.05; echo two; sleep 0.05; echo three", "0")
    timing = tmp_path / "session.timing"
    whole = timing.read_bytes()
    header = whole.index(b"\n") + 1
    timing.write_bytes(whole[: header + keep])
    coverage = RecordingFiles.of(tmp_path).coverage()
    assert coverage.covered_bytes + coverage.untimed_bytes == (tmp_path / "session.raw").stat().st_size
    text = derive(RecordingFiles.of(tmp_path), tmp_path).transcript.read_text("utf-8")
    assert "one\ntwo\nthree\n".startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "yes 'a line of a flood that has no end' | head -c 100000000",
        "head -c 100000000 /dev/zero",
        "yes '\033[31mx' | tr '\\n' '\\r' | head -c 100000000",
    ],
)
def test_memory_stays_flat_in_a_flood(tmp_path: Path, script: str) -> None:
    told = run(CHILD, str(tmp_path), f"stty -opost; {script}", "0")
    assert told["end"] == "ended"
    assert told["bytes"] == 100_000_000
    assert isinstance(told["grown_kib"], int)
    assert told["grown_kib"] < 16_384
    grown = run(DERIVE, str(tmp_path))["grown_kib"]
    assert isinstance(grown, int)
    assert grown < 65_536
