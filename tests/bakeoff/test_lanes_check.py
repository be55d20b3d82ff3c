"""What a lane finds out before the first question, and where it fails closed; credit and market."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.catalog.targets import load_target
from referee.adapters.keyword_baseline.server import start_embedded
from referee.adapters.lanes.catalogue import find_model
from referee.adapters.lanes.lane import HttpLane
from referee.adapters.lanes.make import make_http_lane
from referee.adapters.lanes.surfaces import surface_of
from referee.cli.wiring import make_lane
from referee.core.bakeoff import LaneKind, Sampling, Target
from referee.errors import CouldNotVerify
from referee.protocols import Ask, LaneFacts, Said
from referee.scoring.answers import read
from tests.bakeoff.lane_targets import KEY, SURFACES, WEATHER, target, with_lane
from tests.bakeoff.scripted_server import ScriptedServer, serving


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


def _check(aim: Target) -> LaneFacts:
    return with_lane(aim, HttpLane.check)


def _refused(aim: Target) -> CouldNotVerify:
    with pytest.raises(CouldNotVerify) as caught:
        _check(aim)
    assert caught.value.todo
    assert KEY not in caught.value.message + caught.value.todo
    return caught.value


# --- the live catalogue ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_a_model_is_found_by_its_exact_name(server: ScriptedServer, lane: LaneKind) -> None:
    facts = _check(target(server.url, lane=lane))
    assert facts.model == "ok"
    assert facts.verified["model"] == f"listed by {server.url}/v1 under exactly this name"
    assert facts.verified["credential"] == "not verified: the catalogue is public; the first answer will tell"
    assert b'"ok"' in facts.said["models"]
    # With the credential, and once as a stranger: else a public catalogue would pass as an accepted credential.
    assert [got.credential for got in server.got] == [KEY, ""]


def test_a_model_that_is_not_listed(server: ScriptedServer) -> None:
    server.models.append("mistral-small-2506")
    error = _refused(target(server.url, "mistral-small"))
    assert "mistral-small of the target scripted is not in the live catalogue" in error.message
    assert "mistral-small-2506" in error.todo
    assert "OK" not in _check(target(server.url, "ok")).verified["model"]
    _refused(target(server.url, "OK"))


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("nosuch", "models, none of a name like it)"),
        ("mistral-small", "nearest names there: mistral-small-2506)"),
        ("Mistral-Small-2506", "nearest names there: mistral-small-2506)"),
        ("mistralai/mistral-small-2506", "nearest names there: mistral-small-2506)"),
        ("large-instruct", "nearest names there: mistral-large-instruct-2411-fp8-dynamic)"),
    ],
)
def test_names_are_offered_only_where_they_are_near(server: ScriptedServer, wanted: str, hint: str) -> None:
    server.models += ["mistral-small-2506", "mistral-large-instruct-2411-fp8-dynamic"]
    assert _refused(target(server.url, wanted)).todo.endswith(hint)


def test_a_short_catalogue_is_listed_whole() -> None:
    with pytest.raises(CouldNotVerify) as caught:
        find_model(target("http://127.0.0.1:9", "nosuch"), {"echo": {}}, "there")
    assert caught.value.todo.endswith("(it lists: echo)")


@pytest.mark.parametrize(
    ("play", "part"),
    [("401", "refuses the credential"), ("503", "answers HTTP 503")],
)
def test_an_endpoint_in_trouble(server: ScriptedServer, play: str, part: str) -> None:
    assert part in _refused(target(f"{server.url}/play/{play}", "no-such-model")).message


def test_an_endpoint_without_a_catalogue_says_so(server: ScriptedServer) -> None:
    facts = _check(target(f"{server.url}/play/404-models"))
    assert facts.verified["model"].startswith("not verified: ")
    assert facts.verified["credential"] == "not verified: the first answer will tell"


@pytest.mark.parametrize("lane", SURFACES)
def test_nobody_there(lane: LaneKind) -> None:
    assert "does not answer" in _refused(target("http://127.0.0.1:9", lane=lane)).message


def test_a_redirect_of_the_catalogue_is_not_followed(server: ScriptedServer) -> None:
    server.refuses["models"] = 307
    assert "answers HTTP 307 to /models" in _refused(target(server.url)).message


def test_a_page_instead_of_an_api(server: ScriptedServer) -> None:
    server.refuses["models"] = 200
    assert "without a list of models" in _refused(target(server.url)).message


@pytest.mark.parametrize(("channel", "found"), [("router", True), ("hub-inference", True), ("metered-api", False)])
def test_a_route_behind_a_colon(server: ScriptedServer, channel: str, found: bool) -> None:
    aim = target(server.url, "ok:fast", channel=channel)
    if found:
        assert "`fast` names a route" in _check(aim).verified["model"]
    else:
        _refused(aim)


def test_the_served_context_is_compared(server: ScriptedServer) -> None:
    server.listed["max_model_len"] = 32768
    assert _check(target(server.url, context=32768)).verified["context"] == "32768 tokens are served"
    assert _check(target(server.url)).verified["context"].endswith("the target pins none")
    assert "32768 tokens, not of 131072" in _refused(target(server.url, context=131072)).message


def test_pins_that_the_api_cannot_confirm_are_said(server: ScriptedServer) -> None:
    server.listed["max_model_len"] = 8192
    said = _check(target(server.url, precision="fp8", context=8192, revision="abc")).verified["pins"]
    assert said == "stated by the target, not verified through this API: precision, revision"
    assert "pins" not in _check(target(server.url)).verified


def test_a_credential_that_the_catalogue_asks_for(server: ScriptedServer) -> None:
    aim = target(server.url)
    # The scripted catalogue is public; behind a door that knows the credential the stranger is sent away.
    server.closed = True
    assert _check(aim).verified["credential"] == "accepted: the catalogue is refused without it"


def test_tool_choice_is_tried_on_local_servers_only(server: ScriptedServer) -> None:
    verified = _check(target(server.url, channel="local")).verified
    assert verified["tool_choice auto"] == verified["tool_choice required"] == "accepted, a call came"
    assert [got.body["tool_choice"] for got in server.got if got.surface] == ["auto", "required"]
    assert "tool_choice auto" not in _check(target(server.url)).verified
    for model, finding in {"text": "accepted, no call came", "400": "refused with HTTP 400"}.items():
        assert _check(target(server.url, model, channel="local")).verified["tool_choice required"] == finding
    for model in ("no-json", "choices-null"):
        found = _check(target(server.url, model, channel="local")).verified
        assert found["tool_choice required"] == "accepted, the answer has no known shape"
    assert "no answer: " in _check(target(server.url, "reset", channel="local")).verified["tool_choice auto"]


@pytest.mark.parametrize("lane", ["openai-responses", "anthropic-messages"])
def test_tool_choice_is_tried_wherever_a_call_can_be_required(server: ScriptedServer, lane: LaneKind) -> None:
    verified = _check(target(server.url, lane=lane, channel="local")).verified
    assert verified["tool_choice auto"] == verified["tool_choice required"] == "accepted, a call came"
    probes = [got for got in server.got if got.surface]
    assert {got.surface for got in probes} == {lane}
    wanted = {"openai-responses": ["auto", "required"], "anthropic-messages": [{"type": "auto"}, {"type": "any"}]}
    assert [got.body["tool_choice"] for got in probes] == wanted[lane]
    assert "tool_choice auto" not in _check(target(server.url, lane=lane)).verified
    for model, finding in {"text": "accepted, no call came", "400": "refused with HTTP 400"}.items():
        assert _check(target(server.url, model, lane, channel="local")).verified["tool_choice required"] == finding
    for model in ("no-json", "choices-null"):
        found = _check(target(server.url, model, lane, channel="local")).verified
        assert found["tool_choice required"] == "accepted, the answer has no known shape"


# --- Ollama ----------------------------------------------------------------------------------------------------------

_PINS: dict[str, Any] = {"quantisation": "Q4_K_M", "parameters": "3.2B", "revision": "a" * 12, "context": 16384}


def _ollama(server: ScriptedServer, **pins: Any) -> Target:
    return target(server.url, lane="ollama", channel="local", key_env=None, **pins)


def test_ollama_pins_that_hold(server: ScriptedServer) -> None:
    server.allocated = 16384
    facts = _check(_ollama(server, **_PINS))
    assert facts.verified == {
        "model": "served as ok:latest",
        "credential": "none is sent",
        "quantisation": "Q4_K_M, as pinned",
        "parameters": "3.2B, as pinned",
        "revision": f"{'a' * 64}, as pinned",
        "context": "16384 tokens are asked for with every question, and allocated",
    }
    assert set(facts.said) == {"tags", "show", "version", "ps"}
    assert facts.model == "ok:latest"
    assert facts.pins == {"quantisation": "Q4_K_M", "parameters": "3.2B", "revision": "a" * 64, "context": "16384"}
    load = next(got.body for got in server.got if got.path == "/api/chat")
    assert load == {"model": "ok", "messages": [], "options": {"num_ctx": 16384}, "stream": False}


def test_ollama_says_what_is_not_pinned(server: ScriptedServer) -> None:
    verified = _check(_ollama(server)).verified
    assert verified["quantisation"] == "Q4_K_M is served; the target pins none"
    assert verified["revision"] == f"{'a' * 64} is served; the target pins none"
    assert verified["context"] == "the target pins none: the server's default holds"
    assert not [got for got in server.got if got.path == "/api/chat"]


@pytest.mark.parametrize(
    ("pins", "part"),
    [
        ({"quantisation": "Q8_0"}, "the quantisation of ok is Q4_K_M, not Q8_0"),
        ({"parameters": "7B"}, "the parameters of ok is 3.2B, not 7B"),
        ({"revision": "b" * 12}, f"the digest of ok is {'a' * 64}, not {'b' * 12}"),
        ({"revision": "a" * 11}, "the digest of ok is"),
        ({"context": 262144}, "the model ok takes 131072 tokens, fewer than scripted pins (262144)"),
        ({"context": 8192}, "allocates a context of 4096 tokens for ok, not of 8192"),
    ],
)
def test_ollama_pins_that_do_not_hold(server: ScriptedServer, pins: dict[str, Any], part: str) -> None:
    server.allocated = 4096
    assert part in _refused(_ollama(server, **pins)).message


def test_ollama_that_reports_less(server: ScriptedServer) -> None:
    server.refuses["show"] = 404
    server.refuses["ps"] = 404
    verified = _check(_ollama(server, context=16384)).verified
    assert verified["quantisation"] == "Q4_K_M is served; the target pins none"
    assert verified["context"].endswith("the server does not report what it allocates")
    server.refuses["tags"] = 404
    assert "not in the live catalogue" in _refused(_ollama(server)).message


def test_an_ollama_model_that_takes_no_tools(server: ScriptedServer) -> None:
    server.ollama["capabilities"] = ["completion"]
    assert "takes no tools" in _refused(_ollama(server)).message


# --- credit and market -----------------------------------------------------------------------------------------------

_ROUTER: dict[str, Any] = {"channel": "router", "metered": True, "credit": "openrouter", "market": "openrouter"}


def test_the_smaller_credit_counts(server: ScriptedServer) -> None:
    aim = target(server.url, **_ROUTER)
    assert with_lane(aim, HttpLane.credit_usd) == 87.5
    server.key_limit = 4.0
    assert with_lane(aim, HttpLane.credit_usd) == 4.0


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_may_not_read_the_account(server: ScriptedServer, status: int) -> None:
    server.refuses["credits"], server.key_limit = status, 5.0

    async def twice(lane: HttpLane) -> list[float | None]:
        return [await lane.credit_usd(), await lane.credit_usd()]

    assert with_lane(target(server.url, **_ROUTER), twice) == [5.0, 5.0]
    assert [got.path for got in server.got] == ["/v1/key", "/v1/credits", "/v1/key"]


@pytest.mark.parametrize("limit", [None, float("nan"), True, "5"])
def test_credit_that_cannot_be_read_blocks(server: ScriptedServer, limit: Any) -> None:
    server.refuses["credits"], server.key_limit = 403, limit
    with pytest.raises(CouldNotVerify, match="remaining credit cannot be read"):
        with_lane(target(server.url, **_ROUTER), HttpLane.credit_usd)


def test_no_credit_and_no_market_where_none_is_named(server: ScriptedServer) -> None:
    async def both(lane: HttpLane) -> tuple[float | None, Mapping[str, bytes]]:
        return await lane.credit_usd(), await lane.market()

    assert with_lane(target(server.url), both) == (None, {})
    assert server.got == []


def test_the_market_is_kept_raw(server: ScriptedServer) -> None:
    aim = target(server.url, **_ROUTER)
    said = with_lane(aim, HttpLane.market)
    assert b'"uptime_last_30m": 99.5' in said["openrouter-endpoints"]
    assert server.got[-1].path == "/v1/models/ok/endpoints"
    server.refuses["endpoints"] = 500
    assert with_lane(aim, HttpLane.market) == {}
    assert with_lane(target("http://127.0.0.1:9", **_ROUTER), HttpLane.market) == {}


def test_a_key_of_the_router_is_verified(server: ScriptedServer) -> None:
    aim = target(server.url, **_ROUTER)
    facts = _check(aim)
    assert facts.verified["credential"] == "accepted (/key)"
    server.refuses["key"] = 401
    assert "refuses the credential" in _refused(aim).message


# --- surfaces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "uncontrolled", "readable_as", "latency"),
    [
        (
            "hosted-free-tier",
            ("serving backend: precision, quantisation, revision", "throttled (~40 requests/min)"),
            "capability, never latency",
            False,
        ),
        ("router", ("provider may change per request", "budget gate"), "capability on a subset", False),
        (
            "hub-inference",
            ("a hub commit does not pin the served one",),
            "nothing rankable when funding fails (HTTP 402)",
            False,
        ),
        ("own-infrastructure", ("the gateway hop is named, not measured",), "capability and latency", True),
        ("local", ("hardware",), "capability on a controlled deployment", False),
    ],
)
def test_the_table_of_lanes(channel: str, uncontrolled: tuple[str, ...], readable_as: str, latency: bool) -> None:
    pinned: dict[str, Any] = {"precision": "bf16", "context": 8192, "revision": "abc"}
    surface = surface_of(target("http://127.0.0.1:9", channel=channel, **pinned))
    assert surface.uncontrolled == uncontrolled
    assert (surface.readable_as, surface.latency_admissible) == (readable_as, latency)
    assert (surface.tool_channel, surface.shape, surface.pins_sampling) == ("native", "openai-chat", True)


def test_what_a_target_leaves_unpinned_is_said() -> None:
    for channel in ("own-infrastructure", "local"):
        said = surface_of(target("http://127.0.0.1:9", channel=channel, precision="fp8")).uncontrolled
        assert said[-1] == "not pinned by the target: context, revision"


@pytest.mark.parametrize(
    ("lane", "pins", "phrase"),
    [
        ("openai-responses", False, "the API takes no seed"),
        ("anthropic-messages", False, "the API takes no seed"),
        ("ollama", True, "the API cannot require a call"),
    ],
)
def test_what_an_api_does_not_take_is_said(lane: LaneKind, pins: bool, phrase: str) -> None:
    surface = surface_of(target("http://127.0.0.1:9", lane=lane))
    assert surface.pins_sampling is pins
    assert phrase in surface.uncontrolled
    assert not surface_of(target("http://127.0.0.1:9", lane=lane, takes_sampling=False)).pins_sampling


# --- the embedded target ---------------------------------------------------------------------------------------------


def test_the_embedded_target_starts_answers_and_stops(tmp_path: Path) -> None:
    asked = Ask((("user", "Wie ist das Wetter in Köln?"),), (WEATHER,), require_call=False, sampling=Sampling())

    async def run() -> tuple[LaneFacts, Said, Said]:
        lane = make_lane(load_target("keyword-baseline", tmp_path), spool=tmp_path, environ={})
        try:
            facts = await lane.check()
            said = await lane.ask(asked, 5.0)
            assert lane.secrets == {}
            assert (lane.surface.channel, lane.surface.latency_admissible) == ("embedded", False)
            return facts, said, await lane.ask(asked, 5.0)
        finally:
            await lane.close()
            await lane.close()

    facts, said, again = asyncio.run(run())
    assert facts.verified["credential"] == "none is sent"
    assert "under exactly this name" in facts.verified["model"]
    assert said.body == again.body
    reading = read(200, {}, said.body, broke=None, detail="", streamed=False, shape="openai-chat", inlined=False)
    assert [(call.name, call.arguments) for call in reading.calls] == [("get_weather", {"city": "Köln"})]
    assert (reading.well_formed, reading.fault) == (True, None)


def test_many_first_questions_start_one_server(tmp_path: Path) -> None:
    asked = Ask((("user", "x"),), (WEATHER,), require_call=False, sampling=Sampling())
    started: list[str] = []

    async def starter() -> tuple[str, Callable[[], Awaitable[None]]]:
        url, stop = await start_embedded()
        started.append(url)
        return url, stop

    async def run() -> list[int | None]:
        lane = make_http_lane(load_target("keyword-baseline", tmp_path), {}, starter=starter)
        try:
            return [said.status for said in await asyncio.gather(*(lane.ask(asked, 5.0) for _ in range(8)))]
        finally:
            await lane.close()

    assert asyncio.run(run()) == [200] * 8
    assert len(started) == 1
