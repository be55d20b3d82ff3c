"""Opening archives of strangers: nothing outside the destination, no devices, no bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from referee.adapters.sources.within import Within
from referee.errors import InternalError, UsageError

_CHUNK = 1 << 20
#: Longest header (a long name, extended attributes) that is read into memory.
_LONGEST_HEADER = 8 << 20
#: No system takes a longer text of a link.
_LONGEST_LINK = 4096


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
    """A plain file that refuses to be read for one header, in one piece or in many, further than any honest one goes.

    A header may be followed by any number of others of the same member, and by a list of where its data stand.
    """

    in_headers = True
    _left = _LONGEST_HEADER

    def next_header(self) -> None:
        """What is read from here on is the header of one more member."""
        self.in_headers, self._left = True, _LONGEST_HEADER

    def read(self, size: int | None = -1, /) -> bytes:
        """As a file's; tarfile.ReadError: it is more than a header has."""
        if size is None or size < 0 or size > (self._left if self.in_headers else _LONGEST_HEADER):
            raise tarfile.ReadError("a header is larger than any honest one")
        if self.in_headers:
            self._left -= size
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
            raise UsageError(f"the archive {path.name} cannot be unpacked: {_why(exc)}") from exc


def _why(exc: Exception) -> str:
    """What an error says, without the paths of this machine."""
    return (exc.strerror if isinstance(exc, OSError) else None) or str(exc)


def _copy_capped(source: IO[bytes], target: IO[bytes], cap: int, name: str) -> None:
    total = 0
    while chunk := source.read(_CHUNK):
        total += len(chunk)
        if total > cap:
            raise UsageError(f"the archive {name} unpacks to more than {cap} bytes")
        target.write(chunk)


def members(archive: tarfile.TarFile, caps: Caps = DEFAULT_CAPS) -> Iterator[tarfile.TarInfo]:
    """The members of an archive of ``open_tar`` one by one, counted against the caps. It keeps none of them.

    Raises:
        UsageError: there are more of them, or more bytes in them, than the caps allow.
    """
    raw = archive.fileobj
    count = total = 0
    while (member := archive.next()) is not None:
        # Their headers may be large: together they would fill the memory.
        archive.members.clear()  # type: ignore[attr-defined]
        if member.size < 0:
            raise UsageError(f"the archive has the member {member.name!r}, whose size is below zero")
        count += 1
        total += member.size if member.isreg() else 0
        if count > caps.members or total > caps.bytes:
            raise UsageError(f"the archive unpacks to more than {caps.members} members or {caps.bytes} bytes")
        if isinstance(raw, _Bounded):
            raw.in_headers = False
        yield member
        if isinstance(raw, _Bounded):
            raw.next_header()


def unpack(path: Path, destination: Path, caps: Caps = DEFAULT_CAPS) -> None:
    """Unpack a tar or zip archive; a single directory at its top is left out.

    Raises:
        UsageError: a member would leave the destination, comes twice, is no file, link or directory, or the caps are
            passed.
    """
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".unpack-") as scratch:
        root = Path(scratch) / "tree"
        root.mkdir()
        tree = Within(root, path.name)
        top = _unpack_zip(path, tree, caps) if is_zip(path) else _unpack_tar(path, tree, caps)
        destination.mkdir(exist_ok=True)
        for entry in top.iterdir():
            shutil.move(entry, destination / entry.name)


def _unpack_tar(path: Path, tree: Within, caps: Caps) -> Path:
    with open_tar(path, caps) as archive:
        for member in members(archive, caps):
            put(archive, member, tree)
        return tree.finish()


def put(archive: tarfile.TarFile, member: tarfile.TarInfo, tree: Within) -> None:
    """Put one member of a tar archive into a tree.

    Raises:
        UsageError: it would leave the tree, comes twice, or is no file, link or directory.
    """
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        tree.refuse(member.name, "is no file, link or directory")
    if member.isdir():
        tree.folder(member.name)
    elif member.issym():
        tree.link(member.name, member.linkname)
    elif member.islnk():
        tree.hard_link(member.name, member.linkname)
    else:
        file = archive.extractfile(member)
        if file is None:
            raise InternalError(f"{member.name} was taken for a regular file")
        with file:
            tree.file(member.name, file, mode=_mode(member.mode), modified=member.mtime)
    _second_look(member, tree)


def _mode(given: int) -> int:
    """What is kept of a file's mode, as the library's own filter has it: no special bit, no writing by others."""
    kept = given & 0o755 if given & 0o100 else given & 0o644
    return kept | 0o600


def _second_look(member: tarfile.TarInfo, tree: Within) -> None:
    """Ask the library's filter too, where there is one: Python 3.11.4 brought it.

    It comes second, so that what is refused is told in the same words whatever the Python.
    """
    look = getattr(tarfile, "data_filter", None)
    if look is None:
        return
    try:
        look(member, str(tree.root))
    except tarfile.FilterError as exc:
        tree.refuse(member.name, f"is refused: {exc}")


def _unpack_zip(path: Path, tree: Within, caps: Caps) -> Path:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > caps.members or sum(entry.file_size for entry in entries) > caps.bytes:
                raise UsageError(
                    f"the archive {path.name} unpacks to more than {caps.members} members or {caps.bytes} bytes"
                )
            for entry in entries:
                _zip_member(archive, entry, tree)
        return tree.finish()
    except _BROKEN as exc:
        raise UsageError(f"the archive {path.name} cannot be unpacked: {_why(exc)}") from exc


def _zip_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, tree: Within) -> None:
    name, mode = entry.filename, entry.external_attr >> 16
    if "\\" in name:
        tree.refuse(name, "leaves the destination")
    if entry.is_dir():
        tree.folder(name)
        return
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFLNK}:
        tree.refuse(name, "is no file, link or directory")
    with archive.open(entry) as packed:
        if stat.S_ISLNK(mode):
            tree.link(name, packed.read(_LONGEST_LINK).decode("utf-8"))
        else:
            tree.file(name, packed, mode=0o755 if mode & 0o111 else 0o644)
