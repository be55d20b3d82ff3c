"""Starts mini-swe-agent in the machine: as its own command line would, and so that the recording tells what it does.

Each command is shown as a line of JSON before it runs and its output as it was, once; what the program needs of
variables is hidden from the commands. Arguments: the model, the file with the task.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

#: What a command of the project gets: what this process got, but for what is the program's own.
GIVEN = {name for name in os.environ if not name.startswith(("OPENAI_", "MSWEA_", "LITELLM_"))}

import litellm
from minisweagent import config
from minisweagent.agents import interactive
from minisweagent.environments import local
from minisweagent.models import litellm_model
from minisweagent.models.utils.content_string import get_content_string
from minisweagent.run import mini

#: Seconds that one command may take: an installation takes longer than the program's own 30.
COMMAND_SECONDS = 1800
#: The status that says that the key has reached its cap; litellm knows no error of its own for it.
CAP_REACHED = 402

ask = litellm_model.LitellmModel._query
run_command = local._run
add_messages = interactive.DefaultAgent.add_messages


class CapReachedError(Exception):
    """The key has reached its cap: asking again would change nothing, and ten times take minutes."""


def asked(self, messages, **kwargs):
    """Ask the model; a cap that is reached is final."""
    try:
        return ask(self, messages, **kwargs)
    except Exception as exc:
        if getattr(exc, "status_code", None) == CAP_REACHED:
            raise CapReachedError(str(exc)) from exc
        raise


def shown(command, cwd, env, timeout):
    """Run a command, shown, without the program's own variables."""
    print(json.dumps({"type": "command", "command": command}), flush=True)
    try:
        hidden = set(os.environ) - GIVEN
        done = run_command(command, cwd, {name: value for name, value in env.items() if name not in hidden}, timeout)
    except Exception as exc:
        output = getattr(exc, "output", None) or ""
        print(output if isinstance(output, str) else output.decode(errors="replace"))
        print(json.dumps({"type": "result", "returncode": None, "error": str(exc)}), flush=True)
        raise
    print(done.stdout, end="" if done.stdout.endswith("\n") else "\n")
    print(json.dumps({"type": "result", "returncode": done.returncode}), flush=True)
    return done


def told(self, *messages):
    """Take messages up and show them; what a command printed has been shown already."""
    for message in messages:
        role = message.get("role") or message.get("type", "unknown")
        if role != "tool":
            print(f"\n{role.capitalize()} (step {self.n_calls}):\n{get_content_string(message)}", flush=True)
    return add_messages(self, *messages)


litellm_model.LitellmModel._query = asked
litellm_model.LitellmModel.abort_exceptions = [*litellm_model.LitellmModel.abort_exceptions, CapReachedError]
local._run = shown
interactive.InteractiveAgent.add_messages = told
interactive.console.status = lambda *_args, **_kwargs: contextlib.nullcontext()  # its spinner would fill the recording
litellm.suppress_debug_info = True
mini.app(
    [
        "--yolo",
        "--exit-immediately",
        f"--model={sys.argv[1]}",
        f"--task={Path(sys.argv[2]).read_text()}",
        "--cost-limit=0",
        "--output=/run/agent/trajectory.json",
        "-c",  # by its place: a `mini.yaml` of the project would come first
        str(config.builtin_config_dir / "mini.yaml"),
        "-c",
        f"environment.timeout={COMMAND_SECONDS}",
    ]
)
