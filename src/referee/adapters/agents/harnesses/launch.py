"""What is placed in the machine so that a program starts: its configuration, its task, the key.

Everything stands below ``/run/agent`` or in the program's own places of the empty home. The key stands in files that
only root reads: the environment of the one process comes from a file that the starter deletes before it becomes the
program. Nothing of it is in an argument list or in the machine's configuration.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from referee.adapters.agents.harnesses.harness import Harness
from referee.errors import UsageError
from referee.protocols import PROJECT, Access, PlacedFile

#: The starter, what it reads and deletes, and the task.
PLACE = "/run/agent"
STARTER = f"{PLACE}/start"
ENVIRONMENT = f"{PLACE}/environment"
TASK = f"{PLACE}/task"
#: A shell for programs that hand all their variables on: named like the one it becomes.
SHELL = f"{PLACE}/shell/bash"
ARGV = ("/bin/sh", STARTER)

#: What may be filled into configuration files of any syntax without being quoted.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+=~-]*")


def placed_files(harness: Harness, access: Access, task: str) -> dict[str, PlacedFile]:
    """The files of one run, by absolute path.

    Raises:
        UsageError: the model's name, its address or the key has a character that no configuration takes unquoted.
    """
    start = harness.start
    words = {"base_url": access.base_url.rstrip("/"), "model": access.model, "key": access.secret, "task_file": TASK}
    for what in ("base_url", "model", "key"):
        if not _PLAIN.fullmatch(words[what]):
            shown = "" if what == "key" else f" {words[what]!r}"
            raise UsageError(f"the {what}{shown} cannot be handed to {harness.program}: it has an unusual character")
    environment = {name: _filled(text, words) for name, text in start.environment.items()}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    files = {
        STARTER: PlacedFile(starter(harness, words).encode(), 0o755),
        ENVIRONMENT: PlacedFile(("\n".join(lines) + "\n").encode(), 0o600),
        TASK: PlacedFile(task.encode()),
    }
    if start.shell:
        files[SHELL] = PlacedFile(_shell(harness).encode(), 0o755)
    for path, text in start.files.items():
        files[path] = PlacedFile(_filled(text, words).encode(), 0o600 if "{{key}}" in text else 0o644)
    return files


def starter(harness: Harness, words: Mapping[str, str]) -> str:
    """The script that becomes the program."""
    start = harness.start
    source = TASK if start.stdin == "task" else "/dev/null"
    lines = [
        "#!/bin/sh",
        "# Becomes the agent. What holds its key is deleted first.",
        "set -eu",
        f"cd {PROJECT}",
        f". {ENVIRONMENT}",
        f"rm -f {ENVIRONMENT}",
        *([f"export SHELL={SHELL}"] if start.shell else ()),
        *(_filled(line, words) for line in start.before),
        f"exec {shlex.join(_filled(word, words) for word in start.argv)} < {source}",
    ]
    return "\n".join(lines) + "\n"


def _shell(harness: Harness) -> str:
    hidden = sorted({"SHELL", *harness.start.environment, *harness.start.hide})
    lines = [
        "#!/bin/bash",
        "# The machine's own shell, without what is the agent's.",
        f"unset {' '.join(hidden)}",
        'exec /bin/bash "$@"',
    ]
    return "\n".join(lines) + "\n"


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace("{{" + name + "}}", value)
    return text
