"""What stands in the place of a bake-off's file and is none: named, never followed and never waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.adapters.store.answers import AnswerReader
from referee.adapters.store.shard_files import scan_shard
from referee.adapters.store.spending import every_bound
from referee.core.bakeoff import AnswerRef
from referee.errors import Finding

HEX = "0" * 64


def _answer(root: Path) -> None:
    with AnswerReader(root) as reader:
        reader.read(AnswerRef(log="answers-x.log", offset=0, length=10, digest=f"sha256:{HEX}"))


READERS: dict[str, Callable[[Path], object]] = {
    "answers-x.log": _answer,
    "results-x.jsonl": lambda root: scan_shard(root / "results-x.jsonl"),
    "spend-x.jsonl": every_bound,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_it_is_named_and_not_read(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    make: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "link": lambda place: place.symlink_to(tmp_path / "elsewhere"),
        "directory": Path.mkdir,
    }
    make[kind](tmp_path / name)
    with pytest.raises(Finding, match="cannot be read"):
        READERS[name](tmp_path)
