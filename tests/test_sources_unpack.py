"""Archives of strangers: what is refused, and that what is left unpacks as it should."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.adapters.sources import unpack
from referee.adapters.sources.repository import RepositorySource
from referee.errors import UsageError


def member(name: str, data: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def make_tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, data in members:
            archive.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return path


LEAVES: dict[str, Callable[[], list[tuple[tarfile.TarInfo, bytes]]]] = {
    "absolute": lambda: [member("/etc/evil")],
    "parent": lambda: [member("top/../../evil")],
    "device": lambda: [member("dev", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "fifo": lambda: [member("pipe", b"", type=tarfile.FIFOTYPE)],
    "absolute-link": lambda: [member("l", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
    "link-out": lambda: [member("l", b"", type=tarfile.SYMTYPE, linkname="../../out")],
    "through-a-link": lambda: [
        member("a/l", b"", type=tarfile.SYMTYPE, linkname="../.."),
        member("a/l/evil"),
    ],
    "hard-link-out": lambda: [member("h", b"", type=tarfile.LNKTYPE, linkname="../../etc/passwd")],
}


@pytest.mark.parametrize("attack", LEAVES)
def test_a_tar_that_would_leave_its_place_is_refused(attack: str, tmp_path: Path) -> None:
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    archive = make_tar(inside / "a.tar.gz", *LEAVES[attack]())
    with pytest.raises(UsageError, match=r"a\.tar\.gz"):
        unpack.unpack(archive, inside / "out")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar.gz", "deep", "er"]


@pytest.mark.parametrize("name", ["/evil", "../evil", "a/../../evil", "..\\evil"])
def test_a_zip_that_would_leave_its_place_is_refused(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("ok", "x")
        packed.writestr(name, "x")
    with pytest.raises(UsageError, match="leaves the destination"):
        unpack.unpack(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_link_in_a_zip_stays_inside(tmp_path: Path) -> None:
    def make(target: str) -> Path:
        archive = tmp_path / "a.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("top/file", "x")
            info = zipfile.ZipInfo("top/link")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            packed.writestr(info, target)
        return archive

    with pytest.raises(UsageError, match="link to '/etc/passwd'"):
        unpack.unpack(make("/etc/passwd"), tmp_path / "bad")
    unpack.unpack(make("file"), tmp_path / "good")
    assert (tmp_path / "good" / "link").read_text() == "x"


def test_bombs_are_refused_before_they_fill_the_disk(tmp_path: Path) -> None:
    caps = unpack.Caps(bytes=1_000_000, members=50)
    big = make_tar(tmp_path / "big.tar.gz", member("zeros", b"\0" * 5_000_000))
    many = make_tar(tmp_path / "many.tar.xz", *(member(f"f{n}", b"") for n in range(60)), mode="w:xz")
    zipped = tmp_path / "big.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros", b"\0" * 5_000_000)
    for archive in (big, many, zipped):
        with pytest.raises(UsageError, match="unpacks to more than"):
            unpack.unpack(archive, tmp_path / "out", caps)
    assert not (tmp_path / "out").exists()


def test_a_giant_header_is_not_read_into_memory(tmp_path: Path) -> None:
    archive = tmp_path / "header.tar"
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2_000_000_000
    with archive.open("wb") as file:
        file.write(info.tobuf())
        file.truncate(2_000_001_024)
    with pytest.raises(UsageError, match="larger than any honest one"):
        unpack.unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("data", [b"", b"plain text", b"\x1f\x8b broken", b"PK\x03\x04 broken"])
def test_what_is_no_archive_is_said_to_be_none(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"x\.tar\.gz cannot be unpacked"):
        unpack.unpack(path, tmp_path / "out")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_is_a_project_without_its_single_top_directory(mode: str, tmp_path: Path) -> None:
    archive = make_tar(
        tmp_path / "thing-1.0.tar",
        member("thing-1.0/README.md", b"# thing\n"),
        member("thing-1.0/run.sh", b"#!/bin/sh\n", mode=0o755),
        member("thing-1.0/link", b"", type=tarfile.SYMTYPE, linkname="run.sh"),
        mode=mode,
    )
    source = RepositorySource(tmp_path / "cache")
    placement = source.fetch({"name": "thing", **source.resolve_path(archive)})
    project = placement.root / "project"
    assert sorted(path.name for path in project.iterdir()) == ["README.md", "link", "run.sh"]
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (project / "link").readlink() == Path("run.sh")
    assert placement.facts["readme"] == "/work/project/README.md"
