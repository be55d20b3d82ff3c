"""A credential that is cut so that only the reader puts it together again: nothing kept, read or judged has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from referee.adapters.store.answers import KeptAnswer
from referee.core.answers import Reading
from referee.core.bakeoff import Blame, Shape, Surface
from referee.core.redaction import Redactor
from referee.core.spellings import canonical
from referee.protocols import Said
from referee.runner.bakeoff.keeping import keep
from referee.runner.bakeoff.verdict import read_kept, verdict
from tests.bakeoff.run_workspace import small_suite

LONG = "sk-live-Abc123XyzQ9876LongSentinelValue77"
SHORT = "hf_Abc123XyzQ9876LongSent"
Pieces = list[str]


@dataclass(frozen=True)
class Place:
    """Where an answer carries the pieces of a credential."""

    body: Callable[[Pieces], bytes]
    shape: Shape = "openai-chat"
    streamed: bool = True
    content_type: str = "text/event-stream"
    status: int = 200
    broke: str | None = None


def lines(*documents: Any, end: str = "\n\n", done: bool = True) -> bytes:
    told = [f"data: {json.dumps(one)}{end}" for one in documents] + ([f"data: [DONE]{end}"] if done else [])
    return "".join(told).encode()


def delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said}]}


def call(text: str, *, name: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"arguments": text} if name is None else {"name": name, "arguments": text}
    return delta(tool_calls=[{**more, "function": function}])


def message(**said: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}).encode()


def texts(parts: Pieces, kind: str = "text") -> list[dict[str, str]]:
    return [{"type": kind, "text": part} for part in parts]


def begun(parts: Pieces) -> str:
    return '{"city":"' + parts[0]


def two_lines(parts: Pieces) -> bytes:
    said = [f'data: {{"choices":[{{"index":0,\ndata: "delta":{{"content":{json.dumps(one)}}}}}]}}\n\n' for one in parts]
    return ("".join(said) + "data: [DONE]\n\n").encode()


def blocks(parts: Pieces) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": parts[0]}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
            for part in parts[1:]
        ),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    return lines(*events, done=False)


def gemini(parts: Pieces, before: str = "", indent: str = "") -> bytes:
    events = [
        {"type": "init"},
        *({"type": "message", "role": "assistant", "content": part} for part in parts),
        {"type": "result", "status": "success"},
    ]
    return (before + "\r\n".join(indent + json.dumps(event) for event in events)).encode()


def taking_turns(parts: Pieces, *, done: bool = True) -> bytes:
    first = {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": begun(parts)}}
    other = {"index": 1, "id": "b", "function": {"name": "other", "arguments": "{"}}
    events = [delta(tool_calls=[first, other])]
    for part in [*parts[1:], '"}']:
        more = {"index": 0, "function": {"arguments": part}}
        events.append(delta(tool_calls=[more, {"index": 1, "function": {"arguments": "7"}}]))
    return lines(*events, done=done)


PLAIN: dict[str, Any] = {"streamed": False, "content_type": "application/json"}
CLI: dict[str, Any] = {"shape": "cli-envelope", "streamed": False, "content_type": "", "status": 0}

PLACES = {
    "text": Place(lambda p: lines(*(delta(content=one) for one in p))),
    "text, not asked to stream": Place(lambda p: lines(*(delta(content=one) for one in p)), streamed=False),
    "arguments, not asked to stream": Place(
        lambda p: lines(
            call(begun(p), name="get_weather", index=0, id="a"), *(call(one, index=0) for one in [*p[1:], '"}'])
        ),
        streamed=False,
    ),
    "lines ended by CR": Place(lambda p: lines(*(delta(content=one) for one in p), end="\r\r")),
    "lines ended by CR, not asked to stream": Place(
        lambda p: lines(*(delta(content=one) for one in p), end="\r\r"), streamed=False
    ),
    "lines ended by CR LF": Place(lambda p: lines(*(delta(content=one) for one in p), end="\r\n\r\n")),
    "events of several lines": Place(two_lines),
    "arguments without an index": Place(
        lambda p: lines(call(begun(p), name="get_weather", index=0, id="a"), *(call(one, id="a") for one in p[1:]))
    ),
    "arguments of another index": Place(
        lambda p: lines(
            call(begun(p), name="get_weather", index=0, id="a"),
            *(call(one, id="a", index=at + 1) for at, one in enumerate([*p[1:], '"}'])),
        )
    ),
    "two calls that take turns": Place(taking_turns),
    "two calls that take turns and break off": Place(lambda p: taking_turns(p, done=False)),
    "a stream that breaks off": Place(lambda p: lines(*(delta(content=one) for one in p), done=False), broke="reset"),
    "reasoning that nobody reads": Place(
        lambda p: lines(*(delta(reasoning_content=one) for one in p), delta(content="x"), end="\r\r")
    ),
    "text, then chunks": Place(
        lambda p: lines(delta(content=p[0]), *(delta(content=[{"type": "text", "text": one}]) for one in p[1:]))
    ),
    "delta, then message": Place(
        lambda p: lines(delta(content=p[0]), {"choices": [{"index": 0, "message": {"content": "".join(p[1:])}}]})
    ),
    "choice without an index": Place(
        lambda p: lines(delta(content=p[0]), *({"choices": [{"delta": {"content": one}}]} for one in p[1:]))
    ),
    "name": Place(
        lambda p: lines(
            *(delta(tool_calls=[{"index": 0, "function": {"name": one}}]) for one in p), call("{}", index=0)
        )
    ),
    "chunks": Place(lambda p: message(content=texts(p)), **PLAIN),
    "chunks under a name that is escaped": Place(
        lambda p: message(content=texts(p)).replace(b'"text":', b'"te\\u0078t":'), **PLAIN
    ),
    "text and chunk": Place(lambda p: message(content=["".join(p[:-1]), *texts(p[-1:])]), **PLAIN),
    "chunks of reasoning": Place(lambda p: message(content="x", reasoning_details=texts(p)), **PLAIN),
    "blocks": Place(lambda p: json.dumps({"content": texts(p)}).encode(), shape="anthropic-messages", **PLAIN),
    "blocks of a stream": Place(blocks, shape="anthropic-messages"),
    "parts of an output": Place(
        lambda p: json.dumps(
            {"status": "completed", "output": [{"type": "message", "content": texts(p, "output_text")}]}
        ).encode(),
        shape="openai-responses",
        **PLAIN,
    ),
    "Ollama's lines, not asked to stream": Place(
        lambda p: (
            "\n".join(" " + json.dumps({"message": {"content": one}, "done": False}) for one in p)
            + '\n {"message":{"content":""},"done":true}\n'
        ).encode(),
        shape="ollama",
        streamed=False,
        content_type="application/x-ndjson",
    ),
    "events of a CLI": Place(gemini, **CLI),
    "events of a CLI, indented behind a notice": Place(lambda p: gemini(p, "note\r\n", "  "), **CLI),
    "events of a CLI in a list": Place(
        lambda p: b"[" + b",".join(line for line in gemini(p).split(b"\r\n")) + b"]", **CLI
    ),
    "terminal codes": Place(lambda p: ("\x1b[31m".join(p) + ' {"tool_calls":[]}').encode(), **CLI),
    "elements of an argument": Place(
        lambda p: message(
            content=None,
            tool_calls=[{"function": {"name": "get_weather", "arguments": json.dumps({"city": p})}}],
        ),
        **PLAIN,
    ),
    "arguments of one call": Place(
        lambda p: message(
            content=None,
            tool_calls=[
                {
                    "function": {
                        "name": "get_weather",
                        "arguments": json.dumps({f"k{at}": one for at, one in enumerate(p)}),
                    }
                }
            ],
        ),
        **PLAIN,
    ),
    "an error's messages": Place(
        lambda p: json.dumps({"error": {"message": p[0], "code": 503, "metadata": {"raw": "".join(p[1:])}}}).encode(),
        **PLAIN,
    ),
}


def surface(place: Place) -> Surface:
    return Surface(
        channel="own-infrastructure",
        shape=place.shape,
        tool_channel="inlined" if place.shape == "cli-envelope" else "native",
        uncontrolled=(),
        readable_as="x",
        latency_admissible=True,
        pins_sampling=True,
    )


def cut(key: str, count: int) -> Pieces:
    step = -(-len(key) // count)
    return [key[at : at + step] for at in range(0, len(key), step)]


def told(reading: Reading) -> Iterator[str]:
    """What of a reading may be quoted."""
    yield from (reading.text, reading.broken_detail, reading.fault.sentence if reading.fault else "")
    yield "".join(one.name + json.dumps(one.arguments, ensure_ascii=False) for one in reading.calls)
    yield "".join("".join(str(value) for value in one.arguments.values()) for one in reading.calls)


def part_of(key: str, text: str) -> bool:
    """Whether a sizeable part of the key stands there: 16 letters and digits, or half of a shorter key."""
    raw, seen = canonical(key.encode()), canonical(text.encode("utf-8", "surrogatepass"))
    most = min(16, (len(raw) + 1) // 2)
    return any(raw[at : at + most] in seen for at in range(len(raw) - most + 1))


def kept_of(place: Place, body: bytes, redactor: Redactor, **more: Any) -> tuple[KeptAnswer, Reading]:
    said = Said(
        place.status, more.get("headers", {"content-type": place.content_type}), body, place.broke,
        more.get("detail", ""), streamed=place.streamed, first_byte_ms=None, latency_ms=1.0,
    )  # fmt: skip
    return keep(said, redactor, surface(place))


@pytest.mark.parametrize("count", [2, 3, 6, 25])
@pytest.mark.parametrize("key", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("name", PLACES)
def test_a_credential_in_pieces_is_in_nothing_that_is_kept_read_or_judged(name: str, key: str, count: int) -> None:
    place = PLACES[name]
    body = place.body(cut(key, count))
    without, _ = kept_of(place, body, Redactor({}))
    assert without.body == body
    kept, reading = kept_of(place, body, Redactor({"KEY": key}))
    assert b"[redacted:KEY]" in kept.body
    assert not part_of(key, kept.body.decode("utf-8", "replace"))
    for text in told(reading):
        assert not part_of(key, text)
    suite = small_suite(1)
    case = suite.cases[0]
    found = verdict(case, suite.tools(case), reading, grading=2, sent={})
    assert not part_of(key, json.dumps(found))
    again = read_kept(kept, surface(place))
    assert again == reading
    assert verdict(case, suite.tools(case), again, grading=2, sent={}) == found


def test_an_answer_that_had_to_be_withheld_is_excluded_and_never_fails() -> None:
    place = PLACES["lines ended by CR"]
    kept, reading = kept_of(place, place.body(cut(LONG, 6)), Redactor({"KEY": LONG}))
    assert kept.body == b"[redacted:KEY]"
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name) == (Blame.INFRA, "withheld")
    suite = small_suite(1)
    found = verdict(suite.cases[0], suite.tools(suite.cases[0]), reading, grading=2, sent={})
    assert (found["passed"], found["infra_class"]) == (None, "withheld")
    assert found["reason"] == "The answer carried a credential, so it was not kept."


def test_a_text_that_had_to_be_withheld_is_not_taken_for_a_cli_without_an_envelope() -> None:
    place = PLACES["terminal codes"]
    body = json.dumps({"tool_calls": [], "letters": list(LONG)}).encode()
    kept, reading = kept_of(place, body, Redactor({"KEY": LONG}))
    assert kept.body == b"[redacted:KEY]"
    assert reading.fault is not None
    assert reading.fault.name == "withheld"


def test_what_can_be_cut_out_leaves_an_answer_that_is_graded() -> None:
    place = PLACES["chunks"]
    arguments = json.dumps({"city": "City000000", "note": f"key {LONG[:30]}…"})
    body = message(content=None, tool_calls=[{"function": {"name": "get_weather", "arguments": arguments}}])
    _, reading = kept_of(place, body, Redactor({"KEY": LONG}))
    assert [one.arguments for one in reading.calls] == [{"city": "City000000", "note": "key [redacted:KEY]…"}]
    assert reading.fault is None


def test_a_withheld_answer_of_an_account_without_credit_still_stops_the_target() -> None:
    place = PLACES["chunks"]
    split = message(content=texts(cut(LONG, 3)))
    said = Said(402, {"retry-after": "7"}, split, None, "", streamed=False, first_byte_ms=None, latency_ms=1.0)
    kept, reading = keep(said, Redactor({"KEY": LONG}), surface(place))
    assert reading.fault is not None
    assert (reading.fault.blame, reading.fault.name) == (Blame.ACCOUNT, "payment_required")
    assert kept.headers == {"retry-after": "7"}


@pytest.mark.parametrize("key", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("missing", [1, 5])
def test_a_credential_cut_off_at_the_cap_or_in_a_header_is_found(key: str, missing: int) -> None:
    place = Place(lambda p: b"", broke="too-long", **PLAIN)
    kept, _ = kept_of(
        place,
        b"x" * 5000 + key[:-missing].encode(),
        Redactor({"KEY": key}),
        headers={"x-request-id": "r" * 180 + key[:-missing]},
        detail=f"the end: {key[missing:]}",
    )
    everything = kept.body.decode() + json.dumps(dict(kept.headers)) + kept.detail
    assert not part_of(key, everything)
    assert everything.count("[redacted:KEY]") == 3


def test_an_answer_without_a_credential_is_kept_as_it_came() -> None:
    place = PLACES["text"]
    body = place.body(["Grüße aus ", "Köln: 100 % \\u0041 &#65; \\n", "sk-live-"])
    kept, reading = kept_of(place, body, Redactor({"KEY": LONG, "OTHER": SHORT}))
    assert kept.body is body
    assert reading.text == "Grüße aus Köln: 100 % \\u0041 &#65; \\nsk-live-"
