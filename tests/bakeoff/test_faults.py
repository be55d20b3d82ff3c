"""Every row of the table "whose fault", and how long a server asks to wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from referee.core.bakeoff import Blame
from referee.scoring.answers import faults
from referee.scoring.answers.waiting import retry_after_seconds
from tests.bakeoff.reading import chat, read_said

INFRA, ACCOUNT, CONFIG, CASE, MODEL = Blame.INFRA, Blame.ACCOUNT, Blame.CONFIG, Blame.CASE, Blame.MODEL


def openai(message: str, code: Any = None, kind: str | None = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic(message: str, kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def google(status: str, message: str, code: int) -> list[dict[str, Any]]:
    return [{"error": {"code": code, "message": message, "status": status}}]


IN_FLIGHT = "This request would exceed your available credits given your current in-flight requests."
USAGE = "You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC."
MODERATED = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "x"}
WINDOW = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
FILTERED = "The response was filtered due to the prompt triggering the content management policy."

ROWS: list[tuple[str, int, Any, Blame, str]] = [
    ("408", 408, openai("timed out"), INFRA, "timeout"),
    ("409", 409, openai("conflict"), INFRA, "conflict"),
    ("429", 429, openai("slow down", "rate_limit_exceeded", "requests"), INFRA, "rate_limited"),
    ("429 Google", 429, google("RESOURCE_EXHAUSTED", "You exceeded your current quota", 429), INFRA, "rate_limited"),
    ("429 without a body", 429, b"", INFRA, "rate_limited"),
    ("429 NVIDIA", 429, {"status": 429, "title": "Too Many Requests"}, INFRA, "rate_limited"),
    ("429 quota", 429, openai("quota", "insufficient_quota", "insufficient_quota"), ACCOUNT, "insufficient_quota"),
    ("429 quota in words", 429, openai("Error 429: insufficient_quota, see billing"), ACCOUNT, "insufficient_quota"),
    ("500", 500, openai("boom", None, "server_error"), INFRA, "server_error"),
    ("500 that speaks of the model", 500, openai("content filter context length"), INFRA, "server_error"),
    ("502 in HTML", 502, b"<html><h1>Bad gateway</h1></html>", INFRA, "server_error"),
    ("503", 503, {"error": "Model is loading", "estimated_time": 20.0}, INFRA, "server_error"),
    ("504", 504, b"", INFRA, "server_error"),
    ("520", 520, b"", INFRA, "server_error"),
    ("524", 524, b"", INFRA, "server_error"),
    ("529", 529, anthropic("Overloaded", "overloaded_error"), INFRA, "overloaded"),
    ("402", 402, openai("Insufficient credits", 402), ACCOUNT, "payment_required"),
    ("402 of a hub", 402, {"error": "You have exceeded your monthly included credits"}, ACCOUNT, "payment_required"),
    ("402 in flight, no wait told", 402, openai(IN_FLIGHT, 402), ACCOUNT, "payment_required"),
    ("402 Anthropic", 402, anthropic("Billing", "billing_error"), ACCOUNT, "payment_required"),
    (
        "402 in flight",
        402,
        openai(IN_FLIGHT, 402, metadata={"headers": {"Retry-After": "120"}}),
        INFRA,
        "budget_in_flight",
    ),
    ("400 usage limits", 400, anthropic(USAGE, "invalid_request_error"), ACCOUNT, "usage_limit"),
    ("400 credit balance", 400, anthropic("Your credit balance is too low to", "x"), ACCOUNT, "usage_limit"),
    (
        "400 degraded",
        400,
        {"status": 400, "title": "Bad Request", "detail": "Function id 'x': DEGRADED function cannot be invoked"},
        INFRA,
        "endpoint_degraded",
    ),
    ("400 degraded, plain", 400, b"DEGRADED function cannot be invoked", INFRA, "endpoint_degraded"),
    ("400 degraded in other letters", 400, openai("degraded function cannot be invoked"), CONFIG, "request_rejected"),
    (
        "404 not for this account",
        404,
        {"status": 404, "title": "Not Found", "detail": "Function 'x': Not found for account 'y'"},
        CONFIG,
        "endpoint_unavailable",
    ),
    ("404 in other letters", 404, openai("not found for account"), CONFIG, "not_found"),
    ("401", 401, openai("Incorrect API key provided", "invalid_api_key"), CONFIG, "unauthorized"),
    ("403", 403, anthropic("no", "permission_error"), CONFIG, "forbidden"),
    ("403 without metadata", 403, openai("Forbidden by moderation", 403), CONFIG, "forbidden"),
    ("403 moderation", 403, openai("flagged", 403, metadata=MODERATED), CASE, "moderation"),
    ("404 model", 404, openai("The model `x` does not exist", "model_not_found"), CONFIG, "unknown_model"),
    ("404 Ollama", 404, {"error": 'model "x" not found, try pulling it first'}, CONFIG, "unknown_model"),
    ("404 Anthropic", 404, anthropic("model: x", "not_found_error"), CONFIG, "unknown_model"),
    ("404 path", 404, b"404 page not found", CONFIG, "not_found"),
    ("400 model", 400, openai("x/y is not a valid model ID", 400), CONFIG, "unknown_model"),
    ("400", 400, openai("Unknown parameter: 'tools[0].x'", None, "invalid_request_error"), CONFIG, "request_rejected"),
    ("422", 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, CONFIG, "request_rejected"),
    ("405", 405, b"", CONFIG, "request_rejected"),
    ("410", 410, {"detail": "gone"}, CONFIG, "endpoint_unavailable"),
    ("400 paused", 400, {"error": "Endpoint is paused"}, CONFIG, "endpoint_unavailable"),
    ("413", 413, anthropic("too large", "request_too_large"), CASE, "too_large"),
    ("400 context", 400, openai(WINDOW, "context_length_exceeded"), CASE, "context_length"),
    ("400 context by its words", 400, openai(WINDOW, 400, "BadRequestError"), CASE, "context_length"),
    ("400 Anthropic's", 400, anthropic("prompt is too long: 210000 tokens > 200000", "x"), CASE, "context_length"),
    ("400 llama.cpp", 400, openai("exceeds the available context size", 400), CASE, "context_length"),
    ("400 filter", 400, openai(FILTERED, "content_filter"), MODEL, "content_filter"),
    ("400 policy", 400, openai("Your request was rejected", "content_policy_violation"), MODEL, "content_filter"),
    (
        "400 Anthropic's filter",
        400,
        anthropic("Output blocked by content filtering policy", "x"),
        MODEL,
        "content_filter",
    ),
    ("400 failed call", 400, openai("Failed to call", "tool_use_failed"), MODEL, "malformed_function_call"),
    (
        "400 failed call in words",
        400,
        openai("The model ended with MALFORMED_FUNCTION_CALL", 400),
        MODEL,
        "malformed_function_call",
    ),
    ("307", 307, b"", CONFIG, "redirected"),
    ("202", 202, b"{}", INFRA, "pending"),
    ("101", 101, b"", INFRA, "no_answer"),
]


@pytest.mark.parametrize(("status", "body", "blame", "name"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_table(status: int, body: Any, blame: Blame, name: str) -> None:
    reading = read_said(body, status=status)
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name) == (blame, name)
    assert reading.fault.sentence
    assert (reading.calls, reading.broken, reading.well_formed) == ((), None, False)


def test_402_is_never_the_models_whatever_it_says() -> None:
    for said in ("content filter", "refusal", "MALFORMED_FUNCTION_CALL", WINDOW, "model not found"):
        for body in (openai(said, "content_filter"), said.encode(), anthropic(said, "invalid_request_error")):
            fault = read_said(body, status=402).fault
            assert fault is not None
            assert fault.blame is ACCOUNT


INSIDE: list[tuple[str, Any, Blame, str]] = [
    ("top-level error, code", openai("Provider returned error", 502), INFRA, "server_error"),
    ("top-level error, code as text", openai("Provider returned error", "502"), INFRA, "server_error"),
    ("top-level error, 429", openai("limited upstream", 429), INFRA, "rate_limited"),
    ("top-level error, 402", openai("Insufficient credits", 402), ACCOUNT, "payment_required"),
    ("top-level error, quota", openai("x", "insufficient_quota"), ACCOUNT, "insufficient_quota"),
    (
        "top-level error, its code before its type",
        openai("x", "rate_limit_exceeded", "invalid_request_error"),
        INFRA,
        "rate_limited",
    ),
    (
        "top-level error, its code before any type",
        openai("x", "insufficient_quota", "api_error"),
        ACCOUNT,
        "insufficient_quota",
    ),
    ("top-level error, rate in words", openai("You have reached your rate limit"), INFRA, "error_in_200"),
    ("top-level error, a number", {"error": 402}, ACCOUNT, "payment_required"),
    ("top-level error, a list", {"error": [{"code": 429, "message": "x"}]}, INFRA, "rate_limited"),
    ("choices null, a code beside them", {"choices": None, "code": 402, "message": "x"}, ACCOUNT, "payment_required"),
    ("top-level error, 401", openai("No auth", 401), CONFIG, "unauthorized"),
    ("top-level error, moderated", openai("x", 403, metadata=MODERATED), CASE, "moderation"),
    ("top-level error, filter", openai("x", "content_filter"), MODEL, "content_filter"),
    ("top-level error, text", {"error": "something odd"}, INFRA, "error_in_200"),
    ("top-level error, no code", openai("something odd"), INFRA, "error_in_200"),
    ("top-level error beside choices", {**openai("x", 500), **chat({"content": "x"})}, INFRA, "server_error"),
    ("Google's status", {"error": {"status": "UNAVAILABLE", "message": "x"}}, INFRA, "server_error"),
    ("Anthropic's error", anthropic("Overloaded", "overloaded_error"), INFRA, "overloaded"),
    ("an error object", {"object": "error", "message": "x", "code": 400}, CONFIG, "request_rejected"),
    ("in a list", [openai("x", 503)], INFRA, "server_error"),
    ("degraded inside", openai("x: DEGRADED function cannot be invoked", 400), INFRA, "endpoint_degraded"),
    ("choices null", {"id": "x", "choices": None}, INFRA, "error_in_200"),
    ("choices empty", {"choices": []}, INFRA, "error_in_200"),
    ("no choices", {}, INFRA, "error_in_200"),
    ("choices of another kind", {"choices": {"0": 1}}, INFRA, "error_in_200"),
    ("no message", {"choices": [{"index": 0, "finish_reason": "stop"}]}, INFRA, "error_in_200"),
    ("null choice", {"choices": [None]}, INFRA, "error_in_200"),
    ("finish error", chat({"content": ""}, "error"), INFRA, "error_in_200"),
    ("error of the choice", {"choices": [{"error": {"code": 429, "message": "x"}}]}, INFRA, "rate_limited"),
    ("no body", b"", INFRA, "empty_body"),
    ("white space only", b" \n ", INFRA, "empty_body"),
    ("HTML", b"<html>Sign in</html>", INFRA, "not_json"),
    ("half a document", b'{"choices": [{"message": {"tool', INFRA, "not_json"),
    ("a number", b"5", INFRA, "not_json"),
    ("a list", b"[]", INFRA, "not_json"),
    ("bytes of another kind", b"\x1f\x8b\x08\x00\xff", INFRA, "not_json"),
]


@pytest.mark.parametrize(("body", "blame", "name"), [row[1:] for row in INSIDE], ids=[row[0] for row in INSIDE])
def test_errors_inside_http_200(body: Any, blame: Blame, name: str) -> None:
    reading = read_said(body)
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name, reading.calls) == (blame, name, ())


def test_an_error_that_is_null_is_none() -> None:
    assert read_said({**chat({"content": "x"}), "error": None}).fault is None


@pytest.mark.parametrize(
    ("broke", "name"),
    [
        ("timeout", "timeout"),
        ("dns", "dns"),
        ("connect", "connect"),
        ("reset", "reset"),
        ("protocol", "protocol"),
        ("too-long", "too_long"),
        ("killed", "killed"),
        ("something new", "protocol"),
    ],
)
@pytest.mark.parametrize("status", [None, 200])
def test_a_transport_that_breaks_is_infrastructure(broke: str, name: str, status: int | None) -> None:
    whole = chat({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]})
    for shape in ("openai-chat", "openai-responses", "anthropic-messages", "ollama", "cli-envelope"):
        reading = read_said(whole, shape, status=status, broke=broke, detail="why it broke")
        assert reading.fault is not None
        assert (reading.fault.blame, reading.fault.name, reading.calls) == (INFRA, name, ())
        assert "why it broke" in reading.fault.sentence


@pytest.mark.parametrize("broke", ["reset", "timeout", "protocol", "too-long"])
def test_half_a_body_does_not_say_whose_fault_it_is(broke: str) -> None:
    """The other half may be that a function is degraded, that a model is unknown, that a case is too long."""
    for status in (400, 403, 404, 422):
        fault = read_said(b'{"error": {"message": "DEGRA', status=status, broke=broke).fault
        assert fault is not None
        assert (fault.blame, fault.name) == (INFRA, broke.replace("-", "_"))
    whole = read_said(openai(WINDOW, "context_length_exceeded"), status=400, broke=broke).fault
    assert whole is not None
    assert whole.name == "context_length"
    for status, name in ((401, "unauthorized"), (402, "payment_required"), (413, "too_large"), (500, "server_error")):
        said = read_said(b'{"error"', status=status, broke=broke).fault
        assert said is not None
        assert said.name == name


def test_what_a_server_says_of_its_inside_is_not_what_a_cli_says_of_its_way() -> None:
    """Without a code an error inside HTTP 200 is the way's, in words that name no CLI."""
    for words in ("could not log input", "upstream connection reset", "deadline passed", "no API key for upstream"):
        fault = read_said(openai(words)).fault
        assert fault is not None
        assert (fault.blame, fault.name) == (INFRA, "error_in_200")
        assert "CLI" not in fault.sentence


def test_a_status_says_more_than_a_broken_body() -> None:
    fault = read_said(b"", status=429, headers={"retry-after": "9"}, broke="reset").fault
    assert fault is not None
    assert (fault.name, fault.retry_after) == ("rate_limited", 9.0)


def test_no_status_at_all() -> None:
    fault = read_said(b"", status=None).fault
    assert fault is not None
    assert (fault.blame, fault.name) == (INFRA, "no_answer")


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT", "date": DATE}, 90.0),
        ({"retry-after": "Wednesday, 21-Oct-26 07:28:10 GMT", "date": DATE}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 09:29:00 +0200", "date": DATE}, 60.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT", "date": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after": "Wed, 99 Oct 2026 77:29:30 GMT", "date": DATE}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds
    for status in (429, 503):
        fault = read_said(b"{}", status=status, headers=headers).fault
        assert fault is not None
        assert fault.retry_after == seconds


def test_the_header_goes_before_what_a_router_copies_into_its_body() -> None:
    body = openai("x", 429, metadata={"headers": {"Retry-After": "120"}})
    inside = read_said(body, status=429).fault
    outside = read_said(body, status=429, headers={"retry-after": "3"}).fault
    assert inside is not None
    assert outside is not None
    assert (inside.retry_after, outside.retry_after) == (120.0, 3.0)


def test_googles_wait_stands_in_the_details() -> None:
    details = [{"@type": "x.QuotaFailure"}, {"@type": "x.RetryInfo", "retryDelay": "34.5s"}]
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": details}}
    for document in (body, [body]):
        fault = read_said(document, status=429).fault
        assert fault is not None
        assert fault.retry_after == 34.5
    details[1]["retryDelay"] = "soon"
    fault = read_said(body, status=429).fault
    assert fault is not None
    assert fault.retry_after is None


def test_no_sentence_holds_half_a_word() -> None:
    secret = "s3cr3t" * 60  # longer than an excerpt: it is left out, never cut
    for text in (f"key {secret} is wrong", "key" + " " * 3990 + secret, secret, "a" * 10_000):
        fault = read_said(openai(text), status=401).fault
        assert fault is not None
        assert "s3cr3t" not in fault.sentence
        assert "aaa" not in fault.sentence
        assert len(fault.sentence) < 300


def test_a_sentence_is_one_line_of_printable_text() -> None:
    fault = read_said(openai("bad\r\n\x1b[31mred\x00\u202e \ud800 end"), status=500).fault
    assert fault is not None
    assert fault.sentence.isprintable()
    assert fault.sentence.encode("utf-8")


def test_the_table_has_a_row_for_every_status_of_an_error() -> None:
    for status in range(300, 600):
        fault = faults.of_signal(faults.Signal(status))
        assert fault.name != "no_answer", status
        assert (fault.blame is INFRA) == (status in {408, 409, 429} or status >= 500), status
    assert all(row.sentence and row.name for row in faults.TABLE)


def test_every_code_stands_for_a_status_of_the_table() -> None:
    for code, status in faults.STATUS_OF_CODE.items():
        fault = read_said(json.dumps({"error": {"code": code, "message": "x"}})).fault
        assert fault is not None
        assert fault.name not in {"error_in_200", "no_answer"}, code
        assert 400 <= status < 600
