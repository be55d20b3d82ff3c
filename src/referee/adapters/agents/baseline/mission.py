"""What the mission says, and how much time is left."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Seconds kept back at the end to write the report (the harness kills at the deadline).
RESERVE_SECONDS = 30


@dataclass(frozen=True)
class Mission:
    """The subject and the limits, as ``mission.json`` states them."""

    kind: str
    name: str
    ecosystem: str | None
    package: str | None
    version: str | None
    artifact: Path | None
    readme: Path | None
    display: bool
    project: Path
    report: Path
    seconds: float
    deadline: float
    facts: dict[str, Any] = field(default_factory=dict)

    def left(self) -> float:
        """Seconds of work left before the report must be written; never negative."""
        return max(0.0, self.deadline - RESERVE_SECONDS - time.time())

    def slice(self, share: float, *, least: float = 30.0, most: float = 3600.0) -> float:
        """A command's time limit: ``share`` of the whole budget, within bounds and within what is left."""
        return max(1.0, min(self.left(), max(least, min(most, self.seconds * share))))


def read_mission(path: Path) -> Mission:
    """Read the mission; what is missing gets the value that promises least."""
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    subject: dict[str, Any] = raw.get("subject") or {}
    seconds = float(raw.get("seconds") or 5400)
    project = Path(raw.get("project") or "/work/project")
    return Mission(
        kind=str(subject.get("kind") or "repository"),
        name=str(subject.get("name") or "subject"),
        ecosystem=subject.get("ecosystem"),
        package=subject.get("package"),
        version=subject.get("version"),
        artifact=_file(subject.get("artifact")),
        readme=_file(subject.get("readme")) or _readme_in(project) or _readme_in(Path("/work/subject")),
        display=bool(subject.get("display")),
        project=project,
        report=Path(raw.get("report") or "/work/report.json"),
        seconds=seconds,
        deadline=float(raw.get("deadline") or time.time() + seconds),
        facts=subject,
    )


def _file(value: object) -> Path | None:
    return Path(value) if isinstance(value, str) and Path(value).is_file() else None


def _readme_in(directory: Path) -> Path | None:
    if not directory.is_dir():
        return None
    order = {".md": 0, ".markdown": 1, ".rst": 2, ".txt": 3, "": 4}
    found = [
        entry
        for entry in sorted(path.name for path in directory.iterdir())
        if Path(entry).stem.lower() == "readme" and Path(entry).suffix.lower() in order
    ]
    found.sort(key=lambda entry: order[Path(entry).suffix.lower()])
    return directory / found[0] if found else None
