"""A case as it is put to a lane: the same words for every model, and never a hint of the oracle."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.benchmarks.bakeoff import asking
from referee.core.bakeoff import Sampling, Surface
from referee.core.cases import Case, Tool

TOOLS = (
    Tool(
        name="calendar.create_event",
        description="Trägt einen Termin ein.",
        parameters={
            "type": "object",
            "properties": {"title": {"type": "string"}, "date": {"type": "string", "format": "date"}},
            "required": ["title", "date"],
        },
    ),
    Tool(name="send_mail"),
)


def case_of(**over: object) -> Case:
    body: dict[str, object] = {
        "id": "c1",
        "category": "simple-call",
        "language": "de",
        "messages": [{"role": "user", "content": "Trage „Zahnarzt“ am 24.07.2026 ein."}],
        "toolset": "office",
        "expected_call": {"name": "calendar.create_event", "arguments": {"title": "Zahnarzt", "date": "2026-07-24"}},
    }
    return Case.model_validate(body | over)


def surface_of(channel: str) -> Surface:
    inlined = channel == "inlined"
    return Surface(
        channel="agent-cli" if inlined else "local",
        shape="cli-envelope" if inlined else "openai-chat",
        tool_channel="inlined" if inlined else "native",
        uncontrolled=(),
        readable_as="",
        latency_admissible=not inlined,
        pins_sampling=not inlined,
    )


_OTHER_WORDS = {
    "_HEADINGS": {"task": "Task", "tools": "Tools", "conversation": "Talk", "reply": "Reply"},
    "_SPEAKERS": {"user": "A:", "assistant": "B:"},
}
NATIVE, INLINED = surface_of("native"), surface_of("inlined")


def test_a_native_lane_gets_messages_tools_and_a_required_call() -> None:
    ask, sent = asking.ask_of(case_of(), TOOLS, "Du hilfst im Büro.", NATIVE, Sampling())
    assert ask.messages == (
        ("system", "Du hilfst im Büro."),
        ("user", "Trage „Zahnarzt“ am 24.07.2026 ein."),
    )
    assert [(tool.name, tool.description, tool.parameters) for tool in ask.tools] == [
        ("calendar_create_event", "Trägt einen Termin ein.", TOOLS[0].parameters),
        ("send_mail", "", TOOLS[1].parameters),
    ]
    assert sent == {"calendar_create_event": "calendar.create_event", "send_mail": "send_mail"}
    assert ask.require_call


@pytest.mark.parametrize("wanted", [True, False])
def test_no_call_is_ever_required_where_none_is_right(wanted: bool) -> None:
    abstain = case_of(category="abstain", expected_call=None)
    ask, _ = asking.ask_of(abstain, TOOLS, None, NATIVE, Sampling(require_call=wanted))
    assert not ask.require_call
    assert ask.messages[0][0] == "user"
    expecting, _ = asking.ask_of(case_of(), TOOLS, None, NATIVE, Sampling(require_call=wanted))
    assert expecting.require_call is wanted


def test_earlier_turns_keep_their_order_and_speaker() -> None:
    turns = [
        {"role": "user", "content": "Trage den Zahnarzt ein."},
        {"role": "assistant", "content": "An welchem Tag?"},
        {"role": "user", "content": "Am 24. Juli 2026."},
    ]
    ask, _ = asking.ask_of(case_of(messages=turns), TOOLS, None, NATIVE, Sampling())
    assert ask.messages == tuple((turn["role"], turn["content"]) for turn in turns)
    inlined, _ = asking.ask_of(case_of(messages=turns), TOOLS, None, INLINED, Sampling())
    ((role, text),) = inlined.messages
    assert role == "user"
    places = [
        text.index(f"{who}: {turn['content']}") for who, turn in zip(["User", "Assistant", "User"], turns, strict=True)
    ]
    assert places == sorted(places)


def test_an_inlined_lane_gets_everything_in_one_message() -> None:
    ask, sent = asking.ask_of(case_of(), TOOLS, "Du hilfst im Büro.", INLINED, Sampling())
    ((role, text),) = ask.messages
    assert (role, ask.tools, ask.require_call) == ("user", (), False)
    assert "Du hilfst im Büro." in text
    assert "Trage „Zahnarzt“ am 24.07.2026 ein." in text
    shown = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
    assert [tool["name"] for tool in shown] == list(sent)
    assert shown[0]["parameters"] == TOOLS[0].parameters
    assert '{"tool_calls":[]}' in text


def test_the_oracle_does_not_show_in_an_inlined_prompt() -> None:
    """The same question with every kind of oracle is put in the same words: what is expected cannot be read off."""
    one = case_of()
    none = case_of(category="abstain", expected_call=None)
    two_calls = {"expected_calls": [{"name": "send_mail"}, {"name": "send_mail"}], "category": "multi-call-ordering"}
    two = Case.model_validate({**one.model_dump(exclude={"expected_call", "expected_calls"}), **two_calls})
    texts = {asking.ask_of(case, TOOLS, "Task.", INLINED, Sampling())[0].messages for case in (one, none, two)}
    assert len(texts) == 1
    ((_, text),) = texts.pop()
    assert "one entry" not in text


def test_only_the_confounded_arm_asks_for_one_entry() -> None:
    ask, _ = asking.ask_of(case_of(arm="ordering-v1"), TOOLS, None, INLINED, Sampling())
    clean, _ = asking.ask_of(case_of(arm="ordering-v2"), TOOLS, None, INLINED, Sampling())
    assert "Emit exactly one entry" in ask.messages[0][1]
    assert "exactly one entry" not in clean.messages[0][1]
    native, _ = asking.ask_of(case_of(arm="ordering-v1"), TOOLS, None, NATIVE, Sampling())
    assert "exactly one entry" not in str(native.messages)


def test_names_that_become_alike_are_told_apart() -> None:
    tools = [Tool(name=name) for name in ("a.b", "a_b", "a b", "a_b_2", "x" * 70, "x" * 80, "ü")]
    names = asking.sent_names(tools)
    assert names == ("a_b_3", "a_b", "a_b_4", "a_b_2", "x" * 64, "x" * 62 + "_2", "_")


def test_a_name_that_stands_twice_is_sent_apart_and_means_the_same() -> None:
    tools = [Tool(name="look"), Tool(name="look")]
    _, sent = asking.ask_of(case_of(), tools, None, NATIVE, Sampling())
    assert sent == {"look": "look", "look_2": "look"}


@given(st.lists(st.text(min_size=1, max_size=80), max_size=12))
def test_every_name_can_be_sent_and_taken_back(names: list[str]) -> None:
    tools = [Tool(name=name) for name in names]
    sent = asking.sent_names(tools)
    assert len(set(sent)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in sent)
    unchanged = [name for name in names if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)]
    assert set(unchanged) <= set(sent)
    assert sent == asking.sent_names(tools)


def test_a_change_of_the_words_changes_their_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = asking.prompt_digest()
    assert before.startswith("bakeoff-prompt:sha256:09b1061d3bb266a19e9cd968ae1ddd72cc3ec8c4cac202367ab43fc9a799b1c5")
    for name in ("_OPENING", "_FORM", "_ONE_ENTRY", "_HEADINGS", "_SPEAKERS"):
        with monkeypatch.context() as patch:
            patch.setattr(asking, name, _OTHER_WORDS.get(name, "other words"))
            assert asking.prompt_digest() != before
    assert asking.prompt_digest() == before


def test_the_words_have_not_changed_without_a_new_version() -> None:
    """Whoever changes the words counts the version up and pins the new digest here: old rows stay comparable."""
    pinned = {1: "bakeoff-prompt:sha256:09b1061d3bb266a19e9cd968ae1ddd72cc3ec8c4cac202367ab43fc9a799b1c5"}
    assert asking.prompt_digest() == pinned[asking.PROMPT_VERSION]
