"""Chooses how a session is read: by the harness that stands in the run's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from referee.core.canonical import canonical_bytes, strict_loads
from referee.core.sessions.announced import read_announced
from referee.core.sessions.claude_code import read_claude_code
from referee.core.sessions.codex import read_codex
from referee.core.sessions.command_lines import read_aider, read_mini_swe_agent
from referee.core.sessions.gemini_cli import read_gemini_cli
from referee.core.sessions.opencode import read_opencode
from referee.core.sessions.openhands import read_openhands
from referee.core.sessions.steps import REDACTED, Step, Told
from referee.errors import UsageError

SCHEMA = "referee.commands/1"
#: Raised whenever a reader tells more or otherwise of the same bytes: what an earlier one told stays what it was.
READER = 1

READERS: dict[str, Callable[[Iterable[bytes]], Told]] = {
    "codex": read_codex,
    "claude-code": read_claude_code,
    "gemini-cli": read_gemini_cli,
    "opencode": read_opencode,
    "mini-swe-agent": read_mini_swe_agent,
    "openhands": read_openhands,
    "aider": read_aider,
}


def read(harness: str | None, raw: Iterable[bytes]) -> Told:
    """What a recorded session tells.

    Args:
        harness: as it stands in the lock; None, or one without a format of its own: the agent may announce its steps.
        raw: the bytes of ``session.raw``.
    """
    told = READERS.get(harness or "", read_announced)(raw)
    if any(_redacted(step) for step in told.steps):
        sentence = "a credential was removed from a command, so it is not told whole"
        told = told.model_copy(update={"untold": (*told.untold, sentence)})
    return told


def that_can_be_kept(told: Told) -> Told:
    """The same steps, where a file can hold them; else none, and why."""
    try:
        commands_bytes("", told)
    except UsageError:
        return Told(
            why_not="the recording tells steps with half a character (a lone surrogate), which no file can hold"
        )
    return told


def _redacted(step: Step) -> bool:
    given = (step.environment or {}).values()
    return any(REDACTED in one for one in (step.text, step.old or "", *given))


def told_from(data: bytes) -> Told:
    """What ``commands.json`` holds.

    Raises:
        UsageError: it is no JSON.
        ValueError: it is no list of steps.
    """
    value = strict_loads(data)
    if not isinstance(value, dict):
        raise UsageError("a list of steps is one JSON object")
    return Told.model_validate({key: one for key, one in value.items() if key not in {"schema", "reader", "run"}})


def commands_bytes(run: str, told: Told) -> bytes:
    """``commands.json``: what the recording of ``run`` tells, as evidence; anyone can compute it again."""
    steps = told.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return canonical_bytes({"schema": SCHEMA, "reader": READER, "run": run, **steps})
