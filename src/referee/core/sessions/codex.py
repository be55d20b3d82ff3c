"""Codex CLI, ``codex exec --json``: one event a line, an item for each command.

Where a command ran is not told, and of a change only which files it made: so a replay that succeeds shows more than
one that fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from referee.core.sessions.lines import Events, table, text, whole
from referee.core.sessions.steps import Step, Told, unique

PLACES = "the recording does not tell in which directory each command ran"
_HARMLESS = {"agent_message", "reasoning", "todo_list", "web_search", "error", "plan_update"}


def read_codex(raw: Iterable[bytes]) -> Told:
    """The commands of a session, in the order in which they began."""
    events = Events(raw)
    steps: dict[str, Step] = {}
    untold: list[str] = []
    threads = turns = 0
    for event in events:
        kind, item = text(event.get("type")), table(event.get("item"))
        threads += kind == "thread.started"
        turns += str(kind).startswith(("turn.", "item."))
        name, what = text(item.get("id")), text(item.get("type"))
        if kind not in {"item.started", "item.updated", "item.completed"} or name is None:
            continue
        key = f"{threads}:{name}"
        if what == "command_execution":
            step = _command(item)
            if step is None:
                steps.pop(key, None)
            else:
                steps[key] = step
        elif kind == "item.completed" and what not in _HARMLESS:
            untold += _untold(item)
    if not turns:
        return Told(why_not="the recording holds no events of the agent's program")
    if events.broken:
        untold.append(f"{events.broken} events of the recording cannot be read")
    if any(step.cwd is None for step in steps.values()):
        untold.append(PLACES)
    return Told(steps=tuple(steps.values()), untold=unique(untold))


def _command(item: dict[str, Any]) -> Step | None:
    command = text(item.get("command"))
    if command is None or item.get("status") == "declined":
        return None
    status = whole(item.get("exit_code"))
    return Step(kind="command", text=command, cwd=text(item.get("cwd")), status=status, stopped=status is None)


def _untold(item: dict[str, Any]) -> list[str]:
    if item.get("type") != "file_change":
        return [f"it used {item.get('type')}, and the recording does not tell what that changed"]
    if item.get("status") == "failed":
        return []
    changes = item.get("changes")
    paths = [str(table(one).get("path")) for one in (changes if isinstance(changes, list) else [])]
    return [f"it changed {', '.join(paths) or 'files'}, and the recording does not tell how"]
