"""Real attempts at a small project with a command line, a service and tests, by any command line as the agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import GOOD_REPORT, Measured, leaves_report, referee

FILES = {
    "README.md": "# square\n\n```sh\npython3 square.py 12\npython3 serve.py 8123\n```\n",
    "square.py": "import sys\n\n\ndef square(n):\n    return n * n\n\n\nif __name__ == '__main__':\n"
    "    n = int(sys.argv[1])\n    print(f'{n} squared is {square(n)}')\n",
    "serve.py": "import sys\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\n\n"
    "from square import square\n\n\n"
    "class Handler(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200)\n"
    "        self.end_headers()\n        self.wfile.write(f'{square(12)}\\n'.encode())\n\n\n"
    "HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n",
    "broken.py": "def cube(n):\n    return n * n\n",
    "tests/test_square.py": "import unittest\n\nfrom square import square\n\n\nclass Square(unittest.TestCase):\n"
    "    def test_square(self):\n        self.assertEqual(square(12), 144)\n",
    "tests/test_cube.py": "import unittest\n\nfrom broken import cube\n\n\nclass Cube(unittest.TestCase):\n"
    "    def test_cube(self):\n        self.assertEqual(cube(3), 27)\n",
    "package.json": json.dumps({"name": "square", "version": "1.0.0", "scripts": {"test": "node test/run.js"}}),
    "test/run.js": "const assert = require('assert');\nassert.strictEqual(3 * 3, 9);\nconsole.log('1 passing');\n",
}

Attempt = Callable[..., Measured]


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """One attempt: what the agent does first, what it then claims."""
    project = tmp_path / "square"
    for name, text in FILES.items():
        place = project / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    workspace = tmp_path / "ws"
    done = referee("subject", "add", str(project), "--name", "square", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr

    def run(command: str, returned: str, *, before: str = "", **claims: Any) -> Measured:
        claim = {**GOOD_REPORT, **claims, "verified_how": {"command": command, "returned": returned}}
        made = referee(
            "bringup", "run", "square", "--agent", "command", "--command", leaves_report(claim, before=before),
            "--json", "--workspace", str(workspace),
        )  # fmt: skip
        return Measured(made.returncode, json.loads(made.stdout), made.stderr, workspace)

    return run


def flags(run: Measured) -> list[str]:
    """What demoted the claim."""
    return [one["flag"] for one in run.attempt["audit"]]
