"""How long a challenge may take, and what is said of those that are not made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from referee.benchmarks.bringup.challenge import challenge
from referee.core.records import RerunFacts
from referee.protocols import Completed, Machine
from referee.runner.observing import _seconds

if TYPE_CHECKING:
    from pathlib import Path

ASKED = [("12", str(number), f"square {number}") for number in (18, 31)]


class Answering:
    """A machine in which every command ends well."""

    def quiet(self) -> SimpleNamespace:
        return SimpleNamespace(confirmed=True)

    def execute(self, *_: object, **__: object) -> Completed:
        return Completed(exit_status=0, output=b"144\n", timed_out=False, truncated=False)


@pytest.mark.parametrize(
    ("seconds", "made", "why"), [(100.0, 2, None), (5.0, 1, "the time for all of them was up"), (10.0, 1, "the time")]
)
def test_none_is_begun_that_could_not_have_its_whole_time(
    seconds: float, made: int, why: str | None, tmp_path: Path
) -> None:
    machine = cast("Machine", Answering())
    seen, left = challenge(machine, ASKED, directory=tmp_path, timeout=10.0, seconds=seconds)
    assert (len(seen), left is None) == (made, why is None)
    assert not any(one.timed_out for one in seen)
    assert left is None or left.startswith(str(why))


@pytest.mark.parametrize("took", [0.5, 30.0, 121.0, 600.0])
def test_a_slow_command_has_more_than_it_took(took: float) -> None:
    again = RerunFacts(command="square 12", exit_status=0, timed_out=False, seconds=took, output=None)
    assert _seconds(again) > took
