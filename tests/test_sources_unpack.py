"""Archives of strangers: what is refused, and that what is left unpacks as it should."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.sources import unpack
from referee.adapters.sources.repository import RepositorySource
from referee.errors import UsageError
from tests.strange_archives import LEFT, TARS, ZIPS, make_tar, make_zip, member, outcomes, sparse

ROOT = Path(__file__).parents[1]


#: Pythons that the product claims, found on this machine beside the one that runs the suite.
OTHERS = sorted({path for path in ("/usr/bin/python3", shutil.which("python3.11")) if path and Path(path).exists()})
LEAST = (3, 11)


def version(python: str) -> tuple[int, ...]:
    said = subprocess.run(
        [python, "-I", "-c", "import sys; print(*sys.version_info[:3])"], check=True, capture_output=True, text=True
    )
    return tuple(int(number) for number in said.stdout.split())


def judge(found: dict[str, Any]) -> None:
    """Every hostile archive is refused in our own words and leaves nothing; the honest one stands as it should."""
    assert found.pop("honest") == LEFT
    for kind, table in (("tar", TARS), ("zip", ZIPS)):
        for name, (why, _) in table.items():
            outcome = found.pop(f"{kind} {name}")
            assert why in outcome["refused"], name
            assert len(outcome["refused"]) < 600, name
            assert outcome["left"] == ["a.archive", "deep", "er"], name
    assert not found


def test_what_archives_of_strangers_come_to(tmp_path: Path) -> None:
    judge(outcomes(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("world", ["without-a-filter", "other-pythons"])
def test_archives_come_to_the_same_whatever_the_python(world: str, tmp_path: Path) -> None:
    others = [[one, "-m", "tests.strange_archives"] for one in OTHERS if version(one) >= LEAST]
    ways = others if world == "other-pythons" else [[sys.executable, "-m", "tests.strange_archives", "--no-filter"]]
    for number, way in enumerate(ways):
        place = tmp_path / str(number)
        place.mkdir()
        environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run([*way, str(place)], env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{way}: {ended.stderr}"
        judge(json.loads(ended.stdout))


def test_the_filter_of_the_library_is_asked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look(info: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
        asked.append(info.name)
        if info.name == "b":
            raise FilterError
        return info

    monkeypatch.setattr(tarfile, "data_filter", look, raising=False)
    monkeypatch.setattr(tarfile, "FilterError", FilterError, raising=False)
    archive = make_tar(tmp_path / "a.tar.gz", member("a"), member("b"), member("c"))
    with pytest.raises(UsageError, match="'b', which is refused"):
        unpack.unpack(archive, tmp_path / "out")
    assert asked == ["a", "b"]
    assert not (tmp_path / "out").exists()


class FilterError(tarfile.TarError):
    """As the library has it since 3.11.4."""


def test_a_link_in_a_zip_stays_inside(tmp_path: Path) -> None:
    mode = stat.S_IFLNK | 0o777
    with pytest.raises(UsageError, match="link to '/etc/passwd'"):
        unpack.unpack(
            make_zip(tmp_path / "a.zip", ("top/file", "x", 0), ("top/link", "/etc/passwd", mode)), tmp_path / "bad"
        )
    unpack.unpack(make_zip(tmp_path / "a.zip", ("top/file", "x", 0), ("top/link", "file", mode)), tmp_path / "good")
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


@pytest.mark.slow
def test_a_list_of_holes_is_a_header_too(tmp_path: Path) -> None:
    endless = sparse("holes", "1", b"99999999\n" + b"0\n" * (5 << 20))
    with pytest.raises(UsageError, match="larger than any honest one"):
        unpack.unpack(make_tar(tmp_path / "a.tar", member("a"), endless, mode="w"), tmp_path / "out")


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
