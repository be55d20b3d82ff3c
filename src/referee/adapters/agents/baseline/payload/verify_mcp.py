"""Connects to an MCP server over its standard input and output: it must list its tools, and one must answer.

Usage: ``verify_mcp.py COMMAND [ARGUMENT ...]``. A tool is called with arguments made from its own schema: defaults,
enumerated values, examples in the description. Digits in answers are masked: many tell the time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from typing import Any

SECONDS = 40


class Client:
    """JSON-RPC, one message a line."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        self.clock = threading.Timer(SECONDS, self.process.kill)
        self.clock.start()

    def send(self, method: str, params: dict[str, Any] | None = None, *, answer: bool = True) -> Any:
        """Send one message; the result of the answer, or None."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if answer:
            self.number += 1
            message["id"] = self.number
        if self.process.stdin is None or self.process.stdout is None:
            return None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout if answer else ():
            try:
                got = json.loads(line)
            except ValueError:
                continue
            if isinstance(got, dict) and got.get("id") == self.number:
                return got.get("result")
        return None

    def close(self) -> None:
        """End the server."""
        self.clock.cancel()
        self.process.kill()
        self.process.wait()


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments for the required properties of a schema."""
    made: dict[str, Any] = {}
    for name in schema.get("required") or []:
        wanted = (schema.get("properties") or {}).get(name) or {}
        example = re.search(r"e\.g\.?,? ?[\"'`]([^\"'`]+)[\"'`]", str(wanted.get("description") or ""))
        simple = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
        if "default" in wanted:
            made[name] = wanted["default"]
        elif wanted.get("enum"):
            made[name] = wanted["enum"][0]
        elif example:
            made[name] = example.group(1)
        else:
            made[name] = simple.get(str(wanted.get("type")), "hello")
    return made


def main(words: list[str]) -> int:
    """0 when the server listed tools and at least one answered without an error."""
    client = Client(words)
    try:
        about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "verify", "version": "1"}}
        hello = client.send("initialize", about)
        if not hello:
            sys.stdout.write("it does not answer a client\n")
            return 1
        sys.stdout.write(f"connected to {(hello.get('serverInfo') or {}).get('name')}\n")
        client.send("notifications/initialized", answer=False)
        tools = (client.send("tools/list") or {}).get("tools") or []
        sys.stdout.write(f"it lists {len(tools)} tools: {', '.join(tool['name'] for tool in tools)}\n")
        good = 0
        for tool in tools[:5]:
            given = arguments(tool.get("inputSchema") or {})
            answer = client.send("tools/call", {"name": tool["name"], "arguments": given}) or {"isError": True}
            text = " ".join(str(part.get("text") or part.get("type")) for part in answer.get("content") or [])
            state = "an error" if answer.get("isError") else "an answer"
            good += not answer.get("isError")
            sys.stdout.write(f"{tool['name']}({json.dumps(given)}): {state}: {re.sub(r'[0-9]', '#', text)[:200]}\n")
    except (OSError, ValueError) as exc:
        sys.stdout.write(f"the connection broke: {exc}\n")
        return 1
    finally:
        client.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
