"""Programs that the agent cannot alter: how the harness looks at a machine that an agent has worked on.

A container machine is given a static tool read-only. An overlay machine has only the host's own programs, which an
agent can alter there: it is no security boundary, and what it made is never published.
"""

from __future__ import annotations

from threading import Event

from referee.errors import MachineFault
from referee.protocols import TRUSTED_PATH, Completed, Machine

#: Where the static tool stands in a container machine.
TOOL = "/usr/local/lib/referee/busybox"
#: Exit statuses of a program that is not there.
_MISSING = {126, 127}


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
    environment = {"PATH": TRUSTED_PATH, "LC_ALL": "C"}
    done = None
    for shell, tool in (((TOOL, "sh"), TOOL), (("/bin/sh",), "")):
        done = machine.execute(
            (*shell, "-c", f"B={tool}\n{script}", "sh", *arguments),
            timeout=timeout,
            environment=environment,
            max_output=max_output,
            stop=stop,
        )
        if done.exit_status not in _MISSING:
            break
    if done is None or done.timed_out:
        raise MachineFault("the machine did not answer in time what it was asked after the session")
    return done
