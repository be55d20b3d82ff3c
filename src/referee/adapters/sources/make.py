"""Which source fetches which kind of subject."""

from __future__ import annotations

from pathlib import Path

from referee.adapters.sources.package import PackageSource
from referee.adapters.sources.repository import RepositorySource
from referee.protocols import Source


def make_source(kind: str, cache: Path) -> Source:
    """The way to fetch subjects of ``kind`` (``package`` or ``repository``), through what ``cache`` already holds."""
    return PackageSource(cache) if kind == "package" else RepositorySource(cache)
