"""The evidence store: whole bytes or nothing, one blob for the same bytes, no way out through planted names."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.store.evidence import LocalEvidence
from referee.errors import CouldNotVerify, DigestMismatch, Finding, UsageError


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_blob_lies_where_its_digest_says_and_is_read_only(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path / "evidence")
    ref = store.keep("session.raw", b"hello\x00\xff")
    assert ref.digest == f"sha256:{_hex(b'hello' + bytes([0, 255]))}"
    assert (ref.name, ref.bytes) == ("session.raw", 7)
    path = tmp_path / "evidence" / ref.digest[7:9] / ref.digest[7:]
    assert path == store.path(ref.digest)
    assert path.read_bytes() == b"hello\x00\xff"
    assert path.stat().st_mode & 0o777 == 0o444
    with store.open(ref.digest) as blob:
        assert blob.read() == b"hello\x00\xff"
    assert store.read(ref.digest) == b"hello\x00\xff"


def test_the_empty_file_is_evidence_too(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path)
    assert store.read(store.keep("report.json", b"").digest) == b""


def test_the_same_bytes_are_one_blob(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path)
    first, second = store.keep("a", b"same"), store.keep("b", b"same")
    assert first.digest == second.digest
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [first.digest[7:]]
    assert list(store.digests()) == [first.digest]


def test_a_big_file_is_copied_and_its_source_is_left_alone(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 5 + b"tail"
    source = tmp_path / "spool.raw"
    source.write_bytes(data)
    store = LocalEvidence(tmp_path / "evidence")
    ref = store.keep("session.raw", source)
    assert (ref.digest, ref.bytes) == (f"sha256:{_hex(data)}", len(data))
    assert store.check(ref.digest) == len(data)
    source.write_bytes(b"changed afterwards")
    assert store.check(ref.digest) == len(data)


def _keep_many(root: str, start: int) -> None:
    store = LocalEvidence(Path(root))
    for number in range(40):
        store.keep("x", f"shared {number}".encode() * 1000)
        store.keep("y", f"own {start} {number}".encode())


@pytest.mark.slow
def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_keep_many, args=(str(tmp_path / "e"), start)) for start in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    store = LocalEvidence(tmp_path / "e")
    digests = list(store.digests())
    assert len(digests) == 40 + 4 * 40
    for digest in digests:
        store.check(digest)
    assert [path for path in (tmp_path / "e").iterdir() if path.is_file()] == []


def test_a_changed_blob_is_named(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path)
    ref = store.keep("x", b"true bytes")
    store.path(ref.digest).chmod(0o644)
    store.path(ref.digest).write_bytes(b"other byte")
    with pytest.raises(DigestMismatch, match="has changed"):
        store.check(ref.digest)
    with pytest.raises(DigestMismatch, match="has changed"):
        store.read(ref.digest)


def test_a_changed_blob_is_set_aside_when_the_true_bytes_come_again(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path)
    ref = store.keep("x", b"true bytes")
    store.path(ref.digest).chmod(0o644)
    store.path(ref.digest).write_bytes(b"other byte")
    assert store.keep("y", b"true bytes").digest == ref.digest
    assert store.read(ref.digest) == b"true bytes"
    aside = [path for path in store.path(ref.digest).parent.iterdir() if ".changed-" in path.name]
    assert [path.read_bytes() for path in aside] == [b"other byte"], "nothing is deleted"


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    with pytest.raises(Finding, match="is not in the store"):
        LocalEvidence(tmp_path).open(f"sha256:{'0' * 64}")


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:../../etc/passwd", f"sha256:{'A' * 64}", f"md5:{'0' * 64}"])
def test_a_text_that_is_no_digest_reaches_no_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no digest of evidence"):
        LocalEvidence(tmp_path).open(text)


def test_a_symlink_planted_under_a_digest_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"bytes")
    store = LocalEvidence(tmp_path / "e")
    path = store.path(f"sha256:{_hex(b'bytes')}")
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    with pytest.raises(Finding, match="cannot be read"):
        store.open(f"sha256:{_hex(b'bytes')}")
    with pytest.raises(Finding, match="no regular file"):
        store.keep("x", b"bytes")
    assert outside.read_bytes() == b"bytes"


def test_a_symlink_planted_as_a_directory_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    store = LocalEvidence(tmp_path / "e")
    path = store.path(f"sha256:{_hex(b'bytes')}")
    path.parent.parent.mkdir()
    path.parent.symlink_to(outside)
    with pytest.raises((Finding, CouldNotVerify)):
        store.keep("x", b"bytes")
    assert list(outside.iterdir()) == []


def test_a_source_that_is_a_symlink_or_a_pipe_is_refused(tmp_path: Path) -> None:
    store = LocalEvidence(tmp_path / "e")
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "absent"):
        with pytest.raises(CouldNotVerify, match="could not be stored"):
            store.keep(name, tmp_path / name)
    assert list(store.digests()) == []
    assert list((tmp_path / "e").iterdir()) == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("this machine does not allow a mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_said_and_leaves_no_half_blob(tiny_disk: Path) -> None:
    store = LocalEvidence(tiny_disk / "e")
    first = store.keep("small", b"fits")
    with pytest.raises(CouldNotVerify, match="No space left") as caught:
        store.keep("big", os.urandom(3 << 20))
    assert caught.value.exit_code == 4
    assert list(store.digests()) == [first.digest]
    assert [path for path in (tiny_disk / "e").iterdir() if path.is_file()] == []
    store.keep("after", b"the next one fits again")


def test_a_file_that_is_given_up_becomes_the_blob_and_keeps_its_name_until_its_owner_removes_it(tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    source = tmp_path / "session.raw"
    source.write_bytes(data)
    store = LocalEvidence(tmp_path / "evidence")
    ref = store.keep("session.raw", source, given_up=True)
    blob = store.path(ref.digest)
    assert (ref.digest, ref.bytes) == (f"sha256:{_hex(data)}", len(data))
    assert blob.stat().st_ino == source.stat().st_ino, "nothing was copied"
    assert blob.stat().st_mode & 0o777 == 0o444
    assert store.keep("session.raw", source, given_up=True) == ref, "a start after a crash seals it once more"
    source.unlink()
    assert store.check(ref.digest) == len(data)
    assert [path for path in (tmp_path / "evidence").rglob("*") if path.is_file()] == [blob]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system at hand")
def test_a_given_up_file_of_another_file_system_is_copied(tmp_path: Path) -> None:
    source = Path("/dev/shm") / f"referee-test-{os.getpid()}"
    assert source.parent.stat().st_dev != tmp_path.stat().st_dev
    source.write_bytes(b"far away")
    try:
        store = LocalEvidence(tmp_path / "evidence")
        ref = store.keep("a", source, given_up=True)
        assert store.path(ref.digest).stat().st_ino != source.stat().st_ino
        assert store.read(ref.digest) == b"far away"
    finally:
        source.unlink()


def test_a_link_is_never_given_up_to_the_store(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(CouldNotVerify):
        LocalEvidence(tmp_path / "evidence").keep("a", tmp_path / "link", given_up=True)
    assert (tmp_path / "real").stat().st_mode & 0o200, "what it points to is untouched"
