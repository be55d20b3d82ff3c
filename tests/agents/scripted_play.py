"""What a scripted model does: runs the commands of a play through whatever shell tool its client offers, then finishes.

A play holds no state: the step is read from the history that the client sends, so that a request that is sent again
(after an error, or in another process) is answered the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.agents.scripted_turns import Answer, Call, Counted, Json, Tool, Turn

#: Names of shell tools, the preferred first: Codex, mini-swe-agent and opencode, Claude Code, Gemini CLI, OpenHands.
SHELLS = (
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "bash",
    "Bash",
    "run_shell_command",
    "execute_bash",
    "terminal",
    "run_command",
)

#: mini-swe-agent ends with a command that says this; its text-only form wants one fenced block of this language.
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
MINI_FENCE = "mswea_bash_command"

#: What Codex says when a command still runs when its answer is due; it is then asked again with this tool.
STILL_RUNS = re.compile(r"running with session ID (\d+)")
POLL = "write_stdin"

#: Stands in every answer that is a step of a play.
MARK = "Step {step}:"
_MARKED = re.compile(r"^Step \d+:", re.MULTILINE)

#: The first tool of these that is offered says the final text, where a plain answer would not end the session.
FINISHERS = ("finish", "attempt_completion")

_LONG_MS = 600_000
_LONG_SECONDS = 600
#: Codex takes at most this for one wait.
_YIELD_MS = 30_000

Failure = Literal["429", "500", "503", "401", "402", "broken", "hang"]


def as_fence(commands: Sequence[str], final: str) -> str:
    """All commands in one shell block: how a client without tools is answered, unless a play says otherwise."""
    return "```bash\n" + "\n".join(commands) + f"\n```\n\n{final}"


@dataclass
class Play:
    """A play.

    Args:
        commands: run one after the other.
        final: said at the end.
        forever: a command that is run again and again after those: the play never ends.
        delay: seconds before an answer begins.
        pace: seconds between two pieces of a stream.
        failures: what happens to a request of the play instead of an answer, by its number, from 1.
        always: what happens to every request of the play.
        usage: tokens of an answer, by its turn and step; None counts a token for four bytes, most of it cached.
        without_tools: the answer for a client that offers no tools and edits by text (aider).
    """

    commands: Sequence[str] = ()
    final: str = "Done: the project was brought up and checked."
    forever: str | None = None
    delay: float = 0.0
    pace: float = 0.0
    failures: dict[int, Failure] = field(default_factory=dict)
    always: Failure | None = None
    usage: Callable[[Turn, int], Counted] | None = None
    without_tools: Callable[[Sequence[str], str], str] = as_fence


def shell_tool(turn: Turn) -> Tool | None:
    """The shell that the client offers."""
    offered = {tool.name: tool for tool in turn.tools}
    return next((offered[name] for name in SHELLS if name in offered), None)


def is_side_request(turn: Turn) -> bool:
    """Whether this is not part of the session: titles, summaries, topics, structured questions."""
    if turn.schema is not None:
        return True
    return shell_tool(turn) is None and not _by_text(turn)


def _by_text(turn: Turn) -> bool:
    return not turn.tools and (MINI_FENCE in turn.text or "SEARCH/REPLACE" in turn.text or _openhands_text(turn))


def _openhands_text(turn: Turn) -> bool:
    return "<function=" in turn.text and "execute_bash" in turn.text


def step_of(turn: Turn) -> int:
    """How many commands of the play have been run already."""
    shell = shell_tool(turn)
    if shell is not None:
        known = {shell.name, "local_shell", "?"}
        return sum(done.tool in known for done in turn.done)
    return sum(_MARKED.search(said) is not None for said in turn.said)


def answer(turn: Turn, play: Play, size: int) -> tuple[Answer, int]:
    """What is said to a request of the play, and the step it is.

    Args:
        turn: the request.
        play: the play.
        size: its length in bytes.
    """
    step = step_of(turn)
    text, call = _next(turn, play, step)
    usage = play.usage(turn, step) if play.usage else counted(size, step, text, call)
    return Answer(text, call, usage), step


def counted(size: int, step: int, text: str, call: Call | None) -> Counted:
    """A token for four bytes; from the second step on most of the input comes from a cache, in whole 128s."""
    whole = max(size // 4, 1)
    cached = whole * 4 // 5 // 128 * 128 if step else 0
    spoken = len(text) + (len(json.dumps(call.arguments)) if call else 0)
    return Counted(input=whole, output=spoken // 4 + 3, cached=cached, written=0 if step else whole // 2)


def side_answer(turn: Turn, size: int) -> Answer:
    """A short answer that disturbs nothing."""
    text = json.dumps(example_of(turn.schema)) if turn.schema is not None else "Bring up the project"
    return Answer(text, None, Counted(max(size // 4, 1), len(text) // 4 + 1))


def example_of(schema: Json) -> object:
    """The least that satisfies a JSON schema; who speaks next is answered with the user, so that nothing goes on."""
    if "enum" in schema:
        return "user" if "user" in schema["enum"] else schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        wanted = schema.get("required") or list(schema.get("properties", {}))
        return {name: example_of(schema.get("properties", {}).get(name, {"type": "string"})) for name in wanted}
    return {"string": "none", "boolean": False, "array": []}.get(kind, 1)


def _next(turn: Turn, play: Play, step: int) -> tuple[str, Call | None]:
    shell = shell_tool(turn)
    if shell is None and "SEARCH/REPLACE" in turn.text and MINI_FENCE not in turn.text:
        return play.without_tools(play.commands, play.final), None
    command = play.commands[step] if step < len(play.commands) else play.forever
    mark = MARK.format(step=step + 1)
    if shell is None:
        return _in_text(turn, play, command, mark)
    if (poll := _poll(turn)) is not None:
        return "It still runs; waiting for it.", poll
    if command is not None:
        return f"{mark} running the next command.", Call(shell, arguments(shell, command))
    return _finish(turn, play, shell)


def _finish(turn: Turn, play: Play, shell: Tool) -> tuple[str, Call | None]:
    if SUBMIT in turn.text:
        return play.final, Call(shell, arguments(shell, f"echo {SUBMIT}"))
    finisher = next((tool for name in FINISHERS for tool in turn.tools if tool.name == name), None)
    if finisher is not None:
        return play.final, Call(finisher, _fill(finisher, {"message": play.final, "result": play.final}, play.final))
    return play.final, None


def _in_text(turn: Turn, play: Play, command: str | None, mark: str) -> tuple[str, None]:
    if MINI_FENCE in turn.text:
        said = command if command is not None else f"echo {SUBMIT}"
        return f"{mark}\n\n```{MINI_FENCE}\n{said}\n```", None
    if command is None:
        message = f"<function=finish>\n<parameter=message>{play.final}</parameter>\n</function>"
        return f"{play.final}\n{message}", None
    return f"{mark}\n<function=execute_bash>\n<parameter=command>{command}</parameter>\n</function>", None


def _poll(turn: Turn) -> Call | None:
    tool = next((tool for tool in turn.tools if tool.name == POLL), None)
    running = STILL_RUNS.search(turn.done[-1].result) if turn.done else None
    if tool is None or running is None:
        return None
    return Call(tool, {"session_id": int(running.group(1)), "chars": "", "yield_time_ms": _YIELD_MS})


def arguments(shell: Tool, command: str) -> Json:
    """The arguments with which this tool runs a command."""
    if shell.kind == "local_shell":
        return {"command": ["bash", "-lc", command]}
    known = shell.parameters.get("properties", {})
    name = next((name for name in ("cmd", "command", "code") if name in known), "command")
    is_list = known.get(name, {}).get("type") == "array"
    wanted: Json = {name: ["bash", "-lc", command] if is_list else command}
    if "yield_time_ms" in known:
        wanted["yield_time_ms"] = _YIELD_MS
    if "timeout_ms" in known:
        wanted["timeout_ms"] = _LONG_MS
    if "timeout" in known:
        wanted["timeout"] = _LONG_SECONDS if shell.name in {"execute_bash", "terminal"} else _LONG_MS
    return _fill(shell, wanted, "Run the next command")


def _fill(tool: Tool, wanted: Json, text: str) -> Json:
    """What is wanted of what the tool takes, and what it requires besides."""
    known = tool.parameters.get("properties", {})
    taken = {name: value for name, value in wanted.items() if name in known or not known}
    for name in tool.parameters.get("required", []):
        if name not in taken:
            schema = known.get(name, {"type": "string"})
            is_text = schema.get("type", "string") == "string" and "enum" not in schema
            taken[name] = text if is_text else example_of(schema)
    return taken
