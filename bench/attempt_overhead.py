"""What the harness adds to one attempt, beside the same commands by the bare engine API, in one run.

Usage: ``.venv/bin/python bench/attempt_overhead.py [REPEATS]``. Needs a Docker Engine and the environment image.

Three measurements, interleaved so that the machine's mood hits all alike:

bare        create + start + exec (the agent's command) + exec (the re-run) + remove, by the engine's API
referee     one whole attempt in this process: plan, machine, recording, quiet, report, re-run, sealing, record, judging
first byte  the command ``referee bringup run`` in a process of its own, from its start to the agent's first byte

For comparison, measured elsewhere on a machine of this kind: Harbor 0.25 takes 18 to 19 s for a trivial trial.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import docker
from rich.console import Console

from referee.cli.bringup import measure
from referee.cli.progress import Progress
from referee.cli.wiring import make_agent, make_rules, open_stores
from referee.runner.series import Series

GOAL_ADDED = 1.0
GOAL_FIRST_BYTE = 1.5
IMAGE = "referee-env:default"
REPORT = {
    "installed": True,
    "started": True,
    "errors": [],
    "test_depth": "tier1_real",
    "verified_how": {"command": "expr 6 '*' 7", "returned": "42"},
    "final_state": "expr printed 42.",
}
LEAVES = "cat > /work/report.json <<'END'\n" + json.dumps(REPORT) + "\nEND"
COMMAND = f"expr 6 '*' 7\n{LEAVES}"


def bare() -> float:
    """The same two commands by the engine's API alone, seconds."""
    client = docker.from_env().api
    began = time.perf_counter()
    machine = client.create_container(
        IMAGE, ["sleep", "infinity"], host_config=client.create_host_config(init=True), working_dir="/"
    )["Id"]
    client.start(machine)
    for command in (f"mkdir -p /work\n{COMMAND}", "expr 6 '*' 7"):
        started = client.exec_create(machine, ["/bin/bash", "-c", command], tty=True)["Id"]
        client.exec_start(started, tty=True)
        assert client.exec_inspect(started)["ExitCode"] == 0
    client.remove_container(machine, force=True, v=True)
    return time.perf_counter() - began


def whole(workspace: Path) -> tuple[float, dict[str, float]]:
    """One attempt by the referee, seconds, and the seconds of its phases."""
    stores = open_stores(workspace)
    began = time.perf_counter()
    document = measure(
        "bench",
        stores=stores,
        series=Series("runs", 1),
        agents=[make_agent("command", COMMAND, stores.workspace)],
        rules=make_rules(stores.workspace, None, None),
        sandbox_choice="docker",
        progress=Progress(Console(stderr=True), quiet=True),
    )
    seconds = time.perf_counter() - began
    attempt = document["attempts"][0]
    assert attempt["valid"], attempt
    assert attempt["rerun"]["exit_status"] == 0, attempt
    return seconds, attempt["phases"]


def first_byte(workspace: Path) -> float:
    """From starting the command to the first byte of the agent in its recording, seconds."""
    before = set(workspace.glob("spool/*/session.raw"))
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "referee.cli.app", "bringup", "run", "bench", "--agent", "command", "--command",
         f"echo begun; sleep 1; {COMMAND}", "--sandbox", "docker", "--quiet", "--workspace", str(workspace)],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while True:
        for raw in set(workspace.glob("spool/*/session.raw")) - before:
            try:
                if raw.stat().st_size:
                    seconds = time.perf_counter() - began
                    process.wait()
                    return seconds
            except FileNotFoundError:
                continue
        assert process.poll() is None, "the command ended before its agent wrote a byte"
        time.sleep(0.002)


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch) / "workspace"
        project = Path(scratch) / "bench"
        project.mkdir()
        (project / "README.md").write_text("# bench\n")
        subprocess.run(
            [sys.executable, "-m", "referee.cli.app", "subject", "add", str(project), "--name", "bench",
             "--workspace", str(workspace)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        bare()
        whole(workspace)
        rows: dict[str, list[float]] = {"bare": [], "referee": [], "first byte": []}
        phases: dict[str, list[float]] = {}
        for _ in range(repeats):
            rows["bare"].append(bare())
            seconds, parts = whole(workspace)
            rows["referee"].append(seconds)
            for name, value in parts.items():
                phases.setdefault(name, []).append(value)
            rows["first byte"].append(first_byte(workspace))
    for name, values in rows.items():
        print(f"{name:<11} median {statistics.median(values):.3f} s  (min {min(values):.3f}, max {max(values):.3f})")
    print("phases      " + "  ".join(f"{name} {statistics.median(values):.3f}" for name, values in phases.items()))
    added = statistics.median(rows["referee"]) - statistics.median(rows["bare"])
    opened = statistics.median(rows["first byte"])
    print(f"added       {added:.3f} s (goal <= {GOAL_ADDED} s): {'met' if added <= GOAL_ADDED else 'MISSED'}")
    print(
        f"first byte  {opened:.3f} s (goal <= {GOAL_FIRST_BYTE} s): {'met' if opened <= GOAL_FIRST_BYTE else 'MISSED'}"
    )
    return 0 if added <= GOAL_ADDED and opened <= GOAL_FIRST_BYTE else 1


if __name__ == "__main__":
    sys.exit(main())
