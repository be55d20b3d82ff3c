"""Bodies of calls, kept only where a workspace asks for it (``keys.bodies``), redacted before they are written."""

from __future__ import annotations

import json
import os
from pathlib import Path

from referee.adapters.keys.gateway.account import Account

#: Of an answer so many bytes are kept.
MOST_KEPT = 4 * 2**20


class BodyLog:
    """One file a run, mode 0600: a line for each call with what was sent and what came back."""

    most = MOST_KEPT

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, account: Account, at: str, request: bytes, answer: bytes) -> None:
        """Append one call.

        Raises:
            OSError: it could not be written.
        """
        redactor = account.redactor
        line = {
            "at": at,
            "request": redactor.redact(request).decode("utf-8", "replace"),
            "answer": redactor.redact_stream(answer).decode("utf-8", "replace"),
        }
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self._directory / f"{account.run}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
