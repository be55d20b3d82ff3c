r"""The digest of a tree, written down so that a stranger can rebuild it.

SHA-256 over ``referee/tree/1\n`` and then, for each file and symbolic link in the order of their paths as bytes,
``<kind> <sha256> <path>\0``: kind is ``file``, ``exec`` (a file with any execute bit) or ``link``; sha256 is the
hex digest of the file's bytes or of the link's target; path is relative, with ``/``. Directories count only by
what they hold, as in git. Left out: ``.git`` at the top, and every ``__pycache__``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from referee.errors import UsageError

_CHUNK = 1 << 20


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def walk(root: Path, *, with_git: bool = False) -> Iterator[tuple[bytes, os.stat_result]]:
    """Each file and link below ``root`` that counts, as (relative path, its own status), in no order.

    Raises:
        UsageError: something stands there that is neither file, link nor directory.
    """
    top = os.fsencode(root)
    pending = [b""]
    while pending:
        directory = pending.pop()
        with os.scandir(os.path.join(top, directory)) as entries:  # noqa: PTH118 — paths are bytes here
            for entry in entries:
                path = os.path.join(directory, entry.name)  # noqa: PTH118
                status = entry.stat(follow_symlinks=False)
                if entry.name == b"__pycache__" or (path == b".git" and not with_git):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)
                elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    yield path, status
                else:
                    raise UsageError(f"{os.fsdecode(path)} in {root} is neither a file, a link nor a directory")


def tree_sha256(root: Path, *, with_git: bool = False) -> str:
    """Hex digest of the tree at ``root``; ``with_git`` takes ``.git`` in (for the cache's own check)."""
    digest = hashlib.sha256(b"referee/tree/1\n")
    for path, status in sorted(walk(root, with_git=with_git), key=lambda entry: entry[0]):
        full = root / os.fsdecode(path)
        if stat.S_ISLNK(status.st_mode):
            kind, content = b"link", hashlib.sha256(os.fsencode(os.readlink(full))).hexdigest()  # noqa: PTH115 — bytes
        else:
            kind = b"exec" if status.st_mode & 0o111 else b"file"
            content = file_sha256(full)
        digest.update(b"%s %s %s\0" % (kind, content.encode(), path))
    return digest.hexdigest()


def copy_tree(source: Path, destination: Path) -> None:
    """Copy what counts of a tree: bytes, execute bits and link targets; nothing else of the host's."""
    destination.mkdir(parents=True, exist_ok=True)
    for path, status in walk(source):
        name = os.fsdecode(path)
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(os.readlink(source / name))  # noqa: PTH115 — the text of the link, not a path
        else:
            shutil.copyfile(source / name, target, follow_symlinks=False)
            target.chmod(0o755 if status.st_mode & 0o111 else 0o644)


def size_of(root: Path) -> int:
    """Bytes of all files that count in the tree."""
    return sum(status.st_size for _, status in walk(root) if stat.S_ISREG(status.st_mode))
