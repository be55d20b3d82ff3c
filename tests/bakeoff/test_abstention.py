"""A clean no-call: an answer without a call passes where none was due; one that shows a call in its text does not."""

from __future__ import annotations

from typing import Any

import pytest

from referee.core.answers import Grade, Reading
from referee.core.bakeoff import Shape
from referee.core.cases import Grading, Tool
from referee.scoring.answers import offered
from referee.scoring.toolcalls import judge
from tests.bakeoff.grading_cases import call as expected
from tests.bakeoff.grading_cases import case_of, tool
from tests.bakeoff.reading import chat, read_said

CITY = {"type": "string", "description": "The city."}
TOOLS: tuple[Tool, ...] = (
    tool("get_weather", ("city",), city=CITY, days={"type": "integer"}),
    tool("book.table", ("guests",), guests={"type": "integer"}),
    tool("search", ("query",), query={"type": "string"}),
)
SENT = {"get_weather": "get_weather", "book_table": "book.table", "search": "search"}


def graded(reading: Reading, grading: Grading = 2, gold: Any = None) -> Grade:
    return judge(case_of(gold), TOOLS, reading, grading=grading, sent=SENT)


def said(content: Any, *, inlined: bool = False, finish: str = "stop", **message: Any) -> Reading:
    return read_said(chat({"content": content, **message}, finish), inlined=inlined)


JSON_CALL = '{"name":"get_weather","parameters":{"city":"Berlin"}}'

READABLE = [
    '[get_weather(city="Berlin")]',
    "get_weather(city='Berlin', days=2)",
    "get_weather()",
    'get_weather({"city": "Berlin"})',
    "[search(query='rain'), get_weather(city='Berlin')]",
    'I will look it up: get_weather(city="Berlin").',
    'Thought: I need the weather.\nAction: get_weather(city="Berlin")',
    "book_table(guests=2)",
    "book.table(guests=2)",
    '```tool_code\nprint(default_api.get_weather(city="Berlin"))\n```',
    '```python\nget_weather(city="Berlin")\n```',
    '<|tool_call_start|>[get_weather(city="Berlin")]<|tool_call_end|>',
    '<TOOLCALL>[{"name":"get_weather","arguments":{"city":"B"}}]</TOOLCALL>',
    f"Sure:\n{JSON_CALL}",
    f"{JSON_CALL}<|eot_id|>",
    f"<|start_header_id|>assistant<|end_header_id|>\n{JSON_CALL}<|eot_id|>",
    f"{JSON_CALL}; {JSON_CALL}",
    'Action: get_weather\nAction Input: {"city":"Berlin"}',
    '**Tool:** `get_weather`\n**Input:** {"city":"Berlin"}',
    'Action:\n```json\n{"action": "get_weather", "action_input": {"city": "Berlin"}}\n```',
    'name: get_weather\narguments: {"city":"Berlin"}',
    '>>>get_weather\n{"city":"Berlin"}',
    'get_weather {"city":"Berlin"}',
    'get_weather: {"town":"Berlin"}',
    'I call get_weather with {"city":"Berlin"}.',
    '**get_weather**\n```json\n{"city": "Berlin"}\n```',
    'functions.get_weather:0{"city":"Berlin"}',
    'to=functions.get_weather json{"city":"B"}',
    '<tool_call>get_weather{"city":"Berlin"}</tool_call>',
    '<tool_call>get_weather(city="Berlin")</tool_call>',
    '<Tool_Call>{"name":"get_weather","arguments":{}}</Tool_Call>',
    '[TOOL_CALLS]get_weather[ARGS]{"city": "B"}',
    "<get_weather><city>Berlin</city></get_weather>",
    '<get_weather city="Berlin"/>',
    '<tool name="get_weather"><city>Berlin</city></tool>',
    '{"function": "get_weather", "city":"B"}',
    '{"get_weather": {"city":"Berlin"}}',
    '{"name":"get_weather"}',
    '{"thought":"so","action":{"tool":"get_weather","args":{"city":"Berlin"}}}',
    '{"calls":[{"recipient_name":"functions.get_weather","parameters":{"city":"Berlin"}}]}',
    '{"tool_calls":[],"function_call":{"name":"get_weather","arguments":{"city":"B"}}}',
]


@pytest.mark.parametrize("text", READABLE)
def test_a_call_in_the_text_is_none_there_and_no_clean_abstention(text: str) -> None:
    reading = said(text)
    second = graded(reading)
    assert (second.passed, second.well_formed, second.flags) == (False, False, ("content_fallback",))
    assert second.reason == "no tool should have been called; a call stands as text in the answer"
    # By the letter of the first generation an answer without a call abstains; it is counted apart.
    first = graded(reading, 1)
    assert (first.passed, first.well_formed, first.flags) == (True, False, ("content_fallback",))
    due = graded(reading, gold=expected("get_weather", city="Berlin"))
    assert not due.passed
    assert "a call stands as text" in due.reason


UNREADABLE = [
    '<TOOLCALL>[{"name":"get_weather","arguments":{"city":}}]</TOOLCALL>',
    'Sure:\n```json\n{"name":"get_weather","arguments":{"city":}}\n```',
    'Sure:\n{"name":"no_such_tool","arguments":{"city":}}',
    'Sure: {"name":"get_weather","parameters":{"city":}}',
    "{'name': 'get_weather', 'arguments': {'city': 'B'}}",
    "I call {'name': 'get_weather', 'parameters': {'city': 'B'}}.",
    "{'name': 'no_such_tool', 'arguments': {}}",
    "<tool_call>\nget_weather\n</tool_call>",
    "<tool_call>",
    "Let me see. <tool_call>weather in Berlin</tool_call>",
    '<tool_call>{"name":"get_weather","arguments":{"city":"Ber',
    '<|tool_call|>[{"name":"get_weather"',
    "<|tool_call_start|>[get_weather(city=",
    "<function=get_weather><parameter=city>Ber",
    '<invoke name="get_weather"><parameter',
    "```tool_code\n# nothing\n```",
    '{"tool_calls":[{"name":"get_weather","arguments":{"city":"B"}]',
    '{"get_weather": {"city": }}',
    'get_weather {"city": Berlin}',
    "get_weather(city=Berlin)",
    'get_weather(city="Ber',
    "Action: get_weather",
    '<get_weather city="Berlin">',
    "<start_function_call>call:get_weather{city:Berlin}<end_function_call>",
    "get_weather",
    "`get_weather`",
]


@pytest.mark.parametrize("grading", [1, 2])
@pytest.mark.parametrize("text", UNREADABLE)
def test_an_attempt_in_the_text_that_cannot_be_read_is_a_format_failure(text: str, grading: Grading) -> None:
    got = graded(said(text), grading)
    assert (got.passed, got.well_formed, got.wrong) == (False, False, None)
    assert got.reason.startswith("no answer that can be read (attempted-call)")


PROSE = [
    "I could use get_weather, but which city?",
    "Which city do you mean?",
    "To use `get_weather(city)`, I need the city.",
    "The tool `get_weather(city: string)` needs a city. Which one?",
    "get_weather() needs a city. Which one do you mean?",
    'I would call get_weather(city="<city>") once you tell me the city.',
    'I would call `get_weather(city="...")`. Which city?',
    'My tools, as get_weather("city"), do not fit.',
    "get_weather(city=city) is what I would call.",
    "get_weather (the only tool here) cannot book tables.",
    'Like so:\n```python\nget_weather(city="<your city>")\n```\nWhich city?',
    "My tools:\n- get_weather(city)\n- search(query)\nNone of them fits.",
    "Tool: get_weather\nParameters: city (missing)\n\nWhich city?",
    "**Tool:** get_weather\n**Arguments:** city: not given",
    "Action needed: tell me the city for get_weather.",
    'It is {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}.',
    '{"name": "get_weather", "description": "…", "parameters": {"city": {"type": "string"}}}',
    'get_weather expects {"city": "string"}. Which city?',
    'The call would be {"name": "get_weather", "arguments": {...}}; but which city?',
    'The call would be {"name": "get_weather", "arguments": <arguments>}; but which city?',
    '{"tool": "get_weather", "missing": ["city"], "question": "Which city?"}',
    '{"question": "Which city shall I give to get_weather?"}',
    "I write <tool_call>...</tool_call> only when I know the city.",
    "I need no <tool_call> tag for that.",
    "get_weather: {city}, search: {query}. Which one?",
    "Calling get_weather(city=?) is not possible.",
    "<p>Which city for get_weather?</p>",
    "A search <b>search</b> needs a query.",
    "Ich kann get_weather nicht nutzen, weil die Stadt fehlt (city). Welche Stadt meinst du?",
    "| tool | needs |\n|---|---|\n| get_weather | city |",
    "I could search: what for?",
    "Do you mean the search (with filters) or the weather [city]?",
    "my_get_weather(city='Berlin') is another tool.",
    'The data: {"name": "search", "year": 1999}.',
]


@pytest.mark.parametrize("grading", [1, 2])
@pytest.mark.parametrize("text", PROSE)
def test_prose_that_speaks_of_a_tool_is_a_clean_abstention(text: str, grading: Grading) -> None:
    got = graded(said(text), grading)
    assert (got.passed, got.well_formed, got.flags) == (True, True, ())


@pytest.mark.parametrize(
    "text",
    [
        '{"tool_calls":[]}',
        '{"thought":"get_weather(city=\\"Berlin\\") would be a guess","tool_calls":[]}',
        'No tool fits; get_weather needs a city.\n```json\n{"tool_calls":[]}\n```',
        '{"tool_calls":null}',
    ],
)
def test_an_envelope_without_calls_abstains_repaired_or_not(text: str) -> None:
    for grading in (1, 2):
        assert graded(said(text, inlined=True), grading).passed


BESIDE = [
    'I call {"name":"get_weather","arguments":{"city":"B"}} then {"tool_calls":[]}',
    '{"tool_calls":[],"function_call":{"name":"get_weather","arguments":{}}}',
    '{"tool_calls":null,"name":"get_weather","arguments":{}}',
    '<tool_call>{"name":"get_weather","arguments":{}}</tool_call>{"tool_calls":[]}',
    '<tool_call>{"name":"get_w</tool_call>\n{"tool_calls":[]}',
]


@pytest.mark.parametrize("text", BESIDE)
def test_a_call_beside_an_envelope_without_calls_cannot_be_read(text: str) -> None:
    for grading in (1, 2):
        got = graded(said(text, inlined=True), grading)
        assert (got.passed, got.well_formed) == (False, False)
        assert "(several-objects)" in got.reason


def test_keys_that_stand_twice_in_an_envelope_are_flagged_and_no_clean_abstention() -> None:
    reading = said('{"tool_calls":[{"name":"get_weather","arguments":{"city":"B"}}],"tool_calls":[]}', inlined=True)
    assert (reading.calls, reading.flags) == ((), ("duplicate-keys",))
    assert graded(reading, 1).passed
    assert graded(reading).reason == "no tool should have been called; the answer says twice which calls there are"
    turned = said('{"tool_calls":[],"tool_calls":[{"name":"get_weather","arguments":{"city":"B"}}]}', inlined=True)
    assert graded(turned, gold=expected("get_weather", city="B")).flags == ("duplicate-keys", "stop-with-calls")


TRANSFER = '{"name":"transfer_money","arguments":{"city":"Berlin"}}'

HIDDEN = [
    f'{{"tool_calls":[{TRANSFER}],"tool_calls":[]}}',
    f'{{"tool_calls":[],"tool_calls":[{TRANSFER}],"tool_calls":null}}',
    f'{{"function_call":{TRANSFER},"function_call":null}}',
    f'{{"function":{TRANSFER},"function":"none"}}',
    '{"name":"transfer_money","arguments":{"city":"Berlin"},"name":null}',
    '{"name":"transfer_money","arguments":{"city":"Berlin"},"arguments":null}',
    '{"name":null,"arguments":{"city":"Berlin"},"name":"transfer_money","arguments":null}',
    '{"tool_calls":[{"name":"transfer_money","arguments":{},"name":null}]}',
    '{"tool_calls":[{"function":{"name":"transfer_money","arguments":{}},"function":{}}]}',
    f'[{TRANSFER[:-1]},"name":7}}]',
    f'```json\n{{"tool_calls":[{TRANSFER}],"tool_calls":[]}}\n```',
    f'I do it: {{"tool_calls":[{TRANSFER}],"tool_calls":[]}}',
    f'I do it: {TRANSFER[:-1]},"name":null}}.',
    '{"get_weather":{"city":"Berlin"},"get_weather":null}',
    '{"calls":{"tool":"get_weather","args":{"city":"B"},"tool":null}}',
]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_call_that_a_doubled_key_hides_is_shown_all_the_same(text: str) -> None:
    native = graded(said(text))
    assert (native.passed, native.flags) == (False, ("content_fallback",))
    inlined = graded(said(text, inlined=True))
    assert not inlined.passed
    assert "duplicate-keys" in inlined.flags or not inlined.well_formed


def test_a_doubled_key_that_hides_no_call_shows_none() -> None:
    for text in (
        '{"question":"Which city?","question":"Which town?"}',
        '{"tool_calls":[],"tool_calls":[]}',
        '{"name":"search","name":"search","description":"It searches."}',
    ):
        assert graded(said(text)).passed


def test_a_call_beside_an_envelope_is_seen_behind_a_doubled_key_too() -> None:
    for text in (
        f'{{"tool_calls":[],"function_call":{TRANSFER},"function_call":null}}',
        f'{{"tool_calls":[]}} {TRANSFER[:-1]},"name":null}}',
    ):
        assert "(several-objects)" in graded(said(text, inlined=True), 1).reason


def test_of_a_bare_call_with_a_doubled_name_the_last_one_counts_and_is_flagged() -> None:
    reading = said('{"name":"search","arguments":{"city":"B"},"name":"get_weather"}', inlined=True)
    assert [call.name for call in reading.calls] == ["get_weather"]
    assert "duplicate-keys" in reading.flags


BODIES: list[tuple[Shape, str]] = [
    ("openai-chat", '{"choices":[{"message":{"content":CALL}}],"choices":[{"message":{"content":"No."}}]}'),
    ("openai-chat", '{"choices":[{"message":{"tool_calls":[1]},"message":{"content":"No."}}]}'),
    ("openai-chat", '{"choices":[{"message":{"tool_calls":[1],"tool_calls":[],"content":"No."}}]}'),
    ("openai-chat", '{"choices":[{"message":{"content":[{"type":"tool_use","type":"text","text":"No."}]}}]}'),
    ("ollama", '{"message":{"tool_calls":[1]},"message":{"content":"No."},"done":true}'),
    ("anthropic-messages", '{"content":[{"type":"tool_use"}],"content":[{"type":"text","text":"No."}]}'),
    ("anthropic-messages", '{"content":[{"type":"tool_use","type":"text","text":"No."}]}'),
    ("openai-responses", '{"output":[{"type":"function_call"}],"output":[{"type":"message","content":"No."}]}'),
    ("openai-responses", '{"output":[{"type":"function_call","type":"message","content":"No."}]}'),
]


@pytest.mark.parametrize(("shape", "body"), BODIES)
def test_a_body_that_says_twice_what_the_answer_is_abstains_not_cleanly(shape: Shape, body: str) -> None:
    reading = read_said(body.replace("CALL", '"x"').encode(), shape=shape)
    assert (reading.text, reading.flags) == ("No.", ("duplicate-keys",))
    assert graded(reading).reason == "no tool should have been called; the answer says twice which calls there are"


@pytest.mark.parametrize("kind", ["tool_use", "tool_call", "function_call", "functionCall"])
def test_a_call_among_the_parts_of_the_content_counts_as_one_in_text(kind: str) -> None:
    part = {"type": kind, "name": "get_weather", "input": {"city": "B"}}
    for content in ([{"type": "text", "text": "I do it."}, part], [part]):
        reading = said(content)
        assert (reading.calls, reading.flags, reading.broken) == ((), ("content_fallback",), None)
        assert not graded(reading).passed


@pytest.mark.parametrize("flag", ["unknown-content", "unknown-item", "used-tools"])
def test_parts_that_cannot_be_read_and_tools_of_the_agents_own_are_no_clean_abstention(flag: str) -> None:
    reading = Reading(text="No tool fits.", flags=(flag,))
    got = graded(reading)
    assert (got.passed, got.flags) == (False, (flag,))
    assert got.reason.startswith("no tool should have been called; ")
    assert graded(reading, 1).passed
    assert graded(said("No.", finish="tool_calls")).passed  # a finish reason is no evidence


def test_the_names_as_they_were_sent_are_known_too() -> None:
    reading = said('book_table {"guests": 2}')
    assert graded(reading).flags == ("content_fallback",)
    assert judge(case_of(None), TOOLS[:1], reading, grading=2, sent={}).passed  # no such tool is offered there


def test_a_call_is_found_among_many_words_about_it() -> None:
    shown = offered((("f", frozenset({"a"})), ("find", frozenset()))).shown
    assert shown("f and find, f (a), " * 9 + "f(a=1)") == "call"
    assert shown("if(a=1), of(a=1), f1(a=1), f-x(a=1)") == "none"
    assert shown("") == "none"
