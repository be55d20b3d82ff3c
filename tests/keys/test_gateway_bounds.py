"""What bounds a call's cost beforehand: the request as it is sent, the estimate of its input, its price."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from genai_prices.types import ModelPrice
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.keys.gateway import Upstream
from referee.adapters.keys.gateway.asked import Unfit, bounded
from referee.adapters.keys.gateway.estimate import ADDED_TOKENS, MEDIA_TOKENS, REFERENCE_TOKENS, Seen, common
from referee.adapters.keys.gateway.prices import Tariff, _tariff, tariff_of
from referee.core.spending import Dialect, Price, Usage, cost_usd
from referee.errors import ConfigError

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
        ("openai-chat", {"max_completion_tokens": 7}, {"max_completion_tokens": 7}, 7),
        (
            "openai-chat",
            {"max_tokens": 5, "max_completion_tokens": 9},
            {"max_tokens": 5, "max_completion_tokens": 9},
            9,
        ),
        ("openai-chat", {"max_tokens": 5, "n": 4}, {"max_tokens": 5, "n": 4}, 20),
        ("openai-chat", {"max_tokens": -1}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": "many"}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": True}, {"max_tokens": 1000}, 1000),
        ("openai-chat", {"max_tokens": None}, {"max_tokens": 1000}, 1000),
        ("openai-responses", {}, {"max_output_tokens": 1000}, 1000),
        ("openai-responses", {"max_output_tokens": 10**9}, {"max_output_tokens": 1000}, 1000),
        ("anthropic-messages", {}, {"max_tokens": 1000}, 1000),
        (
            "anthropic-messages",
            {"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": 63_999}},
            {"max_tokens": 1000, "thinking": {"type": "enabled", "budget_tokens": 999}},
            1000,
        ),
        ("gemini", {}, {"generationConfig": {"maxOutputTokens": 1000}}, 1000),
        (
            "gemini",
            {"generationConfig": {"maxOutputTokens": 10, "candidateCount": 3, "temperature": 0}},
            {"generationConfig": {"maxOutputTokens": 10, "candidateCount": 3, "temperature": 0}},
            30,
        ),
        (
            "gemini",
            {"generation_config": {"max_output_tokens": 10, "candidate_count": 2}},
            {"generationConfig": {"maxOutputTokens": 10, "candidateCount": 2}},
            20,
        ),
    ],
)
def test_output_always_has_a_limit(
    dialect: Dialect, document: dict[str, Any], limits: dict[str, Any], output: int
) -> None:
    assert sent(dialect, document) == ({"model": "m", **limits}, output)


def test_the_newer_name_of_the_limit_is_used_where_only_that_is_known() -> None:
    assert sent("openai-chat", {}, host="api.openai.com")[0] == {"model": "m", "max_completion_tokens": 1000}


@pytest.mark.parametrize(
    ("dialect", "document"),
    [
        ("openai-responses", {"previous_response_id": "resp_1"}),
        ("openai-responses", {"conversation": {"id": "conv_1"}}),
        ("openai-responses", {"prompt": {"id": "pmpt_1"}}),
        ("openai-responses", {"background": True}),
        ("gemini", {"cachedContent": "cachedContents/1"}),
        ("openai-chat", {"n": 0}),
        ("openai-chat", {"n": "2"}),
        ("gemini", {"generationConfig": {"candidateCount": 1.5}}),
    ],
)
def test_what_cannot_be_bounded_is_refused(dialect: Dialect, document: dict[str, Any]) -> None:
    with pytest.raises(Unfit):
        sent(dialect, document)


@pytest.mark.parametrize(
    ("dialect", "document", "left"),
    [
        ("openai-chat", {"service_tier": "priority", "models": ["dear"], "plugins": [{"id": "web"}]}, {}),
        ("openai-chat", {"web_search_options": {}}, {}),
        ("openai-chat", {"tools": [FUNCTION]}, {"tools": [FUNCTION]}),
        (
            "openai-responses",
            {"tools": [{"type": "web_search"}, {"type": "custom", "name": "apply_patch"}], "tool_choice": "auto"},
            {"tools": [{"type": "custom", "name": "apply_patch"}], "tool_choice": "auto"},
        ),
        ("openai-responses", {"tools": [{"type": "code_interpreter"}], "tool_choice": "auto"}, {}),
        (
            "anthropic-messages",
            {
                "speed": "fast",
                "mcp_servers": [{"url": "https://x"}],
                "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "Bash", "input_schema": {}}],
            },
            {"tools": [{"name": "Bash", "input_schema": {}}]},
        ),
        (
            "gemini",
            {"tools": [{"googleSearch": {}}, {"functionDeclarations": [], "codeExecution": {}}]},
            {"tools": [{"functionDeclarations": []}]},
        ),
    ],
)
def test_dearer_tiers_and_tools_that_the_provider_runs_are_taken_out(
    dialect: Dialect, document: dict[str, Any], left: dict[str, Any]
) -> None:
    said, _ = sent(dialect, document)
    assert {name: value for name, value in said.items() if name not in {"model", *LIMITS}} == left


LIMITS = ("max_tokens", "max_output_tokens", "generationConfig")


def test_what_is_not_ours_to_change_goes_up_as_it_came() -> None:
    document = {"messages": [{"role": "user", "content": "ünïcode \u2028 \ud83d\ude00"}], "max_tokens": 5, "seed": 7}
    assert sent("openai-chat", document)[0] == {"model": "m", **document}


TEXT = st.binary(max_size=400)


@given(TEXT, TEXT, TEXT, TEXT)
def test_what_two_requests_share_is_never_counted_twice(head: bytes, one: bytes, other: bytes, tail: bytes) -> None:
    first, second = head + one + tail, head + other + tail
    shared = common(first, second)
    assert len(head) + len(tail) <= shared <= min(len(first), len(second))
    assert common(second, first) == shared
    assert common(first, first) == len(first)


def tokens(text: bytes) -> int:
    """A tokenizer: words, and each other character by itself."""
    return len(re.findall(rb"[a-z]+|[^a-z]", text))


@given(st.lists(st.text(alphabet="ab ,.", max_size=60), min_size=1, max_size=8), st.text(alphabet="ab {}", max_size=40))
def test_the_estimate_is_never_below_what_a_tokenizer_counts(turns: list[str], tools: str) -> None:
    seen = Seen()
    said = ""
    for turn in turns:
        said += turn
        body = json.dumps({"messages": said, "tools": tools}).encode()
        assert tokens(body) <= seen.most_tokens("openai-chat", body) <= len(body) + ADDED_TOKENS
        seen.counted("openai-chat", body, tokens(body))


@pytest.mark.parametrize(
    ("dialect", "part", "extra"),
    [
        ("openai-chat", {"type": "image_url", "image_url": {"url": "https://x/y.png"}}, MEDIA_TOKENS),
        ("openai-responses", {"type": "input_file", "file_id": "file-1"}, MEDIA_TOKENS + REFERENCE_TOKENS),
        ("anthropic-messages", {"type": "image", "source": {"type": "base64", "data": "AA"}}, MEDIA_TOKENS),
        (
            "anthropic-messages",
            {"type": "document", "source": {"type": "url", "url": "https://x"}},
            MEDIA_TOKENS + REFERENCE_TOKENS,
        ),
        ("gemini", {"inlineData": {"mimeType": "image/png", "data": "AA"}}, MEDIA_TOKENS),
        ("gemini", {"fileData": {"fileUri": "https://x"}}, REFERENCE_TOKENS),
        ("openai-chat", {"type": "text", "text": '"image_url": "type":"image" "inlineData":'}, 0),
    ],
)
def test_pictures_and_files_count_as_more_than_their_bytes(dialect: Dialect, part: dict[str, Any], extra: int) -> None:
    body = bounded({"model": "m", "messages": [part]}, dialect, "m", streamed=False, most=9).body
    assert Seen().most_tokens(dialect, body) == len(body) + ADDED_TOKENS + extra


def test_pictures_that_are_new_count_beside_what_was_counted_before() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    seen = Seen()
    before, after = (
        bounded(
            {"model": "m", "messages": ["a" * 50_000, *[picture] * many]}, "openai-chat", "m", streamed=False, most=9
        ).body
        for many in (1, 3)
    )
    seen.counted("openai-chat", before, 1_000)
    assert 2 * MEDIA_TOKENS < seen.most_tokens("openai-chat", after) - 1_000 < 2 * MEDIA_TOKENS + 3_000


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
