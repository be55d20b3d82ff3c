"""The reader never raises and never stalls, whatever the bytes; what it gives can always be written down."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.core.answers import Reading
from referee.core.bakeoff import Blame, Shape
from referee.core.canonical import canonical_bytes
from referee.errors import UsageError
from referee.scoring.answers import envelope, offered, read, read_message, reading
from referee.scoring.answers.arguments import read_arguments
from referee.scoring.answers.documents import UnusableError
from tests.bakeoff import test_answers_cli as cli
from tests.bakeoff import test_answers_own_faults as faults
from tests.bakeoff import test_answers_shapes as shapes
from tests.bakeoff import test_answers_streams as streams
from tests.bakeoff import test_answers_text as texts
from tests.bakeoff import test_faults as errors
from tests.bakeoff.reading import call, chat

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

SHAPES: tuple[Shape, ...] = get_args(Shape)
SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["tool_calls", "length", "error", '{"a": 1', "<think>", "```json\n{}", "\ud800", "429"])
)
KEYS = st.sampled_from(
    [
        *(
            "choices",
            "message",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "content",
            "finish_reason",
            "index",
            "id",
        ),
        *("id", "error", "code", "type", "status", "metadata", "output", "input", "text", "usage", "done"),
        *("delta", "refusal", "reasoning", "result", "is_error", "item", "part", "response", "stats", "model", "event"),
    ]
) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=30
)


def check(found: Reading) -> None:
    """What holds of every reading."""
    if found.fault is not None:
        assert found.fault.sentence.isprintable()
        assert len(found.fault.sentence) < 400
        assert found.fault.name != "reader_failed", found.fault.sentence
        found.fault.model_dump_json()
        assert not found.calls or found.fault.blame is not Blame.MODEL
        assert not found.well_formed or found.fault.name == "refusal"
    if found.broken is not None:
        assert not found.well_formed
        assert found.broken_detail
    for text in (found.text, found.broken_detail, found.model or "", found.finish or "", *found.provenance):
        text.encode("utf-8")
    for one in found.calls:
        assert one.name.strip()
        canonical_bytes({"name": one.name, "arguments": one.arguments})


def put(body: bytes, shape: Shape, *, streamed: bool, inlined: bool, status: int = 200) -> None:
    code = 0 if shape == "cli-envelope" and status == 200 else status
    check(read(code, {}, body, broke=None, detail="", streamed=streamed, shape=shape, inlined=inlined))
    try:  # without the last net
        if shape == "cli-envelope":
            envelope.parts_of(code, body, broke=None, detail="")
        else:
            reading.take(code, {}, body, broke=None, detail="", streamed=streamed, shape=shape)
    except UnusableError:
        pass


@SETTINGS
@given(st.binary(max_size=400), st.sampled_from(SHAPES), st.booleans(), st.booleans(), st.sampled_from([200, 400, 500]))
def test_random_bytes(body: bytes, shape: Shape, streamed: bool, inlined: bool, status: int) -> None:
    put(body, shape, streamed=streamed, inlined=inlined, status=status)


@SETTINGS
@given(JSON, st.sampled_from(SHAPES), st.booleans(), st.booleans(), st.sampled_from([200, 402, 404, 429, 503]))
def test_random_json(value: Any, shape: Shape, streamed: bool, inlined: bool, status: int) -> None:
    text = json.dumps(value)
    for body in (text, f"data: {text}\n\ndata: [DONE]\n\n", f"event: error\ndata: {text}\n\n", f"x\n{text}\n{text}\n"):
        put(body.encode(), shape, streamed=streamed, inlined=inlined, status=status)


@SETTINGS
@given(JSON, st.booleans())
def test_random_messages(value: Any, inlined: bool) -> None:
    message = value if isinstance(value, dict) else {"content": value, "tool_calls": value}
    check(read_message(message, inlined))


WHOLE: list[tuple[Shape, Any]] = [
    *((row[1], row[2]) for row in shapes.FOUND + shapes.BROKEN),
    *((row[1], row[2]) for row in faults.OWN_FAULTS),
    *(("openai-chat", row[1]) for row in errors.INSIDE),
    *(("openai-chat", chat({"content": row[0]})) for row in texts.NATIVE_TEXT + texts.ENVELOPES),
]
EVENTS: list[tuple[Shape, str]] = [
    *((row[1], row[2]) for row in streams.FAULTS),
    *(
        ("openai-chat", streams.sse(*(streams.delta(tool_calls=[one]) for one in row[1])) + streams.DONE)
        for row in streams.PIECES
    ),
    ("anthropic-messages", streams.sse(*streams.message_events(streams.TEXT, streams.json_pieces('{"a"', ": 1}")))),
    ("openai-responses", streams.sse(streams.ADDED, *streams.GROWING, streams.completed([]))),
    ("ollama", streams.lines(streams.said(content="x"), streams.said(done=True))),
    *(("cli-envelope", row[1] if isinstance(row[1], str) else json.dumps(row[1])) for row in cli.WRAPPED + cli.ERRORS),
]
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x",
    "\ud800",
    [],
    {},
    [None],
    {"": None},
    "length",
    "{",
    '{"a": 1}{',
    [[]],
    "5" * 5000,
)


def mutated(value: Any, chance: random.Random) -> Any:
    """A real document in which one place is something else, is gone, or stands twice."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            for key in one if isinstance(one, dict) else range(len(one)):
                places.append((one, key))
                todo.append(one[key])
    if not places:
        return chance.choice(ODD)
    for _ in range(chance.randint(1, 3)):
        where, key = chance.choice(places)
        if isinstance(where, list) and key >= len(where):
            continue
        if chance.random() < 0.2:
            where.pop(key, None) if isinstance(where, dict) else where.pop(key)
        else:
            where[key] = chance.choice(ODD)
    return value


@pytest.mark.parametrize("seed", range(4))
def test_real_answers_with_something_changed(seed: int) -> None:
    chance = random.Random(seed)
    for shape, body in WHOLE:
        if isinstance(body, bytes):
            continue
        for _ in range(12):
            text = json.dumps(mutated(body, chance))
            for other in {shape, chance.choice(SHAPES)}:
                put(text.encode(), other, streamed=chance.random() < 0.3, inlined=chance.random() < 0.3)


@pytest.mark.parametrize("seed", range(4))
def test_real_streams_and_outputs_with_something_changed(seed: int) -> None:
    chance = random.Random(seed)
    for shape, text in EVENTS:
        data = bytearray(text.encode())
        for _ in range(25):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(changed) + 1)
                kind = chance.random()
                if kind < 0.3:
                    del changed[at : at + chance.randint(1, 30)]
                elif kind < 0.6:
                    changed[at:at] = chance.choice([b"{", b"}", b'"', b"\\", b"\n\n", b"\xff", b"null", b"[DONE]"])
                else:
                    changed[at:at] = bytes(changed[at : at + 40])
            put(bytes(changed), shape, streamed=shape != "cli-envelope", inlined=chance.random() < 0.5)


@SETTINGS
@given(JSON)
def test_sound_arguments_come_back_as_they_were(value: Any) -> None:
    arguments = {"x": value}
    try:
        sound = json.loads(canonical_bytes(arguments))
    except UsageError:  # NaN, infinity, lone surrogates: no JSON
        check(read_message({"tool_calls": [call("f", json.dumps(arguments))]}, inlined=False))
        return
    for raw in (json.dumps(arguments), json.dumps(arguments, ensure_ascii=False), arguments):
        assert read_arguments(raw) == (sound, (), None, "")
    assert read_arguments(json.dumps(json.dumps(arguments))) == (sound, ("unwrapped",), None, "")
    assert read_arguments(f"```json\n{json.dumps(arguments, indent=1)}\n```") == (sound, ("repaired",), None, "")
    assert read_arguments(json.dumps(arguments)[:-1] + ",}") == (sound, ("repaired",), None, "")


@SETTINGS
@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers() | st.booleans(), min_size=1), st.data())
def test_arguments_cut_anywhere_are_never_read(arguments: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(arguments)
    at = data.draw(st.integers(1, len(text) - 1))
    assert read_arguments(text[:at])[:3] == (None, (), "truncated")


@SETTINGS
@given(st.text(alphabet="{}[]\",:\\ab1 \n\t`'u0\ud800", max_size=60))
def test_text_of_the_marks_of_json(text: str) -> None:
    found, _, broken, detail = read_arguments(text)
    assert (found is None) == (broken is not None)
    assert broken is None or detail
    if found is not None:
        canonical_bytes(found)
    for inlined in (True, False):
        check(read_message({"content": text, "tool_calls": [call("f", text)]}, inlined))
        check(read_message({"content": text}, inlined))


NOTATIONS = [
    "f",
    "f.f",
    "(",
    ")",
    "a=",
    "a",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "<f>",
    "</f>",
    "<",
    ">",
    "```",
    "\n",
]
NOTATIONS += [
    "Action: ",
    "Action Input:",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "to=",
    "1",
    " ",
]
NOTATIONS += ['"name": "f"', '"arguments": {', '{"f": {"a": ', "...", "with "]


@SETTINGS
@given(st.lists(st.sampled_from(NOTATIONS), max_size=24).map("".join))
def test_text_of_the_marks_of_calls(text: str) -> None:
    for inlined in (True, False):
        check(read_message({"content": text}, inlined))
    shown = TOOLS.shown(text)
    assert shown in {"none", "call", "attempt"}
    assert shown == "none" or "f" in text
    assert TOOLS.shown(text.replace("f", "g")) == "none"


TOOLS = offered((("f", frozenset({"a"})), ("f.f", frozenset())))

HUGE = [
    b"{" * 500_000,
    b"[" * 500_000,
    b'{"a":' * 100_000,
    b'"' * 500_000,
    b"\\" * 500_000,
    b"\x1b]" * 200_000,
    b"```json\n" + b" " * 500_000,
    b"<tool_call>" * 50_000,
    b'{"name":' * 50_000 + b'"arguments":',
    b'"tool_calls" {"x": ' * 30_000,
    b"{} " * 150_000,
    b"data: {}\n\n" * 50_000,
    b'{"type":"x"}\n' * 40_000,
    b"API Error " + b"4" * 500_000,
    b"model " * 80_000,
    b"9" * 500_000,
    b"</think>" * 60_000,
    b"f(" * 200_000,
    b"f({'" * 100_000,
    b'f {"' * 100_000,
    b"f" + b" " * 400_000 + b"x",
    b"Action: f\n" * 40_000,
    b"<f a=" * 80_000,
    b"<function=f>" * 40_000,
    b'"name": "f", ' * 30_000 + b"{",
    b"f." * 200_000 + b"(",
    b"*" * 400_000 + b": f",
]


@pytest.mark.slow
@pytest.mark.parametrize("body", HUGE, ids=[one[:12].decode() for one in HUGE])
def test_huge_and_hostile(body: bytes) -> None:
    text = body.decode()
    for status in (200, 400):
        for shape in SHAPES:
            put(body, shape, streamed=False, inlined=True, status=status)
    put(body, "openai-chat", streamed=True, inlined=False)
    for raw in (text, '{"a": "' + text, "```" + text):
        read_arguments(raw)
    assert TOOLS.shown(text) in {"none", "call", "attempt"}
    for inlined in (True, False):
        check(read_message({"content": text, "tool_calls": []}, inlined))
        check(read_message({"tool_calls": [call(text, text)]}, inlined))
