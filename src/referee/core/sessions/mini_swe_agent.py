"""mini-swe-agent: its trajectory, where the session prints it as one JSON document on a line.

What it shows on the terminal is broken to the terminal's width, so commands cannot be told from that. Each command has
a process of its own in the session's directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from referee.core.sessions.lines import Events, table, text, whole
from referee.core.sessions.steps import Step, Told

#: Seconds after which a command is stopped where the trajectory's configuration names no other limit.
LIMIT = 30.0

#: The agent's own way to say that it is done: no command of the project's.
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def read_mini_swe_agent(raw: Iterable[bytes]) -> Told:
    """The commands of the last trajectory in a session."""
    last = None
    for event in Events(raw):
        if isinstance(event.get("messages"), list) and "trajectory_format" in event:
            last = event
    if last is None:
        return Told(
            why_not="the recording holds no trajectory, and what is shown on the terminal is broken to its width"
        )
    environment = table(table(table(last.get("info")).get("config")).get("environment"))
    limit = environment.get("timeout")
    seconds = float(limit) if isinstance(limit, int | float) and limit > 0 else LIMIT
    cwd = text(environment.get("cwd"))
    given = {str(name): str(value) for name, value in table(environment.get("env")).items()} or None
    base = Step(kind="command", seconds=seconds, cwd=cwd, environment=given)
    return Told(steps=tuple(_steps(last["messages"], base)))


def _steps(messages: list[Any], base: Step) -> Iterator[Step]:
    for number, message in enumerate(messages):
        actions = table(table(message).get("extra")).get("actions")
        if not isinstance(actions, list):
            continue
        results = _results(messages[number + 1 :])
        for place, action in enumerate(actions):
            command = text(table(action).get("command"))
            if command is None or SUBMIT in command:
                continue
            status = results[place] if place < len(results) else None
            yield base.model_copy(update={"text": command, "status": status, "stopped": status in {None, -1}})


def _results(after: list[Any]) -> list[int | None]:
    """The return codes of the observations that follow, up to the model's next message."""
    found: list[int | None] = []
    for message in after:
        extra = table(table(message).get("extra"))
        if "actions" in extra:
            break
        if "returncode" in extra:
            found.append(whole(extra["returncode"]))
    return found
