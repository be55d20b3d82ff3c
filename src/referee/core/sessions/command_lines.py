"""mini-swe-agent and aider, as their starters show them: a line of JSON before each command and one after it.

Between the two stands what the command printed, as it was. Both give their commands to ``/bin/sh``, one after the
other, so a line that looks like the next command while one still runs is the project's own output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from referee.core.sessions.lines import lines, text, whole
from referee.core.sessions.steps import Step, Told

#: What mini-swe-agent's own configuration sets for every command.
MINI_ENVIRONMENT = {"PAGER": "cat", "MANPAGER": "cat", "LESS": "-R", "PIP_PROGRESS_BAR": "off", "TQDM_DISABLE": "1"}
#: mini-swe-agent's way to say that it is done: the end of a command, no work of the project's.
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
#: How aider says that it changed a file.
_EDIT = b"Applied edit to "

MIXED = "the output of a command looks like the lines that show commands, so they cannot be told apart"
EDITED = "it changed {}, and the recording does not tell how"


def read_mini_swe_agent(raw: Iterable[bytes]) -> Told:
    """The commands of a session of mini-swe-agent."""
    return _read(raw, MINI_ENVIRONMENT)


def read_aider(raw: Iterable[bytes]) -> Told:
    """The commands of a session of aider; its changes are named, not told."""
    return _read(raw, None)


def _read(raw: Iterable[bytes], environment: dict[str, str] | None) -> Told:
    steps: list[Step] = []
    running = mixed = False
    edited: list[str] = []
    for line in lines(raw):
        event = _event(line)
        if line.startswith(_EDIT):
            edited.append(line[len(_EDIT) :].decode("utf-8", "replace").strip())
        if event is None:
            continue
        if event["type"] == "command" and not running:
            running = True
            steps.append(Step(kind="command", text=str(event["command"]), environment=environment))
        elif event["type"] == "result":
            mixed = mixed or not running
            if running:
                status = whole(event.get("returncode"))
                steps[-1] = steps[-1].model_copy(update={"status": status, "stopped": status is None})
            running = False
    untold = [MIXED] if mixed else []
    if edited:
        untold.append(EDITED.format(", ".join(dict.fromkeys(edited))))
    kept = [step for step in steps if SUBMIT not in step.text]
    if not steps and not edited:
        return Told(why_not="the recording shows no command and no change of the agent's")
    return Told(interpreter="sh", steps=tuple(kept), untold=tuple(untold))


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b'{"type": "'):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if value.get("type") == "command":
        return value if text(value.get("command")) else None
    return value if value.get("type") == "result" and "returncode" in value else None
