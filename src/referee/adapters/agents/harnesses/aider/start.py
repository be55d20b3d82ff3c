"""Starts aider in the machine, told its task from a file. Arguments: the model, the file with the task, the report.

Left alone, aider answers one message: it never runs a command where nobody says yes, and does not go on from what one
printed. Here every command is agreed to, shown whole with its output, and its output is followed by a request to go on,
until a turn runs none or the report is there. What the program needs of variables is hidden from commands.
"""

import json
import os
import sys
from pathlib import Path

#: What a command of the project gets: what this process got, but for what is the program's own.
GIVEN = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "LITELLM_", "AIDER_"))}

import aider.main
from aider import io, models, run_cmd
from aider.coders import base_coder

GO_ON = "The output of your commands is above. Go on; when the report is written, reply without a command."
MOST_TURNS = 500

run = run_cmd.run_cmd_subprocess
confirm = io.InputOutput.confirm_ask
ran = []


def run_shown(command, verbose=False, error_print=None, cwd=None):  # noqa: ARG001 — what it is called with
    """Run a command without a terminal, shown, without the program's own variables."""
    ran.append(command)
    print(json.dumps({"type": "command", "command": command}), flush=True)
    kept = {name: os.environ.pop(name) for name in set(os.environ) - set(GIVEN)}
    try:
        status, output = run(command, verbose, cwd)
    finally:
        os.environ.update(kept)
    if output and not output.endswith("\n"):
        print()
    print(json.dumps({"type": "result", "returncode": status}), flush=True)
    return status, output


def agreed(self, *args, **kwargs):
    """Agree, also where aider wants to hear it from a person."""
    return confirm(self, *args, **{**kwargs, "explicit_yes_required": False})


base_coder.run_cmd = run_shown
io.InputOutput.confirm_ask = agreed
# It would fetch lists of models and prices at its start.
models.ModelInfoManager._update_cache = lambda _self: None
models.OpenRouterModelManager._update_cache = lambda _self: None

# Files of the project must not say where its model is, or which: `.env`, `.aider.conf.yml`, `.aider.model.settings.yml`
# and `.aider.model.metadata.json` stand there.
parser = aider.main.get_parser
aider.main.get_parser = lambda _files, root: parser([], root)
aider.main.load_dotenv_files = lambda *_args, **_named: []
aider.main.generate_search_path_list = lambda *_args: []

coder = aider.main.main(
    [
        f"--model={sys.argv[1]}",
        "--edit-format=diff",
        "--no-git",
        "--yes-always",
        "--no-check-update",
        "--no-show-release-notes",
        "--no-show-model-warnings",
        "--no-analytics",
        "--no-detect-urls",
        "--no-pretty",
        "--no-fancy-input",
        "--no-auto-lint",
        "--suggest-shell-commands",
        "--input-history-file=/run/agent/input.history",
        "--chat-history-file=/run/agent/chat.history.md",
    ],
    return_coder=True,
)
message = Path(sys.argv[2]).read_text()
for _ in range(MOST_TURNS):
    ran.clear()
    coder.run(with_message=message)
    if not ran or Path(sys.argv[3]).exists():
        break
    message = GO_ON
