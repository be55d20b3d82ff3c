"""Programs that the agent cannot alter: how the harness looks at a machine that an agent has worked on.

A container machine is given a static tool read-only. An overlay machine has only the host's own programs, which an
agent can alter there: it is no security boundary, and what it made is never published.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

from referee.errors import MachineFault
from referee.protocols import TRUSTED_PATH, Completed, Machine

#: Where the static tool stands in a container machine.
TOOL = "/usr/local/lib/referee/busybox"
#: Exit statuses of a program that is not there.
_MISSING = {126, 127}
_LATE = "the machine did not answer in time what it was asked after the session"


@dataclass(frozen=True)
class Question:
    """Shell text for ``look`` with its arguments, and how long and how much its answer may be."""

    script: str
    arguments: tuple[str, ...] = ()
    timeout: float = 30.0
    max_output: int = 4_000_000


@dataclass(frozen=True)
class Answer:
    """What was said to a question; ``truncated``: it was longer than its limit, and its rest was left out."""

    output: bytes
    truncated: bool


def look(
    machine: Machine,
    script: str,
    *arguments: str,
    timeout: float = 30.0,
    max_output: int = 4_000_000,
    stop: Event | None = None,
) -> Completed:
    """Run shell text by trusted programs. In it ``$B`` stands before each program's name, ``$1`` … are arguments.

    Once ``stop`` is set, a line comes on its standard input.

    Raises:
        MachineFault: the machine could not be asked, or not in time.
    """
    done = _ask(machine, script, arguments, timeout=timeout, max_output=max_output, stop=stop)
    if done.timed_out:
        raise MachineFault(_LATE)
    return done


def answered(answer: Answer | None) -> Answer:
    """An answer, where there is one.

    Raises:
        MachineFault: there is none.
    """
    if answer is None:
        raise MachineFault(_LATE)
    return answer


def ask(machine: Machine, question: Question) -> Answer:
    """Ask one question.

    Raises:
        MachineFault: the machine could not be asked, or not in time.
    """
    return answered(look_at(machine, [question])[0])


def look_at(machine: Machine, questions: Sequence[Question]) -> list[Answer | None]:
    """Ask several questions by one call of the engine: each in a shell of its own, one after another, as by ``look``.

    An answer is None where the time for all of them was up before it was whole.

    Raises:
        MachineFault: the machine could not be asked.
    """
    mark = secrets.token_hex(16)  # nobody knows it, so no file is named by it
    lines: list[str] = []
    arguments: list[str] = []
    for question in questions:
        first = len(arguments) + 1
        arguments += question.arguments
        own = " ".join(f'"${{{number}}}"' for number in range(first, len(arguments) + 1))
        # One that says too much must not take the others' room.
        lines.append(f"(\nset -- {own}\n{question.script}\n) | $B head -c {question.max_output + 1}; echo; echo {mark}")
    done = _ask(
        machine,
        "\n".join(lines),
        arguments,
        timeout=sum(question.timeout for question in questions),
        max_output=sum(question.max_output + 100 for question in questions),
    )
    *whole, _ = done.output.split(f"\n{mark}\n".encode())
    answers: list[Answer | None] = [
        Answer(output[: question.max_output], truncated=len(output) > question.max_output)
        for question, output in zip(questions, whole, strict=False)
    ]
    return answers + [None] * (len(questions) - len(answers))


def _ask(
    machine: Machine,
    script: str,
    arguments: Sequence[str],
    *,
    timeout: float,
    max_output: int,
    stop: Event | None = None,
) -> Completed:
    def by(shell: tuple[str, ...], tool: str) -> Completed:
        return machine.execute(
            (*shell, "-c", f"B={tool}\n{script}", "sh", *arguments),
            timeout=timeout,
            environment={"PATH": TRUSTED_PATH, "LC_ALL": "C"},
            max_output=max_output,
            stop=stop,
        )

    done = by((TOOL, "sh"), TOOL)
    return done if done.exit_status not in _MISSING else by(("/bin/sh",), "")
