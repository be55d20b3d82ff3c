"""The task as a program reads it: one function for all of them, so that no agent is told more than another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

#: What the mission says of a subject, in the order in which it is told; absent and empty facts are left out.
_FACTS = (
    ("name", "name"),
    ("kind", "kind"),
    ("url", "source"),
    ("commit", "commit"),
    ("ecosystem", "ecosystem"),
    ("package", "package"),
    ("version", "version"),
    ("artifact", "artifact"),
    ("readme", "README"),
    ("licence", "licence"),
    ("languages", "languages"),
    ("submodules", "submodules (not in the tree)"),
    ("lfs_pointers", "LFS pointers (their files are not in the tree)"),
)


def task_text(mission: Mapping[str, object]) -> str:
    """The mission of ``/work/mission.json`` as text.

    Args:
        mission: as it is placed in the machine; ``deadline`` (Unix seconds) may be missing.
    """
    subject = cast("Mapping[str, object]", mission["subject"])
    lines = [str(mission["instructions"]).rstrip(), "", "The project:"]
    for key, label in _FACTS:
        value = subject.get(key)
        if isinstance(value, list | tuple):
            value = ", ".join(str(item) for item in value)
        if value not in {None, "", False}:
            lines.append(f"  {label}: {value}")
    if subject.get("display"):
        lines.append(
            "  It is a desktop application: start it on a virtual display of this machine (Xvfb is installed)."
        )
    lines += ["", f"It is in {mission['project']}; leave your report in {mission['report']}.", ""]
    lines.append(_time_limit(cast("int", mission["seconds"]), cast("float | None", mission.get("deadline"))))
    return "\n".join(lines) + "\n"


def _time_limit(seconds: int, deadline: float | None) -> str:
    told = f"{seconds // 60} minutes" if seconds % 60 == 0 and seconds >= 120 else f"{seconds} seconds"  # noqa: PLR2004
    text = f"You have {told} in all"
    if deadline is not None:
        text += f", until {datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M:%S} UTC by the machine's clock"
    return (
        text
        + ": then every process is ended, and a run that was cut off there scores nothing. `date -u` tells the time."
    )
