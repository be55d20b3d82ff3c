"""A third party's server on loopback: litellm's proxy with mock responses, its shapes and its errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from referee.cli.wiring import make_lane
from referee.core.bakeoff import Blame, Target
from referee.errors import CouldNotVerify
from referee.protocols import Lane
from tests.bakeoff.real.conftest import GATEWAY_KEY
from tests.bakeoff.real.putting import CALENDAR, CLOCK, DENTIST, JOKE, put

pytestmark = [pytest.mark.slow, pytest.mark.registry]

TOOLS = (CALENDAR, CLOCK)
T = TypeVar("T")


def use(url: str, model: str, spool: Path, use_it: Callable[[Lane], Awaitable[T]], key: str = GATEWAY_KEY) -> T:
    target = Target(
        name="gateway",
        model=model,
        lane="openai-chat",
        channel="own-infrastructure",
        sovereignty="none",
        base_url=f"{url}/v1",
        key_env="LANE_KEY",
    )

    async def run() -> T:
        lane = make_lane(target, spool=spool, environ={"LANE_KEY": key})
        try:
            return await use_it(lane)
        finally:
            await lane.close()

    return asyncio.run(run())


def test_the_check_finds_the_model_and_refuses_another(gateway: str, tmp_path: Path) -> None:
    assert use(gateway, "calls", tmp_path, lambda lane: lane.check()).model == "calls"
    with pytest.raises(CouldNotVerify, match="another"):
        use(gateway, "another", tmp_path, lambda lane: lane.check())


def test_the_check_refuses_a_wrong_key_without_showing_it(gateway: str, tmp_path: Path) -> None:
    with pytest.raises(CouldNotVerify) as caught:
        use(gateway, "calls", tmp_path, lambda lane: lane.check(), key="sk-wrong-0123456789abcdef")
    assert "sk-wrong-0123456789abcdef" not in caught.value.message


def test_a_call_counts_although_it_says_stop(gateway: str, tmp_path: Path) -> None:
    """This server says ``stop`` beside a call: a call is known by its presence, never by the finish reason."""
    came = use(gateway, "calls", tmp_path, lambda lane: put(lane, DENTIST, TOOLS))
    assert came.reading.finish == "stop"
    assert came.grade.passed is True, came.grade.reason


def test_words_pass_where_none_fits_and_fail_where_one_does(gateway: str, tmp_path: Path) -> None:
    abstained = use(gateway, "says", tmp_path, lambda lane: put(lane, JOKE, TOOLS))
    assert abstained.grade.passed is True, abstained.grade.reason
    silent = use(gateway, "says", tmp_path, lambda lane: put(lane, DENTIST, TOOLS))
    assert silent.grade.passed is False
    guessed = use(gateway, "calls", tmp_path, lambda lane: put(lane, JOKE, TOOLS))
    assert guessed.grade.passed is False


@pytest.mark.parametrize(
    ("model", "status", "blame"),
    [
        ("limited", 429, Blame.INFRA),
        ("broken", 500, Blame.INFRA),
        ("long", 400, Blame.CASE),
        ("another", 400, Blame.CONFIG),
    ],
)
def test_its_errors_are_told_apart(gateway: str, tmp_path: Path, model: str, status: int, blame: Blame) -> None:
    came = use(gateway, model, tmp_path, lambda lane: put(lane, DENTIST, TOOLS))
    assert came.said.status == status, came.said.body
    assert came.reading.fault is not None
    assert came.reading.fault.blame is blame, came.reading.fault
    assert came.grade.passed is None


def test_eight_at_once_come_back_apart(gateway: str, tmp_path: Path) -> None:
    async def eight(lane: Lane) -> list[bool | None]:
        came = await asyncio.gather(*(put(lane, DENTIST, TOOLS) for _ in range(8)))
        return [one.grade.passed for one in came]

    assert use(gateway, "calls", tmp_path, eight) == [True] * 8
