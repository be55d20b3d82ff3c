r"""Neutral branding: what names an agent's maker, provider or model is masked in the served copy of a recording.

Methodology §11. Three rules, all on whole lines of what was printed, none on what an agent did:

- a *banner*: a line of the session's beginning that matches one of the harness's patterns, and is an event of the
  program or stands before its first one;
- a *name*: the agent's own name, its model's, its program's or maker's, as a word of a line before the first event of
  the program: a warning, or what it prints when it breaks;
- a *field*: the value of a field that names model or provider, in an event of the program, wherever it stands;
- a *token*: the model's name where it is a whole string of such an event (a key of its totals, for one).

Masking keeps the length: every byte that is drawn becomes ``*``. So the times of the recording still fit, and cast and
transcript are derived from the masked bytes by the same rules as from the raw ones. The raw recording stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from referee.core.facts import Fact

#: A session's beginning: so many lines, and nothing behind so many bytes.
BEGINNING_LINES = 60
BEGINNING_BYTES = 65_536
#: Lines are looked at in pieces of at most this many bytes, so that memory stays flat.
MAX_LINE = 8_000_000
#: A shorter name is no word that tells an agent from ordinary text.
SHORTEST_NAME = 4

RuleKind = Literal["banner", "name", "field", "token"]

_SEQUENCES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_EVENT = re.compile(rb"^\s*\{")


class Mask(Fact):
    """One place that was masked: which kind of rule, its number (from 1), offset and length in ``session.raw``."""

    rule: RuleKind
    number: int
    at: int
    bytes: int


@dataclass(frozen=True)
class Rules:
    """What is masked for one agent.

    Args:
        banner: patterns of lines, from its harness.
        fields: names of fields in its program's events whose value names model or provider.
        names: words that name the agent, its model, its program or maker.
        tokens: whole strings in its program's events that name the model.
    """

    banner: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass
class Masker:
    """Masks one recording: iterate ``masked`` once; then ``masks`` is the log."""

    rules: Rules
    masks: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._banner = [re.compile(pattern.encode()) for pattern in self.rules.banner]
        self._fields = [
            re.compile(rb'(?<!\\)"' + re.escape(name).encode() + rb'"\s*:\s*"((?:[^"\\\r\n]|\\.)*)"')
            for name in self.rules.fields
        ]
        self._names = [
            re.compile(rb"(?<![A-Za-z0-9])" + re.escape(name).encode() + rb"(?![A-Za-z0-9])", re.IGNORECASE)
            for name in self.rules.names
            if len(name) >= SHORTEST_NAME
        ]
        self._tokens = [re.compile(rb'(?<!\\)"(' + re.escape(name).encode() + rb')"') for name in self.rules.tokens]
        self._line = 0
        self._begun = False

    def masked(self, raw: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes of the served copy, as many as of the raw recording."""
        at = 0
        for line in _whole_lines(raw):
            yield self._masked_line(line, at)
            at += len(line)
            self._line += line.endswith(b"\n")

    def _masked_line(self, line: bytes, at: int) -> bytes:
        spans: list[tuple[int, int, RuleKind, int]] = []
        if _EVENT.match(line):
            spans += [(start, end, "field", number) for start, end, number in _matches(self._fields, line, 1)]
            spans += [(start, end, "token", number) for start, end, number in _matches(self._tokens, line, 1)]
        if self._line < BEGINNING_LINES and at < BEGINNING_BYTES:
            spans += self._in_beginning(line)
        out = bytearray(line)
        for start, end, rule, number in sorted(spans):
            if end > start and out[start:end] != _stars(line, start, end):
                out[start:end] = _stars(line, start, end)
                self.masks.append(Mask(rule=rule, number=number, at=at + start, bytes=end - start))
        return bytes(out)

    def _in_beginning(self, line: bytes) -> list[tuple[int, int, RuleKind, int]]:
        plain = _SEQUENCES.sub(b"", line).rstrip(b"\r\n")
        end = len(line.rstrip(b"\r\n"))
        event = _EVENT.match(plain) is not None
        self._begun = self._begun or event
        if self._begun and not event:
            return []  # what commands printed
        for number, pattern in enumerate(self._banner, start=1):
            if pattern.search(plain):
                return [(0, end, "banner", number)]
        if event:
            return []
        return [(start, stop, "name", number) for start, stop, number in _matches(self._names, line, 0)]


def _matches(patterns: list[re.Pattern[bytes]], line: bytes, group: int) -> Iterator[tuple[int, int, int]]:
    for number, pattern in enumerate(patterns, start=1):
        for match in pattern.finditer(line):
            yield match.start(group), match.end(group), number


def _stars(line: bytes, start: int, end: int) -> bytes:
    """The same length: what is drawn as ``*``, control sequences, blanks and control characters as they are."""
    out = bytearray()
    at = start
    for sequence in _SEQUENCES.finditer(line, start, end):
        out += _drawn(line[at : sequence.start()]) + sequence[0]
        at = sequence.end()
    return bytes(out + _drawn(line[at:end]))


def _drawn(data: bytes) -> bytes:
    return bytes(byte if byte <= 0x20 or byte == 0x7F else 0x2A for byte in data)  # noqa: PLR2004 — blank, DEL, star


def _whole_lines(raw: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; one longer than ``MAX_LINE`` in pieces."""
    held = b""
    for chunk in raw:
        rows = (held + chunk).split(b"\n")
        held = rows.pop()
        yield from (row + b"\n" for row in rows)
        while len(held) > MAX_LINE:
            yield held[:MAX_LINE]
            held = held[MAX_LINE:]
    if held:
        yield held
