"""What stands in a built site, read from its files alone: documents, and evidence by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from referee.core.report import Report, parse_report
from referee.errors import Finding, ReportRejected

_PIECE = 1 << 20


def report_among(files: dict[str, Path]) -> Report | None:
    """The report of a run; None where there is none, or it was rejected."""
    data = reader_of(files)("report.json")
    try:
        return None if data is None else parse_report(data)
    except ReportRejected:
        return None


def reader_of(files: dict[str, Path]) -> Callable[..., bytes | None]:
    """What reads a file of a run by its name: its bytes; None where there is none, or it has more than ``limit``."""

    def read(name: str, limit: int | None = None) -> bytes | None:
        if name not in files or (limit is not None and files[name].stat().st_size > limit):
            return None
        return files[name].read_bytes()

    return read


def read_document(file: Path) -> dict[str, Any]:
    """A JSON object. Raises ``Finding`` where there is none."""
    try:
        value = json.loads(file.read_bytes() if file.is_file() else b"")  # a pipe would be waited for
    except (OSError, ValueError, RecursionError) as exc:
        raise Finding(f"{file} is missing or no JSON") from exc
    if not isinstance(value, dict):
        raise Finding(f"{file} is no JSON object")
    return value


def sha256_of(file: Path) -> str:
    """The hexadecimal digits of a file's SHA-256."""
    sha = hashlib.sha256()
    for piece in pieces_of(file):
        sha.update(piece)
    return sha.hexdigest()


def pieces_of(file: Path) -> Iterator[bytes]:
    """The bytes of a file, piece by piece."""
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            yield piece
