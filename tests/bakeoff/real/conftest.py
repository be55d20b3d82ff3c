"""Real servers and programs for the tests: installed by scripts/servers.sh, started on loopback, ended with the tests.

Where one cannot be had the tests that need it are skipped with the reason; with ``CI=true`` that is a failure.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.bakeoff.real.tiny_model import write_tiny_model
from tests.conftest import skip_or_fail

ROOT = Path(__file__).parents[3]
SERVERS = ROOT / "build" / "servers"
_HERE = Path(__file__).parent
_START_SECONDS = 120.0

GATEWAY_KEY = "sk-gateway-0123456789abcdef"

_GATEWAY_CONFIG = """\
model_list:
  - model_name: says
    litellm_params: {model: openai/says, api_key: none, mock_response: "Da passt kein Werkzeug."}
  - model_name: calls
    litellm_params:
      model: openai/calls
      api_key: none
      mock_response: ""
      mock_tool_calls:
        - id: call_1
          type: function
          function: {name: calendar_create, arguments: '{"title": "Zahnarzt", "date": "2026-07-24"}'}
  - model_name: limited
    litellm_params: {model: openai/limited, api_key: none, mock_response: litellm.RateLimitError}
  - model_name: broken
    litellm_params: {model: openai/broken, api_key: none, mock_response: litellm.InternalServerError}
  - model_name: long
    litellm_params: {model: openai/long, api_key: none, mock_response: litellm.ContextWindowExceededError}
general_settings: {master_key: os.environ/GATEWAY_KEY}
litellm_settings: {num_retries: 0, telemetry: false}
router_settings: {num_retries: 0}
"""


def _installed(part: str) -> Path:
    """Where a part stands; installed now if it does not."""
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / f".{part}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["bash", str(ROOT / "scripts" / "servers.sh"), part], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        skip_or_fail(f"{part} cannot be installed: {(done.stderr or done.stdout)[-2000:]}")
    return SERVERS / part


@contextmanager
def _running(argv: list[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server in its own process group, ended at the end. What it says stands in ``log``."""
    with log.open("wb") as out:
        server = subprocess.Popen(
            argv, env=dict(environment), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        with suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    pytest.fail(f"the server does not answer at {url}: {log.read_text('utf-8', 'replace')[-3000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _bare(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **more}


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of llama.cpp's server with a tiny model of random weights."""
    part = _installed("engine")
    home = tmp_path_factory.mktemp("engine")
    model, log, port = home / "random.gguf", home / "log", _free_port()
    write_tiny_model(model)
    argv = [str(part / "bin" / "python"), str(_HERE / "serve_engine.py"), str(model), str(port)]
    with _running(argv, _bare(home), log) as server:
        url = f"http://127.0.0.1:{port}"
        _await(server, f"{url}/health", log)
        yield url


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of litellm's proxy with mock responses; its key is ``GATEWAY_KEY``."""
    part = _installed("gateway")
    home = tmp_path_factory.mktemp("gateway")
    config, log, port = home / "config.yaml", home / "log", _free_port()
    config.write_text(_GATEWAY_CONFIG, encoding="utf-8")
    argv = [str(part / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = _bare(home, LITELLM_LOCAL_MODEL_COST_MAP="True", GATEWAY_KEY=GATEWAY_KEY)
    with _running(argv, environment, log) as server:
        url = f"http://127.0.0.1:{port}"
        _await(server, f"{url}/health/liveliness", log)
        yield url


@pytest.fixture(scope="session")
def agents() -> Mapping[str, Path]:
    """The programs of the agent CLIs from npm, by their names in a target."""
    modules = _installed("agents") / "node_modules"
    return {
        "claude": modules / "@anthropic-ai" / "claude-code-linux-x64" / "claude",
        "codex": modules / ".bin" / "codex",
        "gemini": modules / ".bin" / "gemini",
        "opencode": modules / "opencode-linux-x64" / "bin" / "opencode",
    }
