"""Starts aider in the machine, told its task from a file. Arguments: the model, the file with the task.

What the program needs of variables is hidden from the commands that it runs, and each command is shown whole.
"""

import json
import os
import sys

OWN = {name for name in os.environ if name.startswith(("OPENAI_", "LITELLM_", "AIDER_"))}

from aider import commands, run_cmd
from aider.coders import base_coder
from aider.main import main

run = run_cmd.run_cmd_subprocess


def shown(command, verbose=False, cwd=None, encoding=sys.stdout.encoding):
    """Run a command without a terminal, shown, without the program's own variables."""
    print(json.dumps({"type": "command", "command": command}), flush=True)
    kept = {name: os.environ.pop(name) for name in OWN if name in os.environ}
    try:
        status, output = run(command, verbose, cwd, encoding)
    finally:
        os.environ.update(kept)
    print(json.dumps({"type": "result", "returncode": status}), flush=True)
    return status, output


def run_shown(command, verbose=False, error_print=None, cwd=None):  # noqa: ARG001 — what it is called with
    """What aider calls for every command."""
    return shown(command, verbose, cwd)


for module in (run_cmd, commands, base_coder):
    if hasattr(module, "run_cmd"):
        module.run_cmd = run_shown
sys.exit(
    main(
        [
            f"--model={sys.argv[1]}",
            f"--message-file={sys.argv[2]}",
            "--no-git",
            "--yes-always",
            "--no-check-update",
            "--no-show-release-notes",
            "--no-show-model-warnings",
            "--no-analytics",
            "--no-detect-urls",
            "--no-pretty",
            "--no-fancy-input",
            "--suggest-shell-commands",
            "--input-history-file=/run/agent/input.history",
            "--chat-history-file=/run/agent/chat.history.md",
            "--llm-history-file=/run/agent/llm.history",
        ]
    )
)
