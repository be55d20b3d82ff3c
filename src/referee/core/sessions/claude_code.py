"""Claude Code, ``--output-format=stream-json``: messages, one a line, with every call of a tool and its result.

Each command has a process of its own and begins where the one before stood; what it exported is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from referee.core.sessions.lines import Events, seconds_of, table, text
from referee.core.sessions.steps import Step, Told, unique

#: Seconds after which a command is stopped where the call names no other limit.
LIMIT = 120.0

_HARMLESS = {
    *("Read", "Grep", "Glob", "LS", "NotebookRead", "TodoWrite", "TodoRead", "WebFetch", "WebSearch", "BashOutput"),
    *("ToolSearch", "ExitPlanMode", "EnterPlanMode", "Task", "Agent", "Skill", "TaskOutput", "AskUserQuestion"),
    *("TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
}
_MOVED = re.compile(r"Shell cwd was reset to (\S+)")
_STATUS = re.compile(r"^Exit code (\d{1,3})\b")


def read_claude_code(raw: Iterable[bytes]) -> Told:
    """The commands and changes of a session."""
    events = Events(raw)
    steps: dict[str, list[Step]] = {}
    untold: list[str] = []
    any_message = False
    for event in events:
        any_message = any_message or text(event.get("type")) in {"system", "assistant", "result"}
        for part in _parts(event):
            if part.get("type") == "tool_use" and (name := text(part.get("id"))):
                made = _steps(str(part.get("name")), table(part.get("input")), untold)
                if made:
                    steps[name] = made
            elif part.get("type") == "tool_result" and (name := text(part.get("tool_use_id"))) in steps:
                steps[name] = _ended(steps[name], part)
    if not any_message:
        return Told(why_not="the recording holds no messages of the agent's program")
    if events.broken:
        untold.append(f"{events.broken} messages of the recording cannot be read")
    return Told(processes="place", steps=tuple(step for made in steps.values() for step in made), untold=unique(untold))


def _parts(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = table(event.get("message")).get("content")
    if text(event.get("type")) in {"assistant", "user"} and isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))


def _steps(tool: str, given: dict[str, Any], untold: list[str]) -> list[Step]:
    path = text(given.get("file_path"))
    if tool == "Bash" and (command := text(given.get("command"))):
        limit = seconds_of(given.get("timeout")) or LIMIT
        background = given.get("run_in_background") is True
        return [Step(kind="command", text=command, seconds=limit, background=background)]
    if tool == "Write" and path is not None:
        return [Step(kind="write", path=path, text=str(given.get("content") or ""))]
    if tool in {"Edit", "MultiEdit"} and path is not None:
        edits = given.get("edits") if tool == "MultiEdit" else [given]
        return [_replaced(path, table(edit)) for edit in (edits if isinstance(edits, list) else [])]
    if tool in {"KillShell", "KillBash", "TaskStop"}:
        untold.append("it ended a command that ran in the background, which a replay leaves running")
    elif tool not in _HARMLESS:
        untold.append(f"it used {tool}, and the recording does not tell what that changed")
    return []


def _replaced(path: str, edit: dict[str, Any]) -> Step:
    old, new = str(edit.get("old_string") or ""), str(edit.get("new_string") or "")
    if not old:
        return Step(kind="write", path=path, text=new)
    return Step(kind="replace", path=path, old=old, text=new, every=edit.get("replace_all") is True)


def _ended(steps: list[Step], result: dict[str, Any]) -> list[Step]:
    failed, said = result.get("is_error") is True, _said(result.get("content"))
    if steps[0].kind != "command":
        return [] if failed else steps
    step = steps[0]
    if step.background:
        return steps
    told = _STATUS.match(said)
    status = int(told[1]) if told else None if failed else 0
    moved = _MOVED.search(said)
    changes = {"status": status, "stopped": status is None, "then_cwd": moved[1] if moved else None}
    return [step.model_copy(update=changes)]


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(table(part).get("text") or "") for part in parts)
