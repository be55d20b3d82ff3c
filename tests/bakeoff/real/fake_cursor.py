"""Stands in for Cursor's program, which no registry has: takes its arguments, speaks to a model, prints its document.

It is used under another name, with the address of a model server in the file ``endpoint`` beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

VERSION = "2026.09.02-c22c1a3"
TAKEN = {"--print", "--output-format=json", "--trust", "--mode=ask"}


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    *switches, prompt = arguments
    model = next(switch.removeprefix("--model=") for switch in switches if switch.startswith("--model="))
    if set(switches) != TAKEN | {f"--model={model}"}:
        sys.stderr.write(f"unknown arguments: {switches}\n")
        return 1
    # As real programs do, it works through a child.
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        result = ask(model, prompt)
    finally:
        child.kill()
        child.wait()
    sys.stdout.write(json.dumps({"type": "result", "duration_ms": 7, "session_id": "s", **result}))
    return 0


def ask(model: str, prompt: str) -> dict[str, Any]:
    endpoint = Path(__file__).with_name("endpoint").read_text(encoding="utf-8")
    message = {"role": "user", "content": prompt}
    body = json.dumps({"model": model, "messages": [message], "stream": False}).encode()
    headers = {"content-type": "application/json", "x-api-key": os.environ["CURSOR_API_KEY"]}
    request = urllib.request.Request(f"{endpoint}/v1/messages", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            said = json.load(response)
    except urllib.error.HTTPError as exc:
        text = f"API Error: {exc.code} {json.load(exc)['error']['message']}"
        return {"subtype": "error_during_execution", "is_error": True, "result": text}
    return {"subtype": "success", "is_error": False, "result": said["content"][0]["text"]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
