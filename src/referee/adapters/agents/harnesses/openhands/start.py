"""Starts the agent of OpenHands in the machine; shows each of its events as a line of JSON.

Arguments: the model, the file with the task. What the program needs of variables is taken in and then removed, so that
the terminal that it opens has none of it.
"""

import os
import sys
from pathlib import Path

GIVEN = {
    name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "LITELLM_", "OPENHANDS_"))
}
KEY, BASE = os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"]

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.task_tracker import TaskTrackerTool
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr

#: Steps of the one run: the key's cap and the time limit end it before.
MOST_STEPS = 2000

llm = LLM(model=sys.argv[1], api_key=SecretStr(KEY), base_url=BASE, usage_id="agent")
for name in set(os.environ) - set(GIVEN):
    del os.environ[name]
agent = Agent(llm=llm, tools=[Tool(name=kind.name) for kind in (TerminalTool, FileEditorTool, TaskTrackerTool)])


def show(event):
    """One event, as it is."""
    print(event.model_dump_json(exclude_none=True), flush=True)


conversation = Conversation(
    agent=agent, workspace=Path.cwd(), callbacks=[show], visualizer=None, max_iteration_per_run=MOST_STEPS
)
conversation.send_message(Path(sys.argv[2]).read_text())
conversation.run()
conversation.close()
