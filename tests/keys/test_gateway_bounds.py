"""What bounds a call's cost beforehand: the request as it is sent, the estimate of its input, its price."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from genai_prices.types import ModelPrice
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.adapters.keys.gateway.asked import Asked, bounded
from referee.adapters.keys.gateway.estimate import ADDED_TOKENS, Seen, grown
from referee.adapters.keys.gateway.prices import Tariff, _tariff, tariff_of
from referee.core.spending import Dialect, Price, Usage, cost_usd
from referee.errors import ConfigError
from referee.protocols import ModelNeed
from tests.keys.gateway_calls import EVERY

FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {}}}


def sent(dialect: Dialect, document: dict[str, Any], **settings: Any) -> tuple[dict[str, Any], int]:
    """The request as it goes up, and the output that it is held for."""
    given_settings = {"streamed": False, "most": 1000, **settings}
    asked = bounded({"model": "m", **document}, dialect, "m", **given_settings)
    return json.loads(asked.body), asked.max_output_tokens


@pytest.mark.parametrize(
    ("dialect", "document", "limits", "output"),
    [
        ("openai-chat", {}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": 5}, {"max_tokens": 5}, 5),
        ("openai-chat", {"max_tokens": 5000}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_completion_tokens": 7}, {"max_tokens": 7}, 7),
        ("openai-chat", {"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 5}, 5),
        ("openai-chat", {"max_tokens": 9, "max_completion_tokens": 5}, {"max_tokens": 5}, 5),
        ("openai-chat", {"max_tokens": 5, "n": 1}, {"max_tokens": 5}, 5),
        ("openai-chat", {"max_tokens": -1}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": "many"}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": True}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": None}, {"max_tokens": 1000}, 1000),
        ("openai-responses", {}, {"max_output_tokens": 1000, "store": False}, 1000),
        ("openai-responses", {"max_output_tokens": 10**9}, {"max_output_tokens": 1000, "store": False}, 1000),
        ("anthropic-messages", {}, {"max_tokens": 1000}, 1000),
        (
            "anthropic-messages",
            {"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": 63_999}},
            {"max_tokens": 1000, "thinking": {"type": "enabled", "budget_tokens": 999}},
            1000,
        ),
        (
            "anthropic-messages",
            {"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": 1e5}},
            {"max_tokens": 1000, "thinking": {"type": "enabled", "budget_tokens": 999}},
            1000,
        ),
        (
            "openai-chat",
            {"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 100_000}},
            {"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 99}},
            100,
        ),
        ("gemini", {}, {"generationConfig": {"maxOutputTokens": 1000}}, 1000),
        (
            "gemini",
            {"generationConfig": {"maxOutputTokens": 10, "candidateCount": 1, "temperature": 0}},
            {"generationConfig": {"maxOutputTokens": 10, "temperature": 0}},
            10,
        ),
        (
            "gemini",
            {"generation_config": {"max_output_tokens": 10, "candidate_count": 1}},
            {"generationConfig": {"maxOutputTokens": 10}},
            10,
        ),
    ],
)
def test_output_always_has_a_limit(
    dialect: Dialect, document: dict[str, Any], limits: dict[str, Any], output: int
) -> None:
    named = {} if dialect == "gemini" else {"model": "m"}
    assert sent(dialect, document) == ({**named, **limits}, output)


@pytest.mark.parametrize("document", [{}, {"max_tokens": 2000}, {"max_completion_tokens": 1000}])
def test_the_newer_name_of_the_limit_is_used_where_only_that_is_known(document: dict[str, Any]) -> None:
    assert sent("openai-chat", document, host="api.openai.com")[0] == {"model": "m", "max_completion_tokens": 1000}


def chat(*texts: str, **members: Any) -> Asked:
    """A request of chat completions with a turn for each text."""
    turns = [{"role": "user", "content": text} for text in texts]
    return bounded({"model": "m", "messages": turns, **members}, "openai-chat", "m", streamed=False, most=1000)


def tokens(text: bytes) -> int:
    """A tokenizer: words, and each other character by itself."""
    return len(re.findall(rb"[a-z]+|[^a-z]", text))


TURNS = st.lists(st.text(alphabet='ab ,."', max_size=60), min_size=1, max_size=8)


@given(TURNS, st.text(alphabet="ab {}", max_size=40))
def test_the_estimate_is_never_below_what_a_tokenizer_counts(turns: list[str], stop: str) -> None:
    seen = Seen()
    for number in range(len(turns)):
        asked = chat(*turns[: number + 1], stop=stop)
        assert tokens(asked.body) <= seen.most_tokens(asked) <= len(asked.body) + ADDED_TOKENS
        seen.counted(asked, tokens(asked.body))


@given(TURNS, TURNS)
def test_only_a_conversation_that_begins_with_all_of_another_is_that_one_grown(one: list[str], two: list[str]) -> None:
    assert grown(chat(*one).turns, chat(*one, *two).turns)
    assert grown(chat(*one).turns, chat(*two).turns) == (two[: len(one)] == one)


def test_what_is_new_is_counted_by_its_bytes_and_the_rest_as_it_was_counted() -> None:
    seen = Seen()
    seen.counted(chat("a" * 90_000), 30_000)
    again = seen.most_tokens(chat("a" * 90_000, "b" * 1_000))
    assert 31_000 <= again <= 31_000 + ADDED_TOKENS + 200


@pytest.mark.parametrize(
    "asked",
    [
        chat("b" * 90_000),
        chat("a" * 89_999),
        chat("and", "a" * 90_000),
        chat("a" * 90_000, "b", reasoning_effort="high"),
        chat("a" * 90_000, "b", tools=[FUNCTION]),
    ],
    ids=["other", "shorter", "shifted", "another frame", "other tools"],
)
def test_a_request_that_is_not_an_earlier_one_grown_is_bounded_by_its_length(asked: Asked) -> None:
    seen = Seen()
    seen.counted(chat("a" * 90_000), 10)
    assert seen.most_tokens(asked) == len(asked.body) + ADDED_TOKENS


def test_marks_of_caching_that_move_on_do_not_make_a_conversation_another_one() -> None:
    """Claude Code marks the last turn of each request: the mark is gone from it in the next one."""

    def asked(*marked: bool) -> Asked:
        mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        texts = [{"type": "text", "text": "a" * 30_000, **(mark if one else {})} for one in marked]
        turns = [{"role": "user", "content": [text]} for text in texts]
        return bounded({"model": "m", "messages": turns}, "anthropic-messages", "m", streamed=False, most=9)

    seen = Seen()
    seen.counted(asked(True, True), 15_000)
    assert asked(True).body.count(b'"cache_control":{"type":"ephemeral"}') == 1
    assert seen.most_tokens(asked(True, False, True)) < 15_000 + 30_000 + ADDED_TOKENS + 400


def test_the_price_of_writing_a_cache_is_asked_for_where_agents_write_one(tmp_path: Path) -> None:
    prices = {
        "m": Price(input=1.0, output=2.0, source="the workspace"),
        "free": Price(input=0.0, output=0.0, source="it"),
    }
    keys = GatewayKeys(tmp_path, {"u": Upstream("u", "https://x/v1", dialects=EVERY, prices=prices)})
    with pytest.raises(ConfigError, match="written to a cache") as raised:
        keys.check(ModelNeed("m", "anthropic-messages", "u"))
    assert "cache_write" in raised.value.todo
    assert keys.check(ModelNeed("m", "openai-chat", "u")).listed == prices["m"]
    assert keys.check(ModelNeed("free", "anthropic-messages", "u")).listed == prices["free"]


def listed(base_url: str, model: str, provider: str | None = None) -> Tariff:
    return tariff_of(Upstream("u", base_url, provider=provider), model)


def test_an_explicit_price_stands_before_the_list() -> None:
    own = Price(input=9.0, output=10.0, source="the workspace")
    upstream = Upstream("u", "https://api.openai.com/v1", prices={"gpt-4o": own})
    assert tariff_of(upstream, "gpt-4o").listed == own
    assert listed("https://api.openai.com/v1", "gpt-4o").listed != own


@pytest.mark.parametrize(
    ("base_url", "model", "provider"),
    [
        ("https://api.openai.com/v1", "gpt-4o", None),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-5", None),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-pro", None),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", None),
        ("http://127.0.0.1:4000/v1", "gpt-4o", "openai"),
    ],
)
def test_known_models_have_a_price_with_its_source(base_url: str, model: str, provider: str | None) -> None:
    tariff = listed(base_url, model, provider)
    assert tariff.listed.input > 0
    assert tariff.listed.output > 0
    assert tariff.listed.source.startswith("genai-prices ")
    for _, price in tariff.steps:
        for name in ("input", "output", "cached_input", "cache_write", "per_request"):
            assert (getattr(price, name) or 0.0) <= (getattr(tariff.dearest, name) or 0.0)


def test_the_list_itself_gives_the_same_costs() -> None:
    from genai_prices import Usage as Theirs  # noqa: PLC0415 — a large table
    from genai_prices import calc_price  # noqa: PLC0415

    tariff = listed("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert len(tariff.steps) > 1
    for inputs in (1_000, 199_000, 201_000, 900_000):
        usage = Usage(input=inputs, output=500, cached_input=inputs // 2, cache_write=inputs // 4)
        theirs = Theirs(
            input_tokens=inputs, output_tokens=500, cache_read_tokens=inputs // 2, cache_write_tokens=inputs // 4
        )
        expected = calc_price(theirs, "claude-sonnet-4-5", provider_id="anthropic").total_price
        assert tariff.cost_usd(usage) == pytest.approx(float(expected), rel=1e-9)
        assert tariff.cost_usd(usage) <= cost_usd(usage, tariff.dearest)
        for_an_hour = usage.model_copy(update={"cache_write_long": inputs // 4})
        assert tariff.cost_usd(for_an_hour) > tariff.cost_usd(usage)


@pytest.mark.parametrize(
    ("base_url", "model", "provider"),
    [
        ("https://api.openai.com/v1", "no-such-model-of-anyone", None),
        ("http://127.0.0.1:11434/v1", "gpt-4o", None),
        ("https://api.openai.com/v1", "gpt-4o", "no-such-provider"),
        ("https://openrouter.ai/api/v1", "meta-llama/llama-3.3-70b-instruct:free", None),
    ],
)
def test_a_model_without_a_price_is_an_error_and_never_free(base_url: str, model: str, provider: str | None) -> None:
    with pytest.raises(ConfigError, match=re.escape(model)) as raised:
        listed(base_url, model, provider)
    assert "[upstreams.u.prices." in raised.value.todo


def test_what_the_list_calls_free_or_half_known_has_no_price() -> None:
    assert _tariff(ModelPrice(input_mtok=Decimal(0), output_mtok=Decimal(0)), "the list") is None
    assert _tariff(ModelPrice(input_mtok=Decimal(1)), "the list") is None
    assert _tariff(ModelPrice(output_mtok=Decimal(1)), "the list") is None
    known = _tariff(ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2), requests_kcount=Decimal(5)), "the list")
    assert known is not None
    assert known.listed == Price(input=1.0, output=2.0, per_request=0.005, source="the list")


def test_a_model_that_may_answer_in_pictures_or_speech_costs_what_these_do() -> None:
    pictures = listed("https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-flash-image")
    speech = listed("https://api.openai.com/v1", "gpt-audio")
    assert (pictures.listed.output, pictures.dearest.output) == (30.0, 30.0)
    assert (speech.listed.output, speech.dearest.output) == (64.0, 64.0)
    cheaper = ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(8), output_reasoning_mtok=Decimal(3))
    plain = _tariff(cheaper, "the list")
    assert plain is not None
    assert plain.listed.output == 8.0
