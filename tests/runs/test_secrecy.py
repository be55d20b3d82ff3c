"""Neither the run's key nor the upstream's is found anywhere: what a run leaves, and what the host shows meanwhile.

The agent prints its key in every way that a terminal allows, writes it into its report and lets the harness's own
re-run print it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from referee.adapters.catalog.workspace import Config, Workspace
from referee.adapters.store.evidence import LocalEvidence
from referee.cli.keys_at_start import keys_at_start
from referee.cli.wiring import make_keys, open_stores, workspace_id
from referee.core.redaction import Redactor
from referee.core.sieve import shown_free
from referee.runner import series
from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play
from tests.runs.conftest import GOOD_REPORT, leaves_report, referee
from tests.runs.keyed import config, measure_script
from tests.runs.test_keys_in_runs import bodies

pytestmark = [pytest.mark.engine, pytest.mark.slow]

UPSTREAM_KEY = "sk-upstream-of-secrecy-Vb41mQz8TnXw65RkLc2HsYd9"

#: Prints the key plain, in its environment, wrapped at a width, in a frame, in colours, encoded, a letter at a time.
PRINTS = r"""
ask please
K=$(key)
export OPENAI_API_KEY="$K"
env
echo "the key is $K."
echo "$K" | fold -w 9
echo "$K" | fold -w 11 | sed 's/^/| /; s/$/ |/'
python3 - <<'PY'
import base64, json, sys, time
key = open("/run/agent/key").read()
print("".join(f"\x1b[3{at % 8}m{one}\x1b[0m" for at, one in enumerate(key)))
print("".join(f"\x1b[{at + 1};{at + 2}H{one}" for at, one in enumerate(key)))
print(f"\x1b]0;{key}\x07")
print(base64.b64encode(key.encode()).decode(), key.encode().hex(), key[::-1], key.upper())
print(json.dumps({"key": key, "nested": json.dumps({"key": key})}))
print("".join(f"%{ord(one):02x}" for one in key))
for one in key:
    sys.stdout.write(one)
    sys.stdout.flush()
    time.sleep(0.03)
print()
PY
"""

REPORT = {
    **GOOD_REPORT,
    "verified_how": {
        "command": "cat /run/agent/key; echo; python3 /work/project/square.py 12",
        "returned": "12 squared is 144",
    },
    "final_state": "The key was KEY_OF_THE_RUN and square.py printed 144.",
}
#: The agent itself keeps it out of arguments: what it gives its own commands is its own doing.
WRITES_IT_DOWN = leaves_report(
    REPORT,
    after="""python3 - <<'PY'
from pathlib import Path
report = Path("/work/report.json")
report.write_text(report.read_text().replace("KEY_OF_THE_RUN", Path("/run/agent/key").read_text()))
PY""",
)


@dataclass
class Host:
    """What the host shows while a run is under way: its processes' arguments and environments, the engine's words."""

    workspace: Path
    seen: list[bytes] = field(default_factory=list)
    inspected: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look until it is stopped."""
        label = f"label=referee.workspace={workspace_id(Workspace(self.workspace, Config()))}"
        while not self._stop.wait(0.05):
            self.seen.append(_processes())
            ids = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, check=False).stdout
            if ids.strip():
                shown = subprocess.run(["docker", "inspect", *ids.decode().split()], capture_output=True, check=False)
                self.inspected += shown.returncode == 0
                self.seen.append(shown.stdout)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _processes() -> bytes:
    """Arguments of every process of the host, those in machines too, as anyone sees them."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            found.append((directory / "cmdline").read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    monkeypatch.setenv("SCRIPTED_KEY", UPSTREAM_KEY)
    with scripted_model(Play(final="It runs."), key=UPSTREAM_KEY) as server:
        yield server


@pytest.fixture
def workspace(subject: Path, model: ScriptedModel) -> Path:
    found = subject.parent.parent
    (found / "referee.toml").write_text(config(model.url, more=()))
    return found


def secrets_of(workspace: Path, run: str) -> dict[str, str]:
    keys = make_keys(open_stores(workspace).workspace, os.environ)
    try:
        found = keys.secrets(run)
    finally:
        keys.stop()
    assert found is not None
    assert UPSTREAM_KEY in found.values()
    return dict(found)


def left(workspace: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a workspace but its secret."""
    for path in sorted(workspace.rglob("*")):
        if path.is_file() and path != workspace / "keys" / "secret":
            yield str(path.relative_to(workspace)), path.read_bytes()


def assert_free(workspace: Path, run: str, *others: bytes) -> None:
    redactor = Redactor(secrets_of(workspace, run))
    files = list(left(workspace))
    assert len(files) > 10
    holding = [name for name, data in files if not shown_free([data], redactor)]
    assert holding == []
    assert [data for data in others if not shown_free([data], redactor)] == []


def test_a_printed_key_is_found_nowhere(
    workspace: Path, model: ScriptedModel, capfd: pytest.CaptureFixture[str]
) -> None:
    with Host(workspace) as host:
        document = measure_script(workspace, "square", PRINTS + WRITES_IT_DOWN)
    (attempt,) = document["attempts"]
    assert attempt["valid"], attempt["reason"]
    assert attempt["outcome"] == "pass_full", (attempt["reason"], attempt["audit"])
    assert host.inspected > 3
    said = capfd.readouterr()
    built = referee("site", "build", "--workspace", str(workspace))
    assert built.returncode == 0, built.stderr
    assert_free(
        workspace, attempt["run"], said.out.encode(), said.err.encode(), json.dumps(document).encode(), *host.seen
    )
    redactor = Redactor(secrets_of(workspace, attempt["run"]))
    assert not shown_free([model.asked[0].raw + UPSTREAM_KEY.encode()], redactor), "the scan must be able to fail"
    evidence = LocalEvidence(workspace / "evidence")
    raw = evidence.read(attempt["files"]["session.raw"])
    assert raw.count(b"[redacted:run-key]") >= 14
    assert b"HOSTNAME=" in raw, "what is not the key stays"
    report = json.loads(evidence.read(attempt["files"]["report.json"]))
    assert report["final_state"] == "The key was [redacted:run-key] and square.py printed 144."
    again = evidence.read(attempt["files"]["rerun.txt"])
    assert again.startswith(b"[redacted:run-key]")
    assert b"12 squared is 144" in again
    checked = referee("verify", "--workspace", str(workspace))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("printer", "withheld"),
    [
        pytest.param(
            """python3 -c '
key = open("/run/agent/key").read()
print("".join(chr(ord(one) + 0xFEE0) for one in key))'""",
            "session.raw",
            id="full-width letters",
        ),
        pytest.param(
            """python3 -c '
key = open("/run/agent/key").read()
print("".join("x" + chr(27) + "[D" + one for one in key))'""",
            "session.raw",
            id="letters that are gone over",
        ),
    ],
)
def test_what_cannot_be_shown_free_is_withheld_and_repeated(
    workspace: Path, model: ScriptedModel, printer: str, withheld: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MAX_INVALID", 1)
    document = measure_script(workspace, "square", f"ask; {printer}\n{leaves_report(GOOD_REPORT)}")
    attempts = document["attempts"]
    assert [attempt["cause"] for attempt in attempts] == ["credential_in_evidence"] * 2, "repeated"
    for attempt in attempts:
        assert not attempt["valid"]
        assert attempt["retry"]
        assert withheld in attempt["reason"]
        assert not {"session.raw", "session.timing", "session.cast", "transcript.txt"} & set(attempt["files"])
        assert {"harness.jsonl", "lock.json", "facts.json"} <= set(attempt["files"])
        assert_free(workspace, attempt["run"])
    checked = referee("verify", "--workspace", str(workspace))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_dead_run_whose_key_is_not_known_any_more_is_withheld(
    workspace: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.runs.test_keys_in_runs import start  # noqa: PLC0415

    harness = start(workspace, "ask; key; echo working; sleep 60")
    time.sleep(0.3)
    os.killpg(harness.pid, 9)
    harness.wait()
    (planned,) = bodies(workspace, "attempt-planned")
    secrets = secrets_of(workspace, planned["run"])
    (workspace / "keys" / "secret").unlink()
    keys = keys_at_start(open_stores(workspace), (), lambda _: None)
    assert keys is not None
    assert keys.secrets(planned["run"]) is None
    keys.stop()
    done = referee("reap", "--workspace", str(workspace))
    assert done.returncode == 0, done.stderr
    (found,) = bodies(workspace, "attempt-found")
    assert found["cause"] == "credential_in_evidence"
    assert "not known any more" in found["detail"]
    names: set[Any] = {ref["name"] for ref in found["evidence"]}
    assert names <= {"mission.json", "subject.toml", "packages.json", "lock.json"}
    redactor = Redactor(secrets)
    assert [name for name, data in left(workspace) if not shown_free([data], redactor)] == []
