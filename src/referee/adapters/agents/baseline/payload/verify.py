"""Verifies what was brought up, from nothing but ``plan.json`` beside it: run it from any shell, as often as you like.

It starts the services and the display that the plan names, runs each step, decodes every file that the steps made,
and stops what it started. The status is 0 only when every step did what it did when the plan was made.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_VOLATILE = (
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"),
    (re.compile(r"\bin \d+\.\d+s \(\d+:\d{2}:\d{2}\)"), "in …s"),  # of a run longer than a minute only
    (re.compile(r"\b\d+(\.\d+)? ?(ms|µs|us|ns|s|sec|secs|seconds?|minutes?)\b"), "…\\2"),
    (re.compile(r"\b\d{1,2}:\d{2}:\d{2}([.,]\d+)?\b"), "…"),
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/…"),
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
)
#: Lines in which a test runner says how many passed.
COUNTS = re.compile(
    r"\b\d+ (passed|passing|tests?|ok|successes|examples|assertions|specs)\b|^ok\b|test result: ok|^OK\b|# pass|"
    r"Tests run: \d+|tests passed|Tests: +\d+|BUILD SUCCESS|^PASS\b", re.IGNORECASE)  # fmt: skip
_LISTING = re.compile(r"<title>\s*(Directory listing for|Index of|listing directory)", re.IGNORECASE)

_SCRIPT = re.compile(r"""<script[^>]+src=["'](/[^"'/][^"']*)["']""", re.IGNORECASE)

_MAKE = "import sys; sys.path.insert(0, sys.argv[1]); import verify_samples as s; sys.exit(not s.make(sys.argv[2]))"


class Failed(Exception):
    """A step did not do what it did."""


def say(text: str) -> None:
    """Print a line with what changes from run to run masked."""
    sys.stdout.write(steady(text) + "\n")
    sys.stdout.flush()


def steady(text: str) -> str:
    """A line with what changes from run to run masked."""
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text


class Verifier:
    """Carries a plan out."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.cwd: str = plan["cwd"]
        self.env = {**os.environ, **plan.get("env", {})}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.env["PATH"] = ":".join([*plan.get("path", []), path])
        self.started: list[subprocess.Popen[bytes]] = []
        self.ports: list[int] = []

    def shell(self, line: str, cwd: str, **how: Any) -> subprocess.Popen[bytes]:
        """Start a shell line, as the plan's user where it names one."""
        words = ["/bin/bash", "-c", line]
        if self.plan.get("user"):
            user = self.plan["user"]
            self.env["HOME"] = f"/home/{user}"
            words = ["runuser", "-u", user, "--", *words]
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **how,
        )

    def prepare(self) -> None:
        """Services, display, and an empty place to work in."""
        for service in self.plan.get("services", []):
            if subprocess.run(["bash", "-c", service["probe"]], check=False, stderr=subprocess.DEVNULL).returncode == 0:
                continue
            with open(f"/tmp/verify-{service['name']}.log", "wb") as log:
                subprocess.run(
                    ["bash", "-c", service["start"]], check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            for _ in range(80):
                if (
                    subprocess.run(["bash", "-c", service["probe"]], check=False, stderr=subprocess.DEVNULL).returncode
                    == 0
                ):
                    break
                time.sleep(0.5)
            else:
                raise Failed(f"the service {service['name']} does not answer")
            self.ports += [service["port"]] if service.get("port") else []
        if self.plan.get("display"):
            number = next(n for n in range(90, 140) if not os.path.exists(f"/tmp/.X11-unix/X{n}"))
            words = ["Xvfb", f":{number}", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
            server = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self.started.append(server)
            self.env["DISPLAY"] = f":{number}"
            with contextlib.suppress(OSError), open("/root/.Xauthority", "a", encoding="ascii"):
                pass
            time.sleep(2)
        if self.plan.get("scratch"):
            shutil.rmtree(self.cwd, ignore_errors=True)
            os.makedirs(self.cwd)
            if self.plan.get("user"):
                shutil.chown(self.cwd, self.plan["user"])

    def step(self, step: dict[str, Any]) -> None:
        """One step, by its kind."""
        cwd = os.path.join(self.cwd, step.get("cwd", ""))
        kind = step["kind"]
        if kind == "file":
            path = os.path.join(self.cwd, step["name"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(step["text"])
            if self.plan.get("user"):
                shutil.chown(path, self.plan["user"])
            say(f"wrote {step['name']} as documented")
        elif kind == "sample":
            done = subprocess.run([sys.executable, "-c", _MAKE, HERE, step["name"]], cwd=self.cwd, check=False)
            if done.returncode != 0:
                raise Failed(f"no sample {step['name']} could be made")
        elif kind == "server":
            self.server(step, cwd)
        elif kind == "stays":
            self.stays(step, cwd)
        else:
            self.command(step, cwd)

    def command(self, step: dict[str, Any], cwd: str) -> None:
        """A command that ends by itself with status 0 and says what it said."""
        say(f"$ {step.get('title') or step['line']}")
        with tempfile.TemporaryFile() as kept:  # no pipe: what a step leaves in the background would hold it open
            process = self.shell(step["line"], cwd, stdout=kept)
            self.started.append(process)
            try:
                process.wait(step.get("seconds", 120))
            except subprocess.TimeoutExpired:
                end(process)
                raise Failed(f"`{step['line']}` did not end in time") from None
            kept.seek(0)
            output = kept.read().decode("utf-8", "replace")
        lines = [line.rstrip() for line in output.replace("\r", "\n").splitlines() if line.strip()]
        if process.returncode != 0:
            for line in lines[-15:]:
                say(line)
            raise Failed(f"`{step['line']}` ended with status {process.returncode}")
        if step.get("documented"):
            if importlib.import_module("verify_compare").verdict(step["documented"], output) != "same":
                raise Failed(f"`{step['line']}` did not print what is documented")
            say("(as documented)")
        if step["kind"] == "tests":
            lines = [line for line in lines if COUNTS.search(line)][-8:]
            if not lines:
                raise Failed("the tests do not say how many passed")
        if step.get("quiet"):
            say(f"(status 0, {'some' if lines else 'no'} output, not the same from run to run)")
            return
        if "stable" in step:
            seen = {steady(line[:300]) for line in lines}
            for line in step["stable"]:
                if line in seen:
                    say(line)
            say("(status 0; further lines are not the same from run to run)")
            return
        for line in lines[:200]:
            say(line[:300])

    def server(self, step: dict[str, Any], cwd: str) -> None:
        """A server: start it, wait for the port of that very process, ask for its paths, stop it."""
        say(f"$ {step.get('title') or step['line']} &")
        with open("/tmp/verify-server.log", "wb") as log:
            process = self.shell(step["line"], cwd, stdout=log)
        self.started.append(process)
        port = None
        for _ in range(int(step.get("seconds", 60)) * 4):
            ports = ports_of(process.pid)
            wanted = [p for p in ports if p == step.get("port")] or ports
            if wanted:
                port = wanted[0]
                break
            if process.poll() is not None:
                break
            time.sleep(0.25)
        if port is None:
            with open("/tmp/verify-server.log", encoding="utf-8", errors="replace") as log_text:
                say(log_text.read()[-1500:])
            raise Failed("the server opened no port of its own")
        say("it listens on a port of its own")
        for path in step["paths"]:
            status, kind, body = fetch(port, path)
            words = " ".join(body.split())
            text = "(body changes from run to run)" if path in step.get("volatile", []) else words[:300]
            say(f"GET {path} -> {status} {kind} {text}")
            if status != 200 or not body.strip() or _LISTING.search(body):
                raise Failed(f"GET {path} answered {status}, {len(body)} characters")
            self.scripts(port, body)
        end(process)
        if ports_of(process.pid):
            raise Failed("the server could not be stopped")

    def scripts(self, port: int, page: str) -> None:
        """The page's own scripts: a shell of a page is served also where the program behind it does not compile."""
        for source in list(dict.fromkeys(_SCRIPT.findall(page)))[:4]:
            status, kind, body = fetch(port, source)
            say(f"its script {source[:100]} -> {status} {kind}")
            if status >= 500 or (status == 200 and "javascript" in kind and not body.strip()):
                raise Failed(f"GET {source} answered {status}, {len(body)} characters")

    def stays(self, step: dict[str, Any], cwd: str) -> None:
        """A desktop application: its main process stays up and shows a window on the display."""
        say(f"$ {step['line']} &")
        with open("/tmp/verify-desktop.log", "wb") as log:
            process = self.shell(step["line"], cwd, stdout=log)
        self.started.append(process)
        titles: list[str] = []
        for _ in range(40):
            time.sleep(0.5)
            words = ["xwininfo", "-display", self.env.get("DISPLAY", ""), "-root", "-tree"]
            shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout
            titles = sorted(set(re.findall(r'0x[0-9a-f]+ "([^"]+)": \(', shown)))
            if titles or process.poll() is not None:
                break
        time.sleep(5)
        if process.poll() is not None:
            raise Failed(f"`{step['line']}` did not stay up")
        if not titles:
            raise Failed(f"`{step['line']}` shows no window")
        say(f"it stays up and shows: {', '.join(titles)}")
        end(process)

    def decode(self, before: dict[str, tuple[float, int]]) -> None:
        """Decode every file that the steps made."""
        skip = set(self.plan.get("given", []))
        made = [
            name
            for name, mark in snapshot(self.cwd, self.plan).items()
            if before.get(name) != mark and name not in skip
        ]
        if not made:
            return
        line = shlex.join([sys.executable, os.path.join(HERE, "verify_decode.py"), *sorted(made)[:40]])
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.cwd, env=self.env, capture_output=True, text=True, check=False
        )
        for text in done.stdout.splitlines():
            say(text)
        if done.returncode != 0:
            raise Failed("a file that was made cannot be decoded")

    def close(self) -> None:
        """Stop what was started."""
        for process in self.started:
            end(process)
        for port in self.ports:  # services that this run started: whoever listens there
            for sent in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
                for pid in holders(port):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, sent)
                for _ in range(24):
                    if not holders(port):
                        break
                    time.sleep(0.25)


def holders(port: int) -> list[int]:
    """Processes that listen on a TCP port."""
    wanted = {f"socket:[{inode}]" for number, inode in _sockets() if number == port}
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()] if wanted else []
    return [pid for pid in pids if wanted & _handles(pid)]


def _handles(pid: int) -> set[str]:
    """What the open handles of a process lead to."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{handle}"))
    return found


def _sockets() -> list[tuple[int, str]]:
    """The listening TCP ports of this machine with their inodes."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table, encoding="ascii") as stream:
            for line in list(stream)[1:]:
                cells = line.split()
                if cells[3] == "0A":
                    found.append((int(cells[1].rsplit(":", 1)[1], 16), cells[9]))
    return found


def snapshot(root: str, plan: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Modification time and size of every file below ``root``, without what builds leave behind."""
    found: dict[str, tuple[float, int]] = {}
    left_out = {
        "node_modules",
        ".venv",
        ".git",
        "__pycache__",
        "verify",
        "target",
        ".tox",
        "build",
        ".cache",
        ".pytest_cache",
    }
    if not plan.get("scratch"):
        left_out |= {"dist", ".next", "vendor", "obj", "bin", "venv", "coverage"}
    for directory, names, files in os.walk(root):
        names[:] = sorted(
            name for name in names if name not in left_out and not name.startswith(".") and ".egg-info" not in name
        )
        for name in sorted(files):
            path = os.path.join(directory, name)
            with contextlib.suppress(OSError):
                found[os.path.relpath(path, root)] = (os.stat(path).st_mtime, os.stat(path).st_size)
        if len(found) > 5000:
            break
    return found


def tree(root: int) -> set[int]:
    """The process, its children and everyone of its session."""
    found = {root}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stream,
            ):
                cells = stream.read().rsplit(")", 1)[1].split()
                if int(cells[3]) == root:
                    found.add(int(entry))
    return found


def ports_of(root: int) -> list[int]:
    """TCP ports on which that process's session listens."""
    held = {handle for pid in tree(root) for handle in _handles(pid)}
    return [port for port, inode in _sockets() if f"socket:[{inode}]" in held]


def fetch(port: int, path: str) -> tuple[int, str, str]:
    """GET a path from the local server: (status, content type, text); status 0 when nothing came."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for host in ("127.0.0.1", "[::1]"):
        for _ in range(8):
            try:
                with opener.open(f"http://{host}:{port}{path}", timeout=20) as answer:
                    kind = answer.headers.get_content_type()
                    return answer.status, kind, answer.read(200_000).decode("utf-8", "replace")
            except urllib.error.HTTPError as exc:
                return exc.code, exc.headers.get_content_type(), exc.read(2000).decode("utf-8", "replace")
            except OSError:
                time.sleep(0.5)
    return 0, "", ""


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group."""
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(4)
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    """Carry the plan out; 0 when all held."""
    with open(os.path.join(HERE, "plan.json"), encoding="utf-8") as stream:
        verifier = Verifier(json.load(stream))
    try:
        verifier.prepare()
        before = snapshot(verifier.cwd, verifier.plan)
        for step in verifier.plan["steps"]:
            verifier.step(step)
        verifier.decode(before)
    except Failed as exc:
        say(f"NOT verified: {exc}")
        return 1
    finally:
        verifier.close()
    count = len(verifier.plan["steps"])
    say(f"verified: {count} step{'s' if count != 1 else ''} held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
