"""Why an attempt was cut short: what of the recording, the machine and the model's way out tells it.

A fault of our own side makes the attempt invalid, never a zero: ``core.failure`` says which cause means what.
"""

from __future__ import annotations

import time

from referee.adapters.recorder import End
from referee.core.failure import FAILURES, Cause
from referee.protocols import Machine
from referee.runner.seen import Seen

_CAUSE_OF_END: dict[End, Cause] = {
    "deadline": Cause.DEADLINE,
    "size_cap": Cause.RECORDING_LIMIT,
    "event_cap": Cause.RECORDING_LIMIT,
    "write_error": Cause.RECORDER_WRITE_ERROR,
    "stream_lost": Cause.RECORDING_INCOMPLETE,
}

#: Limits of the machine: the same for everyone, so what runs into one does so by its own doing.
_CAUSE_OF_TROUBLE = {"memory": Cause.MEMORY_LIMIT, "disk": Cause.DISK_LIMIT}

#: Exit statuses above this mean: ended by a signal; the engine learns of a machine's death a little later.
_KILLED_FROM = 128
_SETTLE_SECONDS = 1.0

#: Asks whether the host's gateway can be reached, from inside a machine.
_KNOCK = "exec 3<>/dev/tcp/{}/{}"
_KNOCK_SECONDS = 15.0


def name_cause(seen: Seen, machine: Machine) -> None:
    """Say why the recording ended, and see whether the machine is still sound."""
    recorded = seen.recorded
    if recorded is None:
        return
    lost = recorded.end == "ended" and recorded.exit_status is None
    trouble = recorded.detail if recorded.end == "watch" else None
    if recorded.end in {"ended", "stream_lost"}:
        trouble = _trouble_after(recorded.exit_status, machine)
    if trouble is not None:
        known = _CAUSE_OF_TROUBLE.get(trouble)
        seen.end(known or Cause.MACHINE_FAULT, "" if known else trouble)
    elif recorded.end in _CAUSE_OF_END:
        seen.end(_CAUSE_OF_END[recorded.end], recorded.detail)
    elif lost:
        seen.end(Cause.RECORDING_INCOMPLETE, "the session's exit status could not be learned")


def name_cause_of_rerun(seen: Seen, machine: Machine) -> None:
    """A machine that failed under the re-run is our fault: never a claim that was not observed or contradicted.

    A command that runs into a limit of the machine when it is run again could not be observed: that is its own doing.
    """
    again = seen.rerun
    if again is None or again.timed_out:
        return
    if again.could_not_run is not None or again.exit_status is None or again.exit_status > _KILLED_FROM:
        trouble = _trouble_after(again.exit_status, machine)
        if trouble is not None:
            known = _CAUSE_OF_TROUBLE.get(trouble)
            if known is None:
                seen.end(Cause.MACHINE_FAULT, f"{trouble} (while the report's command ran again)")
            else:
                seen.rerun = again.model_copy(update={"could_not_run": f"it ran into the machine's limit of {trouble}"})


def name_cause_of_model(seen: Seen, *, credential_refused: bool = False) -> None:
    """An agent whose model, or whose way to it, failed at the end claims no pass through no fault of its own.

    A key that reached its cap is no such cause: the cap is one of the conditions that are equal for all.
    """
    spending = seen.spending
    if spending is None or not seen.would_count_as_no_pass:
        return
    if spending.broken is not None:
        seen.found_out(Cause.GATEWAY_FAILED, f"{FAILURES[Cause.GATEWAY_FAILED].sentence}: {spending.broken}")
    elif spending.ended_by_upstream:
        failed = "" if spending.failed_upstream is None else f" ({spending.failed_upstream} of {spending.calls} calls)"
        said = (
            f"the upstream of the agent's model refused our credential (401), in the last call of the run{failed} and "
            "when the gateway asked itself"
            if credential_refused
            else f"{FAILURES[Cause.MODEL_UNAVAILABLE].sentence}: its upstream failed the last call of the run{failed} "
            "and did not answer the gateway itself either"
        )
        seen.found_out(Cause.MODEL_UNAVAILABLE, said)


def name_cause_of_silence(seen: Seen, fresh: Machine, gateway: tuple[str, int] | None) -> None:
    """An agent that made no call may have had no way to the gateway: a fresh machine is asked."""
    if gateway is None or seen.spending is None or seen.spending.calls or seen.spending.refused:
        return
    argv = ("/bin/bash", "-c", _KNOCK.format(*gateway))
    done = fresh.execute(argv, timeout=_KNOCK_SECONDS, max_output=2_000)
    if done.exit_status != 0:
        said = "no answer in time" if done.timed_out else done.output.decode("utf-8", "replace").strip()[-300:]
        seen.found_out(
            Cause.GATEWAY_FAILED,
            f"{FAILURES[Cause.GATEWAY_FAILED].sentence}: a fresh machine could not reach it either: {said}",
        )


def _trouble_after(exit_status: int | None, machine: Machine) -> str | None:
    """Whether a command's end was the machine's: one that was killed is asked for until the engine knows."""
    killed = exit_status is None or exit_status > _KILLED_FROM
    deadline = time.monotonic() + (_SETTLE_SECONDS if killed else 0.0)
    while (trouble := machine.trouble()) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return trouble
