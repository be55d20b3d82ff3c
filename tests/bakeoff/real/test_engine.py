"""A real engine on loopback: llama.cpp's server with a model of random weights, through every lane that it speaks.

Ollama's own server is on no registry that the tests can reach; its API is played by the scripted server alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from referee.adapters.suites import bundled_suite
from referee.cli.wiring import make_lane
from referee.core.bakeoff import Blame, Sampling, Target
from referee.core.cases import CATEGORIES, Message
from referee.errors import CouldNotVerify
from referee.protocols import Lane
from tests.bakeoff.real.putting import CALENDAR, CLOCK, DENTIST, JOKE, TIME, Put, put

pytestmark = [pytest.mark.slow, pytest.mark.registry]

TOOLS = (CALENDAR, CLOCK)
T = TypeVar("T")


def aim(url: str, **over: Any) -> Target:
    body = {
        "name": "engine",
        "model": "random",
        "lane": "openai-chat",
        "channel": "local",
        "sovereignty": "none",
        "base_url": f"{url}/v1",
        "precision": "f32",
    }
    return Target.model_validate(body | over)


def use(target: Target, spool: Path, use_it: Callable[[Lane], Awaitable[T]]) -> T:
    async def run() -> T:
        lane = make_lane(target, spool=spool, environ={})
        try:
            return await use_it(lane)
        finally:
            await lane.close()

    return asyncio.run(run())


def test_the_check_finds_the_model_and_refuses_another(engine: str, tmp_path: Path) -> None:
    facts = use(aim(engine), tmp_path, lambda lane: lane.check())
    assert facts.model == "random"
    with pytest.raises(CouldNotVerify, match="another"):
        use(aim(engine, model="another"), tmp_path, lambda lane: lane.check())


@pytest.mark.parametrize("stream", [False, True])
def test_a_right_call_passes_and_its_name_is_taken_back(engine: str, tmp_path: Path, stream: bool) -> None:
    """The model's habit is the only tool's call without arguments; on the wire the tool is ``clock_now``."""
    came = use(aim(engine, stream=stream), tmp_path, lambda lane: put(lane, TIME, (CLOCK,)))
    assert came.said.streamed is stream
    assert [(call.name, call.arguments) for call in came.reading.calls] == [("clock_now", {})]
    assert came.reading.finish == "tool_calls"
    assert came.reading.model == "random"
    assert came.reading.well_formed
    assert came.grade.passed is True, came.grade.reason


@pytest.mark.parametrize("lane", ["anthropic-messages", "openai-responses"])
def test_the_same_engine_answers_in_the_other_shapes(engine: str, tmp_path: Path, lane: str) -> None:
    came = use(aim(engine, lane=lane), tmp_path, lambda one: put(one, TIME, (CLOCK,)))
    assert came.reading.fault is None, came.said.body
    assert [(call.name, call.arguments) for call in came.reading.calls] == [("clock_now", {})], came.said.body
    assert came.grade.passed is True, came.grade.reason
    assert came.reading.output_tokens is not None


def test_a_wrong_call_fails_with_a_reason(engine: str, tmp_path: Path) -> None:
    came = use(aim(engine), tmp_path, lambda lane: put(lane, DENTIST, (CALENDAR,)))
    assert came.reading.calls[0].name == "calendar_create"
    assert came.grade.passed is False
    assert "title" in came.grade.reason or "date" in came.grade.reason
    assert came.grade.wrong is not None


def test_a_call_where_none_fits_fails(engine: str, tmp_path: Path) -> None:
    """Nothing is required of an abstain case; the model calls by habit, and that is what is measured."""
    came = use(aim(engine), tmp_path, lambda lane: put(lane, JOKE, TOOLS))
    assert not came.ask.require_call
    assert came.reading.calls != ()
    assert came.grade.passed is False


def test_an_answer_cut_off_never_passes(engine: str, tmp_path: Path) -> None:
    """The limit falls within the call: no half call is read, and on an abstain case it is no abstention."""
    cut = Sampling(max_tokens=12)
    for case in (TIME, JOKE):
        came = use(aim(engine), tmp_path, lambda lane, case=case: put(lane, case, (CLOCK,), sampling=cut))  # type: ignore[misc]
        assert came.reading.calls == ()
        assert came.grade.passed is False, (came.said.body, came.grade)
        assert came.grade.well_formed is False


def test_a_question_too_long_for_the_context_is_the_cases_fault(engine: str, tmp_path: Path) -> None:
    long = TIME.model_copy(update={"messages": (Message(role="user", content="what time is it? " * 4_000),)})
    came = use(aim(engine), tmp_path, lambda lane: put(lane, long, (CLOCK,)))
    assert came.said.status == 400
    assert came.reading.fault is not None
    assert came.reading.fault.blame is Blame.CASE
    assert came.grade.passed is None


def test_temperature_nought_and_a_seed_give_the_same_answer_thrice(engine: str, tmp_path: Path) -> None:
    async def thrice(lane: Lane) -> list[Put]:
        return [await put(lane, DENTIST, TOOLS) for _ in range(3)]

    answers = use(aim(engine), tmp_path, thrice)
    assert len({str(came.reading.calls) for came in answers}) == 1


def test_the_shipped_suite_goes_through_a_real_engine(engine: str, tmp_path: Path) -> None:
    """A case of each category: every answer is read and graded, none is a fault of the harness."""
    suite = bundled_suite("s1")
    chosen = [case for name in CATEGORIES for case in [c for c in suite.cases if c.category == name][:1]]

    async def all_of_them(lane: Lane) -> list[Put]:
        asked = (
            put(
                lane,
                case,
                suite.tools(case),
                prompt=None if case.prompt is None else suite.prompts[case.prompt],
                grading=suite.grading,
            )
            for case in chosen
        )
        return await asyncio.gather(*asked)

    answers = use(aim(engine), tmp_path, all_of_them)
    assert len(answers) == len(CATEGORIES)
    for case, came in zip(chosen, answers, strict=True):
        assert came.said.status == 200, (case.id, came.said.body)
        assert came.reading.fault is None, (case.id, came.reading.fault)
        assert isinstance(came.grade.passed, bool)
        assert came.grade.reason
        assert came.ask.require_call is not case.abstains
        if came.ask.require_call and came.reading.broken is None:
            assert came.reading.calls != (), (case.id, came.said.body)
    assert any(came.reading.calls for came in answers)


def test_required_arguments_are_there_in_every_call(engine: str, tmp_path: Path) -> None:
    """What the engine may write is bound by the schema as it was sent: the schemas arrive whole."""
    came = use(aim(engine), tmp_path, lambda lane: put(lane, DENTIST, (CALENDAR,)))
    assert set(came.reading.calls[0].arguments) == {"title", "date"}
