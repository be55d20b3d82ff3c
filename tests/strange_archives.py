"""Archives of strangers, hostile and honest; as a program, what comes of each under the Python that runs it.

``python -m tests.strange_archives [--no-filter] DIRECTORY`` needs nothing but the standard library, so that any Python
that the product claims can be asked. It prints one JSON object: what became of every archive.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes = b"x", **fields: object) -> Member:
    """One member of a tar archive."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def link(name: str, text: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    """A symbolic link, or a hard one."""
    return member(name, b"", type=kind, linkname=text)


def hard(name: str, to: str) -> Member:
    """A hard link."""
    return link(name, to, tarfile.LNKTYPE)


def folder(name: str) -> Member:
    """A directory."""
    return member(name, b"", type=tarfile.DIRTYPE, mode=0o755)


def sparse(name: str, size: str, listed: bytes = b"1\n0\n1\n", data: bytes = b"x") -> Member:
    """A file with holes, as GNU tar writes one: its size, and the list of where its data stand."""
    told = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": size}
    return member("GNUSparseFile.0/f", listed + b"\0" * (-len(listed) % 512) + data, pax_headers=told)


def make_tar(path: Path, *members: Member, mode: str = "w:gz") -> Path:
    """Write a tar archive."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, data in members:
            archive.addfile(info, io.BytesIO(data) if info.size > 0 else None)
    return path


def make_zip(path: Path, *entries: tuple[str, str, int]) -> Path:
    """Write a zip archive of (name, contents, mode); a mode of 0 is none."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, text)
    return path


_LINK = stat.S_IFLNK | 0o777

#: What a tar archive may try, and a word of why it is refused.
TARS: dict[str, tuple[str, Callable[[], list[Member]]]] = {
    "absolute": ("leaves the destination", lambda: [member("/etc/evil")]),
    "absolute-folder": ("leaves the destination", lambda: [folder("/evil")]),
    "parent": ("leaves the destination", lambda: [member("top/../../evil")]),
    "null": ("leaves the destination", lambda: [member("a", pax_headers={"path": "a\0/../../evil"})]),
    "device": ("no file, link or directory", lambda: [member("d", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)]),
    "disk": ("no file, link or directory", lambda: [member("d", b"", type=tarfile.BLKTYPE, devmajor=8)]),
    "fifo": ("no file, link or directory", lambda: [member("pipe", b"", type=tarfile.FIFOTYPE)]),
    "unknown-kind": ("no file, link or directory", lambda: [member("z", b"", type=b"Z")]),
    "absolute-link": ("leaves the destination", lambda: [link("l", "/etc/passwd")]),
    "link-out": ("leaves the destination", lambda: [link("l", "../../out")]),
    "link-beside-the-top": ("leaves the destination", lambda: [member("top/f"), link("top/l", "../../out")]),
    "link-to-what-is-left-out": ("leaves the destination", lambda: [member("top/f"), link("top/l", "..")]),
    "link-through-a-link": (
        "leaves the destination",
        lambda: [member("f"), link("x/y/z/a", "../../.."), link("x/y/z/b", "a/../out")],
    ),
    "link-through-a-later-link": (
        "leaves the destination",
        lambda: [member("f"), link("b", "x/y/z/a/../out"), link("x/y/z/a", "../../..")],
    ),
    "through-a-link": ("leaves the destination", lambda: [link("a/l", "../.."), member("a/l/evil")]),
    "through-a-link-inside": ("below a link", lambda: [folder("real"), link("l", "real"), member("l/f")]),
    "folder-through-a-link": ("below a link", lambda: [link("a/l", "../b"), folder("a/l/evil")]),
    "link-over-a-folder": ("comes twice", lambda: [member("a/l/evil"), link("a/l", "../b")]),
    "folder-over-a-link": ("comes twice", lambda: [link("l", "real"), folder("l")]),
    "file-over-a-link": ("comes twice", lambda: [link("l", "real"), member("l")]),
    "link-twice": ("comes twice", lambda: [link("l", "a"), link("l", "b")]),
    "file-twice": ("comes twice", lambda: [member("f", b"one"), member("./f", b"two")]),
    "file-twice-and-longer": ("comes twice", lambda: [member("f", b"one"), member("f", b"one more")]),
    "file-twice-and-shorter": ("comes twice", lambda: [member("f", b"one"), member("f", b"")]),
    "file-twice-and-run": ("comes twice", lambda: [member("f"), member("f", mode=0o755)]),
    "file-over-a-folder": ("comes twice", lambda: [folder("f"), member("f")]),
    "folder-over-a-file": ("needs a directory", lambda: [member("f"), folder("f")]),
    "below-a-file": ("needs a directory", lambda: [member("f"), member("f/g/h")]),
    "the-root-as-a-file": ("comes twice", lambda: [member(".")]),
    "hard-link-out": ("leaves the destination", lambda: [hard("h", "../../etc/passwd")]),
    "hard-link-absolute": ("leaves the destination", lambda: [hard("h", "/etc/passwd")]),
    "hard-link-to-what-comes-later": ("no file that came before", lambda: [hard("h", "f"), member("f")]),
    "hard-link-through-a-link": (
        "no file that came before",
        lambda: [member("d/f"), link("l", "d"), hard("h", "l/f")],
    ),
    "hard-link-to-a-link-out": (
        "leaves the destination",
        lambda: [member("d/f"), link("a/b/l", "../../d"), hard("h", "a/b/l")],
    ),
    "hard-link-to-a-folder": ("no file that came before", lambda: [folder("d"), hard("h", "d")]),
    "huge-with-holes": ("more than", lambda: [sparse("holes", str(5 << 40))]),
    "size-below-zero": ("below zero", lambda: [member("f", b"", size=-512)]),
    "too-long-a-name": ("cannot be unpacked", lambda: [member("n" * 5000)]),
    "too-long-a-link": ("cannot be unpacked", lambda: [link("l", "n/" * 5000)]),
}

#: The same of zip archives.
ZIPS: dict[str, tuple[str, list[tuple[str, str, int]]]] = {
    "absolute": ("leaves the destination", [("ok", "x", 0), ("/evil", "x", 0)]),
    "parent": ("leaves the destination", [("ok", "x", 0), ("../evil", "x", 0)]),
    "parent-inside": ("leaves the destination", [("ok", "x", 0), ("a/../../evil", "x", 0)]),
    "backslash": ("leaves the destination", [("ok", "x", 0), ("..\\evil", "x", 0)]),
    "link-out": ("leaves the destination", [("top/l", "../../out", _LINK)]),
    "link-to-what-is-left-out": ("leaves the destination", [("top/f", "x", 0), ("top/l", "../out", _LINK)]),
    "link-through-a-link": (
        "leaves the destination",
        [("f", "x", 0), ("x/y/z/a", "../../..", _LINK), ("x/y/z/b", "a/../out", _LINK)],
    ),
    "through-a-link": ("below a link", [("a/l", "../b", _LINK), ("a/l/evil", "x", 0)]),
    "too-long-a-link": ("cannot be unpacked", [("f", "x", 0), ("l", "n/" * 50_000, _LINK)]),
    "file-twice": ("comes twice", [("f", "one", 0), ("./f", "two", 0)]),
    "device": ("no file, link or directory", [("d", "", stat.S_IFCHR | 0o644)]),
    "below-a-file": ("needs a directory", [("f", "x", 0), ("f/g", "x", 0)]),
}

#: What an honest archive may hold; and what stands there afterwards, as ``listing`` tells it.
HONEST: list[Member] = [
    folder("./"),
    folder("./thing"),
    folder("./thing/lib"),
    folder("./thing/lib"),
    member("./thing/lib/code.py", b"code", mtime=1_000_000_000),
    member("./thing/run", b"#!/bin/sh\n", mode=0o6777),
    member("./thing/own", mode=0o600),
    member("./thing/open", mode=0o666, uid=4711, gid=4711, mtime=2**40),
    hard("./thing/again", "./thing/run"),
    link("./thing/forward", "lib/late.py"),
    link("./thing/nowhere", "lib/missing"),
    link("./thing/round", "round"),
    link("./thing/lib/up", "../lib/../run"),
    link("./thing/lib/through", "../forward"),
    hard("./thing/lib/same", "./thing/lib/through"),
    member("./thing/lib/late.py", b"late"),
    member("./thing/./lib/late.py", b"late"),
    sparse("./thing/holes", "5000", b"1\n4990\n10\n", b"0123456789"),
]
LEFT: dict[str, list[object]] = {
    "again": ["file", 0o755, 10],
    "forward": ["link", "lib/late.py"],
    "holes": ["file", 0o644, 5000],
    "lib": ["folder"],
    "lib/code.py": ["file", 0o644, 4, 1_000_000_000],
    "lib/late.py": ["file", 0o644, 4],
    "lib/same": ["link", "../forward"],
    "lib/through": ["link", "../forward"],
    "lib/up": ["link", "../lib/../run"],
    "nowhere": ["link", "lib/missing"],
    "open": ["file", 0o644, 1],
    "own": ["file", 0o600, 1],
    "round": ["link", "round"],
    "run": ["file", 0o755, 10],
}


def listing(root: Path) -> dict[str, list[object]]:
    """What stands below a directory: kind, mode and size of files, text of links; the date of a file that has one."""
    found: dict[str, list[object]] = {}
    for path in root.rglob("*"):
        about = path.lstat()
        name = path.relative_to(root).as_posix()
        if stat.S_ISLNK(about.st_mode):
            found[name] = ["link", str(path.readlink())]
        elif stat.S_ISDIR(about.st_mode):
            found[name] = ["folder"]
        else:
            dated = [int(about.st_mtime)] if name.endswith("code.py") else []
            found[name] = ["file", about.st_mode & 0o7777, about.st_size, *dated]
            assert (about.st_uid, about.st_gid) == (os.geteuid(), os.getegid())
    return dict(sorted(found.items()))


def outcomes(directory: Path) -> dict[str, Any]:
    """Unpack every archive in a directory of its own: what was left, or why it was refused and what stands then."""
    from referee.adapters.sources.unpack import unpack  # noqa: PLC0415 — after the filter has been taken away
    from referee.errors import UsageError  # noqa: PLC0415

    def one(name: str, make: Callable[[Path], Path]) -> object:
        inside = directory / name / "deep" / "er"
        inside.mkdir(parents=True)
        archive = make(inside / "a.archive")
        try:
            unpack(archive, inside / "out")
        except UsageError as exc:
            left = sorted(path.name for path in (directory / name).rglob("*"))
            return {"refused": str(exc), "left": left}
        assert sorted(path.name for path in inside.iterdir()) == ["a.archive", "out"]
        return listing(inside / "out")

    found: dict[str, Any] = {"honest": one("honest", lambda path: make_tar(path, *HONEST))}
    for name, (_, members) in TARS.items():
        found[f"tar {name}"] = one(f"tar-{name}", lambda path, members=members: make_tar(path, *members()))  # type: ignore[misc]
    for name, (_, entries) in ZIPS.items():
        found[f"zip {name}"] = one(f"zip-{name}", lambda path, entries=entries: make_zip(path, *entries))  # type: ignore[misc]
    return found


if __name__ == "__main__":
    if "--no-filter" in sys.argv:
        for lately in ("data_filter", "tar_filter", "fully_trusted_filter", "FilterError"):
            if hasattr(tarfile, lately):
                delattr(tarfile, lately)
    print(json.dumps(outcomes(Path(sys.argv[-1]))))  # noqa: T201 — its answer
