"""Golden vectors of the kind ``grading2``: answers and arguments by the second generation of rules. Pure.

Every vector is put into a body as a server would send it, read by the reader of answers and judged by the grader: what
is checked is the way that an answer takes in a run. ``grade`` expects ``PASS``, ``FAIL`` or ``EXCLUDE``; ``parse``
expects the arguments, or ``PARSE_ERROR``, ``NO_CALL``, ``TRUNCATED``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from referee.core.answers import Reading
from referee.core.bakeoff import Shape
from referee.core.cases import Tool
from referee.scoring.answers import read
from referee.scoring.conformance_grading import case_of
from referee.scoring.conformance_shapes import Checks, Runner, ShapeError, member
from referee.scoring.toolcalls import Grader

_VERDICTS = {True: "PASS", False: "FAIL", None: "EXCLUDE"}

#: What stands beside an empty list of calls: an answer with neither is no answer.
_WORDS = "None of the tools fits."

_BREAKS = {"timeout": "timeout", "dns": "dns", "network": "connect", "connection": "connect", "reset": "reset"}
_STREAMS = ("stream", "deltas", "chunks", "events")
_HTTP_OK = 200


@dataclass(frozen=True)
class _Sent:
    """What came over the lane."""

    body: bytes
    shape: Shape = "openai-chat"
    status: int | None = _HTTP_OK
    headers: tuple[tuple[str, str], ...] = ()
    broke: str | None = None
    inlined: bool = False
    streamed: bool = False

    def read(self) -> Reading:
        """The answer as the reader of answers reads it."""
        return read(
            self.status,
            dict(self.headers),
            self.body,
            broke=self.broke,
            detail="",
            streamed=self.streamed,
            shape=self.shape,
            inlined=self.inlined,
        )


def _case(case: Any) -> Checks:
    kind = member(case, "kind")
    if kind == "grade":
        return _grade_case(case)
    if kind == "parse":
        return _parse_case(case)
    raise ShapeError(f"there is no kind {kind!r} of case: grade or parse")


# --- grade -----------------------------------------------------------------------------------------------------------


def _grade_case(case: Any) -> Checks:
    gold, output, verdict = member(case, "gold"), member(case, "output"), member(case, "verdict")
    policy = dict(case.get("policy") or {})
    sent_name = policy.pop("sentName", None)
    schemas = case.get("schema")
    tools = tuple(_tool(one) for one in (schemas if isinstance(schemas, list) else [schemas]) if one is not None)
    oracle = {"expected_calls" if isinstance(gold, list) else "expected_call": gold, "policy": policy}
    reading = _sent(output, inlined=_inlined(case)).read()
    grade = Grader(case_of(oracle), tools, 2).judge(reading, _names(sent_name, tools))
    return [("verdict", verdict, _VERDICTS[grade.passed], f"{case.get('id', '-')}: {grade.reason}")]


def _tool(schema: Any) -> Tool:
    if isinstance(schema, dict) and isinstance(schema.get("function"), dict):
        schema = schema["function"]
    if not isinstance(schema, dict):
        raise ShapeError("a schema is an object with a name and, where there are any, parameters")
    said = {key: schema[key] for key in ("name", "description", "parameters") if schema.get(key) is not None}
    try:
        return Tool.model_validate(said)
    except ValidationError as exc:
        raise ShapeError(f"schema: {exc.errors()[0]['msg']}") from exc


def _names(sent_name: Any, tools: tuple[Tool, ...]) -> dict[str, str]:
    if isinstance(sent_name, dict):
        return {str(sent): str(real) for sent, real in sent_name.items()}
    return {str(sent_name): tools[0].name} if sent_name is not None and tools else {}


# --- parse -----------------------------------------------------------------------------------------------------------


def _parse_case(case: Any) -> Checks:
    raw, verdict = member(case, "raw"), member(case, "verdict")
    reading = _sent(raw, inlined=_inlined(case)).read()
    note = f"{case.get('id', '-')}: {reading.broken_detail or reading.broken or (reading.fault and reading.fault.name)}"
    return [("verdict", verdict, _said(reading), note)]


def _said(reading: Reading) -> Any:
    if reading.broken == "truncated":
        return "TRUNCATED"
    if reading.broken is not None and reading.broken != "empty":
        return "PARSE_ERROR"
    if not reading.calls:
        return "NO_CALL"
    arguments = [call.arguments for call in reading.calls]
    return arguments[0] if len(arguments) == 1 else arguments


# --- what a vector gives, as a server would send it ------------------------------------------------------------------


def _inlined(case: Any) -> bool:
    lane = case.get("lane") or "native"
    if lane not in {"native", "inlined", "cli"}:
        raise ShapeError(f"a lane is native, inlined or cli, not {lane!r}")
    return bool(lane != "native")


def _sent(given: Any, *, inlined: bool) -> _Sent:
    """An answer in any of the forms that vectors have: text, calls, a message, a body, an HTTP status."""
    if isinstance(given, dict):
        return _of_object(given, inlined)
    if isinstance(given, list):
        if any(isinstance(one, dict) and one.get("type") == "tool_use" for one in given):
            return _anthropic({"content": given}, inlined)
        calls = [_tool_call(one) for one in given]
        return _chat({"content": None if calls else _WORDS, "tool_calls": calls}, {}, inlined)
    if given is None or isinstance(given, str):
        return _chat({"content": given}, {}, inlined)
    raise ShapeError("an answer is text, a list of calls or an object")


def _of_object(given: dict[str, Any], inlined: bool) -> _Sent:
    if "text" in given and "content" not in given:
        given = {**{key: one for key, one in given.items() if key != "text"}, "content": given["text"]}
    if isinstance(given.get("calls"), list) and "tool_calls" not in given:
        given = {**given, "tool_calls": [_tool_call(one) for one in given["calls"]]}
    return _of_transport(given, inlined) or _of_surface(given, inlined) or _chat(given, given, inlined)


def _of_transport(given: dict[str, Any], inlined: bool) -> _Sent | None:
    """What names a status, a break, a stream, the output of a CLI, or is a body as it stands."""
    if "http" in given:
        return _of_status(given, inlined)
    for name, broke in _BREAKS.items():
        if given.get(name) or given.get("error") == name or given.get("broke") == name:
            return _Sent(b"", status=None, broke=broke, inlined=inlined)
    for name in _STREAMS:
        if isinstance(given.get(name), list):
            return _stream(given[name], given, inlined)
    if "stdout" in given:
        output = str(given["stdout"]).encode("utf-8", "replace")
        return _Sent(output, "cli-envelope", status=given.get("exit_code", 0), inlined=True)
    if "choices" in given or ("error" in given and "content" not in given):
        return _Sent(_bytes(given), inlined=inlined)
    return None


def _of_surface(given: dict[str, Any], inlined: bool) -> _Sent | None:
    """What has the form of a surface other than a message of a chat completion, or is one call by itself."""
    if "output" in given or given.get("type") == "function_call":
        output = given.get("output", [{"name": "f", **given}])
        return _Sent(_bytes({"status": "completed", **given, "output": output}), "openai-responses", inlined=inlined)
    if "message" in given:
        return _Sent(_bytes({"done": True, "done_reason": "stop", **given}), "ollama", inlined=inlined)
    if "input" in given:
        block = {"type": "tool_use", "id": "call_1", "name": "f", **given}
        return _anthropic({"content": [block], "stop_reason": given.get("stop_reason", "tool_use")}, inlined)
    if "stop_reason" in given or _has_blocks(given.get("content")):
        return _anthropic(given, inlined)
    if "arguments" in given or ("function" in given and "tool_calls" not in given):
        call = {key: one for key, one in given.items() if key not in {"finish_reason", "content"}}
        return _chat({"content": given.get("content"), "tool_calls": [_tool_call(call)]}, given, inlined)
    return None


def _has_blocks(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(one, dict) and one.get("type") == "tool_use" for one in content)


def _of_status(given: dict[str, Any], inlined: bool) -> _Sent:
    status = given["http"]
    if isinstance(status, bool) or not isinstance(status, int):
        raise ShapeError(f"http is a status, not {status!r}")
    rest = {key: one for key, one in given.items() if key not in {"http", "headers", "body"}}
    if status == _HTTP_OK and rest and "body" not in given:
        return _sent(rest, inlined=inlined)
    body = given.get("body", rest)
    headers = given.get("headers") or {}
    return _Sent(
        body.encode("utf-8", "replace") if isinstance(body, str) else _bytes(body),
        status=status,
        headers=tuple((str(key), str(one)) for key, one in headers.items()),
        inlined=inlined,
    )


def _tool_call(call: Any) -> Any:
    """A call as an entry of ``tool_calls``; what is none is sent as it is."""
    if not isinstance(call, dict) or "function" in call or not {"name", "arguments"} & set(call):
        return call
    function = {"name": call.get("name", "f"), "arguments": call.get("arguments")}
    return {"id": call.get("id", "call_1"), "type": "function", "function": function}


def _chat(message: dict[str, Any], around: dict[str, Any], inlined: bool) -> _Sent:
    finish = around.get("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
    said = {key: one for key, one in message.items() if key != "finish_reason"}
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **said}, "finish_reason": finish}
    return _Sent(_bytes({"object": "chat.completion", "choices": [choice]}), inlined=inlined)


def _stream(deltas: list[Any], around: dict[str, Any], inlined: bool) -> _Sent:
    """Deltas of a message, or whole chunks, as a stream of events."""
    chunks = [one if not isinstance(one, dict) or "choices" in one or "error" in one else _delta(one) for one in deltas]
    if "finish_reason" in around:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": around["finish_reason"]}]})
    events = [one if isinstance(one, str) else json.dumps(one) for one in chunks]
    ended = not isinstance(around.get("done"), bool) or around["done"]
    lines = [f"data: {one}\n\n" for one in (*events, *(["[DONE]"] if ended and "[DONE]" not in events else []))]
    return _Sent("".join(lines).encode("utf-8", "replace"), inlined=inlined, streamed=True)


def _delta(delta: dict[str, Any]) -> dict[str, Any]:
    if "tool_calls" not in delta and ("function" in delta or "index" in delta):
        delta = {"tool_calls": [delta]}
    return {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]}


def _anthropic(message: dict[str, Any], inlined: bool) -> _Sent:
    body = {"type": "message", "role": "assistant", "stop_reason": "tool_use", **message}
    return _Sent(_bytes(body), "anthropic-messages", inlined=inlined)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


MEMBERS: dict[str, Runner] = {"cases": _case}
