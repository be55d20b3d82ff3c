"""What a real server plays over loopback, through the real lanes, read: the four surfaces side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from referee.adapters.lanes.surfaces import SHAPES
from referee.core.answers import Reading
from referee.core.bakeoff import LaneKind
from referee.scoring.answers import read
from tests.bakeoff.lane_targets import SURFACES, ask, target
from tests.bakeoff.reading import calls_of
from tests.bakeoff.scripted_server import ScriptedServer, serving

pytestmark = pytest.mark.slow  # together more than a few seconds

CHAT: tuple[LaneKind, ...] = ("openai-chat",)
CODED: tuple[LaneKind, ...] = ("openai-chat", "openai-responses", "anthropic-messages")  # errors carry codes there
CALL = [("get_weather", {"city": "Köln"})]

#: What is played: where, and the name of fault or format failure, or the flags of a sound answer.
PLAYED: list[tuple[str, tuple[LaneKind, ...], str]] = [
    ("empty", SURFACES, "empty"),
    ("refusal", CODED, "model refusal"),
    ("reasoning-only", SURFACES, "model reasoning_only"),
    ("choices-null", SURFACES, "infra error_in_200"),
    ("call-in-content", SURFACES, "content_fallback"),
    ("envelope", SURFACES, "content_fallback"),
    ("template-leak", SURFACES, "template-leak"),
    ("args-empty", SURFACES, ""),
    ("args-null", SURFACES, ""),
    ("args-fenced", SURFACES, "repaired"),
    ("args-prose", SURFACES, "repaired"),
    ("args-comma", SURFACES, "repaired"),
    ("args-newline", SURFACES, "repaired"),
    ("args-escape", SURFACES, "repaired"),
    ("args-twice-encoded", SURFACES, "unwrapped"),
    ("args-two-objects", SURFACES, "several-objects"),
    ("args-duplicate", SURFACES, "duplicate-keys"),
    ("args-truncated", SURFACES, "truncated"),
    ("args-nan", SURFACES, "number"),
    ("args-long-number", SURFACES, "number"),
    ("args-deep", SURFACES, "too-deep"),
    ("legacy-call", CHAT, ""),
    ("stop-with-calls", CHAT, "stop-with-calls"),
    ("calls-empty", CHAT, "finish-without-calls"),
    ("no-function", CHAT, "no-function"),
    ("args-object", CHAT, ""),
    ("content-chunks", CHAT, ""),
    ("content-filter", CHAT, "model content_filter"),
    ("malformed-call", CHAT, "model malformed_function_call"),
    ("finish-error", CHAT, "infra error_in_200"),
    ("thought-aloud", CHAT, "inline-reasoning"),
    ("choices-unsorted", CHAT, "several-choices"),
    ("choice-error", CHAT, "infra rate_limited"),
    ("choice-error-402", CHAT, "account payment_required"),
    ("native-malformed", CHAT, "model malformed_function_call"),
    ("reasoning-counted", CHAT, "model reasoning_only"),
    ("nothing-but-a-code", SURFACES, "account payment_required"),
    ("408", SURFACES, "infra timeout"),
    ("409", SURFACES, "infra conflict"),
    ("429", SURFACES, "infra rate_limited"),
    ("429-quota", CODED, "account insufficient_quota"),
    ("500", SURFACES, "infra server_error"),
    ("520", SURFACES, "infra server_error"),
    ("529", SURFACES, "infra overloaded"),
    ("402", SURFACES, "account payment_required"),
    ("402-in-flight", SURFACES, "infra budget_in_flight"),
    ("usage-limit", SURFACES, "account usage_limit"),
    ("degraded", SURFACES, "infra endpoint_degraded"),
    ("not-found-for-account", SURFACES, "config endpoint_unavailable"),
    ("401", SURFACES, "config unauthorized"),
    ("403", SURFACES, "config forbidden"),
    ("403-moderation", CODED, "case moderation"),
    ("404-model", SURFACES, "config unknown_model"),
    ("400", SURFACES, "config request_rejected"),
    ("422", SURFACES, "config request_rejected"),
    ("413", SURFACES, "case too_large"),
    ("context-length", SURFACES, "case context_length"),
    ("content-policy", CODED, "model content_filter"),
    ("error-in-200", CODED, "infra server_error"),
    ("quota-in-200", CODED, "account payment_required"),
    ("uncoded-in-200", SURFACES, "infra error_in_200"),
    ("number-in-200", SURFACES, "account payment_required"),
    ("type-in-200", SURFACES, "infra rate_limited"),
    ("400-cut", SURFACES, "infra reset"),
    ("401-cut", SURFACES, "config unauthorized"),
    ("stream-broken", SURFACES, "infra stream_broken"),
    ("stream-torn", SURFACES, "infra stream_broken"),
    ("reset", SURFACES, "infra reset"),
    ("reset-in-body", SURFACES, "infra reset"),
    ("garbage", SURFACES, "infra protocol"),
    ("no-json", SURFACES, "infra not_json"),
    ("redirect", SURFACES, "config redirected"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving(calls=lambda got: CALL) as running:
        yield running


def answer(server: ScriptedServer, play: str, lane: LaneKind, *, stream: bool = False) -> Reading:
    said = ask(target(server.url, play, lane, stream=stream))
    return read(
        *(said.status, said.headers, said.body),
        broke=said.broke,
        detail=said.detail,
        streamed=said.streamed,
        shape=SHAPES[lane],
        inlined=False,
    )


@pytest.mark.parametrize(("play", "lanes", "expected"), PLAYED, ids=[row[0] for row in PLAYED])
def test_what_is_played_is_read(server: ScriptedServer, play: str, lanes: tuple[LaneKind, ...], expected: str) -> None:
    for lane in lanes:
        found = answer(server, play, lane, stream=play.startswith("stream"))
        name = " ".join(found.flags) if found.broken is None else found.broken
        if found.fault is not None:
            name = f"{found.fault.blame} {found.fault.name}"
            assert found.calls == (), lane
        assert name == expected, lane


@pytest.mark.parametrize("lane", SURFACES)
def test_the_same_answer_on_every_surface_streamed_or_not(server: ScriptedServer, lane: LaneKind) -> None:
    for play, stream, calls in (
        ("ok", False, CALL),
        ("ok", True, CALL),
        ("text-and-call", False, CALL),
        ("twice", False, CALL * 2),
        ("stream-ok", True, CALL),
        ("stream-index0", True, CALL * 2),
        ("text", False, []),
    ):
        found = answer(server, play, lane, stream=stream)
        assert (found.fault, found.broken, found.well_formed) == (None, None, True), play
        assert calls_of(found) == calls, play
        assert found.model == play
        assert (found.input_tokens, found.output_tokens) == (120, 15) or stream
    assert answer(server, "text", lane).text == "Which city do you mean?"


def test_the_wait_that_a_server_asks_for(server: ScriptedServer) -> None:
    for lane in SURFACES:
        fault = answer(server, "429-retry-after", lane).fault
        assert fault is not None
        assert fault.retry_after == 1.0
