"""The floor of every board: what it picks, what it leaves alone, and how it is served."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.adapters.keyword_baseline.picker import Offered, offer, pick
from referee.adapters.keyword_baseline.server import MODEL, BaselineServer
from referee.adapters.keyword_baseline.values import find_values, read_number
from referee.adapters.keyword_baseline.words import concept, concepts_of_name, dictionary, is_german, words_of
from referee.errors import EXIT_USAGE
from referee.scoring.answers import read

_STRING = {"type": "string"}
_CURRENCY = {"type": "string", "enum": ["EUR", "USD", "GBP"]}


def _tool(name: str, about: str, required: list[str], **properties: Any) -> Offered:
    return offer(name, about, {"type": "object", "properties": properties, "required": required})


TOOLS = [
    _tool(
        "get_weather",
        "Current weather for a city",
        ["city"],
        city=_STRING,
        unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
    ),
    _tool(
        "send_email",
        "Send an e-mail to a recipient",
        ["to", "subject", "body"],
        to={"type": "string", "format": "email"},
        subject=_STRING,
        body=_STRING,
    ),
    _tool(
        "create_event",
        "Create a calendar event",
        ["title", "date"],
        title=_STRING,
        date={"type": "string", "format": "date"},
        time=_STRING,
    ),
    _tool(
        "convert_currency",
        "Convert an amount between currencies",
        ["amount", "from_currency", "to_currency"],
        amount={"type": "number"},
        from_currency=_CURRENCY,
        to_currency=_CURRENCY,
    ),
    _tool(
        "book_flight",
        "Book a flight",
        ["origin", "destination", "date"],
        origin=_STRING,
        destination=_STRING,
        date={"type": "string", "format": "date"},
        passengers={"type": "integer", "minimum": 1, "maximum": 9},
    ),
    _tool("get_order_status", "Status of an order", ["order_id"], order_id=_STRING),
    _tool(
        "turn_light",
        "Turn lights on or off in rooms",
        ["rooms"],
        rooms={"type": "array", "items": {"type": "string", "enum": ["kitchen", "office", "living_room"]}},
        dimmed={"type": "boolean"},
    ),
    _tool("search_web", "Search the web", ["query"], query=_STRING),
    _tool("delete_file", "Delete a file", ["path"], path=_STRING),
    _tool("get_customer", "Look up a customer by name", ["customer_name"], customer_name=_STRING),
    _tool(
        "translate_text",
        "Translate a text into another language",
        ["text", "target_language"],
        text=_STRING,
        target_language=_STRING,
    ),
    _tool("open_ticket", "Open a support ticket", ["code"], code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}),
]


def _calls(question: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in pick(question, TOOLS, **more)]


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("What is the weather in Berlin in celsius?", ("get_weather", {"city": "Berlin", "unit": "celsius"})),
        ("Wie ist das Wetter in München?", ("get_weather", {"city": "München"})),
        (
            'Send an email to bob@example.org with subject "Hello" and body "See you"',
            ("send_email", {"to": "bob@example.org", "subject": "Hello", "body": "See you"}),
        ),
        (
            "Erstelle einen Termin „Zahnarzt“ am 3. März 2026 um 15 Uhr",
            ("create_event", {"title": "Zahnarzt", "date": "2026-03-03", "time": "15:00"}),
        ),
        (
            "Convert 1,250.50 EUR to USD",
            ("convert_currency", {"amount": 1250.5, "from_currency": "EUR", "to_currency": "USD"}),
        ),
        (
            "Rechne 1.250,50 EUR in USD um",
            ("convert_currency", {"amount": 1250.5, "from_currency": "EUR", "to_currency": "USD"}),
        ),
        (
            "Buche einen Flug von Hamburg nach Wien am 24.07.2026 für drei Personen.",
            ("book_flight", {"origin": "Hamburg", "destination": "Wien", "date": "2026-07-24", "passengers": 3}),
        ),
        (
            "Book a flight to Oslo from Rome on July 24, 2026 for 2 people",
            ("book_flight", {"origin": "Rome", "destination": "Oslo", "date": "2026-07-24", "passengers": 2}),
        ),
        ("Wie ist der Status der Bestellung 4711?", ("get_order_status", {"order_id": "4711"})),
        ("Where is order A-1002?", ("get_order_status", {"order_id": "A-1002"})),
        (
            "Turn on the lights in the office and the living room",
            ("turn_light", {"rooms": ["office", "living_room"]}),
        ),
        ("Search the web for the best pizza in Naples", ("search_web", {"query": "best pizza in Naples"})),
        ("Suche im Web nach günstigen Zugtickets", ("search_web", {"query": "günstigen Zugtickets"})),
        ("Delete the file /tmp/report.txt", ("delete_file", {"path": "/tmp/report.txt"})),
        (
            "Übersetze „Guten Tag“ ins Englische",
            ("translate_text", {"text": "Guten Tag", "target_language": "Englische"}),
        ),
        ("Suche die Kundin Petra Lang", ("get_customer", {"customer_name": "Petra Lang"})),
        ("Open a ticket for ABC-1234 please", ("open_ticket", {"code": "ABC-1234"})),
    ],
)
def test_one_call(question: str, call: tuple[str, dict[str, Any]]) -> None:
    assert _calls(question) == [call]


@pytest.mark.parametrize(
    "question",
    [
        "Wie ist das Wetter?",  # a required argument was not said
        "Book a flight to Oslo on 2026-07-24",
        "Send an email to bob@example.org",
        "Tell me a joke",  # no tool fits
        "Was ist die Hauptstadt von Frankreich?",
        "",
        "   ",
        "🙂",
    ],
)
def test_no_call(question: str) -> None:
    assert _calls(question) == []


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (
            "First check the weather in Rome, then book a flight from Rome to Oslo on 2026-01-02.",
            ["get_weather", "book_flight"],
        ),
        ("1. Status von Bestellung B-77\n2. Wetter in Köln", ["get_order_status", "get_weather"]),
        ("Prüfe das Wetter in Bonn und danach den Status der Bestellung 88.", ["get_weather", "get_order_status"]),
    ],
)
def test_several_calls_in_order(question: str, names: list[str]) -> None:
    assert [name for name, _ in _calls(question)] == names


def test_a_required_call_is_made_whatever_fits() -> None:
    assert _calls("Wie ist das Wetter?", required=True) == [("get_weather", {})]
    assert len(_calls("Tell me a joke", required=True)) == 1
    assert pick("anything", [], required=True) == []


def test_the_order_of_equals_is_that_of_the_offer() -> None:
    twins = [_tool(name, "Shows a thing", [], x=_STRING) for name in ("show_one", "show_two")]
    assert [call.name for call in pick("show", twins)] == ["show_one"]
    assert [call.name for call in pick("show", twins[::-1])] == ["show_two"]


@given(
    question=st.text(max_size=200),
    name=st.text(min_size=1, max_size=20),
    schema=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "properties", "required", "items", "enum", "pattern", "format", "minimum", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
)
@settings(max_examples=300, deadline=None)
def test_whatever_is_asked_and_offered_it_answers_the_same_twice(question: str, name: str, schema: Any) -> None:
    tools = [offer(name, question[:50], schema if isinstance(schema, dict) else {"properties": {"a": schema}}), *TOOLS]
    first = pick(question, tools, required=True)
    assert first == pick(question, tools, required=True)
    assert len(first) >= bool(question.strip())
    json.dumps([call.arguments for call in first])


# --- words and values ------------------------------------------------------------------------------------------------


def test_words_of_two_languages_meet() -> None:
    assert concept("Rechnungen") == concept("invoice")
    assert concept("überweisen") == concept("transfer")
    assert concept("Kunden") == concept("customers")
    assert (
        concepts_of_name("getOrderStatus") == concepts_of_name("get_order_status") == concepts_of_name("order-status")
    )


def test_the_dictionary_is_folded_and_says_each_word_once() -> None:
    lines = Path(sys.modules[words_of.__module__].__file__ or "").with_name("dictionary.txt").read_text("utf-8")
    words = [word for line in lines.splitlines() if line.startswith(("same ", "value ")) for word in line.split()[1:]]
    assert all(re.fullmatch(r"[a-z]+", word) for word in words)
    assert sorted({word for word in words if words.count(word) > 1}) == []
    assert not dictionary().german & dictionary().english


@pytest.mark.parametrize(
    ("written", "german", "number"),
    [
        ("1,250.50", False, 1250.5),
        ("1.250,50", True, 1250.5),
        ("1.250", True, 1250),
        ("1,250", False, 1250),
        ("12,5", True, 12.5),
        ("12.5", False, 12.5),
        ("12.5", True, 12.5),
        ("-7", False, -7),
        ("1,2,3", False, None),
        ("9" * 40, False, None),
    ],
)
def test_numbers_as_they_are_written(written: str, german: bool, number: float | None) -> None:
    assert read_number(written, german=german) == number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("am 24.07.2026", [("date", "2026-07-24")]),
        ("on 24 July 2026", [("date", "2026-07-24")]),
        ("on 31.02.2026", []),
        ("at 2026-07-24T10:30:00Z", [("datetime", "2026-07-24T10:30:00Z")]),
        ("at 3 pm", [("time", "15:00")]),
        ("at 12 a.m", [("time", "00:00")]),
        ("um 9:05 Uhr", [("time", "09:05")]),
        ("see https://example.org/a?b=1.", [("url", "https://example.org/a?b=1")]),
        ("mail anna.b@example.org.", [("email", "anna.b@example.org")]),
        ("bestelle zwölf", [("number", "zwölf")]),
    ],
)
def test_values_of_a_text(text: str, found: list[tuple[str, str]]) -> None:
    assert [(value.kind, value.text) for value in find_values(text)] == found


def test_languages_are_told_apart() -> None:
    assert is_german(words_of("Rechne 1.250,50 EUR in USD um"))
    assert not is_german(words_of("Convert 1,250.50 EUR to USD"))
    assert not is_german([])


# --- served ----------------------------------------------------------------------------------------------------------

_WIRE = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": _STRING}, "required": ["city"]},
    },
}


def _request(**more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": "Wie ist das Wetter in Köln?"}]
    return {"model": MODEL, "messages": messages, "tools": [_WIRE], **more}


def _with_server(use: Callable[[aiohttp.ClientSession, str], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = BaselineServer()
        url = await server.start()
        try:
            async with aiohttp.ClientSession() as session:
                return await use(session, url)
        finally:
            await server.close()

    return asyncio.run(run())


def _post(body: Any, path: str = "/chat/completions") -> tuple[int, bytes]:
    async def use(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with session.post(f"{url}{path}", data=data) as response:
            return response.status, await response.read()

    found: tuple[int, bytes] = _with_server(use)
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_answers_in_openai_format(stream: bool) -> None:
    status, body = _post(_request(stream=stream))
    headers = {"content-type": "text/event-stream" if stream else "application/json"}
    reading = read(status, headers, body, broke=None, detail="", streamed=stream, shape="openai-chat", inlined=False)
    assert [(call.name, call.arguments) for call in reading.calls] == [("get_weather", {"city": "Köln"})]
    assert (reading.well_formed, reading.flags, reading.model) == (True, (), MODEL)
    assert _post(_request(stream=stream))[1] == body


def test_no_call_is_said_in_words() -> None:
    for more in ({"messages": [{"role": "user", "content": "Hallo"}]}, {"tool_choice": "none"}, {"tools": None}):
        answer = json.loads(_post(_request(**more))[1])["choices"][0]
        assert answer["finish_reason"] == "stop"
        assert answer["message"]["content"].startswith("No tool fits")
        assert "tool_calls" not in answer["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'{"messages": 1}', b'{"messages": [{}]}', b"[" * 100_000])
def test_a_broken_request_is_refused(body: bytes) -> None:
    assert _post(body)[0] == 400


def test_another_model_is_not_there() -> None:
    status, body = _post(_request(model="gpt"))
    assert (status, json.loads(body)["error"]["code"]) == (404, "model_not_found")


def test_the_catalogue_lists_one_model() -> None:
    async def use(session: aiohttp.ClientSession, url: str) -> Any:
        assert url.startswith("http://127.0.0.1:")
        async with session.get(f"{url}/models") as response:
            return await response.json()

    assert [entry["id"] for entry in _with_server(use)["data"]] == [MODEL]


def test_serving_until_it_is_interrupted() -> None:
    code = "from referee.adapters.keyword_baseline.server import serve; serve(0, lambda url: print(url, flush=True))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip()

        async def ask() -> int:
            async with aiohttp.ClientSession() as session, session.get(f"{url}/models") as response:
                return response.status

        assert asyncio.run(ask()) == 200
        running.send_signal(signal.SIGINT)
        assert running.wait(20) != 0


def test_a_port_that_there_is_not_is_refused() -> None:
    command = [sys.executable, "-m", "referee.cli.app", "bakeoff", "serve-baseline", "--port", "65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE
    assert "--port" in done.stderr


def test_a_taken_port_is_said() -> None:
    async def use(_: aiohttp.ClientSession, url: str) -> Any:
        port = yarl.URL(url).port or 0
        with pytest.raises(OSError, match="address already in use"):
            await BaselineServer().start(port)
        return True

    assert _with_server(use)
