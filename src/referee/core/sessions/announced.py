r"""What an agent announces itself: a control string before and after each step, which terminals do not show.

``ESC ] 7713 ; referee.step ; BASE64 BEL``, the base64 of one JSON object on one line, zlib-compressed or not:

- ``{"n": 1, "key": K, "command": "make", "cwd": "/work/project", "seconds": 600}`` before a command runs, with
  ``"environment"`` where it differs from the step before;
- ``{"n": 1, "key": K, "ended": true, "status": 0, "took": 1.5}`` when it has ended; ``status`` null: it was stopped;
- ``{"n": 2, "key": K, "write": "/path", "text": "…"}`` for a file that the agent wrote itself;
- ``{"n": 3, "key": K, "remove": "/path"}`` for one that it removed.

``n`` counts from 1. ``key`` is chosen by the agent: steps with another key than the first are another program's and
count for nothing, so a project that prints such a string is not taken for its agent. A number that is missing is said.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable
from typing import Any

from referee.core.sessions.lines import number_of, text, whole
from referee.core.sessions.steps import Step, Told, unique

START = b"\x1b]7713;referee.step;"
#: Bytes of one announcement, plain.
MAX_STEP = 16_000_000
_STEP = re.compile(rb"\x1b\]7713;referee\.step;([A-Za-z0-9+/=]{4,1100000})\x07")


def read_announced(raw: Iterable[bytes]) -> Told:
    """The steps that the agent announced."""
    found = _Found()
    for said in _announcements(raw):
        found.take(said)
    return found.told()


class _Found:
    def __init__(self) -> None:
        self.key: str | None = None
        self.steps: dict[int, Step] = {}
        self.last = 0
        self.foreign = 0
        self.environment: dict[str, str] | None = None

    def take(self, said: dict[str, Any]) -> None:
        number, key = whole(said.get("n")), text(said.get("key"))
        if number is None or key is None:
            return
        if self.key is None:
            self.key = key
        if key != self.key:
            self.foreign += 1
            return
        self.last = max(self.last, number)
        if said.get("ended") is True:
            self._end(number, said)
        elif number not in self.steps:
            self._begin(number, said)

    def _begin(self, number: int, said: dict[str, Any]) -> None:
        if isinstance(said.get("environment"), dict):
            self.environment = {str(name): str(value) for name, value in said["environment"].items()} or None
        cwd = text(said.get("cwd"))
        if command := text(said.get("command")):
            self.steps[number] = Step(
                kind="command",
                text=command,
                cwd=cwd,
                environment=self.environment,
                seconds=number_of(said.get("seconds")),
            )
        elif path := text(said.get("write")):
            content = said.get("text")
            self.steps[number] = Step(
                kind="write", path=path, cwd=cwd, text=content if isinstance(content, str) else ""
            )
        elif path := text(said.get("remove")):
            self.steps[number] = Step(kind="remove", path=path, cwd=cwd)

    def _end(self, number: int, said: dict[str, Any]) -> None:
        step = self.steps.get(number)
        if step is None:
            return
        status, took = whole(said.get("status")), number_of(said.get("took"))
        changes: dict[str, Any] = {"status": status, "stopped": status is None}
        if status is None and took is not None:
            changes["seconds"] = took
        self.steps[number] = step.model_copy(update=changes)

    def told(self) -> Told:
        if self.key is None:
            return Told(why_not="the agent does not tell its commands")
        untold = []
        lost = self.last - sum(1 for number in self.steps if number > 0)
        if lost > 0:
            untold.append(f"the recording lacks {lost} of the {self.last} steps that the agent announced")
        return Told(steps=tuple(self.steps[number] for number in sorted(self.steps)), untold=unique(untold))


def _announcements(raw: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    held = b""
    for chunk in raw:
        held += chunk
        end = 0
        for match in _STEP.finditer(held):
            end = match.end()
            said = _decoded(match[1])
            if said is not None:
                yield said
        start = held.find(START, end)
        held = held[start:] if start >= 0 and len(held) - start < MAX_STEP else held[end:][-len(START) :]


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        plain = base64.b64decode(data, validate=True)
        if plain[:1] != b"{":
            plain = zlib.decompressobj().decompress(plain, MAX_STEP)
        value = json.loads(plain)
    except (binascii.Error, ValueError, zlib.error, RecursionError):
        return None
    return value if isinstance(value, dict) else None
