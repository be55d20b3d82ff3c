"""Record files: durable, chained, one writer each; torn tails are kept, a dead writer is known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.store.records import RecordFiles
from referee.core.canonical import digest_of, strict_loads
from referee.core.failure import Cause
from referee.core.records import (
    AgentRef,
    AttemptEnded,
    AttemptFound,
    AttemptPlanned,
    BudgetRef,
    Correction,
    EnvironmentRef,
    Limits,
    Lock,
    SubjectRef,
)
from referee.errors import CouldNotVerify, Finding, UsageError

LOCK = Lock(
    edition=2,
    subject=SubjectRef(name="segno", kind="package", pin="pypi:segno==1.6.6", file_digest="sha256:aa"),
    agent=AgentRef(name="baseline", version="1", digest="agent:sha256:bb"),
    index=1,
    budget=BudgetRef(tier="standard", seconds=5400, why="no rule for another tier applies"),
    environment=EnvironmentRef(
        sandbox="docker",
        engine="20.10",
        image="referee-env:default",
        image_digest="sha256:cc",
        packages_digest=None,
        security_boundary=True,
        architecture="x86_64",
    ),
    limits=Limits(memory_bytes=1, cpus=2.0, pids=3, disk_bytes=4, nofile=5),
    instructions_digest="sha256:dd",
    mission_digest="sha256:ee",
    harness_version="0.2.0",
)


def planned(run: str) -> AttemptPlanned:
    return AttemptPlanned(run=run, at="2026-11-30T00:00:00Z", lock=LOCK)


def found(run: str) -> AttemptFound:
    return AttemptFound(
        run=run,
        at="2026-11-30T00:00:01Z",
        cause=Cause.HARNESS_DIED,
        detail="",
        evidence=(),
        evidence_digest="sha256:ff",
        reaped=("a container",),
    )


def ended(run: str) -> AttemptEnded:
    return AttemptEnded(
        run=run,
        at="2026-11-30T00:00:02Z",
        cause=None,
        detail="",
        evidence=(),
        evidence_digest="sha256:ff",
        recording=None,
        quiet=None,
        report_rejected=None,
        rerun=None,
        spent_usd=0.0,
        phases={"agent": 1.5},
        machine={"id": "x"},
    )


def test_what_is_appended_is_read_back_and_chained(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path / "records")
    note = Correction(run="r1", at="2026-11-30T00:00:03Z", note="ein Vermerk — 記録")
    digests = [records.append(record) for record in (planned("r1"), ended("r1"), note)]
    assert RecordFiles(tmp_path / "records").read() == [planned("r1"), ended("r1"), note]
    (file,) = (tmp_path / "records").glob("attempts-*.jsonl")
    lines = [strict_loads(line) for line in file.read_bytes().splitlines()]
    assert [digest_of("record", line) for line in lines] == digests
    assert [line["prev"] for line in lines] == [digest_of("genesis", file.name), *digests[:2]]


def test_nothing_is_made_before_the_first_append(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path / "records")
    assert records.read() == []
    assert records.torn() == []
    assert not (tmp_path / "records").exists()


def test_each_writer_has_a_file_of_its_own(tmp_path: Path) -> None:
    first, second = RecordFiles(tmp_path), RecordFiles(tmp_path)
    first.append(planned("r1"))
    second.append(planned("r2"))
    first.append(ended("r1"))
    assert sorted(len(file.links) for file in first.files()) == [1, 2]
    assert all(file.writer_alive for file in first.files())


def test_threads_of_one_writer_keep_the_chain(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path)
    threads = [
        threading.Thread(target=lambda name=name: [records.append(planned(f"{name}-{n}")) for n in range(20)])
        for name in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({record.run for record in records.read()}) == 80


def test_a_torn_last_line_is_tolerated_reported_and_left_in_place(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path)
    records.append(planned("r1"))
    records.append(ended("r1"))
    records.close()
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_bytes()
    cut = whole[:-7]
    file.write_bytes(cut)
    again = RecordFiles(tmp_path)
    assert again.read() == [planned("r1")]
    (torn,) = again.torn()
    assert (torn.file, torn.after_line) == (file.name, 1)
    assert "torn line" in torn.sentence
    assert [record.run for record in again.open_attempts()] == ["r1"]
    again.append(found("r1"))
    assert file.read_bytes() == cut
    assert again.open_attempts() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"edition":2', b'"edition":1', "line 2: does not continue"),
        (b'{"body"', b'{"bodx"', "line 1: is no record line"),
        (b'"seq":0', b'"seq": 0', "line 1: is not in canonical form"),
        (b'"seq":1', b'"seq":2', "line 2: says it is number 2"),
    ],
)
def test_a_changed_line_is_named(tmp_path: Path, old: bytes, new: bytes, said: str) -> None:
    records = RecordFiles(tmp_path)
    records.append(planned("r1"))
    records.append(ended("r1"))
    records.close()
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(old, new, 1))
    with pytest.raises(Finding, match=said):
        RecordFiles(tmp_path).read()


def test_a_line_moved_to_another_file_is_named(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path)
    records.append(planned("r1"))
    records.close()
    (file,) = tmp_path.glob("*.jsonl")
    file.rename(tmp_path / "attempts-other.jsonl")
    with pytest.raises(Finding, match=r"attempts-other\.jsonl, line 1"):
        RecordFiles(tmp_path).read()


def test_a_value_without_canonical_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    records = RecordFiles(tmp_path)
    bad = ended("r1").model_copy(update={"spent_usd": float("nan"), "machine": {"x": float("nan")}})
    with pytest.raises(UsageError, match="no canonical JSON form"):
        records.append(bad)
    records.append(planned("r2"))
    assert [record.run for record in records.read()] == ["r2"]


WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_store_records import planned
from referee.adapters.store.records import RecordFiles
records = RecordFiles(Path(sys.argv[1]))
records.append(planned("under-way"))
print("ready", flush=True)
number = 0
while len(sys.argv) > 3:
    number += 1
    records.append(planned(f"n{number}"))
    print(number, flush=True)
time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@pytest.mark.slow
def test_a_killed_writer_is_known_to_be_dead(tmp_path: Path, writer: subprocess.Popen[bytes]) -> None:
    records = RecordFiles(tmp_path)
    assert [record.run for record in records.attempts_under_way()] == ["under-way"]
    assert records.open_attempts() == []
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    assert [record.run for record in records.open_attempts()] == ["under-way"]
    with records.recovering():
        records.append(found("under-way"))
    assert records.open_attempts() == []


@pytest.mark.slow
def test_what_was_announced_before_a_kill_is_there(tmp_path: Path) -> None:
    for pause in (0.0, 0.03, 0.11):
        place = tmp_path / str(pause)
        argv = [sys.executable, "-c", WRITER, str(place), str(Path(__file__).parent), "flood"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(pause)
            process.kill()
            said = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
        (file,) = RecordFiles(place).files()
        assert len(file.links) >= 1 + len(said)


def test_a_full_disk_poisons_the_writer_and_keeps_what_was_written(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine does not allow a mount")
    try:
        records = RecordFiles(place / "records")
        kept = 0
        with pytest.raises(CouldNotVerify, match="No space left"):  # noqa: PT012 — which append fails is the disk's
            for kept in range(10_000):
                records.append(planned(f"r{kept}"))
        with pytest.raises(CouldNotVerify, match="takes no more records"):
            records.append(planned("later"))
        assert len(records.read()) == kept > 10
        records.close()
        assert len(records.torn()) == 1
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_symlink_among_the_record_files_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "attempts-x.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Finding, match="cannot be read"):
        RecordFiles(tmp_path / "r").read()


def test_a_directory_or_a_pipe_among_the_record_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "attempts-x.jsonl").mkdir()
    with pytest.raises(Finding, match="no regular file"):
        RecordFiles(tmp_path).read()
    (tmp_path / "attempts-x.jsonl").rmdir()
    os.mkfifo(tmp_path / "attempts-x.jsonl")
    with pytest.raises(Finding, match="no regular file"):
        RecordFiles(tmp_path).read()


def test_nothing_follows_a_line_that_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = RecordFiles(tmp_path / "records")
    records.append(planned("r-1"))

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            records.append(ended("r-1"))
    with pytest.raises(CouldNotVerify, match="was interrupted"):
        records.append(ended("r-1"))
    assert [record.run for record in RecordFiles(tmp_path / "records").read()] == ["r-1", "r-1"]
