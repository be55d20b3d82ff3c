"""What the scripted server can play: every signal of the tables of reading, each under its name."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiohttp import web

from tests.bakeoff import scripted_shapes as shapes
from tests.bakeoff.scripted_shapes import Spoken, SurfaceName

if TYPE_CHECKING:
    from tests.bakeoff.scripted_server import ScriptedServer


@dataclass(frozen=True)
class Got:
    """One request as it came: names of headers in lower case; ``credential`` without its scheme."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    play: str
    surface: SurfaceName | None
    at: float

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def credential(self) -> str:
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "")

    @property
    def question(self) -> str:
        """The last thing that the user said."""
        messages = self.body.get("messages") or self.body.get("input") or [{}]
        content = messages[-1].get("content", "")
        return content if isinstance(content, str) else json.dumps(content)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Name and parameters of each tool that was offered, whatever the surface."""
        plain = [tool.get("function", tool) for tool in self.body.get("tools", [])]
        return [
            {"name": tool["name"], "parameters": tool.get("parameters") or tool.get("input_schema")} for tool in plain
        ]


Play = Callable[["ScriptedServer", web.Request, Got], Awaitable[web.StreamResponse]]


def first_tool(got: Got) -> list[Spoken]:
    """A call of the first tool that was offered, its required arguments filled by their types."""
    if not got.tools:
        return []
    parameters = got.tools[0]["parameters"] or {}
    sample = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = parameters.get("properties", {})
    arguments = {
        name: properties.get(name, {}).get("enum", [sample.get(properties.get(name, {}).get("type"), "x")])[0]
        for name in parameters.get("required", [])
    }
    return [(got.tools[0]["name"], arguments)]


def _name(got: Got) -> str:
    return got.tools[0]["name"] if got.tools else "a_tool"


def _surface(got: Got) -> SurfaceName:
    assert got.surface is not None
    return got.surface


async def unknown(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    message = f"The model `{got.model}` does not exist"
    return web.json_response(shapes.error(_surface(got), 404, message, "model_not_found"), status=404)


async def _ok(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    calls = server.calls(got)
    if got.body.get("stream"):
        return await _send_stream(request, got, shapes.stream(_surface(got), got.model, calls))
    return web.json_response(shapes.answer(_surface(got), got.model, calls))


async def _send_stream(request: web.Request, got: Got, parts: Sequence[bytes]) -> web.StreamResponse:
    kind = "application/x-ndjson" if got.surface == "ollama" else "text/event-stream"
    response = web.StreamResponse(headers={"content-type": kind})
    await response.prepare(request)
    for part in parts:
        await response.write(part)
        await asyncio.sleep(0)
    await response.write_eof()
    return response


def _says(make: Callable[[SurfaceName, Got, Sequence[Spoken]], Any]) -> Play:
    async def play(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
        return web.json_response(make(_surface(got), got, server.calls(got)))

    return play


def _fails(
    status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None, **more: Any
) -> Play:
    async def play(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
        body = shapes.error(_surface(got), status, message, code)
        if more and isinstance(body["error"], dict):
            body["error"] |= more
        return web.json_response(body, status=status, headers=headers)

    return play


def _streams(change: Callable[[list[bytes], SurfaceName], list[bytes]], *, index0: bool = False) -> Play:
    async def play(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
        calls = server.calls(got)
        parts = shapes.stream(_surface(got), got.model, [*calls, *calls] if index0 else calls, index0=index0)
        return await _send_stream(request, got, change(parts, _surface(got)))

    return play


def _arguments(raw: str) -> Play:
    """Arguments as this very text, on the surfaces that carry them as text; elsewhere the text stands as a string."""
    return _says(lambda surface, got, calls: shapes.answer(surface, got.model, [(_name(got), raw)]))


def _chat_message(message: Callable[[Got], dict[str, Any]], finish: str = "tool_calls") -> Play:
    return _says(lambda surface, got, calls: shapes.chat_message(message(got), got.model, finish))


def _choices(change: Callable[[dict[str, Any]], Any], **more: Any) -> Play:
    """A chat completion with other choices, made of its first; other surfaces see a document without an answer."""
    return _says(
        lambda surface, got, calls: (
            (whole := shapes.answer("openai-chat", got.model, calls)) | {"choices": change(whole["choices"][0]), **more}
        )
    )


async def _slow(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """No head comes."""
    await asyncio.sleep(60)
    return await _ok(server, request, got)


async def _trickle(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """The head and white space come, byte by byte: no single wait is long, the whole never ends."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def _endless(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """As fast as it is taken, without an end."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b"\n" * 65536)


def _transport(request: web.Request) -> asyncio.Transport:
    assert isinstance(request.transport, asyncio.Transport)
    return request.transport


async def _reset(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    _transport(request).abort()
    return web.Response()


async def _reset_in_body(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices":[{"index":0,"message":{"tool_calls":[{"function":')
    _transport(request).abort()
    return response


def _wire(data: bytes) -> Play:
    """Exactly these bytes on the wire, then the connection ends."""

    async def play(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
        transport = _transport(request)
        transport.write(data)
        await asyncio.sleep(0.02)
        transport.close()
        return web.Response()

    return play


async def _redirect(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    raise web.HTTPTemporaryRedirect(location=f"{server.url}/play/ok{got.path}")


async def _echo(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """The credential comes back wherever an answer of HTTP 200 can carry it."""
    key = got.credential
    body = shapes.answer(_surface(got), key, [(_name(got), {"note": key, key: 1})], f"your key is {key}")
    headers = {"x-request-id": key, "retry-after": "0", "openai-organization": key, "set-cookie": f"a={key}"}
    return web.json_response(body | {"id": key, "system_fingerprint": key}, headers=headers)


async def _echo_error(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    key = got.credential
    body = shapes.error(_surface(got), 401, f"Incorrect API key provided: {key}.", key)
    return web.json_response(body, status=401, headers={"x-request-id": key}, reason=f"Bad key {key}")


async def _echo_stream(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """In a stream: once whole in the text, once in two halves in the arguments."""
    key = got.credential
    parts = shapes.stream(_surface(got), got.model, [(_name(got), {"k": key})], text=key)
    return await _send_stream(request, got, parts)


async def _echo_pieces(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """In a stream that nobody asked for, whose lines end by CR alone where that is allowed: a few letters an event."""
    key = got.credential
    pieces = [key[at : at + 5] for at in range(0, len(key), 5)]
    parts: list[bytes] = []
    for part in shapes.stream(_surface(got), got.model, [], text=key):
        said = [part.replace(key.encode(), piece.encode()) for piece in pieces] if key.encode() in part else [part]
        parts += said if got.surface == "ollama" else [one.replace(b"\n", b"\r") for one in said]
    return await _send_stream(request, got, parts)


async def _echo_chunks(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """In the chunks of one text, and in the elements of an argument."""
    key = got.credential
    pieces = [key[at : at + 5] for at in range(0, len(key), 5)]
    text = json.dumps(shapes.answer(_surface(got), got.model, [(_name(got), {"city": pieces})], "HERE"))
    for kind in ("output_text", "text"):
        chunks = ", ".join(json.dumps({"type": kind, "text": piece}) for piece in pieces)
        text = re.sub(rf'{{"type": "{kind}", "text": "HERE"[^}}]*}}', chunks, text)
    text = text.replace('"HERE"', f"[{chunks}]")
    return web.Response(text=text, content_type="application/json")


async def _echo_encoded(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """In other clothes: base64, percent, escapes of JSON, upside down, by hex."""
    key = got.credential
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    forms = [base64.b64encode(key.encode()).decode(), base64.b64encode(f"Bearer {key}".encode()).decode()]
    forms += [quote(key, safe=""), key.encode().hex(), json.dumps(key)]
    text = json.dumps(shapes.answer(_surface(got), got.model, [], f"{' '.join(forms)} HERE"))
    return web.Response(text=text.replace("HERE", escaped), content_type="application/json")


async def _echo_wire(server: ScriptedServer, request: web.Request, got: Got) -> web.StreamResponse:
    """In a head that is no HTTP: what the client's own error message would quote."""
    return await _wire(f"HTTP/1.1 {got.credential}\r\n{got.credential}\r\n\r\n".encode())(server, request, got)


_DEGRADED = "Function id 'x': DEGRADED function cannot be invoked"
_USAGE = "You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC."

PLAYS: dict[str, Play] = {
    # answers
    "ok": _ok,
    "text": _says(lambda s, got, calls: shapes.answer(s, got.model, [], "Which city do you mean?")),
    "text-and-call": _says(lambda s, got, calls: shapes.answer(s, got.model, calls, "One moment.")),
    "twice": _says(lambda s, got, calls: shapes.answer(s, got.model, [*calls, *calls])),
    "empty": _says(lambda s, got, calls: shapes.answer(s, got.model, [], "")),
    "refusal": _says(lambda s, got, calls: shapes.refusal(s, got.model)),
    "reasoning-only": _says(lambda s, got, calls: shapes.reasoning_only(s, got.model)),
    "choices-null": _says(lambda s, got, calls: shapes.nothing_in_it(s, got.model)),
    "call-in-content": _says(
        lambda s, got, calls: shapes.answer(s, got.model, [], json.dumps({"name": _name(got), "arguments": {}}))
    ),
    "envelope": _says(
        lambda s, got, calls: shapes.answer(
            s, got.model, [], json.dumps({"tool_calls": [{"name": n, "arguments": a} for n, a in calls]})
        )
    ),
    "template-leak": _says(lambda s, got, calls: shapes.answer(s, got.model, [(f"{_name(got)}<|channel|>json", {})])),
    # arguments
    "args-empty": _arguments(""),
    "args-null": _arguments("null"),
    "args-fenced": _arguments('```json\n{"a": 1}\n```'),
    "args-prose": _arguments('{"a": 1} I hope this helps.'),
    "args-comma": _arguments('{"a": 1,}'),
    "args-escape": _arguments('{"a": "C:\\dir"}'),
    "args-newline": _arguments('{"a": "x\ny"}'),
    "args-twice-encoded": _arguments('"{\\"a\\": 1}"'),
    "args-two-objects": _arguments('{"a": 1}{"a": 2}'),
    "args-duplicate": _arguments('{"a": 1, "a": 2}'),
    "args-truncated": _arguments('{"a": {"b": "x'),
    "args-nan": _arguments('{"a": NaN}'),
    "args-long-number": _arguments('{"a": ' + "9" * 6000 + "}"),
    "args-deep": _arguments("[" * 100_000),
    # shapes of OpenAI's chat surface only
    "legacy-call": _chat_message(
        lambda got: {"function_call": {"name": _name(got), "arguments": "{}"}}, "function_call"
    ),
    "stop-with-calls": _chat_message(lambda got: {"tool_calls": [shapes.chat_call(0, (_name(got), {}))]}, "stop"),
    "calls-empty": _chat_message(lambda got: {"content": "No.", "tool_calls": []}, "tool_calls"),
    "no-function": _chat_message(lambda got: {"tool_calls": [{"id": "x", "type": "function"}]}),
    "args-object": _chat_message(
        lambda got: {"tool_calls": [{"id": "", "function": {"name": _name(got), "arguments": {}}}]}
    ),
    "content-chunks": _chat_message(lambda got: {"content": [{"type": "text", "text": "Which city?"}]}, "stop"),
    "content-filter": _chat_message(lambda got: {"content": None}, "content_filter"),
    "malformed-call": _chat_message(lambda got: {"content": None}, "MALFORMED_FUNCTION_CALL"),
    "finish-error": _chat_message(lambda got: {"content": ""}, "error"),
    "thought-aloud": _chat_message(
        lambda got: {"content": f"<thought>{json.dumps({'name': _name(got), 'arguments': {}})}</thought>Which city?"},
        "stop",
    ),
    "choices-unsorted": _choices(lambda first: [{"index": 1, "message": {"content": "No."}}, {"index": 0, **first}]),
    "choice-error": _choices(lambda first: [{**first, "error": {"code": 429, "message": "limited upstream"}}]),
    "choice-error-402": _choices(lambda first: [{**first, "error": {"code": 402, "message": "no credits"}}]),
    "native-malformed": _choices(
        lambda first: [{"finish_reason": "error", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}]
    ),
    "reasoning-counted": _choices(
        lambda first: [{"message": {"content": ""}, "finish_reason": "length"}],
        usage={"completion_tokens": 512, "completion_tokens_details": {"reasoning_tokens": 512}},
    ),
    "nothing-but-a-code": _choices(lambda first: None, code=402, message="Insufficient balance"),
    # errors
    "408": _fails(408, "timed out"),
    "409": _fails(409, "conflict"),
    "429": _fails(429, "slow down", "rate_limit_exceeded"),
    "429-retry-after": _fails(429, "slow down", "rate_limit_exceeded", {"retry-after": "1"}),
    "429-for-an-hour": _fails(429, "slow down", "rate_limit_exceeded", {"retry-after": "3600"}),
    "429-quota": _fails(429, "You exceeded your current quota", "insufficient_quota"),
    "500": _fails(500, "internal error"),
    "502": _fails(502, "bad gateway"),
    "503": _fails(503, "unavailable"),
    "520": _fails(520, "unknown error"),
    "529": _fails(529, "Overloaded", "overloaded_error"),
    "402": _fails(402, "Insufficient credits"),
    "402-in-flight": _fails(402, "Insufficient in-flight budget", "in_flight_budget", {"retry-after": "2"}),
    "usage-limit": _fails(400, _USAGE, "invalid_request_error"),
    "degraded": _fails(400, _DEGRADED),
    "not-found-for-account": _fails(404, "Function 'x': Not found for account 'y'"),
    "401": _fails(401, "invalid credential", "invalid_api_key"),
    "403": _fails(403, "forbidden"),
    "403-moderation": _fails(403, "flagged", None, None, metadata={"reasons": ["violence"], "flagged_input": "x"}),
    "404-model": unknown,
    "400": _fails(400, "tools: unknown field", "invalid_request_error"),
    "422": _fails(422, "tools.0: field required"),
    "413": _fails(413, "request too large", "request_too_large"),
    "context-length": _fails(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
    "content-policy": _fails(400, "The response was filtered", "content_filter"),
    "error-in-200": _says(lambda s, got, calls: shapes.error(s, 502, "Provider returned error", "502")),
    "uncoded-in-200": _says(lambda s, got, calls: {"error": {"message": "could not log input, connection reset"}}),
    "number-in-200": _says(lambda s, got, calls: {"error": 402}),
    "type-in-200": _says(
        lambda s, got, calls: {"error": {"type": "invalid_request_error", "code": "rate_limit_exceeded"}}
    ),
    "quota-in-200": _says(lambda s, got, calls: shapes.error(s, 402, "Insufficient credits", "402")),
    # streams
    "stream-ok": _streams(lambda parts, surface: parts),
    "stream-index0": _streams(lambda parts, surface: parts, index0=True),
    "stream-error-event": _streams(lambda parts, surface: [*parts[:-1], shapes.stream_error(surface, "overloaded")]),
    "stream-broken": _streams(lambda parts, surface: parts[:-1]),
    "stream-torn": _streams(lambda parts, surface: [*parts[:1], parts[1][:10]]),
    # the wire
    "slow": _slow,
    "trickle": _trickle,
    "endless": _endless,
    "reset": _reset,
    "reset-in-body": _reset_in_body,
    "garbage": _wire(b"\x00\xff\x13 this is no HTTP\r\n\r\n\x00"),
    "cut-chunk": _wire(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "400-cut": _wire(b'HTTP/1.1 400 Bad Request\r\ncontent-length: 1000\r\n\r\n{"error": {"message": "DEGRA'),
    "401-cut": _wire(b'HTTP/1.1 401 Unauthorized\r\ncontent-length: 1000\r\n\r\n{"error": {"mess'),
    "no-json": _wire(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 13\r\n\r\n<html></html>"),
    "no-utf8": _wire(b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 12\r\n\r\n{"a": "\xff\xfe\xfd"}'),
    "redirect": _redirect,
    # the credential comes back
    "echo-credential": _echo,
    "echo-credential-error": _echo_error,
    "echo-credential-stream": _echo_stream,
    "echo-credential-pieces": _echo_pieces,
    "echo-credential-chunks": _echo_chunks,
    "echo-credential-encoded": _echo_encoded,
    "echo-credential-wire": _echo_wire,
}
