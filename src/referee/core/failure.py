"""One table: for each cause that cuts an attempt short, whose fault it is and what follows.

Methodology §7: an attempt cut short by the harness's own tooling, for a reason unrelated to the project, is invalid —
marked so with the reason, published, not counted, never a zero. What the agent or its project brought about is none:
the limits are the same for everyone and published, and reaching one ends the attempt, which then counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Cause(StrEnum):
    """Why an attempt ended otherwise than by its agent's own end."""

    DEADLINE = "deadline"
    MEMORY_LIMIT = "memory_limit"
    DISK_LIMIT = "disk_limit"
    RECORDING_LIMIT = "recording_limit"
    REPORT_BROKEN = "report_broken"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    ENVIRONMENT_UNAVAILABLE = "environment_unavailable"
    MACHINE_FAULT = "machine_fault"
    NETWORK_OF_MACHINES = "network_of_machines"
    HOST_DISK = "host_disk"
    MEMORY_OF_MACHINE = "memory_of_machine"
    DISK_OF_MACHINE = "disk_of_machine"
    RECORDER_WRITE_ERROR = "recorder_write_error"
    RECORDING_SIZE_CAP = "recording_size_cap"
    RECORDING_EVENT_CAP = "recording_event_cap"
    RECORDING_INCOMPLETE = "recording_incomplete"
    REPORT_UNREADABLE = "report_unreadable"
    REPORT_REJECTED = "report_rejected"
    SURVIVORS = "survivors"
    KEY_UNAVAILABLE = "key_unavailable"
    MODEL_UNAVAILABLE = "model_unavailable"
    GATEWAY_FAILED = "gateway_failed"
    CREDENTIAL_IN_EVIDENCE = "credential_in_evidence"
    HARNESS_DIED = "harness_died"
    INTERRUPTED = "interrupted"
    INTERNAL = "internal"


Fault = Literal["agent", "ours", "operator", "source"]


@dataclass(frozen=True)
class Failure:
    """What follows from a cause: whose fault, whether to try again, whether the attempt counts."""

    fault: Fault
    retry: bool
    counts: bool
    sentence: str


#: Causes that leave a complete attempt, which claims nothing whatever its report says: a fail with 0 points.
CLAIMS_NOTHING = frozenset({Cause.MEMORY_LIMIT, Cause.DISK_LIMIT, Cause.RECORDING_LIMIT, Cause.REPORT_BROKEN})

#: Found in records of before these four came; a run keeps the rules of its day.
RETIRED = frozenset(
    {
        Cause.MEMORY_OF_MACHINE,
        Cause.DISK_OF_MACHINE,
        Cause.RECORDING_SIZE_CAP,
        Cause.RECORDING_EVENT_CAP,
        Cause.REPORT_REJECTED,
    }
)

FAILURES: dict[Cause, Failure] = {
    Cause.DEADLINE: Failure("agent", False, True, "the time limit ended the agent's work"),
    Cause.MEMORY_LIMIT: Failure("agent", False, True, "the machine's memory limit ended the agent's work"),
    Cause.DISK_LIMIT: Failure("agent", False, True, "the machine's disk limit ended the agent's work"),
    Cause.RECORDING_LIMIT: Failure("agent", False, True, "the recording's limit ended the agent's work"),
    Cause.REPORT_BROKEN: Failure("agent", False, True, "the report was rejected, so it claims nothing"),
    Cause.ENGINE_UNAVAILABLE: Failure("ours", True, False, "no container engine answered"),
    Cause.ENVIRONMENT_UNAVAILABLE: Failure("ours", False, False, "the environment image was not to be had"),
    Cause.MACHINE_FAULT: Failure("ours", True, False, "the machine failed under the attempt"),
    Cause.NETWORK_OF_MACHINES: Failure(
        "ours", True, False, "the package registries were out of reach of a fresh machine too"
    ),
    Cause.HOST_DISK: Failure("ours", False, False, "the host's disk was full"),
    Cause.MEMORY_OF_MACHINE: Failure("ours", False, False, "the machine ran out of its memory and was stopped"),
    Cause.DISK_OF_MACHINE: Failure("ours", False, False, "the machine's disk limit was reached and it was stopped"),
    Cause.RECORDER_WRITE_ERROR: Failure("ours", True, False, "the recording could not be written"),
    Cause.RECORDING_SIZE_CAP: Failure("ours", False, False, "the recording reached its size cap"),
    Cause.RECORDING_EVENT_CAP: Failure("ours", False, False, "the recording reached its event cap"),
    Cause.RECORDING_INCOMPLETE: Failure("ours", True, False, "the recording ended before the session did"),
    Cause.REPORT_UNREADABLE: Failure("ours", True, False, "the report could not be read"),
    Cause.REPORT_REJECTED: Failure("agent", False, False, "the report was rejected"),
    Cause.SURVIVORS: Failure("ours", True, False, "processes of the agent could not be confirmed dead"),
    Cause.KEY_UNAVAILABLE: Failure("ours", True, False, "the run's key could not be made"),
    Cause.MODEL_UNAVAILABLE: Failure("ours", True, False, "the agent's model did not answer"),
    Cause.GATEWAY_FAILED: Failure("ours", True, False, "the gateway to the agent's model failed"),
    Cause.CREDENTIAL_IN_EVIDENCE: Failure(
        "ours", True, False, "the evidence could not be shown to be free of credentials and is withheld"
    ),
    Cause.HARNESS_DIED: Failure("ours", True, False, "the harness died during the attempt"),
    Cause.INTERRUPTED: Failure("operator", True, False, "the attempt was interrupted"),
    Cause.INTERNAL: Failure("ours", False, False, "the referee itself failed"),
}
