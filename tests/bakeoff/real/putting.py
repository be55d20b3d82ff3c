"""A case on its whole way: put in words, carried by a lane, read, graded."""

from __future__ import annotations

from dataclasses import dataclass

from referee.benchmarks.bakeoff.asking import ask_of
from referee.core.answers import Grade, Reading
from referee.core.bakeoff import Sampling
from referee.core.cases import Call, Case, Grading, Message, Tool
from referee.protocols import Ask, Lane, Said
from referee.scoring.answers import read
from referee.scoring.toolcalls import judge

CALENDAR = Tool(
    name="calendar.create",
    description="Trägt einen Termin ein.",
    parameters={
        "type": "object",
        "properties": {"title": {"type": "string"}, "date": {"type": "string", "format": "date"}},
        "required": ["title", "date"],
        "additionalProperties": False,
    },
)
CLOCK = Tool(
    name="clock.now",
    description="Says what time it is.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)

DENTIST = Case(
    id="dentist",
    category="simple-call",
    language="de",
    messages=(Message(role="user", content="Trage den Termin „Zahnarzt“ am 24.07.2026 ein."),),
    toolset="office",
    expected_call=Call(name="calendar.create", arguments={"title": "Zahnarzt", "date": {"eq": "2026-07-24"}}),
)
TIME = Case(
    id="time",
    category="tool-selection",
    language="en",
    messages=(Message(role="user", content="What time is it?"),),
    toolset="office",
    expected_call=Call(name="clock.now"),
)
JOKE = Case(
    id="joke",
    category="abstain",
    language="en",
    messages=(Message(role="user", content="Tell me a joke."),),
    toolset="office",
    expected_call=None,
)
PROMPT = "Call a tool where one fits; otherwise answer in words."


@dataclass(frozen=True)
class Put:
    """What came of a case."""

    ask: Ask
    said: Said
    reading: Reading
    grade: Grade


async def put(
    lane: Lane,
    case: Case,
    tools: tuple[Tool, ...],
    *,
    prompt: str | None = PROMPT,
    sampling: Sampling | None = None,
    deadline: float = 60.0,
    grading: Grading = 2,
) -> Put:
    """Put one case to a lane."""
    surface = lane.surface
    ask, sent = ask_of(case, tools, prompt, surface, sampling or Sampling(max_tokens=512))
    said = await lane.ask(ask, deadline)
    reading = read(
        *(said.status, said.headers, said.body),
        broke=said.broke,
        detail=said.detail,
        streamed=said.streamed,
        shape=surface.shape,
        inlined=surface.tool_channel == "inlined",
    )
    return Put(ask, said, reading, judge(case, tools, reading, grading=grading, sent=sent))
