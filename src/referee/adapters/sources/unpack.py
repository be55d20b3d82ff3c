"""Opening archives of strangers: nothing outside the destination, no devices, no bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from referee.errors import UsageError

_CHUNK = 1 << 20
#: Longest header (a long name, extended attributes) that is read into memory.
_LONGEST_HEADER = 8 << 20


@dataclass(frozen=True)
class Caps:
    """How much an archive may unpack to."""

    bytes: int = 4 * 1024**3
    members: int = 200_000


DEFAULT_CAPS = Caps()

_OPENERS: tuple[tuple[bytes, Callable[[Path], Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
)

_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
)


class _Bounded(io.FileIO):
    """A plain file that refuses to be read in one piece larger than any honest header."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header is larger than any honest one")
        return super().read(size) or b""


def is_zip(path: Path) -> bool:
    """Whether the file is a zip archive (a wheel is one)."""
    return zipfile.is_zipfile(path)


@contextmanager
def open_tar(path: Path, caps: Caps = DEFAULT_CAPS) -> Iterator[tarfile.TarFile]:
    """Open a tar archive (plain, gz, xz, bz2) with its decompressed size capped.

    Raises:
        UsageError: it is no archive, it is broken, or it is larger than the caps.
    """
    with path.open("rb") as file:
        head = file.read(8)
    opener = next((opener for magic, opener in _OPENERS if head.startswith(magic)), None)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".plain-") as plain:
        try:
            if opener is not None:
                with opener(path) as packed:
                    _copy_capped(packed, plain, caps.bytes, path.name)
                plain.flush()
            with (
                _Bounded(plain.name if opener is not None else path) as raw,
                tarfile.open(fileobj=raw, mode="r:") as archive,
            ):
                yield archive
        except _BROKEN as exc:
            raise UsageError(f"the archive {path.name} cannot be unpacked: {exc}") from exc


def _copy_capped(source: IO[bytes], target: IO[bytes], cap: int, name: str) -> None:
    total = 0
    while chunk := source.read(_CHUNK):
        total += len(chunk)
        if total > cap:
            raise UsageError(f"the archive {name} unpacks to more than {cap} bytes")
        target.write(chunk)


def members(archive: tarfile.TarFile, caps: Caps = DEFAULT_CAPS) -> Iterator[tarfile.TarInfo]:
    """The members one by one, counted against the caps."""
    total = 0
    for count, member in enumerate(archive, start=1):
        total += member.size if member.isreg() else 0
        if count > caps.members or total > caps.bytes:
            raise UsageError(f"the archive unpacks to more than {caps.members} members or {caps.bytes} bytes")
        yield member


def unpack(path: Path, destination: Path, caps: Caps = DEFAULT_CAPS) -> None:
    """Unpack a tar or zip archive; a single directory at its top is left out.

    Raises:
        UsageError: a member would leave the destination, is no file, link or directory, or the caps are passed.
    """
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".unpack-") as scratch:
        target = Path(scratch) / "tree"
        target.mkdir()
        if is_zip(path):
            _unpack_zip(path, target, caps)
        else:
            with open_tar(path, caps) as archive:
                for member in members(archive, caps):
                    _extract(archive, member, target, path.name)
        inside = list(target.iterdir())
        top = inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else target
        destination.mkdir(exist_ok=True)
        for entry in top.iterdir():
            shutil.move(entry, destination / entry.name)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, name: str) -> None:
    parts = PurePosixPath(member.name).parts
    # The filter would quietly strip a leading slash; an archive that names one is refused as a whole.
    if member.name.startswith("/") or ".." in parts:
        raise UsageError(f"the archive {name} has the member {member.name!r}, which leaves the destination")
    try:
        archive.extract(member, target, filter="data", set_attrs=True)
    except tarfile.FilterError as exc:
        raise UsageError(f"the archive {name} has the member {member.name!r}, which is refused: {exc}") from exc


def _unpack_zip(path: Path, target: Path, caps: Caps) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > caps.members or sum(entry.file_size for entry in entries) > caps.bytes:
                raise UsageError(
                    f"the archive {path.name} unpacks to more than {caps.members} members or {caps.bytes} bytes"
                )
            links: list[tuple[Path, str]] = []
            for entry in entries:
                _zip_member(archive, entry, target, links, path.name)
    except _BROKEN as exc:
        raise UsageError(f"the archive {path.name} cannot be unpacked: {exc}") from exc
    # Links come last, so that no member can be written through one.
    for place, text in links:
        inside = os.path.normpath(place.parent / text)
        if os.path.isabs(text) or not Path(inside).is_relative_to(target):  # noqa: PTH117 — the text of a link
            raise UsageError(f"the archive {path.name} has a link to {text!r}, which leaves the destination")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(text)


def _zip_member(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, links: list[tuple[Path, str]], name: str
) -> None:
    parts = PurePosixPath(entry.filename).parts
    if entry.filename.startswith("/") or ".." in parts or "\\" in entry.filename:
        raise UsageError(f"the archive {name} has the member {entry.filename!r}, which leaves the destination")
    mode = entry.external_attr >> 16
    place = target.joinpath(*parts)
    if entry.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return
    if stat.S_ISLNK(mode):
        links.append((place, archive.read(entry)[:4096].decode("utf-8")))
        return
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise UsageError(f"the archive {name} has the member {entry.filename!r}, which is no file")
    place.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as packed, place.open("xb") as file:
        _copy(packed, file)
    place.chmod(0o755 if mode & 0o111 else 0o644)


def _copy(source: IO[bytes], target: BinaryIO) -> None:
    shutil.copyfileobj(source, target, _CHUNK)
