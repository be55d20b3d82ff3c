"""The evidence log of one runner: what every model said, raw and redacted, found by offset, length and digest.

One file a runner, not one an answer: ``answers/answers-<token>.log``, created exclusively and only ever appended to.
An entry begins with one line of JSON that says which attempt it belongs to, so that a row cannot point at another's
answer, and how long the rest is. Then come the tries of the attempt in order, the graded one last; each try is one line
of JSON (what is known of it beside its body, and the body's length), the body's bytes, and a newline.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from referee.adapters.store.exclusive import create_exclusively, write_whole, writer_lives
from referee.core.bakeoff import AnswerRef
from referee.core.canonical import digest_of_bytes
from referee.errors import Finding
from referee.regular_files import open_regular

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LONGEST_HEAD = 1 << 16
_NAME = re.compile(r"answers-[A-Za-z0-9-]{1,80}\.log")


def is_log(name: str) -> bool:
    """Whether that is a name of an evidence log."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Asked:
    """The attempt that an entry belongs to, and what it cost (US dollars; None where the lane is not metered)."""

    run: str
    target: str
    case_id: str
    k_idx: int
    started_at: str
    spent_usd: float | None


@dataclass(frozen=True)
class KeptAnswer:
    """One try as it was kept, with all that reading it needs."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    broke: str | None
    detail: str
    streamed: bool
    latency_ms: float


def frame(asked: Asked, tries: Sequence[KeptAnswer]) -> bytes:
    """The entry of one attempt."""
    parts: list[bytes] = []
    for kept in tries:
        head = {
            "broke": kept.broke,
            "detail": kept.detail,
            "headers": dict(kept.headers),
            "latency_ms": kept.latency_ms,
            "length": len(kept.body),
            "status": kept.status,
            "streamed": kept.streamed,
        }
        parts += [_ENCODER.encode(head).encode(), b"\n", kept.body, b"\n"]
    length = sum(len(part) for part in parts)
    first = _ENCODER.encode({**vars(asked), "length": length})
    return b"".join((first.encode(), b"\n", *parts))


def unframe(entry: bytes) -> tuple[Asked, list[KeptAnswer]]:
    """The attempt that an entry belongs to, and its tries.

    Raises:
        Finding: it has not the form of an entry.
    """
    asked, at, whole = _first(entry)
    if len(entry) != whole:
        raise Finding("an answer is cut off")
    tries: list[KeptAnswer] = []
    try:
        while at < len(entry):
            end = entry.index(b"\n", at)
            head: dict[str, Any] = json.loads(entry[at:end])
            length = head.pop("length")
            body = entry[end + 1 : end + 1 + length]
            at = end + 2 + length
            if len(body) != length or entry[at - 1 : at] != b"\n":
                raise Finding("an answer is cut off")
            tries.append(KeptAnswer(body=body, **head))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Finding(f"an answer has no readable head: {type(exc).__name__}") from exc
    if not tries:
        raise Finding("an entry holds no answer")
    return asked, tries


def _first(data: bytes) -> tuple[Asked, int, int]:
    """Whose entry begins here, where its tries begin, and how long it is as a whole. Raises ``Finding``."""
    try:
        begins = data.index(b"\n") + 1
        head: dict[str, Any] = json.loads(data[:begins])
        length = head.pop("length")
        return Asked(**head), begins, begins + int(length)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Finding(f"an entry does not say whose answer it is: {type(exc).__name__}") from exc


class AnswerLog:
    """This runner's own log. One thread at a time; ``add`` buffers, ``sync`` makes durable."""

    def __init__(self, root: Path) -> None:
        self._descriptor, self.name = create_exclusively(root, "answers", ".log")
        self._waiting: list[bytes] = []
        self._offset = 0

    def add(self, entry: bytes) -> dict[str, Any]:
        """Take an entry; return its ``AnswerRef`` as JSON. It is durable after the next ``sync``."""
        digest = digest_of_bytes(entry)
        ref = {"log": self.name, "offset": self._offset, "length": len(entry), "digest": digest}
        self._waiting.append(entry)
        self._offset += len(entry)
        return ref

    def sync(self) -> None:
        """Write what waits, and sync. Raises ``OSError``."""
        if self._waiting:
            write_whole(self._descriptor, b"".join(self._waiting))
            self._waiting.clear()
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


class AnswerReader:
    """Reads entries of any runner's log below one directory; keeps the last log open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def read(self, ref: AnswerRef) -> bytes:
        """The bytes of an entry.

        Raises:
            Finding: the log is not there, is too short, or the bytes are not those of the digest.
        """
        descriptor = self._descriptor(ref.log)
        entry = os.pread(descriptor, ref.length, ref.offset)
        if digest_of_bytes(entry) != ref.digest:
            raise Finding(f"the answer at byte {ref.offset} of {ref.log} is not the one that its row names")
        return entry

    def logs(self) -> list[str]:
        """The names of all evidence logs, in order."""
        return sorted(path.name for path in self._root.glob("answers-*.log") if _NAME.fullmatch(path.name))

    def growing(self, log: str) -> bool:
        """Whether the log's writer lives. Raises ``Finding``."""
        return writer_lives(self._descriptor(log))

    def unnamed(self, log: str, named: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, Asked | None]]:
        """What of a log no row names: offset, length, and whose answer it is, None where it cannot be told.

        Args:
            log: the log's name.
            named: offset and length of every entry that a row names, in order of offset.

        Raises:
            Finding: two rows name the same bytes, or bytes that the log does not have.
        """
        size = os.fstat(self._descriptor(log)).st_size
        at = 0
        for offset, length in named:
            if offset < at or offset + length > size:
                raise Finding(f"the answer at byte {offset} of {log} is named by more than one row, or ends beyond it")
            yield from self._between(log, at, offset)
            at = offset + length
        yield from self._between(log, at, size)

    def _between(self, log: str, begin: int, end: int) -> Iterator[tuple[int, int, Asked | None]]:
        while begin < end:
            head = os.pread(self._descriptor(log), min(end - begin, _LONGEST_HEAD), begin)
            try:
                asked, _, whole = _first(head)
            except Finding:
                yield begin, end - begin, None
                return
            if whole > end - begin:
                yield begin, end - begin, None
                return
            yield begin, whole, asked
            begin += whole

    def _descriptor(self, name: str) -> int:
        if self._open is not None and self._open[0] == name:
            return self._open[1]
        if not is_log(name):
            raise Finding(f"{name!r} is no name of an evidence log")
        try:
            descriptor = open_regular(self._root / name)
        except OSError as exc:
            raise Finding(f"the evidence log {name} cannot be read: {exc.strerror}") from exc
        if self._open is not None:
            os.close(self._open[1])
        self._open = (name, descriptor)
        return descriptor
