"""Gemini CLI, ``--output-format stream-json``: one event a line, calls of tools and their results.

Each command has a process of its own, in the session's directory or the one that the call names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from referee.core.sessions.lines import Events, table, text
from referee.core.sessions.steps import Step, Told, unique

_HARMLESS = {
    *("read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "web_fetch"),
    *("google_web_search", "write_todos", "save_memory", "activate_skill", "get_internal_docs", "enter_plan_mode"),
    *("exit_plan_mode", "ask_user", "complete_task", "update_topic", "cli_help"),
}
#: What it answers itself with instead of running a command that has ``$(…)`` or backticks.
_REFUSED = "Blocked: command substitution detected in shell command."
_STATUS = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)


def read_gemini_cli(raw: Iterable[bytes]) -> Told:
    """The commands and changes of a session."""
    events = Events(raw)
    steps: dict[str, Step] = {}
    untold: list[str] = []
    any_event = False
    for event in events:
        kind = text(event.get("type"))
        any_event = any_event or kind in {"init", "message", "tool_use", "result"}
        name = text(event.get("tool_id"))
        if kind == "tool_use" and name is not None:
            step = _step(str(event.get("tool_name")), table(event.get("parameters")), untold)
            if step is not None:
                steps[name] = step
        elif kind == "tool_result" and name in steps:
            ended = _ended(steps.pop(name), event)
            if ended is not None:
                steps[name] = ended
    if not any_event:
        return Told(why_not="the recording holds no events of the agent's program")
    if events.broken:
        untold.append(f"{events.broken} events of the recording cannot be read")
    return Told(steps=tuple(steps.values()), untold=unique(untold))


def _step(tool: str, given: dict[str, Any], untold: list[str]) -> Step | None:
    path = text(given.get("file_path"))
    if tool == "run_shell_command" and (command := text(given.get("command"))):
        cwd = text(given.get("dir_path")) or text(given.get("directory"))
        return Step(kind="command", text=command, cwd=cwd, background=given.get("is_background") is True)
    if tool == "write_file" and path is not None:
        return Step(kind="write", path=path, text=str(given.get("content") or ""))
    if tool in {"replace", "edit"} and path is not None:
        old, new = str(given.get("old_string") or ""), str(given.get("new_string") or "")
        if not old:
            return Step(kind="write", path=path, text=new)
        expected = given.get("expected_replacements")
        every = given.get("allow_multiple") is True or (isinstance(expected, int) and expected > 1)
        return Step(kind="replace", path=path, old=old, text=new, every=every)
    if tool not in _HARMLESS:
        untold.append(f"it used {tool}, and the recording does not tell what that changed")
    return None


def _ended(step: Step, result: dict[str, Any]) -> Step | None:
    failed = result.get("status") == "error"
    if step.kind != "command":
        return None if failed else step
    said = str(result.get("output") or "")
    if said == _REFUSED:
        return None
    # A command that failed counts as done too: its status is known only where the program prints it.
    told = _STATUS.search(said)
    return step.model_copy(update={"status": int(told[1]) if told else None})
