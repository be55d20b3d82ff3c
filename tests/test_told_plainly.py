"""What a newcomer meets first: misspelt keys, broken files, wrong workspaces, told in a sentence that helps."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from referee.adapters.catalog.workspace import CONFIG_NAME, open_workspace
from referee.adapters.store.records import RecordFiles
from referee.cli.app import make_app
from referee.cli.bringup import left_behind
from referee.core.failure import Cause
from referee.core.records import AttemptEnded, AttemptPlanned
from referee.errors import EXIT_INTERRUPTED, ConfigError, NothingMatched, UsageError
from referee.runner.journal import Journal
from referee.runner.series import Patience, Series, run_series
from tests.publish_workspace import Written


def run(*argv: str) -> Result:
    """The command line, in this process; what it raises is in the result."""
    return CliRunner().invoke(make_app(argv[0]), list(argv))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[keys]\ncapusd = 3\n", "unknown key `keys.capusd`; did you mean `cap_usd`?"),
        ("[kyes]\ncap_usd = 3\n", "unknown key `kyes`; did you mean `keys`?"),
        ("zzz = 3\n", "unknown key `zzz`; known there: budgets"),
        (
            '[upstreams.lab]\nbase_url = "http://127.0.0.1/v1"\n[upstreams.lab.prices.lab-small]\ninput = 1\n',
            "`upstreams.lab.prices.lab-small.output` is missing; add it",
        ),
        (
            '[upstreams.lab]\nbase_url = "http://lab/v1"\nprices.small = {input = 1, output = 1, chached_input = 1}',
            "unknown key `upstreams.lab.prices.small.chached_input`; did you mean `cached_input`?",
        ),
    ],
)
def test_a_key_that_is_not_known_or_missing_is_said_in_plain_words(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / CONFIG_NAME).write_text(text)
    with pytest.raises(ConfigError) as caught:
        open_workspace(tmp_path)
    assert said in caught.value.message


def write_agent(workspace: Path, file: str, text: str) -> None:
    (workspace / "agents").mkdir(exist_ok=True)
    (workspace / "agents" / f"{file}.toml").write_text(f'schema = "referee.agent/1"\n{text}')


def test_a_broken_agent_file_hides_no_good_one(tmp_path: Path) -> None:
    write_agent(tmp_path, "good", 'name = "good"\nversion = "1"\ncommand = "true"\n')
    write_agent(tmp_path, "typo", 'name = "typo"\nversion = "1"\ncomand = "true"\n')
    done = run("agent", "list", "-w", str(tmp_path))
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["agent", "baseline", "command", "null", "liar", "stub", "good"]
    assert isinstance(done.exception, ConfigError)
    assert f"{tmp_path / 'agents' / 'typo.toml'}: unknown key `comand`; did you mean `command`?" in str(done.exception)

    (tmp_path / CONFIG_NAME).write_text('[upstreams.main]\nbase_url = "http://lab/v1"\n')
    write_agent(tmp_path, "prog", 'name = "prog"\nharness = "codexx"\nmodel = "m"\nupstream = "main"\n')
    write_agent(tmp_path, "null", 'name = "null"\nversion = "1"\ncommand = "true"\n')
    done = run("agent", "list", "--json", "-w", str(tmp_path))
    document = json.loads(done.stdout)
    assert [row["name"] for row in document["agents"]] == ["baseline", "command", "null", "liar", "stub", "good"]
    assert [Path(one["message"].split(":")[0]).stem for one in document["broken"]] == ["null", "prog", "typo"]
    assert isinstance(done.exception, ConfigError)
    for name in (
        "null.toml: null is the name of a built-in",
        "prog.toml: there is no harness",
        "typo.toml: unknown key",
    ):
        assert name in done.exception.message


def test_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    write_agent(tmp_path, "one", 'name = "two"\nversion = "1"\ncommand = "true"\n')
    done = run("agent", "show", "one", "-w", str(tmp_path))
    assert isinstance(done.exception, ConfigError)
    assert "one.toml: the file is called one and its name is two" in done.exception.message


def test_a_workspace_without_runs_says_so(tmp_path: Path) -> None:
    done = run("show", "last", "-w", str(tmp_path))
    assert isinstance(done.exception, NothingMatched)
    assert done.exception.message == "there is no run here yet"
    assert "There is no run here yet" in run("show", "-w", str(tmp_path)).stdout


def test_show_lists_the_runs_and_tells_what_its_control_and_challenges_came_to(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write()
    listed = json.loads(run("show", "--json", "-w", str(tmp_path)).stdout)["runs"]
    planned = [record.run for record in RecordFiles(tmp_path / "records").read() if isinstance(record, AttemptPlanned)]
    assert sorted(one["run"] for one in listed) == sorted(planned)
    lines = {line.split()[0]: line for line in run("show", "-w", str(tmp_path)).stdout.splitlines()[1:]}
    assert list(lines) == [one["run"] for one in listed]
    assert "pass, verified for real" in lines["r-000000000pass"]
    times = [line.split("  ")[1] for line in lines.values()]
    assert times == sorted(times, reverse=True)

    ends = [record for record in RecordFiles(tmp_path / "records").read() if isinstance(record, AttemptEnded)]
    seen = next(record.run for record in ends if record.observed is not None)
    shown = run("show", seen, "-w", str(tmp_path)).stdout
    (control,) = (line for line in shown.splitlines() if line.startswith("control"))
    assert control.split(maxsplit=1)[1] == "on a fresh machine without the project: exit status 1"
    assert "\nchallenge       12 replaced by " in shown
    assert ": stopped at its time limit" in shown

    unknown = run("show", "r-nosuchrun", "-w", str(tmp_path))
    assert isinstance(unknown.exception, NothingMatched)
    assert "`referee show`" in unknown.exception.todo


READING = (
    ("keys", "list"),
    ("keys", "sweep"),
    ("agent", "list"),
    ("agent", "show", "baseline"),
    ("subject", "list"),
    ("config", "show"),
    ("show",),
    ("board",),
    ("verdict", "segno"),
    ("verify",),
    ("site", "build"),
)


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_a_named_workspace_that_is_not_there_is_a_slip(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "nowhere"
    done = run(*argv, "-w", str(there))
    assert isinstance(done.exception, UsageError)
    assert (done.exception.message, done.exception.todo) == (
        f"the workspace {there} does not exist",
        "correct --workspace",
    )
    monkeypatch.setenv("REFEREE_WORKSPACE", str(there))
    done = run(*argv)
    assert isinstance(done.exception, UsageError)
    assert done.exception.todo == "correct REFEREE_WORKSPACE"
    assert list(tmp_path.iterdir()) == []


def test_the_usual_workspace_need_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REFEREE_WORKSPACE", raising=False)
    assert "no key was issued" in run("keys", "list").stdout
    assert run("board").exit_code == 0
    assert list(tmp_path.iterdir()) == []


#: Asks the engine as somebody whom the system may refuse: root is denied nothing.
_CONNECT = """
import os
from referee.adapters.docker.engine import connect
if os.geteuid() == 0:
    os.setuid(65534)
connect()
"""


def test_a_denied_socket_is_not_an_engine_that_is_missing() -> None:
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listening:
        Path(directory).chmod(0o755)
        file = f"{directory}/docker.sock"
        listening.bind(file)
        listening.listen()
        Path(file).chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", _CONNECT],
            env={"DOCKER_HOST": f"unix://{file}"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "EngineUnavailable: the socket of Docker Engine is denied to this user" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("argv", [("show",), ("agent", "list")], ids=" ".join)
def test_an_interrupted_command_says_so(argv: tuple[str, ...], tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from referee.cli import app, wiring\n"
        "def interrupt(*_, **__): raise KeyboardInterrupt\n"
        f"wiring.find_root = wiring.open_workspace = interrupt; sys.argv = ['referee', *{argv!r}]; app.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, "referee: interrupted\n")


def test_an_interrupted_phase_is_told_in_a_word(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "harness.jsonl", lambda _: None)
    with pytest.raises(KeyboardInterrupt), journal.phase("agent"):
        raise KeyboardInterrupt
    journal.close()
    assert json.loads((tmp_path / "harness.jsonl").read_text())["error"] == "interrupted"


def test_who_waits_for_a_key_is_told_how_often_still() -> None:
    told: list[str] = []
    none = Judged(valid=False, retry=True, cause=Cause.KEY_UNAVAILABLE)
    patience = Patience(first_seconds=1.0, tries=2, sleep=lambda _: None, tell=told.append)
    made = run_series(Series("runs", 1), tier="standard", attempt=lambda _: none, patience=patience)  # type: ignore[arg-type,return-value]
    assert len(made) == 3
    assert told == ["  trying again in 1 s (2 tries left)", "  trying again in 2 s (the last try)"]


@dataclass(frozen=True)
class Judged:
    """As much of a judgement as a series and its end look at."""

    valid: bool
    retry: bool
    cause: Cause | None
    run: str = "r-1"

    def sentence(self) -> str:
        """As a judgement's."""
        return "invalid: no key"


def test_an_interrupted_series_lists_what_was_made() -> None:
    none = Judged(valid=False, retry=True, cause=Cause.KEY_UNAVAILABLE)
    said = left_behind([none])  # type: ignore[list-item]
    assert said == "the series was interrupted after 1 ended attempt: r-1: invalid: no key"
    assert left_behind([]) == "the series was interrupted after 0 ended attempts"
