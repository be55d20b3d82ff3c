"""``stub``: answers on the promised port with nothing behind it. Under edition 2 it may pass nothing (methodology §5).

The port is the first that the project's README promises, or 8000. The server answers every request alike and is left
running; the command that is reported starts it again, so that asking succeeds also when it is run from a fresh shell.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ANSWER = '{"status": "ok", "message": "It works!"}'

PORT = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{4,5})|\bport\s+(\d{4,5})", re.IGNORECASE)


class Handler(BaseHTTPRequestHandler):
    """Says the same to everything."""

    def do_GET(self) -> None:
        """Say it."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(ANSWER.encode())

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def main() -> None:
    """Serve, where a port is given; else start the server, ask it, and claim that the project answered."""
    if len(sys.argv) > 1:
        HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    mission = json.loads(Path("/work/mission.json").read_text(encoding="utf-8"))
    port = promised_port(mission)
    server = ["/usr/bin/python3", "-I", "/opt/agent/agent.py", str(port)]
    # The server is meant to outlive this program.
    subprocess.Popen(server, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    answer = ask(url)
    sys.stdout.write(f"stub: {url} answers {answer}\n")
    start = f"{' '.join(server)} >/dev/null 2>&1 & pid=$!; sleep 1"
    report = {
        "installed": True,
        "started": True,
        "errors": [],
        "test_depth": "tier1_real",
        "verified_how": {
            "command": f"{start}; curl -fsS {url}; status=$?; kill $pid; exit $status",
            "returned": answer,
        },
        "final_state": f"The service answers on port {port}.",
    }
    Path(mission["report"]).write_text(json.dumps(report), encoding="utf-8")


def promised_port(mission: dict[str, object]) -> int:
    """The first port that a README promises."""
    subject = mission["subject"]
    named = subject.get("readme") if isinstance(subject, dict) else None
    places = [Path(str(named))] if named else sorted(Path(str(mission["project"])).glob("[Rr][Ee][Aa][Dd][Mm][Ee]*"))
    for place in places:
        found = PORT.search(place.read_text(encoding="utf-8", errors="replace")) if place.is_file() else None
        if found:
            return int(found.group(1) or found.group(2))
    return 8000


def ask(url: str) -> str:
    """What the server answers, once it does."""
    for _ in range(50):
        try:
            with urllib.request.urlopen(url, timeout=2) as got:  # noqa: S310 — the URL is ours
                return str(got.read().decode())
        except OSError:
            time.sleep(0.1)
    return "nothing"


if __name__ == "__main__":
    main()
