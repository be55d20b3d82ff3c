"""What agent CLIs print: the envelope in every wrapper, and errors that end with exit status 0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.answers import Reading
from referee.core.bakeoff import Blame
from tests.bakeoff.reading import calls_of, read_said

INFRA, ACCOUNT, CONFIG, CASE, MODEL = Blame.INFRA, Blame.ACCOUNT, Blame.CONFIG, Blame.CASE, Blame.MODEL
ENVELOPE = '{"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}'
ONE = [("f", {"a": 1})]


def printed(output: Any, status: int | None = 0, **more: Any) -> Reading:
    return read_said(output, "cli-envelope", status=status, inlined=True, **more)


def lines(*events: Any) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def result(text: str, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 50_000,
        "output_tokens": 30,
    }
    body = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 900, "num_turns": 1}
    return {**body, "result": text, "session_id": "s", "total_cost_usd": 0.01, "usage": usage, **more}


def codex(text: str | None = ENVELOPE, *more: dict[str, Any], ended: bool = True) -> str:
    events: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "hm"}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "I look at the tools."}},
        *more,
    ]
    if text is not None:
        events.append({"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": text}})
    if ended:
        usage = {"input_tokens": 900, "cached_input_tokens": 800, "output_tokens": 30}
        events.append({"type": "turn.completed", "usage": usage})
    return lines(*events)


def opencode(*texts: str, ended: bool = True) -> str:
    events: list[dict[str, Any]] = [{"type": "step_start", "sessionID": "s", "part": {"type": "step-start"}}]
    events += [{"type": "text", "sessionID": "s", "part": {"type": "text", "text": text}} for text in texts]
    if ended:
        tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 100, "write": 1}}
        events.append({"type": "step_finish", "part": {"type": "step-finish", "reason": "stop", "tokens": tokens}})
    return lines(*events)


GEMINI_STATS = {"models": {"gemini-x": {"tokens": {"prompt": 50, "candidates": 6, "cached": 20, "thoughts": 4}}}}


def gemini(text: str, **more: Any) -> str:
    return json.dumps({"session_id": "s", "response": text, "stats": GEMINI_STATS, **more}, indent=2)


STREAM = [
    {"type": "system", "subtype": "init", "model": "claude-x"},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "hm"}]}},
]

WRAPPED: list[tuple[str, Any, bool]] = [
    ("plain", ENVELOPE, True),
    ("plain, over lines", json.dumps(json.loads(ENVELOPE), indent=2) + "\n", True),
    ("plain, coloured", f"\x1b[32m{ENVELOPE}\x1b[0m\r\n", True),
    ("fenced", f"```json\n{ENVELOPE}\n```", False),
    ("in prose", f"Here you are:\n\n{ENVELOPE}\n\nAnything else?", False),
    ("Claude Code", result(ENVELOPE), True),
    ("Claude Code, fenced", result(f"```json\n{ENVELOPE}\n```"), False),
    ("Claude Code, all events in a list", json.dumps([*STREAM, result(ENVELOPE)]), True),
    ("Claude Code, stream", lines(*STREAM, result(ENVELOPE)), True),
    ("Claude Code, structured", result("", structured_output=json.loads(ENVELOPE)), True),
    (
        "Cursor",
        {"type": "result", "subtype": "success", "is_error": False, "result": ENVELOPE, "session_id": "s"},
        True,
    ),
    ("Codex", codex(), True),
    ("Codex, notices between", "WARNING: x\n" + codex(), True),
    (
        "Codex, an error on the way",
        codex(ENVELOPE, {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}),
        True,
    ),
    ("Gemini CLI", gemini(ENVELOPE), True),
    ("Gemini CLI, notices before", "Loaded cached credentials.\n" + gemini(ENVELOPE), True),
    ("Gemini CLI, fenced", gemini(f"```json\n{ENVELOPE}\n```"), False),
    (
        "Gemini CLI, stream",
        lines(
            {"type": "init", "session_id": "s", "model": "gemini-x"},
            {"type": "message", "role": "user", "content": '{"tool_calls": []}'},
            {"type": "message", "role": "assistant", "content": ENVELOPE[:20], "delta": True},
            {"type": "message", "role": "assistant", "content": ENVELOPE[20:], "delta": True},
            {"type": "result", "status": "success", "stats": {"input_tokens": 50, "output_tokens": 10, "cached": 20}},
        ),
        True,
    ),
    ("opencode", opencode(ENVELOPE), True),
    ("opencode, closing event missing", opencode(ENVELOPE, ended=False), True),
    ("opencode, an earlier step", opencode("I look.") + opencode(ENVELOPE), True),
]


@pytest.mark.parametrize(("output", "well_formed"), [row[1:] for row in WRAPPED], ids=[row[0] for row in WRAPPED])
def test_the_envelope_is_found_in_its_wrapper(output: Any, well_formed: bool) -> None:
    reading = printed(output)
    assert (reading.fault, reading.broken) == (None, None)
    assert (calls_of(reading), reading.well_formed) == (ONE, well_formed)
    assert reading.flags == (() if well_formed else ("repaired",))


def test_an_empty_envelope_is_no_call_in_every_wrapper() -> None:
    empty = '{"tool_calls": []}'
    for output in (empty, result(empty), codex(empty), gemini(empty), opencode(empty)):
        reading = printed(output)
        assert (reading.calls, reading.broken, reading.fault, reading.well_formed) == ((), None, None, True)


@pytest.mark.parametrize("kind", ["text", "error", "result", "assistant", "turn.completed"])
def test_an_envelope_with_a_type_is_no_event(kind: str) -> None:
    bare = {"type": kind, "status": "success", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}
    for output in (bare, result(json.dumps(bare)), opencode(json.dumps(bare))):
        reading = printed(output)
        assert (calls_of(reading), reading.broken, reading.fault) == ([("f", {"a": 1})], None, None)
    assert printed(f"Here:\n{json.dumps(bare)}").flags == ("repaired",)


@pytest.mark.parametrize(
    ("detail", "blame", "name"),
    [
        ("codex cannot be started: No such file or directory", CONFIG, "cli_missing"),
        ("codex cannot be started: Permission denied", CONFIG, "cli_missing"),
        ("codex cannot be started: Exec format error", CONFIG, "cli_missing"),
        ("codex cannot be started: Cannot allocate memory", INFRA, "connect"),
        ("codex cannot be started: Too many open files", INFRA, "connect"),
    ],
)
def test_a_program_that_cannot_be_started_stops_the_target(detail: str, blame: Blame, name: str) -> None:
    fault = printed("", None, broke="connect", detail=detail).fault
    assert fault is not None
    assert (fault.blame, fault.name) == (blame, name)
    assert detail in fault.sentence


def test_a_question_without_an_envelope_is_a_format_failure() -> None:
    question = "Which date do you mean? Error: none given, so I cannot tell."
    for output in (question, result(question), codex(question), gemini(question), opencode(question)):
        reading = printed(output)
        assert (reading.calls, reading.broken, reading.fault) == ((), "envelope", None)


def test_what_the_wrappers_say_of_model_and_tokens() -> None:
    claude = printed(lines(*STREAM, result(ENVELOPE)))
    assert (claude.model, claude.input_tokens, claude.cached_tokens, claude.output_tokens) == (
        "claude-x",
        51_004,
        50_000,
        30,
    )
    assert printed(result(ENVELOPE, modelUsage={"claude-y": {}})).model == "claude-y"
    two = printed(result(ENVELOPE, modelUsage={"claude-y": {}, "claude-z": {}}))
    assert (two.model, two.provenance) == (None, ("model-used=claude-y", "model-used=claude-z"))
    of_codex = printed(codex())
    assert (of_codex.input_tokens, of_codex.cached_tokens, of_codex.output_tokens) == (900, 800, 30)
    of_gemini = printed(gemini(ENVELOPE))
    assert (of_gemini.model, of_gemini.input_tokens, of_gemini.cached_tokens) == ("gemini-x", 50, 20)
    assert of_gemini.output_tokens == 10
    of_opencode = printed(opencode(ENVELOPE))
    assert (of_opencode.input_tokens, of_opencode.cached_tokens, of_opencode.output_tokens) == (111, 100, 7)


def test_tools_of_the_agents_own_are_flagged() -> None:
    command = {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}}
    assert printed(codex(ENVELOPE, command)).flags == ("used-tools",)
    used = lines({"type": "tool_use", "part": {"tool": "bash"}}) + opencode(ENVELOPE)
    assert printed(used).flags == ("used-tools",)


def opencode_error(message: str, status: int) -> str:
    error = {"name": "APIError", "data": {"message": message, "statusCode": status, "isRetryable": False}}
    return lines({"type": "error", "sessionID": "s", "error": error})


API = "API Error: "
ERRORS: list[tuple[str, Any, Blame, str]] = [
    ("Claude: flag, overloaded", result(f"{API}529 Overloaded", is_error=True), INFRA, "overloaded"),
    (
        "Claude: flag, body",
        result(API + '429 {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}', is_error=True),
        INFRA,
        "rate_limited",
    ),
    ("Claude: flag, status apart", result("It failed", is_error=True, api_error_status=503), INFRA, "server_error"),
    ("Claude: flag, credit", result("Credit balance is too low", is_error=True), ACCOUNT, "usage_limit"),
    ("Claude: flag, limit", result("Claude AI usage limit reached|1760000000", is_error=True), ACCOUNT, "usage_limit"),
    (
        "Claude: flag, window",
        result("You've hit your session limit · resets", is_error=True),
        ACCOUNT,
        "usage_limit",
    ),
    ("Claude: flag, key", result("Invalid API key · Fix external API key", is_error=True), CONFIG, "unauthorized"),
    ("Claude: flag, login", result("Not logged in · Please run /login", is_error=True), CONFIG, "unauthorized"),
    ("Claude: flag, length", result("Prompt is too long", is_error=True), CASE, "context_length"),
    ("Claude: flag, network", result(f"{API}Connection error.", is_error=True), INFRA, "connect"),
    ("Claude: flag, timeout", result(f"{API}Request timed out.", is_error=True), INFRA, "timeout"),
    (
        "Claude: flag, answer too long",
        result(f"{API}Claude's response exceeded the 32000 output token maximum.", is_error=True),
        MODEL,
        "output_limit",
    ),
    (
        "Claude: flag, policy",
        result(f"{API}Claude Code is unable to respond, which appears to violate our Usage Policy", is_error=True),
        MODEL,
        "content_filter",
    ),
    ("Claude: flag, nothing said", result("", is_error=True), INFRA, "cli_error"),
    ("Claude: turns", {"type": "result", "subtype": "error_max_turns", "is_error": False}, INFRA, "cli_error"),
    ("Claude: text, no flag", result(f"{API}529 Overloaded. Try again."), INFRA, "overloaded"),
    ("plain text, 500", f"{API}500 Internal server error", INFRA, "server_error"),
    ("plain text, 401", f'{API}401 {{"error": {{"type": "authentication_error"}}}}', CONFIG, "unauthorized"),
    ("plain text, in brackets", '[API Error: {"error":{"code":503,"message":"overloaded"}}]', INFRA, "server_error"),
    (
        "plain text, a document behind the status",
        API + '429 {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        INFRA,
        "rate_limited",
    ),
    (
        "plain text, 402 and a document",
        API + '402 {"type":"error","error":{"message":"x"}}',
        ACCOUNT,
        "payment_required",
    ),
    ("plain text, rate", "You've hit your rate limit. Try again in 20 s.", INFRA, "cli_error"),
    ("plain text, API rate", "Error: You have reached your API rate limit", INFRA, "cli_error"),
    ("plain text, HTTP", "HTTP 503 Service Unavailable", INFRA, "server_error"),
    ("plain text, status first", "402 Payment Required", ACCOUNT, "payment_required"),
    ("plain text, Error and status", "Error 429: slow down", INFRA, "rate_limited"),
    ("plain text, requests", "Too many requests, slow down", INFRA, "cli_error"),
    (
        "an error event and nothing else",
        {"type": "error", "message": "402 Payment Required"},
        ACCOUNT,
        "payment_required",
    ),
    ("plain text, limit", "You've hit your usage limit. Upgrade to Pro or try again later.", ACCOUNT, "usage_limit"),
    ("plain text, 402", "Error: 402 Payment Required", ACCOUNT, "payment_required"),
    ("plain text, network", "Error: fetch failed", INFRA, "connect"),
    ("Claude: stream without its result", lines(*STREAM), INFRA, "stream_broken"),
    (
        "Codex: failed turn",
        codex(None, {"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized"}}, ended=False),
        CONFIG,
        "unauthorized",
    ),
    (
        "Codex: failed turn, rate",
        codex(
            None,
            {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}},
            ended=False,
        ),
        INFRA,
        "rate_limited",
    ),
    (
        "Codex: failed turn, quota",
        codex(
            None,
            {"type": "turn.failed", "error": {"message": "Quota exceeded. Check your plan and billing details."}},
            ended=False,
        ),
        ACCOUNT,
        "insufficient_quota",
    ),
    (
        "Codex: failed turn, stream",
        codex(
            None,
            {"type": "error", "message": "Reconnecting... 5/5"},
            {"type": "turn.failed", "error": {"message": "stream disconnected before completion: stream closed"}},
            ended=False,
        ),
        INFRA,
        "cli_error",
    ),
    (
        "Codex: a line of its log, then what the model said, then another error",
        "ERROR codex_core: retrying\n"
        + codex("Please log in: 401.", {"type": "turn.failed", "error": {"message": "stream closed"}}, ended=False),
        INFRA,
        "cli_error",
    ),
    ("Codex: error and no end", codex(None, {"type": "error", "message": "boom"}, ended=False), INFRA, "cli_error"),
    ("Codex: no end", codex(ended=False), INFRA, "stream_broken"),
    (
        "Gemini CLI: error",
        gemini("", error={"type": "ApiError", "message": "got status: 503", "code": 503}),
        INFRA,
        "server_error",
    ),
    (
        "Gemini CLI: error of the account",
        json.dumps({"error": {"type": "Error", "message": "Please set an Auth method or GEMINI_API_KEY", "code": 41}}),
        CONFIG,
        "unauthorized",
    ),
    ("opencode: error", opencode_error("slow down", 429), INFRA, "rate_limited"),
    ("opencode: error of money", opencode_error("Insufficient credits", 402), ACCOUNT, "payment_required"),
    ("opencode: error after a start", opencode(ended=False) + opencode_error("x", 502), INFRA, "server_error"),
    ("Claude: text, status in brackets", f"{API}Request rejected (429) · Rate limit", INFRA, "rate_limited"),
    ("Claude: refusal", result("I can't help.", stop_reason="refusal"), MODEL, "refusal"),
    ("nothing printed", "", INFRA, "empty_body"),
    ("only white space", "\n\n", INFRA, "empty_body"),
]


@pytest.mark.parametrize(("output", "blame", "name"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_exit_status_0_with_an_error(output: Any, blame: Blame, name: str) -> None:
    reading = printed(output)
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name, reading.calls) == (blame, name, ())


def test_errors_said_on_standard_error_only() -> None:
    fault = printed("", detail="API Error: 529 Overloaded").fault
    assert fault is not None
    assert (fault.blame, fault.name) == (INFRA, "overloaded")


@pytest.mark.parametrize(
    ("status", "output", "detail", "blame", "name"),
    [
        (1, "", "", INFRA, "cli_error"),
        (1, API + '402 {"type":"error","error":{"message":"x"}}', "", ACCOUNT, "payment_required"),
        (1, ENVELOPE, "", INFRA, "cli_error"),
        (1, result(f"{API}529 Overloaded", is_error=True), "", INFRA, "overloaded"),
        (1, "", "Error: Invalid API key. Please run /login", CONFIG, "unauthorized"),
        (1, "", "error: unexpected status 402 Payment Required", ACCOUNT, "payment_required"),
        (53, "", "turn limit", INFRA, "cli_error"),
        (127, "", "not found", CONFIG, "cli_missing"),
        (-9, ENVELOPE, "", INFRA, "killed"),
        (137, ENVELOPE, "", INFRA, "killed"),
        (None, ENVELOPE, "", INFRA, "no_answer"),
    ],
)
def test_other_exit_statuses(status: int | None, output: Any, detail: str, blame: Blame, name: str) -> None:
    reading = printed(output, status, detail=detail)
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name, reading.calls) == (blame, name, ())


def test_an_error_in_json_behind_a_trace_on_standard_error() -> None:
    trace = "at retry (file:///bundle/chunk.js:3:14) { cause: { code: 429, message: 'slow', details: [] }, status: 4 }"
    inner = json.dumps({"error": {"code": 401, "message": "no such key", "status": "UNAUTHENTICATED"}})
    for told, blame, name in (
        ({"type": "Error", "message": "slow down", "code": 429}, INFRA, "rate_limited"),
        ({"type": "Error", "message": inner, "code": 401}, CONFIG, "unauthorized"),
    ):
        fault = printed("", 173, detail=f"{trace} {json.dumps({'session_id': 's', 'error': told})}").fault
        assert fault is not None
        assert (fault.blame, fault.name) == (blame, name)
        assert "chunk.js" not in fault.sentence


def test_prose_that_speaks_of_errors_is_an_answer() -> None:
    for text in (
        "The API Error 529 means overload.",
        "Error handling: I would call f.",
        "A rate limit of 429 applies.",
        "402 is the room that I would book.",
        "402 Payment Required is the status you mean. Which invoice?",
        "403 Forbidden City tickets: for which day?",
        "Too many requests were made for that day; which room would do as well?",
        "HTTP 404 pages are not what the tools are for.",
    ):
        reading = printed(result(text))
        assert (reading.fault, reading.broken) == (None, "envelope")
    with_error = json.dumps({"tool_calls": [{"name": "log", "arguments": {"text": "API Error: 500"}}]})
    assert calls_of(printed("API Error: 500 is what I log: " + with_error)) == [("log", {"text": "API Error: 500"})]
