"""What a machine's trouble makes of an attempt: its limits are the agent's, its faults are ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from referee.adapters.recorder import End, Recorded
from referee.core.failure import FAILURES, Cause
from referee.core.records import RerunFacts
from referee.protocols import Machine
from referee.runner.causes import name_cause, name_cause_of_rerun
from referee.runner.seen import Seen

ENDED = Recorded(Path("r"), Path("t"), "ended", "", 1, 1, 1.0, 0, (), None)


class Troubled:
    """All that is asked of a machine here."""

    def __init__(self, trouble: str | None) -> None:
        self._trouble = trouble

    def trouble(self) -> str | None:
        """As told."""
        return self._trouble


@pytest.mark.parametrize(
    ("trouble", "cause", "counts"),
    [
        ("memory", Cause.MEMORY_LIMIT, True),
        ("disk", Cause.DISK_LIMIT, True),
        ("the machine was removed from outside", Cause.MACHINE_FAULT, False),
        (None, None, True),
    ],
)
@pytest.mark.parametrize("seen_by", ["watch", "afterwards"])
def test_a_limit_of_the_machine_counts_and_its_fault_does_not(
    trouble: str | None, cause: Cause | None, counts: bool, seen_by: str
) -> None:
    watched = replace(ENDED, end="watch", detail=trouble or "", exit_status=None)
    seen = Seen(recorded=watched if seen_by == "watch" and trouble else ENDED)
    name_cause(seen, cast("Machine", Troubled(trouble)))
    assert seen.cause is cause
    assert cause is None or FAILURES[cause].counts is counts
    assert seen.would_count_as_no_pass is counts


@pytest.mark.parametrize("end", ["size_cap", "event_cap"])
def test_a_cap_of_the_recording_counts(end: End) -> None:
    seen = Seen(recorded=replace(ENDED, end=end, detail="the cap of 5 bytes", exit_status=None))
    name_cause(seen, cast("Machine", Troubled(None)))
    assert (seen.cause, seen.detail) == (Cause.RECORDING_LIMIT, "the cap of 5 bytes")


def test_a_command_that_runs_into_a_limit_again_is_not_observed() -> None:
    again = RerunFacts(command="make", exit_status=137, timed_out=False, seconds=1.0, output="rerun.txt")
    for trouble in ("memory", "disk"):
        seen = Seen(rerun=again)
        name_cause_of_rerun(seen, cast("Machine", Troubled(trouble)))
        assert seen.cause is None
        assert seen.rerun is not None
        assert seen.rerun.could_not_run == f"it ran into the machine's limit of {trouble}"
    seen = Seen(rerun=again)
    name_cause_of_rerun(seen, cast("Machine", Troubled("the machine stopped by itself with status 137")))
    assert seen.cause is Cause.MACHINE_FAULT
