"""Tells the recording exactly what is done, in control strings that no terminal shows.

A replay needs each command with its place and its environment, and each file that was written; a terminal shows neither
whole. Steps are numbered, so that one that is missing is missed, and carry a key that commands do not know.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_KEY = secrets.token_hex(8)
#: A terminal takes a control string of about a million characters for text again.
_MOST = 700_000


class _Steps:
    number = 0
    environment: dict[str, str] | None = None


def _say(value: Mapping[str, Any]) -> None:
    if not sys.stdout.isatty():
        return
    plain = json.dumps({"key": _KEY, **value}).encode()
    data = base64.b64encode(zlib.compress(plain, 6))
    if len(data) <= _MOST:
        sys.stdout.buffer.write(b"\x1b]7713;referee.step;" + data + b"\x07")
        sys.stdout.flush()


def begins(command: str, *, cwd: Path, env: Mapping[str, str], seconds: float) -> int:
    """A command is about to run; its number."""
    _Steps.number += 1
    value: dict[str, Any] = {"n": _Steps.number, "command": command, "cwd": str(cwd), "seconds": round(seconds, 1)}
    own = {name: text for name, text in sorted(env.items()) if os.environ.get(name) != text}
    if own != _Steps.environment:
        value["environment"] = _Steps.environment = own
    sys.stdout.flush()
    _say(value)
    return _Steps.number


def ended(number: int, *, status: int | None, took: float) -> None:
    """A command has ended; ``status`` None: it was stopped."""
    _say({"n": number, "ended": True, "status": status, "took": round(took, 3)})


def write(path: Path, text: str) -> None:
    """Write a file of our own."""
    path.write_text(text, encoding="utf-8")
    _Steps.number += 1
    _say({"n": _Steps.number, "write": str(path), "text": text})


def remove(path: Path) -> None:
    """Remove a file of our own."""
    if path.exists():
        path.unlink()
        _Steps.number += 1
        _say({"n": _Steps.number, "remove": str(path)})
