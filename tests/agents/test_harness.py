"""The harnesses that ship: their descriptions, what they place, and agent files that name them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from referee.adapters.agents.command_agent import MODEL_FILE, CommandAgent
from referee.adapters.agents.harnesses.harness import ROOT, Start, harness_names, load_harness
from referee.adapters.agents.harnesses.launch import ENVIRONMENT, SHELL, STARTER, TASK, placed_files
from referee.adapters.agents.harnesses.task import task_text
from referee.adapters.catalog.agents import load_agent_file
from referee.adapters.catalog.workspace import Config, UpstreamSetting, Workspace
from referee.benchmarks.bringup.mission import mission
from referee.cli.wiring import make_agent
from referee.errors import ConfigError, NothingMatched, UsageError
from referee.protocols import Access, ModelNeed

NAMED = {"mini-swe-agent", "codex", "claude-code", "gemini-cli", "opencode", "aider", "openhands"}
SECRET = "tok-0123456789abcdef"
ACCESS = Access(base_url="http://172.20.0.1:40123", model="vendor/some-model:1", secret=SECRET)
MISSION = mission(
    kind="package", facts={"name": "segno", "version": "1.6.6", "languages": ["Python"]}, display=False, seconds=5400
)


def workspace(root: Path) -> Workspace:
    return Workspace(root, Config(upstreams={"main": UpstreamSetting(base_url="https://model.example/v1")}))


def write(root: Path, text: str, name: str = "mine") -> None:
    (root / "agents").mkdir(exist_ok=True)
    (root / "agents" / f"{name}.toml").write_text(f'schema = "referee.agent/1"\nname = "{name}"\n{text}')


def test_the_programs_that_the_methodology_names_ship() -> None:
    assert set(harness_names()) >= NAMED


@pytest.mark.parametrize("name", harness_names())
def test_each_lock_pins_and_hashes_everything_and_names_no_registry(name: str) -> None:
    harness = load_harness(name)
    files = harness.installed_files()
    locks = [file for file in files if file.endswith((".lock", "lock.json"))]
    assert locks
    for file in locks:
        text = files[file].decode()
        assert "://" not in text
        if file.endswith(".lock"):
            rows = [row for row in text.splitlines() if row and not row.startswith((" ", "#"))]
            assert rows
            for row in rows:
                assert re.match(r"[A-Za-z0-9._-]+(\[[a-z0-9,]+\])?==\S+", row), row
            assert text.count("--hash=sha256:") >= len(rows)
            continue
        packages = {place: about for place, about in json.loads(text)["packages"].items() if place}
        assert packages
        assert all(about["integrity"].startswith("sha512-") for about in packages.values())
        assert harness.version in {about["version"] for about in packages.values()}


@pytest.mark.parametrize("name", harness_names())
def test_the_key_stands_in_files_for_root_alone_and_never_in_what_is_started(name: str) -> None:
    harness = load_harness(name)
    files = placed_files(harness, ACCESS, task_text(MISSION))
    holding = {path for path, file in files.items() if SECRET.encode() in file.data}
    assert ENVIRONMENT in holding
    assert all(files[path].mode == 0o600 for path in holding)
    starter = files[STARTER].data.decode()
    assert SECRET not in starter
    assert starter.index(f"rm -f {ENVIRONMENT}") < starter.index("exec ")
    # What a deleted environment file left in other files would stay where the project could read it.
    assert holding == {ENVIRONMENT}
    assert all("{{" not in file.data.decode() for file in files.values())


@pytest.mark.parametrize("name", harness_names())
def test_every_program_is_told_the_same_task_by_a_file(name: str) -> None:
    told = {**MISSION, "deadline": 1796025600.0}
    files = placed_files(load_harness(name), ACCESS, task_text(told))
    text = files[TASK].data.decode()
    assert text.startswith(str(MISSION["instructions"]).rstrip())
    for words in ("segno", "1.6.6", "/work/project", "/work/report.json", "90 minutes", "2026-11-30 08:00:00 UTC"):
        assert words in text
    starter = files[STARTER].data.decode()
    assert TASK in starter
    assert "segno" not in starter


def test_a_shell_hides_what_is_the_programs() -> None:
    harness = load_harness("opencode")
    files = placed_files(harness, ACCESS, "x")
    hidden = next(line for line in files[SHELL].data.decode().splitlines() if line.startswith("unset ")).split()[1:]
    assert {"SHELL", "AGENT_KEY", "OPENCODE_CONFIG_CONTENT", "npm_config_user_agent"} <= set(hidden)
    assert "PATH" not in hidden


def test_a_key_in_an_argument_list_is_no_harness() -> None:
    with pytest.raises(ValueError, match="the key never stands in an argument list"):
        Start(argv=("program", "--key={{key}}"))


def test_a_name_that_no_configuration_takes_is_refused_before_anything_starts() -> None:
    odd = Access(base_url="http://h:1", model='x"\nbase_url = "http://elsewhere', secret=SECRET)
    with pytest.raises(UsageError, match=r"the model .* has an unusual character"):
        placed_files(load_harness("codex"), odd, "x")
    spoilt = Access(base_url="http://h:1", model="m", secret="a\nb")
    with pytest.raises(UsageError) as caught:
        placed_files(load_harness("codex"), spoilt, "x")
    assert "a\nb" not in caught.value.message


def test_an_agent_file_of_a_harness_makes_the_agent(tmp_path: Path) -> None:
    write(tmp_path, 'harness = "codex"\nmodel = "some-model"\nupstream = "main"\ntier = "stronger"\n')
    agent = make_agent("mine", None, workspace(tmp_path))
    assert (agent.harness, agent.version, agent.tier) == ("codex", load_harness("codex").version, "stronger")
    assert agent.need == ModelNeed(model="some-model", dialect="openai-responses", upstream="main")
    write(tmp_path, 'harness = "codex"\nmodel = "other-model"\nupstream = "main"\n')
    other = make_agent("mine", None, workspace(tmp_path))
    assert agent.digest() != other.digest()
    assert agent.digest() == agent.digest()


def test_a_command_with_a_model_finds_it_in_one_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        'version = "1"\ncommand = ["run"]\nmodel = "m"\nupstream = "main"\ndialect = "openai-chat"\n',
    )
    agent = make_agent("mine", None, workspace(tmp_path))
    assert isinstance(agent, CommandAgent)
    files = agent.placed(ACCESS, MISSION)
    assert set(files) == {MODEL_FILE}
    assert files[MODEL_FILE].mode == 0o600
    assert json.loads(files[MODEL_FILE].data) == {
        "base_url": ACCESS.base_url,
        "model": ACCESS.model,
        "dialect": "openai-chat",
        "key": SECRET,
    }
    plain = CommandAgent(name="mine", version="1", argv=("run",))
    assert plain.placed(ACCESS, MISSION) == {}
    assert plain.digest() != agent.digest()


@pytest.mark.parametrize(
    ("text", "wrong", "todo"),
    [
        ('harness = "codex"\nupstream = "main"\n', "the harness codex needs a field model", "model = "),
        ('harness = "codex"\nmodel = "m"\n', "the harness codex needs a field upstream", "[upstreams.NAME]"),
        (
            'harness = "codex"\nmodel = "m"\nupstream = "main"\ncommand = "x"\n',
            "an agent of a harness takes no command",
            "leave command out",
        ),
        (
            'harness = "codex"\nmodel = "m"\nupstream = "main"\nenvironment = {A = "1"}\n',
            "an agent of a harness takes no environment",
            "leave environment out",
        ),
        ('version = "1"\n', "it names neither a harness nor a command", "give one of the two"),
        ('command = "x"\n', "an agent with a command needs a version", "version = "),
        (
            'version = "1"\ncommand = "x"\nmodel = "m"\n',
            "a command that is given a model needs a field upstream",
            "[upstreams.NAME]",
        ),
        ('harness = "codex"\nmodel = "m n"\nupstream = "main"\n', "model: String should match pattern", ""),
        ('harness = "codex"\nmodle = "m"\n', "unknown key `modle`; did you mean `model`?", ""),
    ],
)
def test_a_bad_agent_file_is_told_in_one_sentence(tmp_path: Path, text: str, wrong: str, todo: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_agent_file("mine", tmp_path / "agents")
    assert caught.value.message.startswith(f"{tmp_path / 'agents' / 'mine.toml'}: {wrong}")
    assert todo in caught.value.todo


def test_names_that_match_nothing_say_what_there_is(tmp_path: Path) -> None:
    write(tmp_path, 'harness = "codexx"\nmodel = "m"\nupstream = "main"\n')
    with pytest.raises(ConfigError, match=r"mine\.toml: there is no harness named 'codexx'") as caught:
        make_agent("mine", None, workspace(tmp_path))
    assert "codex" in caught.value.todo
    write(tmp_path, 'harness = "codex"\nmodel = "m"\nupstream = "elsewhere"\n')
    with pytest.raises(ConfigError, match="names the upstream elsewhere, and the workspace has none") as missing:
        make_agent("mine", None, workspace(tmp_path))
    assert "[upstreams.elsewhere]" in missing.value.todo


def test_every_harness_directory_is_described_and_has_at_most_one_file_of_code() -> None:
    for directory in (path for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"):
        files = {file.name for file in directory.iterdir() if file.name != "__pycache__"}
        assert "harness.toml" in files
        assert len([name for name in files if name.endswith(".py")]) <= 1


def test_who_names_an_agent_that_is_not_there_is_told_all_that_are(tmp_path: Path) -> None:
    write(tmp_path, 'version = "1"\ncommand = "true"\n')
    with pytest.raises(NothingMatched) as caught:
        load_agent_file("nobody", tmp_path / "agents")
    assert caught.value.todo == "known agents: baseline, command, liar, mine, null, stub"
