"""Small suites for the tests of cases, and where a real Chinook database may lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from referee.core.cases import Suite
from referee.core.suite_file import parse_suite

CHINOOK_NAME = "Chinook_Sqlite-1.4.5.sqlite"

BOOK_ROOM: dict[str, Any] = {
    "name": "book_room",
    "description": "Book a room.",
    "parameters": {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["blue", "green"]},
            "title": {"type": "string"},
            "date": {"type": "string", "description": "YYYY-MM-DD."},
            "persons": {"type": "integer"},
            "extras": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["room", "date"],
    },
}
FREE_ROOM: dict[str, Any] = {
    "name": "free_room",
    "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
}


def case_body(**over: Any) -> dict[str, Any]:
    """A case that the linter has nothing against, and what is to be different in it."""
    body: dict[str, Any] = {
        "id": "c1",
        "category": "simple-call",
        "language": "en",
        "messages": [{"role": "user", "content": "Book the blue room on 24 July 2026 for 12 persons."}],
        "toolset": "rooms",
        "expected_call": {
            "name": "book_room",
            "arguments": {"room": {"eq": "blue"}, "date": {"eq": "2026-07-24"}, "persons": 12},
        },
    }
    return {key: value for key, value in (body | over).items() if value is not ...}


def suite_body(*cases: dict[str, Any], **over: Any) -> dict[str, Any]:
    """A suite of one arm with these cases."""
    body: dict[str, Any] = {
        "schema": "referee.cases/1",
        "name": "little",
        "version": "1",
        "grading": 2,
        "about": "for tests",
        "provenance": {},
        "prompts": {},
        "toolsets": {"rooms": [BOOK_ROOM, FREE_ROOM]},
        "arms": [{"name": "suite", "headline": True, "ranked": True, "about": "all"}],
        "cases": list(cases or [case_body()]),
    }
    return body | over


def suite_of(*cases: dict[str, Any], **over: Any) -> Suite:
    """The same, read as a file is read."""
    return parse_suite(json.dumps(suite_body(*cases, **over)).encode(), "the test's suite")


def chinook() -> Path:
    """The real database (never committed): named by REFEREE_CHINOOK, or in a data directory beside the checkout."""
    named = os.environ.get("REFEREE_CHINOOK")
    beside = Path(__file__).resolve().parents[3]
    found = [Path(named)] if named else sorted(beside.glob(f"*/data/{CHINOOK_NAME}"))
    if not found:
        pytest.skip(f"no {CHINOOK_NAME}: name it with REFEREE_CHINOOK")
    return found[0]
