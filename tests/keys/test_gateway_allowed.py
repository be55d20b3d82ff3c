"""What of a request goes up: nothing that costs otherwise than it is counted, nothing without a bound."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.keys.gateway.asked import bounded, counting, named_model, read_object
from referee.adapters.keys.gateway.turns import LEFT_OUT
from referee.adapters.keys.gateway.unfit import Unfit
from referee.core.spending import Dialect
from tests.keys.gateway_calls import EVERY

FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {}}}
CALL = {"type": "function_call", "call_id": "c", "name": "exec", "arguments": "{}", "namespace": "n"}
#: What every request gets.
GIVEN = ("model", "max_tokens", "max_output_tokens", "generationConfig", "store")


def sent(dialect: Dialect, document: dict[str, Any]) -> dict[str, Any]:
    """The request as it goes up."""
    asked = bounded({"model": "m", **document}, dialect, "m", streamed=False, most=1000)
    found: dict[str, Any] = json.loads(asked.body)
    return found


def left(dialect: Dialect, document: dict[str, Any]) -> dict[str, Any]:
    """What goes up beside the members that every request gets."""
    return {name: value for name, value in sent(dialect, document).items() if name not in GIVEN}


@pytest.mark.parametrize(
    ("dialect", "document"),
    [
        ("openai-responses", {"previous_response_id": "resp_1"}),
        ("openai-responses", {"conversation": {"id": "conv_1"}}),
        ("openai-responses", {"prompt": {"id": "pmpt_1"}}),
        ("openai-responses", {"background": True}),
        ("openai-responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
        ("openai-responses", {"input": [{"type": "message", "role": "assistant", "id": "msg_1"}]}),
        ("openai-responses", {"input": [{"type": "compaction", "encrypted_content": "x"}]}),
        ("openai-responses", {"input": [{"type": "shell_call_output", "call_id": "c", "output": []}]}),
        ("anthropic-messages", {"container": "container_1"}),
        ("gemini", {"cachedContent": "cachedContents/1"}),
        ("gemini", {"cached_content": "cachedContents/1"}),
        ("openai-chat", {"n": 0}),
        ("openai-chat", {"n": 2}),
        ("openai-chat", {"n": "2"}),
        ("openai-chat", {"n": True}),
        ("openai-chat", {"n": 10**400}),
        ("gemini", {"generationConfig": {"candidateCount": 1.5}}),
        ("gemini", {"generationConfig": {"candidateCount": 2}}),
        ("gemini", {"generation_config": {"candidate_count": 10**305}}),
        ("gemini", {"tools": {"googleSearch": {}}}),
        ("gemini", {"contents": [], "system_instruction": {}, "systemInstruction": {}}),
        ("openai-chat", {"messages": "hello"}),
        ("openai-chat", {"messages": [{"role": "user", "content": {"text": "hello"}}]}),
        ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": ["hello"]}]}]}),
        ("openai-chat", {"tools": {"type": "function"}}),
        ("openai-chat", {"temperature": float("inf")}),
    ],
)
def test_what_cannot_be_bounded_or_read_is_refused(dialect: Dialect, document: dict[str, Any]) -> None:
    with pytest.raises(Unfit) as refused:
        sent(dialect, document)
    assert (refused.value.status, refused.value.refused) == (400, "body")


@pytest.mark.parametrize(
    ("dialect", "document"),
    [
        ("openai-chat", {"service_tier": "priority", "models": ["dear"], "plugins": [{"id": "web"}], "x": ["a" * 99]}),
        ("openai-chat", {"provider": {"order": ["dear"]}, "preset": "p", "transforms": ["middle-out"], "audio": {}}),
        ("openai-chat", {"web_search_options": {}, "prediction": {}, "metadata": {"a": "b"}, "extra_body": {"n": 9}}),
        ("openai-responses", {"truncation": "auto", "context_management": [], "client_metadata": {"a": "b"}}),
        ("openai-responses", {"service_tier": "priority", "include": None, "max_tool_calls": 3}),
        ("anthropic-messages", {"context_management": {"edits": [{"type": "compact_20260112"}]}, "compaction": {}}),
        ("anthropic-messages", {"speed": "fast", "mcp_servers": [{"url": "https://x"}], "inference_geo": "us"}),
        ("gemini", {"service_tier": "priority", "labels": {}, "model": "another"}),
    ],
)
def test_members_that_nobody_here_knows_the_price_of_stay_here(dialect: Dialect, document: dict[str, Any]) -> None:
    assert left(dialect, document) == {}


@pytest.mark.parametrize(
    ("dialect", "document", "kept"),
    [
        ("openai-chat", {"thinking": {"type": "enabled", "x": 1}}, {"thinking": {"type": "enabled"}}),
        (
            "openai-responses",
            {"reasoning": {"effort": "low", "summary": "auto", "mode": "dear"}, "text": {"verbosity": "low", "x": 1}},
            {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}},
        ),
        ("anthropic-messages", {"thinking": {"type": "adaptive", "x": 1}}, {"thinking": {"type": "adaptive"}}),
    ],
)
def test_nor_does_what_stands_inside_a_member(dialect: Dialect, document: dict[str, Any], kept: dict[str, Any]) -> None:
    assert left(dialect, document) == kept
    config = {"thinking_config": {"thinking_budget": -1, "samples": 9}}
    assert sent("gemini", {"generation_config": config})["generationConfig"]["thinkingConfig"] == {"thinkingBudget": -1}


@pytest.mark.parametrize(
    ("dialect", "tools", "kept"),
    [
        ("openai-chat", [FUNCTION, {"type": "openrouter:web_search"}], [FUNCTION]),
        ("openai-chat", [{"type": ["web_search"]}], None),
        (
            "openai-responses",
            [{"type": "web_search"}, {"type": "custom", "name": "a"}],
            [{"type": "custom", "name": "a"}],
        ),
        ("openai-responses", [{"type": "shell", "environment": {"type": "container_auto"}}, {"type": "mcp"}], None),
        ("openai-responses", [{"type": "namespace", "name": "x", "tools": [{"type": "web_search"}]}], None),
        (
            "openai-responses",
            [{"type": "namespace", "name": "x", "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}]}],
            [{"type": "namespace", "name": "x", "tools": [{"type": "function", "name": "f"}]}],
        ),
        (
            "anthropic-messages",
            [
                {"type": "web_search_20250305", "name": "web_search"},
                {"type": "a_tool_of_next_year", "name": "z"},
                {"name": "Bash", "input_schema": {}, "defer_loading": True, "allowed_callers": ["code_execution"]},
            ],
            [{"name": "Bash", "input_schema": {}}],
        ),
        (
            "gemini",
            [{"googleSearch": {}}, {"functionDeclarations": [], "codeExecution": {}}],
            [{"functionDeclarations": []}],
        ),
        ("gemini", [{"google_search": {}}, {"urlContext": {}}], None),
    ],
)
def test_only_tools_that_the_client_runs_are_offered(
    dialect: Dialect, tools: list[Any], kept: list[Any] | None
) -> None:
    document = {"tools": tools, "tool_choice": "auto"}
    said = left(dialect, document)
    choice = {} if dialect == "gemini" else {"tool_choice": "auto"}
    assert said == ({"tools": kept, **choice} if kept is not None else {})


def said(dialect: Dialect, part: dict[str, Any], *, in_result: bool = False) -> Any:
    """The part of content as it goes up."""
    if dialect == "gemini":
        return sent(dialect, {"contents": [{"role": "user", "parts": [part]}]})["contents"][0]["parts"][0]
    if dialect == "openai-responses":
        item = {"role": "user", "content": [part]}
        if in_result:
            item = {"type": "function_call_output", "call_id": "c", "output": [part]}
        return sent(dialect, {"input": [item]})["input"][0]["output" if in_result else "content"][0]
    if in_result:
        part = {"type": "tool_result", "tool_use_id": "t", "content": [part]}
    found = sent(dialect, {"messages": [{"role": "user", "content": [part]}]})["messages"][0]["content"][0]
    return found["content"][0] if in_result else found


@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        ("openai-chat", {"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
        ("openai-chat", {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}),
        ("openai-chat", {"type": "file", "file": {"file_id": "file-1"}}),
        ("openai-chat", {"image_url": "https://x/y.png"}),
        ("openai-responses", {"type": "input_file", "file_url": "https://x/y.pdf"}),
        ("openai-responses", {"type": "input_image", "file_id": "file-1"}),
        ("anthropic-messages", {"type": "image", "source": {"type": "base64", "data": "AA"}}),
        ("anthropic-messages", {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}),
        ("anthropic-messages", {"type": "container_upload", "file_id": "file-1"}),
        ("gemini", {"inlineData": {"mimeType": "audio/wav", "data": "AA"}}),
        ("gemini", {"inline_data": {"mime_type": "image/png", "data": "AA"}}),
        ("gemini", {"fileData": {"fileUri": "https://x/y.mp4"}}),
        ("gemini", {"file_data": {"file_uri": "https://x/y.mp4"}, "videoMetadata": {"fps": 24}}),
    ],
)
def test_what_is_no_text_is_replaced_by_a_sentence(dialect: Dialect, part: dict[str, Any]) -> None:
    kind = {} if dialect == "gemini" else {"type": "input_text" if dialect == "openai-responses" else "text"}
    assert said(dialect, part) == {**kind, "text": LEFT_OUT}
    if dialect in ("openai-responses", "anthropic-messages"):
        assert said(dialect, part, in_result=True) == {**kind, "text": LEFT_OUT}


def test_a_part_that_is_text_brings_nothing_else_along() -> None:
    text = {"type": "text", "text": "a"}
    hidden = {**text, "image_url": {"url": "https://x"}, "source": {"type": "url"}, "cache_control": {"type": "x"}}
    assert said("openai-chat", hidden) == said("anthropic-messages", hidden) == text
    assert said("gemini", {"text": "a", "fileData": {"fileUri": "https://x"}}) == {"text": "a"}
    answer = {"name": "f", "response": {"a": 1}, "parts": [{"fileData": {}}]}
    assert said("gemini", {"functionResponse": answer}) == {"functionResponse": {"name": "f", "response": {"a": 1}}}


WITHIN: dict[Dialect, dict[str, Any]] = {
    "openai-chat": {
        "messages": [
            {"role": "system", "content": "ünïcode \u2028 \U0001f600"},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [{"id": "c", **FUNCTION}]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": '"image_url": x'}]},
        ],
        "tools": [FUNCTION],
        "tool_choice": "auto",
        "seed": 7,
        "temperature": 0,
        "response_format": {"type": "json_object"},
    },
    "openai-responses": {
        "instructions": "be brief",
        "input": [
            {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            CALL,
            {"type": "function_call_output", "call_id": "c", "output": "hi"},
            {"type": "local_shell_call", "call_id": "d", "status": "completed", "action": {"type": "exec"}},
        ],
        "tools": [{"type": "function", "name": "exec", "parameters": {}, "strict": False}, {"type": "local_shell"}],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_key": "k",
    },
    "anthropic-messages": {
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "hello"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "", "is_error": False}],
            },
        ],
        "tools": [{"name": "Bash", "description": "", "input_schema": {}}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    },
    "gemini": {
        "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"output": "hi"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    },
}


@pytest.mark.parametrize("dialect", EVERY)
def test_a_conversation_with_tools_goes_up_as_it_came(dialect: Dialect) -> None:
    assert left(dialect, WITHIN[dialect]) == WITHIN[dialect]


def test_thoughts_that_middlemen_pass_on_are_nothing_but_thoughts() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blocks = [thought, {"type": "document", "source": {"type": "url", "url": "https://x"}}]
    turn = {"role": "assistant", "content": "a", "thinking_blocks": blocks}
    (found,) = sent("openai-chat", {"messages": [turn]})["messages"]
    assert found == {**turn, "thinking_blocks": [thought, {"type": "text", "text": LEFT_OUT}]}


def test_thoughts_of_which_only_the_number_is_there_are_left_out() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    items = [{"type": "reasoning", "id": "rs_2", "summary": []}, thought, CALL]
    assert sent("openai-responses", {"input": items})["input"] == [
        {"type": "reasoning", "summary": thought["summary"]},
        CALL,
    ]


def test_a_longer_life_in_the_cache_is_not_asked_for() -> None:
    for mark in ({"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral", "scope": "global"}):
        document = {
            "cache_control": mark,
            "system": [{"type": "text", "text": "a", "cache_control": mark}],
            "tools": [{"name": "Bash", "cache_control": mark}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": mark}]}],
        }
        found = json.dumps(sent("anthropic-messages", document))
        assert (found.count('"cache_control": {"type": "ephemeral"}'), "ttl" in found, "scope" in found) == (
            4,
            False,
            False,
        )


def test_half_a_character_goes_up_as_a_question_mark() -> None:
    body = rb'{"model":"m","messages":[{"role":"user","content":"a\ud800b"}]}'
    asked = bounded(read_object(body), "openai-chat", "m", streamed=False, most=9)
    assert json.loads(asked.body)["messages"][0]["content"] == "a?b"


def test_what_only_counts_is_written_anew_too() -> None:
    document = {"model": "m", **WITHIN["anthropic-messages"], "mcp_servers": [1], "max_tokens": 5}
    assert json.loads(counting(document, "anthropic-messages", "m").body) == {
        "model": "m",
        **WITHIN["anthropic-messages"],
    }
    inner = {"model": "models/another", **WITHIN["gemini"], "cachedContent": None}
    assert json.loads(counting({"generateContentRequest": inner}, "gemini", "m").body) == {
        "generateContentRequest": {"model": "models/m", **WITHIN["gemini"]}
    }
    with pytest.raises(Unfit):
        counting({"model": "m", "messages": 7}, "anthropic-messages", "m")


SCALARS = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=5)
WORDS = (
    "model messages input contents content parts tools type text role n system stream stream_options summary "
    "generationConfig candidateCount thinking budget_tokens function namespace reasoning toolConfig output "
    "cache_control generateContentRequest"
)
NAMES = st.sampled_from(WORDS.split())
ANYTHING = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(NAMES, ANYTHING, max_size=8), st.sampled_from(EVERY))
def test_no_request_is_a_fault_of_the_gateway(document: dict[str, Any], dialect: Dialect) -> None:
    raw = json.dumps({**document, "model": "m"}).encode()
    for counts in (False, True):
        refused: list[int] = []
        body = b"{}"
        try:
            found = read_object(raw)
            assert named_model(found, None) == "m"
            asked = bounded(found, dialect, "m", streamed=False, most=1000)
            body = (counting(found, dialect, "m") if counts else asked).body
        except Unfit as exc:
            refused.append(exc.status)
        assert isinstance(json.loads(body), dict)
        assert refused in ([], [400])
