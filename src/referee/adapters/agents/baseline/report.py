"""The draft of the report. Only what was observed goes in; it can be written at any moment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

#: Longest ``returned`` in bytes, and longest sentence in characters.
RETURNED_BYTES = 4000
SENTENCE = 400


def plural(count: int, one: str) -> str:
    """A count with its noun."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


@dataclass
class Trouble:
    """One error that was met: ``key`` tells whether it came back."""

    key: str
    what: str
    fixed: bool = False
    how: str = ""


@dataclass
class Draft:
    """The claims so far. Each starts at the value that claims nothing."""

    installed: bool = False
    started: bool = False
    errors: list[Trouble] = field(default_factory=list)
    depth: str = "tier3_none"
    command: str = ""
    returned: str = ""
    closing: str = ""
    notes: list[str] = field(default_factory=list)

    def met(self, key: str, what: str, how: str = "") -> Trouble:
        """Write an error down once; the same key again is the same error."""
        for trouble in self.errors:
            if trouble.key == key:
                trouble.how = how or trouble.how
                return trouble
        trouble = Trouble(key, " ".join(what.split())[:SENTENCE], how=how)
        self.errors.append(trouble)
        return trouble

    def note(self, sentence: str) -> None:
        """Keep an observed fact for the closing sentence."""
        sentence = " ".join(sentence.split())
        if sentence not in self.notes:
            self.notes.append(sentence)

    def as_dict(self) -> dict[str, object]:
        """The report in the harness's schema."""
        verified: object = "not verified"
        if self.command:
            verified = {"command": self.command, "returned": self.returned}
        return {
            "installed": self.installed,
            "started": self.started,
            "errors": [{"what": e.what, "fixed": e.fixed, "how": e.how} for e in self.errors],
            "test_depth": self.depth if self.command and self.started and self.installed else "tier3_none",
            "verified_how": verified,
            "final_state": self.closing or self._closing(),
        }

    def _closing(self) -> str:
        said = "; ".join(self.notes) or "nothing was observed to run"
        proved = self.depth != "tier3_none" and self.command
        return (said if proved else f"could not verify: {said}")[:1500] + "."

    def write(self, path: Path) -> None:
        """Write the report atomically."""
        text = json.dumps(self.as_dict(), ensure_ascii=True, indent=1)
        temporary = path.with_name(path.name + ".part")
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
