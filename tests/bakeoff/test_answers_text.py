"""Calls that stand in text: none on a native lane, the envelope on an inlined one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bakeoff.reading import calls_of, chat, read_said

ONE = [("f", {"a": 1})]

NATIVE_TEXT: list[tuple[str, str | None, tuple[str, ...]]] = [
    # a call that stands there as text
    ('{"name": "f", "arguments": {"a": 1}}', None, ("content_fallback",)),
    ('{"name": "f", "parameters": {"a": 1}}', None, ("content_fallback",)),
    ('[{"name": "f", "arguments": {}}]', None, ("content_fallback",)),
    ('{"tool_calls": [{"name": "f", "arguments": "{}"}]}', None, ("content_fallback",)),
    ('{"type": "function", "function": {"name": "f", "arguments": {}}}', None, ("content_fallback",)),
    ('{"action": "f", "action_input": {"a": 1}}', None, ("content_fallback",)),
    ('```json\n{"name": "f", "arguments": {"a": 1}}\n```', None, ("content_fallback",)),
    ('I call it:\n```json\n{"name": "f", "arguments": {"a": 1}}\n```', None, ("content_fallback",)),
    ('<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', None, ("content_fallback",)),
    ("<function=f><parameter=a>1</parameter></function>", None, ("content_fallback",)),
    ("<tool_call>f\n<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", None, ("content_fallback",)),
    ('[TOOL_CALLS][{"name": "f", "arguments": {}}]', None, ("content_fallback",)),
    ("[TOOL_CALLS]f{}", None, ("content_fallback",)),
    ('<|python_tag|>{"name": "f", "parameters": {}}', None, ("content_fallback",)),
    ('<\uff5ctool\u2581calls\u2581begin\uff5c>f\n```json\n{"a": 1}\n```', None, ("content_fallback",)),
    ('{"name": "f", "parameters": {"a": 1}}<|eot_id|>', None, ("content_fallback",)),
    ('{"name": "f", "parameters": {"a": 1}}; {"name": "f", "parameters": {"a": 2}}', None, ("content_fallback",)),
    ('{"tool_calls": [], "function_call": {"name": "f", "arguments": {}}}', None, ("content_fallback",)),
    ("<|tool_call_start|>[f(a=1)]<|tool_call_end|>", None, ("content_fallback",)),
    ("```tool_code\nprint(f(a=1))\n```", None, ("content_fallback",)),
    ('<|channel|>commentary to=functions.f <|message|>{"a": 1}', None, ("content_fallback",)),
    # an attempt that cannot be read
    ('<tool_call>{"name":"f","arguments":{"i":}</tool_call>', "attempted-call", ()),
    ('<tool_call>{"name": "f", "argu', "attempted-call", ()),
    ('[TOOL_CALLS] [{"name": "f", "arguments": {', "attempted-call", ()),
    ('{"name": "f", "arguments": {"a": ', "attempted-call", ()),
    ('```json\n{"tool_calls": [{"name": "f", "arguments": {"a": }}]}\n```', "attempted-call", ()),
    ("<\uff5ctool\u2581calls\u2581begin\uff5c>f", "attempted-call", ()),
    ("<tool_call>", "attempted-call", ()),
    ("<tool_call>\nf\n</tool_call>", "attempted-call", ()),
    ('<|tool_call|>[{"name": "f"', "attempted-call", ()),
    ("<function=f><parameter=a>1", "attempted-call", ()),
    ('So:\n```json\n{"name": "f", "arguments": {"a": }}\n```', "attempted-call", ()),
    ("{'name': 'f', 'arguments': {'a': 1}}", "attempted-call", ()),
    # prose
    ('Write {"name": "f", "arguments": {...}} there.', None, ()),
    ("Between <tool_call>...</tool_call> stands a call.", None, ()),
    ('{"name": "f", "parameters": {"a": {"type": "string"}}}', None, ()),
    ("Which date do you mean?", None, ()),
    ("I would need the <tool_call> tag for that.", None, ()),
    ("In <b>bold</b>, a list [1, 2] and {braces}.", None, ()),
    ('The "name" and the "arguments" are missing: {x}', None, ()),
    ('There is the tool {"name": "f", "parameters": {"type": "object", "properties": {}}}.', None, ()),
    ('{"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}', None, ()),
    ('{"name": "Ada", "born": 1815}', None, ()),
    ('Her data: {"name": "Ada", "arguments": 3}', None, ()),
    ('{"tool_calls": []}', None, ()),
    ('{"answer": 42}', None, ()),
    ("```python\nf(a=1)\n```", None, ()),
    ('To call a function, write "tool_calls" into the answer.', None, ()),
]


@pytest.mark.parametrize(("text", "broken", "flags"), NATIVE_TEXT, ids=[row[0][:40] for row in NATIVE_TEXT])
def test_a_call_in_the_text_of_a_native_lane_is_none(text: str, broken: str | None, flags: tuple[str, ...]) -> None:
    reading = read_said(chat({"content": text}))
    assert (reading.calls, reading.broken, reading.flags, reading.fault) == ((), broken, flags, None)
    assert reading.well_formed is (broken is None and not flags)


ENVELOPES: list[tuple[str, list[tuple[str, Any]], str | None, bool]] = [
    ('{"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}', ONE, None, True),
    ('{"tool_calls": [{"name": "f", "arguments": "{\\"a\\": 1}"}]}', ONE, None, True),
    ('{"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}', ONE, None, True),
    ('{"thought": "x", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}', ONE, None, True),
    (' \n{"tool_calls": []}\n', [], None, True),
    ('{"tool_calls": [{"name": "f"}]}', [("f", {})], None, True),
    ('```json\n{"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}\n```', ONE, None, False),
    ('Here: {"tool_calls": [{"name": "f", "arguments": {"a": 1}}]} Done {so}.', ONE, None, False),
    ('{"tool_calls": [{"name": "f", "arguments": {"a": 1,}},]}', ONE, None, False),
    ('No tool fits.\n```\n{"tool_calls": []}\n```', [], None, False),
    ('{"name": "f", "arguments": {"a": 1}}', ONE, None, False),
    ('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', ONE, None, False),
    ('{"tool_calls": [], "function_call": {"name": "f", "arguments": {}}}', [], "several-objects", False),
    ('I call {"name": "f", "arguments": {}} or {"tool_calls": []}', [], "several-objects", False),
    ('{"tool_calls": []} {"tool_calls": [{"name": "f"}]}', [], "several-objects", False),
    ('{"tool_calls": [{"name": "f", "arguments": {"a": 1', [], "truncated", False),
    ('{"tool_calls": [{"name": "f", "arguments": {"a": x}}]}', [], "envelope", False),
    ('{"tool_calls": {"name": "f"}}', [], "envelope", False),
    ('{"tool_calls": [{"arguments": {}}]}', [], "no-function", False),
    ('{"tool_calls": ["f"]}', [], "no-function", False),
    ('{"tool_calls": [{"name": "f", "arguments": "{\\"a\\": "}]}', [], "truncated", False),
    ("Which date do you mean?", [], "envelope", False),
    ('{"answer": 42}', [], "envelope", False),
    ("[]", [], "envelope", False),
    ("", [], "empty", False),
]


@pytest.mark.parametrize(
    ("text", "calls", "broken", "well_formed"), ENVELOPES, ids=[row[0][:40] or "empty" for row in ENVELOPES]
)
@pytest.mark.parametrize("shape", ["openai-chat", "cli-envelope"])
def test_the_envelope_of_inlined_lanes(
    shape: Any, text: str, calls: list[tuple[str, Any]], broken: str | None, well_formed: bool
) -> None:
    if shape == "cli-envelope":
        result = {"type": "result", "subtype": "success", "is_error": False, "result": text}
        reading = read_said(result, shape, status=0, inlined=True)
    else:
        reading = read_said(chat({"content": text}), shape, inlined=True)
    assert (calls_of(reading), reading.broken, reading.well_formed) == (calls, broken, well_formed)
    assert reading.fault is None
    assert ("repaired" in reading.flags) == (broken is None and not well_formed)


def test_an_envelope_cut_by_the_token_limit_is_truncated() -> None:
    assert read_said(chat({"content": "Let me thi"}, "length"), inlined=True).broken == "truncated"


def test_reasoning_before_an_envelope_is_no_prose() -> None:
    text = '<think>maybe {"tool_calls": []}</think>{"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}'
    reading = read_said(chat({"content": text}), inlined=True)
    assert (calls_of(reading), reading.well_formed) == (ONE, True)
