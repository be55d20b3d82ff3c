"""opencode, ``run --format=json``: one event a line, one for each finished call of a tool, with its input and status.

Each command has a process of its own, in the session's directory or the one that the call names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from referee.core.sessions.lines import Events, seconds_of, table, text, whole
from referee.core.sessions.patches import patched
from referee.core.sessions.steps import Step, Told, unique

LIMIT = 120.0

_HARMLESS = {
    *("read", "glob", "grep", "list", "todowrite", "todoread", "webfetch", "websearch", "codesearch", "skill"),
    *("question", "invalid", "lsp", "plan_exit", "plan_enter"),
}


def read_opencode(raw: Iterable[bytes]) -> Told:
    """The commands and changes of a session."""
    events = Events(raw)
    steps: dict[str, list[Step]] = {}
    untold: list[str] = []
    any_event = False
    for number, event in enumerate(events):
        any_event = any_event or "sessionID" in event
        part = table(event.get("part"))
        if event.get("type") != "tool_use" or part.get("type") != "tool":
            continue
        state = table(part.get("state"))
        key = text(part.get("callID")) or text(part.get("id")) or str(number)
        steps[key] = _steps(str(part.get("tool")), state, untold)
    if not any_event:
        return Told(why_not="the recording holds no events of the agent's program")
    if events.broken:
        untold.append(f"{events.broken} events of the recording cannot be read")
    return Told(steps=tuple(step for made in steps.values() for step in made), untold=unique(untold))


def _steps(tool: str, state: dict[str, Any], untold: list[str]) -> list[Step]:
    given, failed = table(state.get("input")), state.get("status") == "error"
    if tool == "bash" and (command := text(given.get("command"))):
        status = whole(table(state.get("metadata")).get("exit"))
        limit = seconds_of(given.get("timeout")) or LIMIT
        cwd = text(given.get("workdir"))
        stopped = status is None
        return [Step(kind="command", text=command, cwd=cwd, seconds=limit, status=status, stopped=stopped)]
    return [] if failed or tool in _HARMLESS else _changes(tool, given, untold)


def _changes(tool: str, given: dict[str, Any], untold: list[str]) -> list[Step]:
    path, patch = text(given.get("filePath")), text(given.get("patchText"))
    if tool == "write" and path is not None:
        return [Step(kind="write", path=path, text=str(given.get("content") or ""))]
    if tool == "edit" and path is not None:
        old, new = str(given.get("oldString") or ""), str(given.get("newString") or "")
        if not old:
            return [Step(kind="write", path=path, text=new)]
        return [Step(kind="replace", path=path, old=old, text=new, every=given.get("replaceAll") is True)]
    made = patched(patch) if tool in {"patch", "apply_patch"} and patch else None
    if made is None:
        untold.append(f"it used {tool}, and the recording does not tell what that changed")
    return made or []
