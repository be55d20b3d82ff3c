"""Writes a directory of a machine as a tar stream, from inside. Standard library only.

Everything is opened below a handle on the directory and nothing is followed: whatever the tree's owner has put there,
the stream names only what stands in it.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_KINDS = {
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
}


def write_tree(directory: int, name: str, out: BinaryIO) -> None:
    """Write what stands in the open ``directory`` to ``out``, its members below ``name``; sockets are left out.

    Raises:
        OSError: something could not be read, or changed while it was.
    """
    seen: dict[tuple[int, int], str] = {}
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        tar.addfile(_member(name, os.fstat(directory)))
        open_levels: list[tuple[int, str, Iterator[str]]] = [(directory, name, _names(directory))]
        while open_levels:
            level, at, names = open_levels[-1]
            entry = next(names, None)
            if entry is None:
                open_levels.pop()
                os.close(level)
                continue
            inner = _add(tar, level, entry, f"{at}/{entry}", seen)
            if inner is not None:
                open_levels.append((inner, f"{at}/{entry}", _names(inner)))


def _names(directory: int) -> Iterator[str]:
    return iter(sorted(os.listdir(directory)))


def _add(tar: tarfile.TarFile, level: int, entry: str, path: str, seen: dict[tuple[int, int], str]) -> int | None:
    """Add one entry; a directory's handle, for what stands in it."""
    facts = os.stat(entry, dir_fd=level, follow_symlinks=False)
    if stat.S_ISSOCK(facts.st_mode):
        return None
    member = _member(path, facts)
    if stat.S_ISLNK(facts.st_mode):
        member.linkname = os.readlink(entry, dir_fd=level)
    elif stat.S_ISDIR(facts.st_mode):
        handle = os.open(entry, _LOOK | os.O_DIRECTORY, dir_fd=level)
        tar.addfile(member)
        return handle
    elif stat.S_ISREG(facts.st_mode):
        earlier = seen.setdefault((facts.st_dev, facts.st_ino), path) if facts.st_nlink > 1 else path
        if earlier != path:
            member.type, member.linkname = tarfile.LNKTYPE, earlier
        else:
            with os.fdopen(os.open(entry, _LOOK, dir_fd=level), "rb") as file:
                member.size = os.fstat(file.fileno()).st_size
                tar.addfile(member, file)
            return None
    tar.addfile(member)
    return None


def _member(path: str, facts: os.stat_result) -> tarfile.TarInfo:
    """The head of an entry. Owners by number only: their names would be the machine's to say."""
    member = tarfile.TarInfo(path)
    member.type = _KINDS[stat.S_IFMT(facts.st_mode)]
    member.mode = stat.S_IMODE(facts.st_mode)
    member.uid, member.gid = facts.st_uid, facts.st_gid
    member.mtime = int(facts.st_mtime)
    if stat.S_ISCHR(facts.st_mode) or stat.S_ISBLK(facts.st_mode):
        member.devmajor, member.devminor = os.major(facts.st_rdev), os.minor(facts.st_rdev)
    return member
