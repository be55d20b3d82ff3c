"""Evidence on the local disk: content-addressed, durable before it is named, never changed.

A blob lies at ``evidence/ab/<64 hex of its SHA-256>`` and is read-only. It arrives under a temporary name in the same
directory tree, is synced, renamed, and its directory synced: a name in the store always means whole bytes. A file that
its owner gives up is linked instead of copied where it lies on the same file system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from referee.adapters.store.durable import sync_directory
from referee.core.records import EvidenceRef
from referee.errors import CouldNotVerify, DigestMismatch, Finding, UsageError
from referee.regular_files import open_regular

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_HEX = re.compile(r"[0-9a-f]{64}")
_INCOMING = ".incoming-"
_PIECE = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class LocalEvidence:
    """The content-addressed store of one workspace. Safe for several threads and processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keep(self, name: str, source: Path | bytes, *, given_up: bool = False) -> EvidenceRef:
        """Store bytes durably; return their reference. Storing the same bytes twice is one blob.

        Args:
            name: the file's name within its run, as the reference carries it.
            source: the bytes, or a regular file (copied piece by piece; a symlink is not followed).
            given_up: nobody writes to the file any more: it may itself become the blob, and turns read-only. Its own
                name stays until its owner removes it, so that a crash in between loses nothing.

        Raises:
            CouldNotVerify: the disk refused; nothing of the attempt to store remains.
            Finding: what stands in the store under this digest is no regular file. One with other bytes is set
                aside under another name: a blob that several runs share must not stop later ones.
        """
        made = False
        try:
            made = not self.root.is_dir()
            self.root.mkdir(parents=True, exist_ok=True)
            root = os.open(self.root, _DIRECTORY)
        except OSError as exc:
            raise _refused(name, exc) from exc
        if made:
            sync_directory(self.root.parent)
        temporary = f"{_INCOMING}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            linked = _link(root, temporary, source) if given_up and isinstance(source, Path) else None
            digest, size = linked or _write(root, temporary, source)
            self._settle(root, temporary, digest)
        except OSError as exc:
            raise _refused(name, exc) from exc
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=root)
            os.close(root)
        return EvidenceRef(name=name, digest=f"sha256:{digest}", bytes=size)

    def _settle(self, root: int, temporary: str, digest: str) -> None:
        """Give a synced temporary file its name, unless the same bytes already stand there."""
        directory = digest[:2]
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, dir_fd=root)
            os.fsync(root)
        try:
            inside = os.open(directory, _DIRECTORY, dir_fd=root)
        except NotADirectoryError as exc:
            raise Finding(
                f"{self.root / directory} is no directory of the evidence store",
                todo="move it away: something else put it there",
            ) from exc
        try:
            if _stands(inside, digest) and not self._holds(digest):
                os.rename(digest, f"{digest}.changed-{secrets.token_hex(4)}", src_dir_fd=inside, dst_dir_fd=inside)
            if not _stands(inside, digest):
                os.rename(temporary, digest, src_dir_fd=root, dst_dir_fd=inside)
            os.fsync(inside)
        finally:
            os.close(inside)

    def _holds(self, digest: str) -> bool:
        """Whether the blob that stands under a digest is still the one; a changed one is set aside, never deleted."""
        try:
            self.check(f"sha256:{digest}")
        except DigestMismatch:
            return False
        return True

    def path(self, digest: str) -> Path:
        """Where the blob lies.

        Raises:
            UsageError: the text is no digest of evidence.
        """
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise UsageError(f"{digest!r} is no digest of evidence: sha256: and 64 hexadecimal digits are expected")
        return self.root / match[1][:2] / match[1]

    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading (its bytes are not checked: see ``check`` and ``read``).

        Raises:
            Finding: it is not there, or what stands there is no regular file.
        """
        path = self.path(digest)
        try:
            inside = os.open(path.parent, _DIRECTORY)
            try:
                descriptor = open_regular(path.name, inside=inside)
            finally:
                os.close(inside)
        except FileNotFoundError as exc:
            raise Finding(f"the evidence {digest} is not in the store", todo=f"restore {path} from a copy") from exc
        except OSError as exc:
            raise Finding(f"the evidence {digest} cannot be read: {exc.strerror}") from exc
        return os.fdopen(descriptor, "rb")

    def check(self, digest: str) -> int:
        """Read a blob through and compare; return its size in bytes.

        Raises:
            DigestMismatch: its bytes are not those that the digest names.
        """
        size = 0
        sha = hashlib.sha256()
        with self.open(digest) as blob:
            while piece := blob.read(_PIECE):
                sha.update(piece)
                size += len(piece)
        if f"sha256:{sha.hexdigest()}" != digest:
            raise DigestMismatch(
                f"the evidence {digest} has changed: its bytes have the digest sha256:{sha.hexdigest()}",
                todo=f"restore {self.path(digest)} from a copy",
            )
        return size

    def read(self, digest: str) -> bytes:
        """The whole bytes of a blob, checked against its digest."""
        with self.open(digest) as blob:
            data = blob.read()
        found = hashlib.sha256(data).hexdigest()
        if f"sha256:{found}" != digest:
            raise DigestMismatch(
                f"the evidence {digest} has changed: its bytes have the digest sha256:{found}",
                todo=f"restore {self.path(digest)} from a copy",
            )
        return data

    def digests(self) -> Iterator[str]:
        """The digests of all blobs, sorted; what is no blob is left out, see ``strays``."""
        yield from (f"sha256:{path.name}" for path in self._entries() if self._is_blob(path))

    def strays(self) -> Iterator[Path]:
        """What lies in the store and is no blob of it, relative to its root, sorted; writers' temporary files aside."""
        for path in self._entries():
            if not self._is_blob(path) and not path.name.startswith(_INCOMING):
                yield path.relative_to(self.root)

    def _entries(self) -> Iterator[Path]:
        """Everything but directories, and links to them, which the store never makes."""
        for directory, below, files in os.walk(self.root):
            below.sort()
            links = [name for name in below if Path(directory, name).is_symlink()]
            yield from (Path(directory, name) for name in sorted([*files, *links]))

    def _is_blob(self, path: Path) -> bool:
        return bool(_HEX.fullmatch(path.name)) and path.parent == self.root / path.name[:2]


def _write(root: int, temporary: str, source: Path | bytes) -> tuple[str, int]:
    """Write and sync a temporary file; return the hex digest and the size of what was written."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    sha = hashlib.sha256()
    size = 0
    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=root), "wb", buffering=0) as target:
        for piece in _pieces(source):
            sha.update(piece)
            size += len(piece)
            rest = memoryview(piece)
            while rest:
                rest = rest[target.write(rest) :]
        os.fchmod(target.fileno(), 0o444)
        os.fsync(target.fileno())
    return sha.hexdigest(), size


def _link(root: int, temporary: str, source: Path) -> tuple[str, int] | None:
    """Give a file a second, temporary name in the store, synced and read-only; None where that is not possible."""
    descriptor = open_regular(source)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        try:
            os.link(source, temporary, dst_dir_fd=root, follow_symlinks=False)
        except OSError:
            return None  # another file system, or one without links
        there = os.stat(temporary, dir_fd=root, follow_symlinks=False)
        if (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino):
            os.unlink(temporary, dir_fd=root)
            return None  # another file took its name meanwhile
        os.fchmod(descriptor, 0o444)
        os.fsync(descriptor)
        sha, size = hashlib.sha256(), 0
        while piece := file.read(_PIECE):
            sha.update(piece)
            size += len(piece)
    return sha.hexdigest(), size


def _pieces(source: Path | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with os.fdopen(open_regular(source), "rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _stands(directory: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise Finding(
            f"the evidence sha256:{name} is no regular file in the store",
            todo="move it away: something else put it there",
        )
    return True


def _refused(name: str, exc: OSError) -> CouldNotVerify:
    return CouldNotVerify(
        f"the evidence {name} could not be stored: {exc.strerror or exc}",
        todo="see that the disk of the workspace has room and can be written",
    )
