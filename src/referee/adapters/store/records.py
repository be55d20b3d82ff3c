"""Record files: one a writer, append-only, chained, durable before an append is announced.

A writer creates ``attempts-<token>.jsonl`` (``bakeoff-<token>.jsonl`` for protocols and decisions) exclusively at its
first append and holds a lock (``flock``) on it as long as its process lives; nobody ever opens it again for writing.
So whoever gets the lock knows that its writer is dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from referee.adapters.store.exclusive import create_exclusively
from referee.adapters.store.locks import open_lock
from referee.core.canonical import canonical_bytes
from referee.core.chain import Link, forge, genesis, read_chain
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, BakeoffRecord, Record
from referee.errors import CouldNotVerify, Finding, InternalError
from referee.regular_files import open_regular

Kind = TypeVar("Kind")

#: Files that others read: rows of a bake-off (``adapters.store.shards``) and what was spent (``.spending``).
OTHERS = ("results-", "spend-")

_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
_BAKEOFF: TypeAdapter[BakeoffRecord] = TypeAdapter(Annotated[BakeoffRecord, Field(discriminator="kind")])


@dataclass(frozen=True)
class RecordFile:
    """One record file as it was found: its whole lines, what follows them, and whether its writer lives."""

    name: str
    links: tuple[Link, ...]
    tail: bytes
    writer_alive: bool


@dataclass(frozen=True)
class Torn:
    """The torn last line of a dead writer: kept where it stands, counted, never a record."""

    file: str
    after_line: int
    bytes: int

    @property
    def sentence(self) -> str:
        """What to tell the reader."""
        return f"{self.file}: {self.bytes} bytes after line {self.after_line} are a torn line and no record"


class RecordFiles:
    """The record files of one workspace, and this process's own one. Safe for several threads and processes."""

    def __init__(self, root: Path, *, kind: Literal["attempts", "bakeoff"] = "attempts") -> None:
        self.root = root
        self._kind = kind
        self._mutex = threading.Lock()
        self._descriptor: int | None = None
        self._name = ""
        self._seq = 0
        self._prev = ""
        self._poisoned = ""

    def append(self, record: Record | BakeoffRecord) -> str:
        """Append durably to this process's own file; return the record's digest.

        Raises:
            CouldNotVerify: the line could not be written and synced. From then on this writer refuses: what it
                left may be a torn line, and nothing may follow one.
            UsageError: the record has no canonical form (a NaN); nothing was written.
            InternalError: the record is of the other kind; nothing was written.
        """
        if isinstance(record, Record) != (self._kind == "attempts"):
            raise InternalError(f"a record of the kind {record.kind} does not belong into a file of {self._kind}")
        body = record.model_dump(mode="json")
        canonical_bytes(body)
        with self._mutex:
            if self._poisoned:
                raise CouldNotVerify(
                    f"{self._name or 'the record file'} takes no more records: {self._poisoned}",
                    todo="start again: what was written before is kept",
                )
            try:
                descriptor = self._open() if self._descriptor is None else self._descriptor
                line, digest = forge(body, seq=self._seq, prev=self._prev)
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
                self._seq, self._prev = self._seq + 1, digest
            except OSError as exc:
                self._poisoned = f"an earlier line could not be written ({exc.strerror})"
                raise CouldNotVerify(
                    f"a record could not be written: {exc.strerror}",
                    todo="see that the disk of the workspace has room and can be written, then start again",
                ) from exc
            except BaseException:  # a signal's, at any point: how much of the line stands there is not known
                self._poisoned = "an earlier line was interrupted while it was written"
                raise
            return digest

    def _open(self) -> int:
        descriptor, self._name = create_exclusively(self.root, self._kind, ".jsonl")
        self._descriptor = descriptor
        self._prev = genesis(self._name)
        return descriptor

    def close(self) -> None:
        """Let go of the own file: the writer counts as gone, and appends no more."""
        with self._mutex:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
                self._poisoned = "the writer was closed"

    def files(self) -> list[RecordFile]:
        """Every record file, in order of name, with its chain checked.

        Raises:
            Finding: the first line of the first file that does not hold.
        """
        if not self.root.is_dir():
            return []
        return [_read_file(path) for path in sorted(self.root.glob("*.jsonl")) if not path.name.startswith(OTHERS)]

    def read(self) -> list[Record]:
        """All whole records of attempts, of all files, in order of file name and line.

        Raises:
            Finding: a line does not continue its chain, or is no record.
        """
        return [record for file in self.files() for record in parse_file(file)]

    def read_bakeoff(self) -> list[BakeoffRecord]:
        """All whole records of protocols, decisions, reviews and markets, in order of file name and line.

        Raises:
            Finding: a line does not continue its chain, or is no record.
        """
        return [record for file in self.files() for record in parse_bakeoff_file(file)]

    def torn(self) -> list[Torn]:
        """The torn last lines of dead writers. A living writer's unfinished line is not torn."""
        return [
            Torn(file.name, len(file.links), len(file.tail))
            for file in self.files()
            if file.tail and not file.writer_alive
        ]

    def open_attempts(self) -> list[AttemptPlanned]:
        """Planned runs that neither ended nor were found, and whose writer is dead: they need finding."""
        return [record for record, alive in self._without_end() if not alive]

    def attempts_under_way(self) -> list[AttemptPlanned]:
        """Planned runs that neither ended nor were found, and whose writer lives."""
        return [record for record, alive in self._without_end() if alive]

    def _without_end(self) -> list[tuple[AttemptPlanned, bool]]:
        closed: set[str] = set()
        planned: list[tuple[AttemptPlanned, bool]] = []
        for file in self.files():
            for record in parse_file(file):
                if isinstance(record, AttemptPlanned):
                    planned.append((record, file.writer_alive))
                elif isinstance(record, AttemptEnded | AttemptFound):
                    closed.add(record.run)
        return [(record, alive) for record, alive in planned if record.run not in closed]

    @contextlib.contextmanager
    def recovering(self) -> Iterator[None]:
        """Hold this while finding dead attempts, so that two starts at once do not find the same one twice."""
        with self._holding(".recovery-lock"):
            yield

    @contextlib.contextmanager
    def numbering(self) -> Iterator[None]:
        """Hold this from reading the last number or freeze to appending the next: two processes never take the same."""
        with self._holding(".numbering-lock"):
            yield

    @contextlib.contextmanager
    def _holding(self, name: str) -> Iterator[None]:
        descriptor = open_lock(self.root, name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def parse_file(file: RecordFile) -> list[Record]:
    """The records of attempts in one file; a file of another kind has none.

    Raises:
        Finding: a line holds no record of a known kind and shape.
    """
    return [] if file.name.startswith("bakeoff-") else _parse(file, _RECORD)


def parse_bakeoff_file(file: RecordFile) -> list[BakeoffRecord]:
    """The records of bake-offs in one file; a file of another kind has none.

    Raises:
        Finding: a line holds no record of a known kind and shape.
    """
    return _parse(file, _BAKEOFF) if file.name.startswith("bakeoff-") else []


def _parse(file: RecordFile, kinds: TypeAdapter[Kind]) -> list[Kind]:
    records: list[Kind] = []
    for link in file.links:
        try:
            records.append(kinds.validate_json(canonical_bytes(link.body), strict=True))
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise Finding(f"{file.name}, line {link.seq + 1}: is no record: {place}: {first['msg']}") from exc
    return records


def _read_file(path: Path) -> RecordFile:
    try:
        descriptor = open_regular(path)
    except OSError as exc:
        raise Finding(f"the record file {path.name} cannot be read: {exc.strerror}") from exc
    with os.fdopen(descriptor, "rb") as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            alive = False
        except OSError:
            alive = True
        # Read after the question: a dead writer's file can no longer grow.
        data = file.read()
    links, tail = read_chain(data, file_name=path.name)
    return RecordFile(name=path.name, links=tuple(links), tail=tail, writer_alive=alive)
