"""The steps of a recorded session, as its recording tells them."""

from __future__ import annotations

from typing import Literal

from referee.core.facts import Fact

#: What redaction leaves in the place of a credential: a command that holds it is not told whole.
REDACTED = "[redacted:"


class Step(Fact):
    """One step of the agent.

    Args:
        kind: ``command``: a shell line. ``write``: a file with all its content. ``replace``: one text of a file by
            another. ``remove``: a file is gone.
        text: the shell line, the content, or what the old text is replaced by.
        path: of a change: the file; relative to ``cwd``.
        old: of ``replace``: what stood there; ``every``: all places, not only one.
        cwd: where; None: where the session began, or where the shell stands that the session keeps.
        environment: variables that were set besides the machine's own; None where none were.
        seconds: how long it may take: the limit that the harness set, or how long it went on before it was stopped.
        status: its recorded exit status; None where the recording does not tell.
        stopped: it was stopped in the session, by a limit or by the agent.
        background: the session went on without waiting for its end.
        then_cwd: where the shell stood afterwards, where the harness says that it moved it.
    """

    kind: Literal["command", "write", "replace", "remove"]
    text: str = ""
    path: str | None = None
    old: str | None = None
    every: bool = False
    cwd: str | None = None
    environment: dict[str, str] | None = None
    seconds: float | None = None
    status: int | None = None
    stopped: bool = False
    background: bool = False
    then_cwd: str | None = None


class Told(Fact):
    """All that a recording tells of what its agent did.

    Args:
        processes: ``fresh``: each command had a process of its own. ``place``: so, and each began where the one before
            stood at its end. ``kept``: all ran in one shell, with what it exported, defined and started.
        interpreter: the shell that each command was given to.
        steps: in order.
        untold: what the agent did and the recording does not tell whole, in sentences; empty: nothing.
        why_not: why the recording tells no step at all; None where it tells.
    """

    processes: Literal["fresh", "place", "kept"] = "fresh"
    interpreter: Literal["bash", "sh"] = "bash"
    steps: tuple[Step, ...] = ()
    untold: tuple[str, ...] = ()
    why_not: str | None = None


class StepDone(Fact):
    """One step as it was carried out again.

    Args:
        number: from 1.
        status: the exit status; None: stopped at its limit, or no command.
        seconds: how long it took.
        bytes: what it printed; ``tail``: the end of it, kept where it failed.
    """

    number: int
    status: int | None
    stopped: bool = False
    seconds: float
    bytes: int
    tail: str = ""


def unique(sentences: list[str]) -> tuple[str, ...]:
    """The sentences, each once, in order."""
    return tuple(dict.fromkeys(sentences))
