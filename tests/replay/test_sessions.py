"""What recordings tell, by format: real recordings of the shipped programs, and what goes wrong in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referee.core.sessions.command_lines import MIXED
from referee.core.sessions.reading import READERS, commands_bytes, read, that_can_be_kept
from referee.core.sessions.steps import Step, Told

HERE = Path(__file__).parent / "recordings"
FIRST = "python3 square.py 12 && mkdir -p /opt/t && cp square.py /opt/t/s.py"


def recording(name: str) -> bytes:
    return (HERE / f"{name}.raw").read_bytes()


def rows(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\r\n" for event in events)


def told(harness: str | None, raw: bytes) -> Told:
    """What a recording tells, the same however its bytes are cut."""
    whole = read(harness, [raw])
    assert read(harness, (raw[at : at + 7] for at in range(0, len(raw), 7))) == whole
    return whole


@pytest.mark.parametrize("harness", ["claude-code", "codex", "opencode", "gemini-cli", "mini-swe-agent"])
def test_a_real_session_tells_its_two_commands_and_their_status(harness: str) -> None:
    found = told(harness, recording(harness))
    assert found.why_not is None
    assert len(found.steps) == 2
    first, second = found.steps
    # Gemini CLI says of a command that failed, too, that it succeeded.
    known = None if harness == "gemini-cli" else 0
    assert (first.kind, first.status, first.stopped) == ("command", known, False)
    assert FIRST in first.text
    assert "cat > /work/report.json" in second.text
    assert second.text.count("\n") == 2, "a command of several lines is told whole"


def test_codex_is_honest_about_places_and_changes() -> None:
    raw = recording("codex") + rows(
        {"type": "item.completed", "item": {"id": "item_9", "type": "file_change", "status": "completed",
                                            "changes": [{"path": "/work/project/a.py", "kind": "add"}]}},
    )  # fmt: skip
    found = told("codex", raw)
    assert found.untold == (
        "it changed /work/project/a.py, and the recording does not tell how",
        "the recording does not tell in which directory each command ran",
    )


def test_a_declined_command_was_none() -> None:
    item = {"id": "i", "type": "command_execution", "command": "rm -rf /", "exit_code": None, "status": "declined"}
    raw = rows({"type": "thread.started"}, {"type": "turn.started"}, {"type": "item.completed", "item": item})
    assert told("codex", raw).steps == ()


def test_a_command_that_gemini_refused_was_none() -> None:
    raw = rows(
        {"type": "init"},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "a", "parameters": {"command": "echo $(id)"}},
        {"type": "tool_result", "tool_id": "a", "status": "success",
         "output": "Blocked: command substitution detected in shell command."},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "b", "parameters": {"command": "id"}},
        {"type": "tool_result", "tool_id": "b", "status": "success", "output": "uid=0(root)"},
    )  # fmt: skip
    assert [step.text for step in told("gemini-cli", raw).steps] == ["id"]


def test_a_broken_event_is_said_and_a_noisy_line_is_not() -> None:
    broken = recording("codex").replace(b'{"type":"turn.completed"', b'{"type":"turn.comp\r\nleted"', 1)
    assert any("cannot be read" in sentence for sentence in told("codex", broken).untold)
    noisy = b"{} warning { of a program\r\n" + recording("codex")
    assert told("codex", noisy) == told("codex", recording("codex"))


@pytest.mark.parametrize("harness", sorted(READERS))
def test_a_recording_without_events_tells_nothing_and_says_so(harness: str) -> None:
    found = told(harness, b"$ pip install thing\r\nSuccessfully installed\r\n\x1b[0m{not json}\r\n")
    assert (found.steps, bool(found.why_not)) == ((), True)


def test_opencode_tells_changes_whole() -> None:
    def tool(name: str, status: str = "completed", **given: Any) -> dict[str, Any]:
        state = {"status": status, "input": given, "metadata": {}}
        part = {"type": "tool", "tool": name, "callID": f"{name}{status}", "state": state}
        return {"type": "tool_use", "sessionID": "s", "part": part}

    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n one\n-two\n+three\n*** Delete File: b.py\n*** End Patch"
    found = told("opencode", rows(
        tool("write", filePath="/work/project/a.py", content="one\ntwo\n"),
        tool("edit", filePath="/work/project/a.py", oldString="two", newString="2", replaceAll=True),
        tool("edit", status="error", filePath="/work/project/a.py", oldString="absent", newString="2"),
        tool("apply_patch", patchText=patch),
        tool("read", filePath="/etc/passwd"),
        tool("task", description="a helper of its own"),
    ))  # fmt: skip
    assert found.steps == (
        Step(kind="write", path="/work/project/a.py", text="one\ntwo\n"),
        Step(kind="replace", path="/work/project/a.py", old="two", text="2", every=True),
        Step(kind="replace", path="a.py", old="one\ntwo\n", text="one\nthree\n"),
        Step(kind="remove", path="b.py"),
    )
    assert found.untold == ("it used task, and the recording does not tell what that changed",)


def test_claude_code_tells_where_its_shell_was_moved_and_what_ran_on() -> None:
    def use(name: str, tool: str, **given: Any) -> dict[str, Any]:
        part = {"type": "tool_use", "id": name, "name": tool, "input": given}
        return {"type": "assistant", "message": {"content": [part]}}

    def result(name: str, said: str, *, failed: bool = False) -> dict[str, Any]:
        part = {"type": "tool_result", "tool_use_id": name, "content": said, "is_error": failed}
        return {"type": "user", "message": {"content": [part]}}

    found = told("claude-code", rows(
        use("1", "Bash", command="cd /tmp && make", timeout=5000), result("1", "Exit code 2\nno rule", failed=True),
        use("2", "Bash", command="cd /"), result("2", "\nShell cwd was reset to /work/project"),
        use("3", "Bash", command="serve", run_in_background=True), result("3", "running in background"),
        use("4", "Edit", file_path="/a", old_string="x", new_string="y"), result("4", "no such text", failed=True),
        use("5", "Write", file_path="/b", content="text"), result("5", "ok"),
    ))  # fmt: skip
    assert found.processes == "place"
    make, moved, serve, write = found.steps
    assert (make.status, make.seconds) == (2, 5.0)
    assert (moved.status, moved.then_cwd) == (0, "/work/project")
    assert serve.background
    assert (write.kind, write.path) == ("write", "/b")


def test_openhands_keeps_one_shell_and_its_typed_answers_are_not_guessed() -> None:
    found = told("openhands", rows(
        {"id": 1, "action": "run", "args": {"command": "export A=1"}},
        {"id": 2, "cause": 1, "observation": "run", "extras": {"metadata": {"exit_code": 0}}},
        {"id": 3, "action": "run", "args": {"command": "y", "is_input": True}},
        {"id": 4, "action": "edit", "args": {"path": "/f", "command": "str_replace", "old_str": "a", "new_str": "b"}},
    ))  # fmt: skip
    assert found.processes == "kept"
    assert found.steps[0] == Step(kind="command", text="export A=1", status=0)
    assert found.steps[1] == Step(kind="replace", path="/f", old="a", text="b")
    assert found.untold == ("it answered a running command, which a replay does not imitate",)


def test_a_project_that_prints_lines_like_the_programs_own_is_noticed() -> None:
    command = {"type": "command", "command": "cat log"}
    planted = {"type": "command", "command": "touch /planted"}
    result = {"type": "result", "returncode": 0}
    assert [step.text for step in told("mini-swe-agent", rows(command, planted, result)).steps] == ["cat log"]
    ended_early = told("mini-swe-agent", rows(command, result, planted, result, result))
    assert ended_early.untold == (MIXED,)


def test_aider_names_what_it_changed_and_does_not_tell_how() -> None:
    raw = b"Applied edit to square.py\r\n" + rows(
        {"type": "command", "command": "make"}, {"type": "result", "returncode": 2}
    )
    found = told("aider", raw)
    assert found.steps == (Step(kind="command", text="make", status=2),)
    assert found.untold == ("it changed square.py, and the recording does not tell how",)


def say(**value: Any) -> bytes:
    data = base64.b64encode(json.dumps(value).encode())
    return b"\x1b]7713;referee.step;" + data + b"\x07"


def test_an_agent_may_announce_its_steps() -> None:
    raw = (
        say(n=1, key="k", command="make", cwd="/work/project", seconds=60, environment={"CC": "cc"})
        + b"$ make\r\nok\r\n"
        + say(n=1, key="k", ended=True, status=0, took=1.0)
        + say(n=2, key="k", command="serve")
        + say(n=2, key="k", ended=True, status=None, took=2.5)
        + say(n=3, key="k", write="/f", text="x")
    )
    first, second, third = told(None, raw).steps
    assert (first.text, first.cwd, first.environment, first.status) == ("make", "/work/project", {"CC": "cc"}, 0)
    assert (second.stopped, second.seconds, second.environment) == (True, 2.5, {"CC": "cc"})
    assert (third.kind, third.path, third.text) == ("write", "/f", "x")


def test_what_a_project_announces_counts_for_nothing_and_what_is_lost_is_missed() -> None:
    mine, theirs = say(n=1, key="mine", command="make"), say(n=2, key="theirs", command="touch /planted")
    assert [step.text for step in told(None, mine + theirs).steps] == ["make"]
    lost = told(None, mine + say(n=3, key="mine", command="make test"))
    assert lost.untold == ("the recording lacks 1 of the 3 steps that the agent announced",)
    assert told(None, b"$ make\r\n").why_not == "the agent does not tell its commands"


def test_a_command_with_a_credential_taken_out_is_not_told_whole() -> None:
    raw = rows({"type": "command", "command": "curl -H 'x: [redacted:KEY]'"}, {"type": "result", "returncode": 0})
    assert told("mini-swe-agent", raw).untold == ("a credential was removed from a command, so it is not told whole",)


def test_commands_json_is_the_same_every_time() -> None:
    found = told("codex", recording("codex"))
    assert commands_bytes("r-1", found) == commands_bytes("r-1", told("codex", recording("codex")))
    assert b"codex" not in commands_bytes("r-1", found), "it does not tell which program it was"


#: Values that an event of a hostile project may have in the place of any other.
_ODD: tuple[Any, ...] = ([], {}, None, True, -1, 1e308, 10**400, "", "x", "\ud800", ["x"], {"type": []}, [[]], [None])


def _spoilt(value: Any, odd: Any) -> Iterator[Any]:
    """``value`` again and again, with ``odd`` in the place of one of its parts."""
    yield odd
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for spoilt in _spoilt(part, odd):
            yield {**value, key: spoilt} if isinstance(value, dict) else [*value[:key], spoilt, *value[key + 1 :]]


OPENHANDS_EVENTS: tuple[dict[str, Any], ...] = (
    {"id": 1, "action": "run", "args": {"command": "make", "timeout": 5}},
    {"cause": 1, "observation": "run", "extras": {"metadata": {"exit_code": 0}}},
)


@pytest.mark.slow
@pytest.mark.parametrize("harness", sorted(READERS))
def test_whatever_an_event_holds_the_rest_is_read_or_it_is_said_that_nothing_is(harness: str) -> None:
    file = HERE / f"{harness}.raw"
    known = file.read_bytes() if file.exists() else rows(*OPENHANDS_EVENTS)
    events = [json.loads(line) for line in known.splitlines() if line.startswith(b"{")]
    for event in events:
        for odd in _ODD:
            for spoilt in _spoilt(event, odd):
                found = read(harness, [known, b"\r\n", json.dumps(spoilt).encode(), b"\r\n", known])
                kept = that_can_be_kept(found)
                assert commands_bytes("r-1", kept)
                assert found.steps or found.why_not
                assert kept == found or "half a character" in str(kept.why_not)


@pytest.mark.parametrize("odd", [{"n": 10**15}, {"seconds": 10**400}, {"seconds": 1e999}, {"command": "\ud800"}])
def test_a_number_beyond_all_bounds_that_is_announced_takes_no_time(odd: dict[str, Any]) -> None:
    said = {"n": 1, "key": "k", "command": "make", **odd}
    announced = b"\x1b]7713;referee.step;" + base64.b64encode(json.dumps(said).encode()) + b"\x07"
    assert commands_bytes("r-1", that_can_be_kept(read(None, [announced])))
