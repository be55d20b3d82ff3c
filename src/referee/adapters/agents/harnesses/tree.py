"""An installation on the host: unpacked from a machine's tar stream, and digested.

The stream comes from a machine that ran third-party programs, so it is read with care: only directories, regular files
and links that stay inside; no owner, no special bit, nothing above the directory.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from referee.core.canonical import digest_of
from referee.core.links import stays
from referee.errors import AgentUnavailable
from referee.protocols import AGENT_HOME

_CHUNK = 1 << 20


def unpack(stream: BinaryIO, into: Path) -> None:
    """Unpack ``Machine.take``'s stream of ``/opt/agent`` as the directory ``into``, which is made.

    Raises:
        AgentUnavailable: a member is of no kind that an installation has, or would leave the directory.
    """
    into.mkdir(mode=0o755)
    try:
        _unpack(stream, into)
    except (FileExistsError, NotADirectoryError, tarfile.TarError) as exc:
        raise AgentUnavailable(f"the installation cannot be unpacked: {exc}") from exc


def _unpack(stream: BinaryIO, into: Path) -> None:
    links: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            parts = [part for part in member.name.split("/") if part not in {"", "."}]
            if ".." in parts:
                raise AgentUnavailable(f"the installation holds {member.name!r}, which leaves its directory")
            inside = "/".join(parts[1:])
            place = into / inside
            if not inside:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if member.isdir():
                place.mkdir(exist_ok=True)
            elif member.isreg():
                _write(tar, member, place)
            elif member.islnk():
                shutil.copy2(into / "/".join(_inside(member.linkname)), place, follow_symlinks=False)
            elif member.issym() and inside not in links:
                links[inside] = member.linkname
            elif member.issym():
                raise AgentUnavailable(f"the installation holds {member.name!r} twice")
            else:
                raise AgentUnavailable(f"the installation holds {member.name!r}, which is no file, directory or link")
    for at, target in links.items():  # last, so that nothing is ever written through one
        _check(links, at, target)
        (into / at).symlink_to(target)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    data = tar.extractfile(member)
    if data is None:
        raise AgentUnavailable(f"the installation's {member.name!r} cannot be read")
    with place.open("xb") as out:
        shutil.copyfileobj(data, out, _CHUNK)
    place.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _inside(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts or len(parts) < 2:  # noqa: PLR2004 — the directory's name and one below it
        raise AgentUnavailable(f"the installation links to {name!r}, which leaves its directory")
    return parts[1:]


def _check(links: Mapping[str, str], inside: str, target: str) -> None:
    """Refuse a link that leads out of ``/opt/agent`` as the machine will see it."""
    if target == AGENT_HOME or target.startswith(AGENT_HOME + "/"):
        folder, text = "", target.removeprefix(AGENT_HOME).lstrip("/")
    else:
        folder, text = posixpath.dirname(inside), target
    if not stays(links, folder, text):
        raise AgentUnavailable(f"the installation's link {inside!r} leads to {target!r}, outside of it")


def tree_digest(root: Path) -> str:
    """Tagged digest over every file (bytes, whether it is executable), directory and link below ``root``."""
    entries: list[list[str]] = []
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in [*folders, *names]:
            path = Path(parent) / name
            inside = path.relative_to(root).as_posix()
            about = path.lstat()
            if stat.S_ISLNK(about.st_mode):
                entries.append([inside, "link", os.readlink(path)])  # noqa: PTH115 — as it stands
            elif stat.S_ISDIR(about.st_mode):
                entries.append([inside, "directory", ""])
            elif stat.S_ISREG(about.st_mode):
                kind = "program" if about.st_mode & stat.S_IXUSR else "file"
                with path.open("rb") as file:
                    entries.append([inside, kind, hashlib.file_digest(file, "sha256").hexdigest()])
            else:
                entries.append([inside, "other", ""])
    return digest_of("tree", sorted(entries))
