"""The scripted model itself: it plays its script to the end on each surface, demands its key, fails as it is told."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.agents.scripted_model import ScriptedModel, scripted_model
from tests.agents.scripted_play import Play, answer, arguments, example_of
from tests.agents.scripted_turns import Call, Dialect, Tool, Turn

KEY = "sk-of-the-test"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
PATHS: dict[Dialect, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/scripted-1:generateContent",
}


def post(model: ScriptedModel, path: str, body: dict[str, Any], key: str = KEY) -> tuple[int, bytes]:
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(model.url + path, json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=10) as got:
            return got.status, got.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def first(dialect: Dialect) -> dict[str, Any]:
    """The first request of a session, with a shell."""
    function = {"name": "bash", "description": "", "parameters": SCHEMA}
    said = [{"role": "user", "content": "go"}]
    requests: dict[Dialect, dict[str, Any]] = {
        "openai-chat": {"model": "m", "messages": said, "tools": [{"type": "function", "function": function}]},
        "openai-responses": {"model": "m", "input": said, "tools": [{"type": "function"} | function]},
        "anthropic-messages": {"model": "m", "messages": said, "tools": [{"name": "bash", "input_schema": SCHEMA}]},
        "gemini": {
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
            "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SCHEMA}]}],
        },
    }
    return requests[dialect]


def called(dialect: Dialect, said: dict[str, Any]) -> str | None:
    """The command that an answer calls for."""
    if dialect == "openai-chat":
        calls = said["choices"][0]["message"].get("tool_calls")
        return json.loads(calls[0]["function"]["arguments"])["command"] if calls else None
    if dialect == "openai-responses":
        calls = [item for item in said["output"] if item["type"] == "function_call"]
        return json.loads(calls[0]["arguments"])["command"] if calls else None
    if dialect == "anthropic-messages":
        calls = [block for block in said["content"] if block["type"] == "tool_use"]
        return calls[0]["input"]["command"] if calls else None
    calls = [part for part in said["candidates"][0]["content"]["parts"] if "functionCall" in part]
    return calls[0]["functionCall"]["args"]["command"] if calls else None


def follow(dialect: Dialect, body: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The next request: the history with the answer and its result."""
    if dialect == "openai-chat":
        message = said["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "ok"}
        return body | {"messages": [*body["messages"], message, result]}
    if dialect == "openai-responses":
        call = said["output"][-1]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        return body | {"input": [*body["input"], *said["output"], result]}
    if dialect == "anthropic-messages":
        result = {"type": "tool_result", "tool_use_id": said["content"][-1]["id"], "content": "ok"}
        told = [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": [result]}]
        return body | {"messages": [*body["messages"], *told]}
    part = {"functionResponse": {"name": "bash", "response": {"output": "ok"}}}
    told = [said["candidates"][0]["content"], {"role": "user", "parts": [part]}]
    return body | {"contents": [*body["contents"], *told]}


@pytest.mark.parametrize("dialect", PATHS)
def test_a_play_is_played_to_its_end(dialect: Dialect) -> None:
    with scripted_model(Play(["one", "two"], final="All done."), key=KEY) as model:
        body, commands = first(dialect), []
        for _ in range(3):
            status, data = post(model, PATHS[dialect], body)
            assert status == 200
            said = json.loads(data)
            commands.append(called(dialect, said))
            if commands[-1] is not None:
                body = follow(dialect, body, said)
        assert commands == ["one", "two", None]
        assert b"All done." in data
        assert [got.step for got in model.played] == [0, 1, 2]
        assert (model.count, model.total.output > 0) == (3, True)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_a_stream_tells_the_same_call_in_pieces(dialect: Dialect) -> None:
    with scripted_model(Play(["echo a long command that takes pieces"]), key=KEY) as model:
        status, data = post(model, PATHS[dialect], first(dialect) | {"stream": True})
        assert status == 200
        assert data.count(b"data: ") > 4
        assert b"usage" in data or dialect == "openai-chat"
        more = {"stream": True, "stream_options": {"include_usage": True}}
        assert b'"usage": {' in post(model, PATHS[dialect], first(dialect) | more)[1]


def test_only_its_own_key_is_taken() -> None:
    with scripted_model(Play(["one"]), key=KEY) as model:
        assert [post(model, path, first(dialect), "another")[0] for dialect, path in PATHS.items()] == [401] * 4
        assert (model.count, model.refused) == (0, 4)


def test_it_fails_as_it_is_told_and_then_goes_on() -> None:
    with scripted_model(Play(["one"], failures={1: "429", 2: "500", 3: "broken"}), key=KEY) as model:
        path, body = PATHS["openai-chat"], first("openai-chat")
        assert [post(model, path, body)[0] for _ in range(2)] == [429, 500]
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            post(model, path, body | {"stream": True})
        assert post(model, path, body)[0] == 200
        assert [got.status for got in model.played] == [429, 500, 0, 200]


def test_side_requests_do_not_disturb_the_play() -> None:
    with scripted_model(Play(["one"]), key=KEY) as model:
        titles = {"model": "m", "messages": [{"role": "user", "content": "Give this a title"}]}
        assert post(model, PATHS["openai-chat"], titles)[0] == 200
        assert json.loads(post(model, "/v1/messages/count_tokens", first("anthropic-messages"))[1])["input_tokens"] > 0
        assert (model.count, model.sides) == (0, 2)


def test_who_speaks_next_is_the_user() -> None:
    speaker = {"type": "STRING", "enum": ["model", "user"]}
    assert example_of({"type": "OBJECT", "properties": {"next": speaker}, "required": ["next"]}) == {"next": "user"}


@pytest.mark.parametrize(
    ("tool", "wanted"),
    [
        (Tool("exec_command", {"properties": {"cmd": {}, "yield_time_ms": {}}}), {"cmd": "x", "yield_time_ms": 30_000}),
        (Tool("shell", {"properties": {"command": {"type": "array"}}}), {"command": ["bash", "-lc", "x"]}),
        (Tool("local_shell", {}, "local_shell"), {"command": ["bash", "-lc", "x"]}),
        (
            Tool("execute_bash", {"properties": {"command": {}, "risk": {"enum": ["LOW"]}}, "required": ["risk"]}),
            {"command": "x", "risk": "LOW"},
        ),
    ],
)
def test_each_shell_is_called_by_its_own_schema(tool: Tool, wanted: dict[str, Any]) -> None:
    assert arguments(tool, "x") == wanted


def test_a_play_without_end_goes_on() -> None:
    shell = Tool("bash", SCHEMA)
    turn = Turn("openai-chat", "m", False, "go", (shell,))
    said, step = answer(turn, Play(forever="date"), 400)
    assert (isinstance(said.call, Call), step) == (True, 0)
