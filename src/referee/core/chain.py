"""The chain of a record file: each line carries the digest of the one before.

A line is the canonical JSON of ``{"body": …, "prev": …, "seq": n}``. The first line's ``prev`` is the digest
of the file's name, so that a line cannot be moved to another file; every later one's is the digest
of the line before it. ``seq`` counts from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from referee.core.canonical import canonical_bytes, digest_of, digest_of_canonical, strict_loads
from referee.errors import Finding, UsageError


@dataclass(frozen=True)
class Link:
    """One line: its number from 0, the digest of the line before, its body, and its own digest."""

    seq: int
    prev: str
    body: dict[str, Any]
    digest: str


def genesis(file_name: str) -> str:
    """What the first line of the file ``file_name`` carries as ``prev``."""
    return digest_of("genesis", file_name)


def forge(body: dict[str, Any], *, seq: int, prev: str) -> tuple[bytes, str]:
    """The bytes of a line (with its newline) and its digest."""
    data = canonical_bytes({"body": body, "prev": prev, "seq": seq})
    return data + b"\n", digest_of_canonical("record", data)


def read_chain(data: bytes, *, file_name: str) -> tuple[list[Link], bytes]:
    """Read a record file's bytes; return its links and the torn tail (empty when the last line is whole).

    Only a last line without its newline is torn: a crash can leave nothing else.

    Raises:
        Finding: the first line that does not hold, by number, and why.
    """
    *lines, tail = data.split(b"\n")
    links: list[Link] = []
    prev = genesis(file_name)
    for number, raw in enumerate(lines):
        where = f"{file_name}, line {number + 1}"
        try:
            line = strict_loads(raw)
            form = canonical_bytes(line)
        except UsageError as exc:
            raise Finding(f"{where}: {exc.message}") from exc
        if not isinstance(line, dict) or set(line) != {"body", "prev", "seq"} or not isinstance(line["body"], dict):
            raise Finding(f"{where}: is no record line of body, prev and seq")
        if form != raw:
            raise Finding(f"{where}: is not in canonical form")
        if type(line["seq"]) is not int or line["seq"] != number:
            raise Finding(f"{where}: says it is number {line['seq']}, it stands at {number}")
        if line["prev"] != prev:
            raise Finding(f"{where}: does not continue the line before it")
        prev = digest_of_canonical("record", raw)
        links.append(Link(seq=number, prev=line["prev"], body=line["body"], digest=prev))
    return links, tail
