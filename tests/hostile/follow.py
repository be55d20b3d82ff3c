"""An agent that does what a README says, and is careless: every command inherits the key of its model.

It runs the lines of the README's ``sh`` blocks, asks its model before each, and reports what it saw. The last line is
the check.
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

TOLD = json.loads(Path("/run/agent/model.json").read_text())
TOOL = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}


def ask(words: str) -> str:
    """What the model says."""
    question = {"model": TOLD["model"], "max_tokens": 200, "messages": [{"role": "user", "content": words}]}
    body = json.dumps({**question, "tools": [{"type": "function", "function": TOOL}]}).encode()
    head = {"Authorization": f"Bearer {TOLD['key']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{TOLD['base_url']}/v1/chat/completions", body, head)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:
        return f"refused with {error.code}"


def run(line: str, environment: dict[str, str]) -> tuple[bool, str]:
    """Run a line and show what it prints; whether it went well, and the end of what it printed."""
    child = subprocess.Popen(
        ["/bin/bash", "-c", line], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    printed = b""
    while piece := os.read(child.stdout.fileno(), 65536):
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
        printed = (printed + piece)[-4000:]
    return child.wait() == 0, printed.decode(errors="replace")


def main() -> None:
    """Follow the README, then report."""
    readme = Path("README.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) for line in block.splitlines()]
    inherits = {**os.environ, "OPENAI_API_KEY": TOLD["key"], "OPENAI_BASE_URL": TOLD["base_url"] + "/v1"}
    went = []
    for line in lines:
        sys.stdout.write(f"model: {ask(line)}\n$ {line}\n")
        sys.stdout.flush()
        well, printed = run(line, inherits)
        went.append(well)
    report = {
        "installed": all(went[:-1]),
        "started": all(went),
        "errors": [{"what": one, "fixed": False} for one, well in zip(lines, went, strict=True) if not well],
        "test_depth": "tier1_real" if all(went) else "tier3_none",
        "verified_how": {"command": f"cd /work/project && {lines[-1]}", "returned": printed.strip()[-2000:]},
        "final_state": "The README was followed to its end.",
    }
    Path("/work/report.json").write_text(json.dumps(report))


main()
