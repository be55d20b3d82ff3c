"""Cold corroboration: what a replay on a pristine machine says of a run (methodology §5). Pure.

Three answers. *Not reproducible* is said only where everything that the agent did was told and done again, nothing of
ours failed, and the reported command then failed or gave another result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from referee.core.records import Replayed
from referee.core.report import Report, Verification
from referee.core.sessions.steps import StepDone, Told
from referee.scoring.corroboration import corroborate

ColdStatus = Literal["reproducible", "not_reproducible", "could_not_be_replayed"]

#: Statuses with which a shell says that it cannot start a command: here it says that the thing was not made again.
_CANNOT_RUN = {126, 127}
#: How clients say that a network, or what answers in it, failed: no finding about a project.
_NETWORK = re.compile(
    r"could not resolve|temporary failure (?:in name resolution|resolving)|name or service not known|"
    r"connection timed out|read timed out|connection reset by peer|network is unreachable|no route to host|"
    r"ETIMEDOUT|ECONNRESET|EAI_AGAIN|ENOTFOUND|ENETUNREACH|TLS handshake timeout|max retries exceeded|"
    r"\b(?:429 too many requests|50[0234] (?:bad gateway|service unavailable|gateway time-?out|internal server error))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Cold:
    """What a replay says, and why in one sentence."""

    status: ColdStatus
    reason: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"status": self.status, "reason": self.reason}


def judge_replay(
    report: Report | None, replayed: Replayed, output: bytes | None, told: Told, done: Sequence[StepDone]
) -> Cold:
    """Judge one replay.

    Args:
        report: the run's report.
        replayed: the facts of the replay.
        output: what the reported command printed after it; None where nothing is kept.
        told: what the run's recording tells.
        done: the steps as they were carried out again.
    """
    if report is None or not isinstance(report.verified_how, Verification):
        return _could_not("the report names no command whose result could be looked for")
    if told.why_not is not None:
        return _could_not(told.why_not)
    if replayed.rerun is None or replayed.stopped_at is not None or replayed.ran < replayed.commands:
        return _could_not(_stopped(replayed))
    found = corroborate(report, replayed.rerun, output)
    if found.status == "corroborated":
        return Cold("reproducible", _again(replayed.commands))
    status = replayed.rerun.exit_status
    if found.flags or (found.status != "contradicted" and status not in _CANNOT_RUN):
        return _could_not(found.reason)
    return _failed(found.reason, replayed, told, done)


def _failed(reason: str, replayed: Replayed, told: Told, done: Sequence[StepDone]) -> Cold:
    """The reported command failed or gave another result: a finding, unless something else explains it."""
    if replayed.network is not None and not replayed.network.reachable:
        return _could_not(f"the package registries were out of reach of a fresh machine: {replayed.network.said}")
    parted = [one for one in done if _parted(told, one)]
    for one in parted:
        if _NETWORK.search(one.tail):
            return _could_not(f"command {one.number} failed here by what looks like the network: {_line(one.tail)}")
    if told.untold:
        return _could_not(f"{reason}; but {'; '.join(told.untold)}")
    where = f"; command {parted[0].number}, which succeeded in the session, did not here" if parted else ""
    return Cold("not_reproducible", f"after the same commands on a pristine machine: {reason}{where}")


def _parted(told: Told, one: StepDone) -> bool:
    """Whether a step failed here that is not recorded as a failure."""
    recorded = told.steps[one.number - 1]
    if recorded.kind != "command" or recorded.stopped:
        return False
    return one.status != 0 and recorded.status in {0, None}


def _stopped(replayed: Replayed) -> str:
    why = replayed.detail or "it did not come to its end"
    return why if replayed.stopped_at is None else f"at step {replayed.stopped_at} of {replayed.commands}: {why}"


def _again(commands: int) -> str:
    steps = "the one recorded step" if commands == 1 else f"all {commands} recorded steps"
    return f"on a pristine machine, after {steps}, the reported command succeeded and gave the reported result"


def _could_not(reason: str) -> Cold:
    return Cold("could_not_be_replayed", reason)


def _line(tail: str) -> str:
    found = _NETWORK.search(tail)
    row = next((row for row in tail.splitlines() if found and found[0] in row), tail)
    return row.strip()[:200]
