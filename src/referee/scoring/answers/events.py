"""Streams cut into their events: server-sent events, and one JSON document a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from referee.scoring.answers.documents import load_body, load_body_or_none

DONE = "[DONE]"


def server_sent(text: str) -> Iterator[tuple[str, str]]:
    """Name (empty where none is given) and data of each event that is closed by an empty line.

    What follows the last empty line counts when it is whole all the same: some servers leave the last one out.
    """
    name = ""
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
        elif line.startswith("data:"):
            data.append(line[6:] if line.startswith("data: ") else line[5:])
        elif line.startswith("event:"):
            name = line[6:].strip()
    if data and (data[0].strip() == DONE or load_body_or_none("\n".join(data)) is not None):
        yield name, "\n".join(data)


def lines_of_json(text: str) -> Iterator[Any]:
    """The document of each line that is not empty.

    Raises:
        ValueError: a line is no JSON.
        UnusableError: a line is nested too deeply.
    """
    for line in text.split("\n"):
        if line and not line.isspace():
            yield load_body(line)
