"""Placing a subject: the tar stream that is unpacked at ``/work`` of a fresh machine."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from referee.protocols import Placement
from referee.runner.plan import Plan

#: A larger tree goes through a file instead of memory, bytes.
_IN_MEMORY = 32 * 1024**2


def told(plan: Plan, deadline: float) -> dict[str, object]:
    """The mission as the agent is told it: with the moment, Unix seconds, at which its time ends."""
    return {**plan.mission, "deadline": round(deadline, 3)}


@contextmanager
def work_tar(plan: Plan, *, deadline: float, keep: Path) -> Iterator[BinaryIO]:
    """The tar of the placement and the mission.

    Args:
        plan: names placement and mission.
        deadline: Unix seconds at which the agent's time ends; told to the agent.
        keep: where the mission's bytes are kept as evidence.
    """
    data = json.dumps(told(plan, deadline), ensure_ascii=False, indent=2, sort_keys=True).encode()
    keep.write_bytes(data)
    with placement_tar(plan.placement, data) as tar:
        yield tar


@contextmanager
def placement_tar(placement: Placement, mission: bytes) -> Iterator[BinaryIO]:
    """The tar of a placement and the bytes of a mission."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        stream = cast("IO[bytes]", file)
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for folder in ("project", "subject"):
                if (placement.root / folder).is_dir():
                    tar.add(placement.root / folder, arcname=folder, filter=_as_root)
                else:
                    tar.addfile(_as_root(_folder(folder)))
            entry = tarfile.TarInfo("mission.json")
            entry.size = len(mission)
            tar.addfile(_as_root(entry), io.BytesIO(mission))
        file.seek(0)
        yield cast("BinaryIO", file)


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    entry.mode = 0o755
    return entry


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root and writable by its owner, whatever the cache's permissions are."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o600 if entry.isfile() else 0o700
    return entry
