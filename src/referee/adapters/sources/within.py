"""A directory that grows by what a stranger's archive names, and never beyond itself.

Each member is checked here, whatever the Python and whatever its library checks (decision 0139): names that leave the
directory, members below a link, names that come twice for two things, links and hard links that lead out. No owner, no
special bit and no device is ever made. Symbolic links are laid last, so that nothing can be written through one.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from referee.core.links import stays
from referee.errors import UsageError

_CHUNK = 1 << 20
#: So much of a name that a stranger chose is told.
_SHOWN = 200


class Within:
    """The directory ``root``, as it is filled from the archive called ``archive``.

    All its methods raise UsageError for a member that is refused, and OSError for one that the disk does not take.
    """

    def __init__(self, root: Path, archive: str) -> None:
        self.root = root
        self._archive = archive
        self._links: dict[str, str] = {}

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse the archive for the member ``name``: a clause on why."""
        raise UsageError(f"the archive {self._archive} has the member {name[:_SHOWN]!r}, which {why}")

    def folder(self, name: str) -> None:
        """Make a directory, or leave it as it is; with what is above it."""
        if inside := self._inside(name):
            self._free(name, inside)
            self._make(name, self.root / inside)

    def file(self, name: str, data: IO[bytes], *, mode: int, modified: float | None = None) -> None:
        """Write a regular file. Of its mode, all may read and run what the owner may; none but the owner writes.

        One that came before may come again as it was: the npm client packs a file twice that is named in two spellings.
        """
        inside = self._inside(name)
        self._free(name, inside)
        if (self.root / inside).is_file():
            self._again(name, self.root / inside, data, mode)
            return
        with self._new(name).open("xb") as file:
            shutil.copyfileobj(data, file, _CHUNK)
            os.fchmod(file.fileno(), mode)
            if modified is not None:
                file.flush()
                with suppress(OSError, OverflowError, ValueError):  # a date that no system can hold
                    os.utime(file.fileno(), (modified, modified))

    def hard_link(self, name: str, to: str) -> None:
        """One more name for a file, or for a link, that came before."""
        earlier = self._inside(to)
        if earlier in self._links:
            self.link(name, self._links[earlier])
            return
        source = self.root / earlier
        try:
            regular = stat.S_ISREG(source.lstat().st_mode)
        except OSError:
            regular = False
        if not regular:
            self.refuse(name, f"is a hard link to {to[:_SHOWN]!r}, which is no file that came before it")
        os.link(source, self._new(name), follow_symlinks=False)

    def link(self, name: str, text: str) -> None:
        """A symbolic link. Where it leads is judged at once, and again when all are known."""
        self._new(name)
        place = self._inside(name)
        self._judge(self._links, place, text)
        self._links[place] = text

    def finish(self) -> Path:
        """Lay the links, and tell where what was archived begins: a single directory at the top is left out."""
        tops = {path.name for path in self.root.iterdir()} | {place.split("/")[0] for place in self._links}
        only = tops.pop() if len(tops) == 1 else ""
        top = self.root / only if only and only not in self._links and (self.root / only).is_dir() else self.root
        above = "" if top == self.root else f"{only}/"
        links = {place.removeprefix(above): text for place, text in self._links.items()}
        for place, text in links.items():
            self._judge(links, place, text)
        for place, text in links.items():
            (top / place).symlink_to(text)
        self._links.clear()
        return top

    def _again(self, name: str, place: Path, data: IO[bytes], mode: int) -> None:
        """Refuse a second file of one name that is another: two readers would see two projects."""
        with place.open("rb") as earlier:
            same = stat.S_IMODE(os.fstat(earlier.fileno()).st_mode) == mode
            while same and (piece := earlier.read(_CHUNK)):
                same = data.read(len(piece)) == piece
        if not same or data.read(1):
            self.refuse(name, "comes twice, and not as the same file")

    def _judge(self, links: Mapping[str, str], place: str, text: str) -> None:
        if not stays(links, place.rpartition("/")[0], text):
            raise UsageError(
                f"the archive {self._archive} has a link to {text[:_SHOWN]!r}, which leaves the destination"
            )

    def _inside(self, name: str) -> str:
        """The member's name as a path below the root; empty for the root itself."""
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or "\0" in name:
            self.refuse(name, "leaves the destination")
        return "/".join(part for part in parts if part not in {"", "."})

    def _new(self, name: str) -> Path:
        """Where a new member goes; what is above it is made."""
        inside = self._inside(name)
        self._free(name, inside)
        place = self.root / inside
        self._make(name, place.parent)
        if not inside or os.path.lexists(place):
            self.refuse(name, "comes twice")
        return place

    def _make(self, name: str, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            self.refuse(name, "needs a directory where a file is")

    def _free(self, name: str, inside: str) -> None:
        """Refuse what stands at or below a link: links are laid last, and it would be written elsewhere, or twice."""
        if inside in self._links:
            self.refuse(name, "comes twice")
        above = inside.rpartition("/")[0]
        while above and self._links:
            if above in self._links:
                self.refuse(name, "stands below a link")
            above = above.rpartition("/")[0]
