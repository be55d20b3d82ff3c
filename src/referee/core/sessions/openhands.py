"""OpenHands: its events, one JSON object a line or in one trajectory; all commands run in one shell that it keeps.

Both of its forms are read: ``{"action": "run", "args": {"command": …}}`` and events of kind ``ActionEvent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from referee.core.sessions.lines import Events, number_of, table, text, whole
from referee.core.sessions.steps import Step, Told, unique

_HARMLESS = {
    *("message", "think", "finish", "read", "system", "recall", "change_agent_state", "condensation", "null"),
    *("task_tracker", "browse", "FinishAction", "ThinkAction", "TaskTrackerAction", "None"),
}


def read_openhands(raw: Iterable[bytes]) -> Told:
    """The commands and changes of a session."""
    steps: list[Step] = []
    untold: list[str] = []
    asked: dict[Any, int] = {}
    any_event = False
    events = Events(raw)
    for event in _flat(events):
        any_event = any_event or "action" in event or "observation" in event
        if "observation" in event:
            _observed(event, steps, asked)
        elif "action" in event:
            made = _acted(event, untold)
            if made is not None:
                asked[_name(event.get("id") or event.get("tool_call_id"))] = len(steps)
                steps.append(made)
    if not any_event:
        return Told(why_not="the recording holds no events of the agent's program")
    if events.broken:
        untold.append(f"{events.broken} events of the recording cannot be read")
    return Told(processes="kept", steps=tuple(steps), untold=unique(untold))


def _name(value: Any) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _flat(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        history = event.get("history") or event.get("trajectory")
        if isinstance(history, list):
            yield from (one for one in history if isinstance(one, dict))
        else:
            yield event


def _acted(event: dict[str, Any], untold: list[str]) -> Step | None:
    action = event["action"]
    name, given = (action, table(event.get("args"))) if isinstance(action, str) else _typed(table(action))
    path = text(given.get("path"))
    if name in {"run", "ExecuteBashAction", "TerminalAction"}:
        if given.get("is_input") is True:
            untold.append("it answered a running command, which a replay does not imitate")
            return None
        command, limit = text(given.get("command")), number_of(given.get("timeout"))
        seconds = limit if limit is not None and limit > 0 else None
        return None if command is None else Step(kind="command", text=command, seconds=seconds)
    if name == "write" and path is not None:
        return Step(kind="write", path=path, text=str(given.get("content") or ""))
    if name in {"edit", "FileEditorAction", "StrReplaceEditorAction"} and path is not None:
        return _edited(path, given, untold)
    if name not in _HARMLESS:
        untold.append(f"it used {name}, and the recording does not tell what that changed")
    return None


def _typed(action: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return str(action.get("kind")), action


def _edited(path: str, given: dict[str, Any], untold: list[str]) -> Step | None:
    command = given.get("command")
    if command == "view":
        return None
    if command == "create":
        return Step(kind="write", path=path, text=str(given.get("file_text") or ""))
    if command == "str_replace" and (old := text(given.get("old_str"))):
        return Step(kind="replace", path=path, old=old, text=str(given.get("new_str") or ""))
    untold.append(f"it edited {path} by {command}, which a replay does not imitate")
    return None


def _observed(event: dict[str, Any], steps: list[Step], asked: dict[Any, int]) -> None:
    place = asked.get(_name(event.get("cause") or event.get("action_id") or event.get("tool_call_id")))
    if place is None or steps[place].kind != "command":
        return
    observation = event.get("observation")
    source = table(observation) if not isinstance(observation, str) else table(event.get("extras"))
    meta = table(source.get("metadata"))
    status = whole(meta.get("exit_code", source.get("exit_code")))
    stopped = status in {None, -1}
    steps[place] = steps[place].model_copy(update={"status": None if stopped else status, "stopped": stopped})
