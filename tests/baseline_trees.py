"""Small projects on disk, and a baseline's workshop over one."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from referee.adapters.agents.baseline.mission import read_mission
from referee.adapters.agents.baseline.report import Draft
from referee.adapters.agents.baseline.workshop import Workshop

FIXTURES = Path(str(resources.files("referee"))) / "bundled" / "fixtures"


def workshop(project: Path, home: Path) -> Workshop:
    value = {"subject": {"name": project.name, "kind": "repository"}, "project": str(project), "seconds": 60}
    file = home / "mission.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    return Workshop(read_mission(file), Draft())


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
