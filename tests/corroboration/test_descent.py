"""A server of the project that an agent mended or built stays the project's; another in its place does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from referee.core.records import ListenerFacts
from referee.protocols import Machine
from referee.runner.observing import Observer

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVE = """import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from collections import Mapping
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({'path': self.path, 'map': isinstance({}, Mapping)}).encode())
HTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
"""
SOURCE = """import http = require('http');
http.createServer((q: any, r: any) => { const n = Number(q.url.split('/').pop()); r.end(JSON.stringify({n})); })
  .listen(8000);
"""
BUILT = '"use strict";\n' + SOURCE.replace(": any", "").replace("import http", "const http")
FAKE = "import http.server\nhttp.server.HTTPServer(('', 8000), None).serve_forever()\n"
FAKE_NODE = "require('http').createServer((request, answer) => answer.write('144')).listen(8000);\n"


class Holding:
    """A machine with some files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        text = self.files.get(path)
        return None if text is None else text.encode()[:max_bytes]


@pytest.mark.parametrize(
    ("place", "text", "agents"),
    [
        ("serve.py", SERVE.replace("collections import", "collections.abc import"), False),
        ("dist/server.js", BUILT, False),
        ("serve.py", FAKE, True),
        ("fake.py", SERVE, True),
        ("dist/server.js", FAKE_NODE, True),
        ("dist/other.js", BUILT, True),
    ],
)
def test_a_mended_or_built_server_is_the_projects(place: str, text: str, *, agents: bool, tmp_path: Path) -> None:
    pinned = tmp_path / "pinned"
    for name, source in {"serve.py": SERVE, "src/server.ts": SOURCE}.items():
        file = pinned / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    path = f"/work/project/{place}"
    argv = ("node" if place.endswith("js") else "python3", path)
    seen = ListenerFacts(port=8000, address="127.0.0.1", pid=9, executable=None, argv=argv, cwd="/")
    machine = cast("Machine", Holding({path: text}))
    observer = Observer("r-0123456789ab", pinned, tmp_path, lambda: machine, names=())
    observer._read_behind(machine, (seen,))
    assert (observer._behind[path] is not None) is agents
