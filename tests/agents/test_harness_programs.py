"""The real programs, installed at their pinned versions, in machines: what they run sees nothing of theirs, and no file
of the project leads them to another model.

The installations of aider and OpenHands take minutes: they are tried with ``REFEREE_ALL_AGENTS=1``.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from referee.adapters.agents.harnesses.harness import load_harness
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.branding import Masker
from referee.core.records import AgentRef
from referee.protocols import Access
from referee.publish.brands import brand_of
from tests.agents.configured_project import CONFIGURED
from tests.agents.scripted_model import scripted_model
from tests.agents.scripted_play import Play
from tests.agents.site import MISSION, agent, machine, place, run, site

pytestmark = [pytest.mark.engine, pytest.mark.registry, pytest.mark.slow]

PROGRAMS = ["mini-swe-agent", "codex", "opencode", "claude-code", "gemini-cli"]
if os.environ.get("REFEREE_ALL_AGENTS"):
    PROGRAMS += ["aider", "openhands"]

KEY = "sk-run-7d1f0c2b9a8e4f6d5c3b2a190817f6e5"
SEE = "/root/seen"
#: Requests of a program whose every request is refused for good: mini-swe-agent's starter makes it one, others try a
#: few times within seconds, aider nine times within a minute.
MOST_ASKED = {"mini-swe-agent": 1}
FEW = 10
#: What a command of the project sees; each line of a file of its own, so that no format of output matters.
COMMANDS = (
    f"mkdir -p {SEE}; env -0 > {SEE}/environment; /usr/bin/which node npm python3 git rg > {SEE}/programs",
    f"cat /proc/[0-9]*/cmdline > {SEE}/command-lines; ls /run/agent > {SEE}/placed",
    f"python3 -c 'import sys; print(sys.executable, sys.prefix)' > {SEE}/python",
    "printf 'MARK-%s\\n' 42; (exit 3)",
    "printf '{\"left\": true}' > /work/report.json",
)
#: No variable of a runtime, and none of the agent's own.
RUNTIME = re.compile(
    r"(PYTHONHOME|PYTHONPATH|NODE_OPTIONS|NODE_PATH|VIRTUAL_ENV|LD_LIBRARY_PATH|LD_PRELOAD|npm_\w+|BASH_ENV|SHELL)"
)


def neutral(name: str, output: str) -> bytes:
    """The served copy of what a program printed."""
    who = AgentRef(name=f"an-agent-{name}", version="1", digest="agent:sha256:00", harness=name, model="scripted-1")
    return b"".join(Masker(brand_of(who).rules).masked([output.encode()]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_works_by_itself_and_its_commands_see_the_machine_alone(name: str) -> None:
    sandbox = DockerSandbox()
    ready = agent(name, site(sandbox))
    start = ready.prepare()
    address = sandbox.gateway_address()
    with scripted_model(Play(commands=COMMANDS, final="All done."), key=KEY, address=address) as model:
        on = machine(sandbox, start, (address, model.port))
        try:
            access = Access(base_url=f"http://{address}:{model.port}", model="scripted-1", secret=KEY)
            place(on, {**CONFIGURED, **ready.placed(access, {**MISSION, "deadline": time.time() + 600})})
            ran = run(on, start)
            seen = {
                kind: (on.read_file(f"{SEE}/{kind}", max_bytes=1_000_000) or b"").decode()
                for kind in ("environment", "programs", "command-lines", "placed", "python")
            }
            report = on.read_file("/work/report.json", max_bytes=1000)
            left = on.execute(["grep", "-rlF", KEY, "/run", "/root", "/work", "/tmp"], timeout=60).output.decode()
        finally:
            on.destroy()
    assert ran.status == 0, ran.output[-3000:]
    assert report == b'{"left": true}'
    assert model.refused == 0, "it came with another key"
    assert model.count >= 1, "it asked another model"
    variables = dict(row.split("=", 1) for row in seen["environment"].split("\0") if row)
    assert variables["PATH"] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert variables["HOME"] == "/root"
    assert [found for found in variables if RUNTIME.fullmatch(found)] == []
    assert [found for found, value in variables.items() if KEY in value] == []
    assert [found for found, value in variables.items() if "/opt/agent" in value] == []
    # ripgrep is a program of some agents, and none of this machine's.
    assert seen["programs"].split() == [
        "/usr/local/bin/node",
        "/usr/local/bin/npm",
        "/usr/bin/python3",
        "/usr/bin/git",
    ]
    assert seen["python"].split() == ["/usr/bin/python3", "/usr"]
    assert KEY not in seen["command-lines"]
    assert str(MISSION["instructions"]).strip() not in seen["command-lines"]
    assert "environment" not in seen["placed"].split()
    assert left == ""
    # The recording shows what it ran and what came of it.
    assert "mkdir -p" in ran.output
    assert "MARK-42" in ran.output
    assert KEY not in ran.output
    # Its served copy names neither the program nor the model.
    served = neutral(name, ran.output)
    assert b"MARK-42" in served
    assert [word for word in (name, "scripted-1", *load_harness(name).words) if word.encode() in served.lower()] == []


@pytest.mark.parametrize("name", PROGRAMS if os.environ.get("REFEREE_ALL_AGENTS") else ["mini-swe-agent"])
def test_a_program_gives_up_soon_when_its_key_has_reached_its_cap(name: str) -> None:
    sandbox = DockerSandbox()
    ready = agent(name, site(sandbox))
    start = ready.prepare()
    address = sandbox.gateway_address()
    with scripted_model(Play(always="402"), key=KEY, address=address) as model:
        on = machine(sandbox, start, (address, model.port))
        try:
            access = Access(base_url=f"http://{address}:{model.port}", model="scripted-1", secret=KEY)
            place(on, ready.placed(access, {**MISSION, "deadline": time.time() + 600}))
            ran = run(on, start, 120)
            mounts = on.execute(["cat", "/proc/self/mountinfo"], timeout=60).output.decode()
        finally:
            on.destroy()
    assert ran.status is not None, "it still asks"
    assert 1 <= model.count <= MOST_ASKED.get(name, FEW), ran.output[-3000:]
    # The table of mounts, which every command can read, names no program where its tree comes from.
    source = next(row.split()[3] for row in mounts.splitlines() if row.split()[4] == "/opt/agent")
    assert name not in source
    assert re.search(r"/[0-9a-f]{32}/tree$", source)
