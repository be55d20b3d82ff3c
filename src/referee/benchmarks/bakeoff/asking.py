"""How a case is put to a model: the same words for every model of a lane kind (bake-off §7).

Native lanes get the task's system prompt as a system message and the tools as tools. Inlined lanes (agent CLIs) have no
tool channel: one fixed template puts the task, the schemas and the conversation into one message and asks for an
envelope. Nothing here depends on the model, and nothing on the case's oracle but one thing: ``require_call`` is set
where a call is expected by design, and never where the model must abstain.

``prompt_digest`` names all of this; the freeze of a protocol pins it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from referee.core.bakeoff import Sampling, Surface
from referee.core.canonical import digest_of
from referee.core.cases import CONFOUNDED_ARM, Call, Case, Message, Tool
from referee.protocols import Ask, WireTool

#: Counts up with every change of the words below or of how a case is laid out.
PROMPT_VERSION = 1

#: What every provider takes as a tool's name.
_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64

_OPENING = """\
You answer one question about calling tools. The tools below exist only as this description: nothing is executed.
Do not use any tool, file, command or web access of the program you run in. Decide from this text alone."""

_FORM = """\
Reply with exactly one JSON object and nothing around it:
{"tool_calls":[{"name":"NAME","arguments":{"ARGUMENT":"VALUE"}}]}
The list holds the calls to make, in the order in which they are to be made, each with a name from the list of tools and
with arguments that follow its schema. Where no call is to be made, the list is empty: {"tool_calls":[]}"""

_ONE_ENTRY = "Emit exactly one entry in tool_calls."

_HEADINGS = {
    "task": "# Task",
    "tools": "# Tools (name, description, JSON Schema of the arguments)",
    "conversation": "# Conversation",
    "reply": "# Reply",
}
_SPEAKERS = {"user": "User:", "assistant": "Assistant:"}

_EXAMPLE = Case(
    id="example",
    category="simple-call",
    language="en",
    messages=(
        Message(role="user", content="FIRST"),
        Message(role="assistant", content="SECOND"),
        Message(role="user", content="THIRD"),
    ),
    toolset="example",
    expected_call=Call(name="a.b"),
)
_EXAMPLE_TOOLS = (Tool(name="a.b", description="ABOUT"), Tool(name="a_b"))


def ask_of(
    case: Case, tools: Sequence[Tool], prompt: str | None, surface: Surface, sampling: Sampling
) -> tuple[Ask, dict[str, str]]:
    """One case as it is put to a lane, and the tools' real names by the names that are sent.

    Args:
        case: the case.
        tools: the tools that it offers, in the suite's order.
        prompt: the text of the suite's system prompt for it; None for none.
        surface: what the lane is: only its tool channel matters here.
        sampling: the protocol's sampling; its ``require_call`` is dropped where the case abstains.
    """
    wire, sent = _as_sent(tools)
    if surface.tool_channel == "inlined":
        return Ask((("user", _inlined(case, wire, prompt)),), (), require_call=False, sampling=sampling), sent
    opening = () if prompt is None else (("system", prompt),)
    spoken = tuple((message.role, message.content) for message in case.messages)
    required = sampling.require_call and not case.abstains
    return Ask(opening + spoken, wire, require_call=required, sampling=sampling), sent


#: The toolsets last put, as they are sent: most cases share theirs with others. Known by identity, and kept alive.
_kept: dict[int, tuple[Sequence[Tool], tuple[WireTool, ...], dict[str, str]]] = {}
_MOST_KEPT = 256


def _as_sent(tools: Sequence[Tool]) -> tuple[tuple[WireTool, ...], dict[str, str]]:
    """The tools under the names by which they are sent, and their real names by these."""
    found = _kept.get(id(tools))
    if found is None or found[0] is not tools:
        names = sent_names(tools)
        wire = tuple(WireTool(name, tool.description, tool.parameters) for name, tool in zip(names, tools, strict=True))
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        found = _kept[id(tools)] = (tools, wire, dict(zip(names, (tool.name for tool in tools), strict=True)))
    return found[1], found[2]


def sent_names(tools: Sequence[Tool]) -> tuple[str, ...]:
    """The tools' names as every lane sends them: ``[A-Za-z0-9_-]`` only, at most 64 characters, no two alike.

    A name that needs no change keeps it, whatever the others become; of those that collide, the later in the suite's
    order gets a number. The same names go to native and to inlined lanes: a lane is not measured by its alphabet.
    """
    taken = {tool.name for tool in tools if _sendable(tool.name)}
    kept: set[str] = set()
    names = []
    for tool in tools:
        if _sendable(tool.name) and tool.name not in kept:
            kept.add(tool.name)
            names.append(tool.name)
            continue
        name = _free(_UNSENDABLE.sub("_", tool.name)[:_LONGEST_NAME], taken)
        taken.add(name)
        names.append(name)
    return tuple(names)


def prompt_digest() -> str:
    """Digest of all that is put around a case, with its version: what the freeze of a protocol pins.

    Taken over a whole example as it is put to each kind of lane, so that the layout is part of it as the words are.
    """
    asks = [
        ask_of(_EXAMPLE.model_copy(update={"arm": arm}), _EXAMPLE_TOOLS, "TASK", _example_surface(channel), Sampling())
        for arm in ("suite", CONFOUNDED_ARM)
        for channel in ("native", "inlined")
    ]
    shown = [
        {
            "messages": ask.messages,
            "tools": [[tool.name, tool.description, tool.parameters] for tool in ask.tools],
            "require_call": ask.require_call,
            "sent": sent,
        }
        for ask, sent in asks
    ]
    return digest_of("bakeoff-prompt", {"version": PROMPT_VERSION, "asks": shown})


def _sendable(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _UNSENDABLE.search(name) is None


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted[: _LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return name


def _inlined(case: Case, tools: Sequence[WireTool], prompt: str | None) -> str:
    parts = [_OPENING]
    if prompt is not None:
        parts.append(f"{_HEADINGS['task']}\n{prompt}")
    parts.append("\n".join([_HEADINGS["tools"], *(_line(tool) for tool in tools)]))
    spoken = (f"{_SPEAKERS[message.role]} {message.content}" for message in case.messages)
    parts.append("\n".join([_HEADINGS["conversation"], *spoken]))
    form = f"{_FORM}\n{_ONE_ENTRY}" if case.arm == CONFOUNDED_ARM else _FORM
    parts.append(f"{_HEADINGS['reply']}\n{form}")
    return "\n\n".join(parts) + "\n"


def _line(tool: WireTool) -> str:
    shown: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return json.dumps(shown, ensure_ascii=False)


def _example_surface(channel: Literal["native", "inlined"]) -> Surface:
    return Surface(
        channel="embedded",
        shape="openai-chat",
        tool_channel=channel,
        uncontrolled=(),
        readable_as="",
        latency_admissible=False,
        pins_sampling=True,
    )
